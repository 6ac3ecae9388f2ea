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

from dpctl.inventory.ages import is_node_newer
from dpctl.model import Snapshot
from dpctl.quantity import count


def offered(snap: Snapshot) -> dict[str, set[str]]:
    """IDs that GetAllocatableResources offers, by resource."""
    found: dict[str, set[str]] = {}
    for device in snap.allocatable.devices if snap.allocatable else ():
        found.setdefault(device.resource, set()).add(device.device_id)
    return found


def untold(snap: Snapshot) -> str | None:
    """Why the checkpoint does not tell what a connected plugin has; None: it does."""
    checkpoint = snap.checkpoint
    if checkpoint is None:
        return "checkpoint not read"
    if not checkpoint.verified:
        return "checkpoint damaged"
    return "there is no checkpoint" if checkpoint.absent else None


def registered(snap: Snapshot, offers: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """Healthy IDs by tracked resource; empty without a checkpoint. `offers`: see `offered`.

    A file that does not verify, or is gone, is not mended: what it lacks is not the last write.
    """
    checkpoint = snap.checkpoint
    if checkpoint is None:
        return {}
    found = {resource: frozenset(ids) for resource, ids in checkpoint.registered.items()}
    if untold(snap) is None:
        for resource, ids in offers.items():
            found[resource] = _agreed(snap, resource, found.get(resource, frozenset()), ids)
    return found


def has_none_left(snap: Snapshot, resource: str, offers: Mapping[str, set[str]]) -> bool:
    """Whether no device of a connected plugin is healthy, whatever the file has: the kubelet offers
    none and the Node has 0.

    A plugin whose devices all have an empty topology looks the same from its first list until the
    kubelet next counts for its Node, so the Node must be newer than the file; until then the file
    is believed, as by the state Mismatch. (An older Node that shows just as many as are offered,
    and not 0, would be a rare chance: `_agreed` does not ask.) Of a plugin that is gone the file
    stays the last word.
    """
    if untold(snap) is not None or snap.allocatable is None or offers.get(resource):
        return False
    return allocatable(snap, resource) == 0 and is_node_newer(snap)


def is_behind(snap: Snapshot, resource: str, healthy: frozenset[str] | None) -> bool:
    """Whether the file lacks the kubelet's last word on a resource, which is `healthy`."""
    if snap.checkpoint is None or healthy is None:
        return False
    return healthy != set(snap.checkpoint.registered.get(resource, ()))


def is_by_file_alone(
    snap: Snapshot, resource: str, healthy: frozenset[str], offers: Mapping[str, set[str]]
) -> bool:
    """Whether some of the healthy are so by the file alone: the kubelet, asked, does not offer them
    (their topology is empty, or the file is behind), nor has the Node their number."""
    if snap.allocatable is None or healthy <= offers.get(resource, set()):
        return False
    return allocatable(snap, resource) != len(healthy)


def allocatable(snap: Snapshot, resource: str) -> int | None:
    """The Node's number; None: it has none, or was not read."""
    return count(snap.node.allocatable.get(resource)) if snap.node is not None else None


def _agreed(
    snap: Snapshot, resource: str, written: frozenset[str], offers: set[str]
) -> frozenset[str]:
    """Both, since each may lack some; but what the Node confirms by its number is the newest."""
    return frozenset(offers) if allocatable(snap, resource) == len(offers) else written | offers
