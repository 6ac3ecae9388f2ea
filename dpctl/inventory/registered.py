"""Which healthy devices the kubelet has, per resource that it tracks: RegisteredDevices, mended by
what it says itself. Pure.

With every list that a plugin sends, the kubelet gathers all that it knows and then writes it, and
that is not one step: where several plugins register at once, what was gathered first may be written
last. The file then lacks devices, or a whole name, until the next write, and on a quiet node that
may be days away. GetAllocatableResources tells of the kubelet's memory, but leaves out devices with
an empty topology (kubelet-facts §7). So neither is enough alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpctl.model import Snapshot
from dpctl.quantity import count


def offered(snap: Snapshot) -> dict[str, set[str]]:
    """IDs that GetAllocatableResources offers, by resource."""
    found: dict[str, set[str]] = {}
    for device in snap.allocatable.devices if snap.allocatable else ():
        found.setdefault(device.resource, set()).add(device.device_id)
    return found


def registered(snap: Snapshot, offers: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """Healthy IDs by tracked resource; empty without a checkpoint. `offers`: see `offered`.

    A file that does not verify, or is gone, is not mended: what it lacks is not the last write.
    """
    checkpoint = snap.checkpoint
    if checkpoint is None:
        return {}
    found = {resource: frozenset(ids) for resource, ids in checkpoint.registered.items()}
    if checkpoint.verified and not checkpoint.absent:
        for resource, ids in offers.items():
            found[resource] = _agreed(snap, resource, found.get(resource, frozenset()), ids)
    return found


def is_behind(snap: Snapshot, healthy: Mapping[str, frozenset[str]], resource: str) -> bool:
    """Whether the file lacks the kubelet's last word on a resource. `healthy`: see `registered`."""
    written = snap.checkpoint.registered.get(resource) if snap.checkpoint else None
    return resource in healthy and (written is None or healthy[resource] != set(written))


def _agreed(
    snap: Snapshot, resource: str, written: frozenset[str], offers: set[str]
) -> frozenset[str]:
    """Both, since each may lack some; but what the Node confirms by its number is the newest."""
    confirmed = count(snap.node.allocatable.get(resource)) if snap.node is not None else None
    return frozenset(offers) if confirmed == len(offers) else written | offers
