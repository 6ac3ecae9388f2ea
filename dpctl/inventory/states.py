"""The state of a resource: the contract's table, row by row, over what one snapshot shows.

Every row either applies, does not, or cannot be decided because a source was not read; the first
undecidable row makes the resource Unknown, except that Malformed and Foreign need the Node alone.
"""

from __future__ import annotations

from typing import NamedTuple

from dpctl import names
from dpctl.inventory.connections import Verdict, foreign_owners
from dpctl.inventory.registered import offered, registered
from dpctl.inventory.rows import ResourceState
from dpctl.model import Node, Snapshot, Source
from dpctl.quantity import count


class Facts(NamedTuple):
    """What the rows look at, for one resource. None: not known."""

    resource: str
    node: Node | None
    connected: Verdict
    served: Verdict
    tracked: bool | None
    untold: str
    """Why `tracked` and `healthy` are not known, when they are not."""
    healthy: int | None
    """IDs that the kubelet has registered; 0 when not tracked. None: see `untold`."""
    behind: bool
    """The checkpoint says something else than GetAllocatableResources, which is believed."""
    checkpoint_age: float | None
    status_period: float
    used_by_pods: bool | None
    """A pod holds or requests it."""
    device_class: str | None


class Decision(NamedTuple):
    state: ResourceState
    evidence: tuple[str, ...]
    missing: tuple[str, ...] = ()


def node_differs(snap: Snapshot) -> bool:
    """Whether the Node has another number of any resource than the kubelet's own files."""
    node = snap.node
    return node is not None and any(
        count(node.allocatable.get(resource, "0")) != len(ids)
        for resource, ids in registered(snap, offered(snap)).items()
    )


def decide(facts: Facts) -> Decision:
    node, resource = facts.node, facts.resource
    on_node = node is not None and (resource in node.capacity or resource in node.allocatable)
    if on_node and not names.is_native(resource) and not names.is_extended(resource):
        return Decision(
            ResourceState.MALFORMED, (*_node_words(facts), "no plugin can register this name")
        )
    decision = _by_connection(facts)
    if decision is not None and decision.state is not ResourceState.UNKNOWN:
        return decision
    if on_node and node is not None and (owners := foreign_owners(node, resource)):
        words = (*_node_words(facts), f"capacity is owned by {', '.join(owners)}, not the kubelet")
        return Decision(ResourceState.FOREIGN, words)
    if decision is not None:
        return decision
    return _abandoned(facts)


def _by_connection(facts: Facts) -> Decision | None:
    """Rows Empty to Absent. None: none of them applies."""
    connected, served = facts.connected, facts.served
    if connected.value is None:
        return _unknown(facts, connected.evidence, connected.missing)
    if connected.value:
        return _connected(facts)
    if served.value is None:
        return _unknown(facts, served.evidence, served.missing)
    if served.value:
        seen = (served.evidence, _said(connected), _tracked_words(facts))
        return Decision(ResourceState.UNREGISTERED, (*seen, *_node_words(facts)))
    if facts.tracked is None:
        return _unknown(facts, facts.untold, (Source.CHECKPOINT,))
    if facts.tracked:
        may = "the kubelet still tracks it and lets go five minutes after the plugin was lost"
        if served.inferred:
            may = (
                "may be Unregistered: whether a plugin still serves it cannot be told from a bundle"
            )
        said = (_tracked_words(facts), _said(connected), may)
        return Decision(ResourceState.GRACE, (*said, *_node_words(facts)))
    if facts.device_class is not None:
        named = (f"DeviceClass {facts.device_class} names it", "no device plugin serves it")
        return Decision(ResourceState.DRA, (*named, *_node_words(facts)))
    if facts.node is None:
        return _unknown(facts, "Node not read", (Source.NODE,))
    if facts.resource not in facts.node.capacity and facts.resource not in facts.node.allocatable:
        if facts.used_by_pods is None:
            return _unknown(facts, "pods not read", (Source.PODS,))
        if facts.used_by_pods:
            words = ("not on the Node", "not tracked", "a pod holds or requests it")
            return Decision(ResourceState.ABSENT, words)
    return None


def _connected(facts: Facts) -> Decision:
    node, healthy = facts.node, facts.healthy
    if node is None:
        return _unknown(facts, "Node not read", (Source.NODE,))
    if healthy is None:
        return _unknown(facts, facts.untold, (Source.CHECKPOINT,))
    capacity = count(node.capacity.get(facts.resource))
    allocatable = count(node.allocatable.get(facts.resource))
    said = (_said(facts.connected), _tracked_words(facts), *_node_words(facts))
    if healthy == 0 and capacity == 0:
        return Decision(ResourceState.EMPTY, (*said, "its plugin lists no device"))
    if allocatable != healthy:
        if facts.checkpoint_age is None:
            why = f"allocatable is not {healthy}, and how old the checkpoint is cannot be told"
            return _unknown(facts, why, (Source.CHECKPOINT,))
        if facts.checkpoint_age > 2 * facts.status_period:
            why = (
                f"allocatable is not the {healthy} healthy devices, though the checkpoint is "
                f"{facts.checkpoint_age:.0f} s old"
            )
            return Decision(ResourceState.MISMATCH, (*said, why))
        said = (*said, "the Node has not caught up yet: the checkpoint is younger than two periods")
    if capacity is not None and healthy < capacity:
        return Decision(ResourceState.DEGRADED, (*said, f"{healthy} of {capacity} are healthy"))
    return Decision(ResourceState.READY, said)


def _abandoned(facts: Facts) -> Decision:
    """Rows Stale, Ghost and the rest: nobody tracks or serves it and no stranger owns it."""
    node = facts.node
    if node is None:
        return _unknown(facts, "Node not read", (Source.NODE,))
    capacity = count(node.capacity.get(facts.resource, "0"))
    allocatable = count(node.allocatable.get(facts.resource, "0"))
    nobody = (*_node_words(facts), "not in RegisteredDevices", facts.served.evidence)
    if node.owners is None:
        return _unknown(facts, "the Node came without managedFields: owner unknown", (), nobody)
    if capacity == 0 and allocatable == 0:
        return Decision(ResourceState.STALE, nobody)
    if not any(number is not None and number > 0 for number in (capacity, allocatable)):
        return _unknown(facts, "neither number is one of devices", (), nobody)
    if node.owners.get(facts.resource):
        return Decision(ResourceState.GHOST, (*nobody, "pods are sent to nothing"))
    return _unknown(facts, "above 0 and owned by nobody", (), nobody)


def _unknown(
    facts: Facts, why: str, missing: tuple[Source, ...], said: tuple[str, ...] | None = None
) -> Decision:
    words = said if said is not None else _node_words(facts)
    sources = tuple(str(s) for s in missing) or (("managedFields",) if "managedF" in why else ())
    return Decision(ResourceState.UNKNOWN, (why, *words), sources)


def _said(verdict: Verdict) -> str:
    return f"{verdict.evidence} (inferred)" if verdict.inferred else verdict.evidence


def _tracked_words(facts: Facts) -> str:
    if facts.tracked is None:
        return facts.untold
    if not facts.tracked:
        return "not in RegisteredDevices"
    if facts.behind:
        return f"{facts.healthy} healthy: the checkpoint lacks the kubelet's last change"
    return f"RegisteredDevices has {facts.healthy}"


def _node_words(facts: Facts) -> tuple[str, ...]:
    node = facts.node
    if node is None:
        return ()
    capacity = node.capacity.get(facts.resource, "no key")
    allocatable = node.allocatable.get(facts.resource, "no key")
    words = f"Node capacity {capacity}, allocatable {allocatable}"
    if node.owners is None:
        return (words,)
    owners = node.owners.get(facts.resource)
    return (words, f"owner {', '.join(owners)}" if owners else "no owner")
