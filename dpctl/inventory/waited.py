"""Whether what somebody waits for has come: devices healthy with the kubelet, allocatable on the
Node, or the resource gone. Pure.

The Node alone is not believed where the machine itself can tell: after a reboot or a kubelet's
restart it shows the old counts until the plugin has registered again (kubelet-facts §4.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpctl.inventory.by_hand_rows import WaitRow
from dpctl.inventory.devices import Devices
from dpctl.inventory.registered import is_by_file_alone, untold
from dpctl.model import Snapshot, Source
from dpctl.quantity import count
from dpctl.text import did_you_mean, shorten

ALLOCATABLE, HEALTHY, GONE = "allocatable", "healthy", "gone"
CONDITIONS = (ALLOCATABLE, HEALTHY, GONE)


def waited(
    snap: Snapshot,
    resource: str,
    condition: str,
    wanted: int,
    *,
    elsewhere: bool = False,
    unclaimed: Sequence[str] = (),
) -> WaitRow:
    """How the condition stands in this snapshot. `elsewhere`: the Node is another machine's, of
    which this one can tell nothing. `unclaimed`: live listeners that may serve any resource, in
    words."""
    joined = Devices(snap)
    if condition == GONE:
        left = _left(snap, joined, resource, elsewhere)
        if left is None and unclaimed:
            left = f"which resource the plugin on {unclaimed[0]} serves is not known for sure"
        return WaitRow(resource, GONE, None, None, left is None, left)
    if not elsewhere:
        healthy, why = _healthy(snap, joined, resource, wanted)
        if condition == HEALTHY or healthy is None or healthy < wanted:
            return _counted(resource, condition, wanted, healthy, why)
    if snap.node is None:
        return WaitRow(resource, condition, wanted, None, False, _unread(snap, Source.NODE))
    shown = count(snap.node.allocatable.get(resource, "0"))
    return _counted(resource, condition, wanted, shown, "the Node's allocatable")


def _unread(snap: Snapshot, source: Source) -> str:
    row = snap.source(source)
    return f"the {source}: {row.reason if row is not None and row.reason else 'not read'}"


def _counted(resource: str, condition: str, wanted: int, seen: int | None, why: str) -> WaitRow:
    met = seen is not None and seen >= wanted
    missing = why if seen is None else f"{seen} of {wanted} {condition} ({why})"
    return WaitRow(resource, condition, wanted, seen, met, None if met else missing)


def _healthy(snap: Snapshot, joined: Devices, resource: str, wanted: int) -> tuple[int | None, str]:
    """Devices that this kubelet has healthy from a plugin it is connected to, and the evidence."""
    if snap.directory is None or snap.directory.entry("kubelet.sock") is None:
        return None, "no kubelet here yet (there is no kubelet.sock)"
    verdict = joined.connections.connected(resource)
    known, healthy = joined.registered(resource), joined.healthy(resource)
    if known is not None:
        tracked = resource in joined.connections.registered
        # Of a plugin that is gone the number says nothing.
        if len(known) < wanted and (not tracked or verdict.value is not False):
            first = "" if tracked else "no plugin has registered it, "
            return len(known), f"{first}by the kubelet's checkpoint"
    offers = len(joined.offered.get(resource, ()))
    if healthy is not None:
        # Nothing offered and no Node to ask (a machine that boots): the file is all there is of a
        # plugin whose devices all have an empty topology.
        nothing_else = offers == 0 and snap.node is None
        if nothing_else or not is_by_file_alone(snap, resource, healthy, joined.offered):
            return len(healthy), verdict.evidence
        node = _unread(snap, Source.NODE)
        if snap.node is not None:
            node = f"the Node's allocatable is {snap.node.allocatable.get(resource, 'missing')}"
        said = f"GetAllocatableResources offers {offers}, the checkpoint has {len(healthy)}"
        return offers, f"{said}; {node}"
    if snap.pod_resources is not None and snap.allocatable is not None:
        # Without a table or a checkpoint to trust: what the kubelet itself offers right now.
        return offers, "what GetAllocatableResources offers"
    if verdict.value is None:
        return None, f"not known whether its plugin is connected: {verdict.evidence}"
    return None, f"not known how many are healthy: {untold(snap)}"


def is_for_the_node(snap: Snapshot, resource: str, wanted: int) -> bool:
    """Whether so many are healthy only by the checkpoint, where the kubelet offers fewer: the Node
    can tell who is right."""
    joined = Devices(snap)
    healthy = joined.healthy(resource)
    if healthy is None or not len(joined.offered.get(resource, ())) < wanted <= len(healthy):
        return False
    return is_by_file_alone(snap, resource, healthy, joined.offered)


class Step(NamedTuple):
    """What has to happen first, and what a person can do about it."""

    missing: str
    hint: str


def missing_step(snap: Snapshot, resource: str) -> Step | None:
    """Why a resource has too few devices, from a snapshot with the sockets and (if it was read) the
    Node. None: a kubelet or its plugin is missing altogether, or the plugin is connected."""
    checkpoint = snap.checkpoint
    if snap.directory is None or snap.directory.entry("kubelet.sock") is None or checkpoint is None:
        return None
    connections = Devices(snap).connections
    if connections.connected(resource).value is not False:
        return None
    if connections.served(resource).value:
        socket = shorten(connections.endpoints(resource)[0][0], 80)
        return Step(
            f"{socket} serves it, but has not registered it with this kubelet", "restart its plugin"
        )
    if resource in connections.tracked:
        return Step("its plugin is gone (the kubelet still knows the name)", "start its plugin")
    shown = snap.node.capacity.get(resource) if snap.node is not None else None
    if shown is not None:
        return Step(
            f"no plugin has registered it: the Node's {shorten(shown, 40)} is a left-over, or set "
            "by hand",
            "start its plugin",
        )
    known = {*connections.tracked, *connections.keys_of}
    known.update(snap.node.capacity if snap.node is not None else ())
    elsewhere = ", and the Node does not know the name" if snap.node is not None else ""
    # All of .example/ look alike: half of the name must be right.
    halves = set(resource.split("/"))
    near = did_you_mean(resource, [k for k in known - {resource} if halves & set(k.split("/"))])
    return Step(
        f"no plugin has registered it{elsewhere}", f"{near}`dpctl resources` lists what there is"
    )


def with_step(row: WaitRow, step: Step | None) -> WaitRow:
    """The row, which then says what has to happen instead of where the count is from."""
    if step is None or row.met:
        return row
    seen = "" if row.seen is None else f"{row.seen} of {row.wanted} {row.condition}: "
    return row._replace(waiting_for=f"{seen}{step.missing}")


def _left(snap: Snapshot, joined: Devices, resource: str, elsewhere: bool) -> str | None:
    """What still stands in the way of `gone`; None: nothing. The kubelet never takes the key itself
    away: at 0 and not tracked is as gone as it gets."""
    if not elsewhere:
        if snap.checkpoint is None:
            return _unread(snap, Source.CHECKPOINT)
        if resource in joined.connections.tracked:
            return "the kubelet still tracks it (up to five minutes after its plugin has ended)"
        if joined.connected(resource):
            return "the kubelet is connected to its plugin"
    if snap.node is None:
        return _unread(snap, Source.NODE)
    for part, amounts in (("capacity", snap.node.capacity), ("allocatable", snap.node.allocatable)):
        if count(amounts.get(resource, "0")) != 0:
            return f"the Node's {part} is {amounts[resource]}"
    return None
