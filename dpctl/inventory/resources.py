"""Snapshot → one row per resource."""

from __future__ import annotations

from collections.abc import Mapping

from dpctl import names
from dpctl.inventory.ages import checkpoint_age, status_period
from dpctl.inventory.connections import foreign_owners
from dpctl.inventory.devices import Devices
from dpctl.inventory.registered import is_behind, untold
from dpctl.inventory.requests import effective_request, requested_names
from dpctl.inventory.rows import ResourceRow, ResourceState
from dpctl.inventory.states import Decision, Facts, decide
from dpctl.model import Snapshot, Source
from dpctl.text import natural_key


def resource_rows(snap: Snapshot, joined: Devices | None = None) -> tuple[ResourceRow, ...]:
    """All extended resources of the node, and names that the Node lacks and that a pod holds (or it
    cannot be told that it does not) or requests, or the checkpoint tracks; in natural order. What
    the checkpoint has of a pod that is gone makes none: it stands there until the next write."""
    joined = joined or Devices(snap)
    asked = requests(snap)
    ordered = sorted(_names(snap, joined, asked), key=natural_key)
    return tuple(_row(snap, joined, name, asked) for name in ordered)


def _names(snap: Snapshot, joined: Devices, asked: Mapping[str, int]) -> set[str]:
    found: set[str] = set()
    if snap.node is not None:
        found.update(snap.node.capacity, snap.node.allocatable)
    if snap.checkpoint is not None:
        found.update(snap.checkpoint.registered)
    found.update(joined.held)
    found.update(asked)
    found.update(joined.offered)
    found.update(joined.connections.keys_of)
    found.update(s.name for s in snap.registry or () if s.type == "DevicePlugin" and s.name)
    return {name for name in found if not names.is_native(name)}


def _row(snap: Snapshot, joined: Devices, resource: str, asked: Mapping[str, int]) -> ResourceRow:
    connections, node = joined.connections, snap.node
    connected, served = connections.connected(resource), connections.served(resource)
    registered = snap.checkpoint.registered.get(resource) if snap.checkpoint else None
    decision = decide_resource(snap, joined, resource, asked)
    healthy = joined.healthy(resource)
    allocated = joined.allocated(resource)
    endpoints, inferred = connections.endpoints(resource)
    return ResourceRow(
        resource=resource,
        state=decision.state,
        evidence=decision.evidence,
        missing_sources=decision.missing,
        healthy=None if healthy is None else len(healthy),
        total=joined.capacity(resource),
        allocated=None if allocated is None else len(allocated),
        free=joined.free(resource),
        numa=joined.numa_counts(resource),
        endpoints=endpoints,
        endpoints_inferred=inferred,
        capacity=node.capacity.get(resource) if node else None,
        allocatable=node.allocatable.get(resource) if node else None,
        node_read=node is not None,
        registered=None if registered is None else len(set(registered)),
        tracked=is_tracked(snap, joined, resource),
        connected=connected.value,
        connected_inferred=connected.inferred,
        served=True if connected.value else served.value,
        kubelet=None if snap.allocatable is None else len(joined.offered.get(resource, ())),
        requested=None if snap.pods is None else asked.get(resource, 0),
        owners=None
        if node is None or node.owners is None
        else tuple(node.owners.get(resource, ())),
        notes=_notes(snap, joined, decision, resource),
    )


def decide_resource(
    snap: Snapshot, joined: Devices, resource: str, asked: Mapping[str, int]
) -> Decision:
    """The state of one resource, with its evidence. `asked`: see `requests`."""
    connections = joined.connections
    used: bool | None = resource in joined.held or asked.get(resource, 0) > 0
    if not used and snap.pods is None:
        used = None
    registered = joined.registered(resource)
    device_class = next(
        (c.name for c in snap.device_classes or () if c.extended_resource_name == resource), None
    )
    return decide(
        Facts(
            resource=resource,
            node=snap.node,
            connected=connections.connected(resource),
            served=connections.served(resource),
            tracked=is_tracked(snap, joined, resource),
            untold=untold(snap) or "",
            healthy=None if registered is None else len(registered),
            behind=is_behind(snap, resource, registered),
            checkpoint_age=checkpoint_age(snap),
            status_period=status_period(snap),
            used_by_pods=used,
            device_class=device_class,
        )
    )


def is_tracked(snap: Snapshot, joined: Devices, resource: str) -> bool | None:
    """Whether the kubelet has it among its registered devices. None: no checkpoint, or a damaged
    one, which a kubelet that was running kept in memory as it was and one that started threw away.
    One that is gone says nothing of a plugin that is connected.
    """
    if snap.checkpoint is None or not snap.checkpoint.verified:
        return None
    if snap.checkpoint.absent and joined.connected(resource):
        return None
    return resource in joined.connections.registered


def requests(snap: Snapshot) -> dict[str, int]:
    """Effective requests of the non-terminal pods bound to the node, by resource, extended ones
    and malformed names alike."""
    total: dict[str, int] = {}
    for pod in snap.pods or ():
        if not pod.terminal:
            for name in requested_names(pod):
                total[name] = total.get(name, 0) + effective_request(pod, name)
    return total


def _notes(snap: Snapshot, joined: Devices, decision: Decision, resource: str) -> tuple[str, ...]:
    notes: list[str] = []
    if decision.state in (ResourceState.STALE, ResourceState.GHOST, ResourceState.UNKNOWN):
        waiting = [x.endpoint for x in joined.connections.unclaimed()]
        if waiting:
            notes.append(f"may be served by {', '.join(waiting)}, whose resource is not known")
    row = snap.source(Source.DEVICE_CLASSES)
    unread = row is not None and not row.read
    if unread and decision.state in (ResourceState.ABSENT, ResourceState.STALE):
        notes.append("DeviceClasses not read")
    if snap.checkpoint is not None and not snap.checkpoint.verified:
        notes.append("checkpoint is damaged: a kubelet that starts ignores it")
    node = snap.node
    owners = foreign_owners(node, resource) if node is not None else ()
    if owners and decision.state in (ResourceState.READY, ResourceState.DEGRADED):
        notes.append(f"capacity was last written by {', '.join(owners)}")
    offered, healthy = len(joined.offered.get(resource, ())), joined.healthy(resource)
    if is_behind(snap, resource, joined.registered(resource)):
        notes.append("checkpoint lacks the kubelet's last change")
    counted = None if healthy is None else len(healthy)
    if snap.allocatable is not None and joined.connected(resource) and offered != counted:
        of = "" if counted is None else f" of the {counted} healthy"
        notes.append(f"GetAllocatableResources offers {offered}{of} devices")
    return tuple(notes)
