"""Snapshot and a pod → would the kubelet admit it now, and why not. Pure.

The managers' part is `topology.admission`; what comes after it in the kubelet, the Node's
allocatable less what other pods request (OutOf…), is added here.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpctl import names, quantity
from dpctl.inventory.devices import Devices
from dpctl.inventory.machine import Joined, machine_of
from dpctl.inventory.requests import effective_request
from dpctl.inventory.topology_rows import (
    FitChoice,
    FitContainer,
    FitQuestion,
    FitRow,
    FitShare,
)
from dpctl.model import Pod, Snapshot
from dpctl.topology.admission import Ask, Placement, Verdict, admit
from dpctl.topology.hints import Hint, nodes_of
from dpctl.topology.merge import Policy
from dpctl.topology.requests import has_pod_level, is_guaranteed
from dpctl.topology.settings import Settings
from dpctl.topology.words import pins_nothing, why_refused

_MILLI = ("cpu",)


def fit_row(
    snap: Snapshot, pod: Pod, settings: Settings, policy_origin: str, joined: Devices | None = None
) -> FitRow:
    """The kubelet's answer to a pod that comes now.

    Raises ValueError for what no answer can be given to: no NUMA tree, a kubelet that would not
    start with these settings, pod-level resources under PodLevelResourceManagers. TooManyNodesError
    is one, too.
    """
    machine = machine_of(snap, settings, joined)
    _check(pod, settings, machine)
    verdict = admit(pod, machine.machine, settings)
    admitted, reason, message = verdict.admitted, verdict.reason, verdict.message
    why = why_refused(verdict, settings)
    lacking = _lacking(snap, pod) if admitted else None
    if lacking is not None:
        admitted, (reason, message) = False, lacking
        why = (
            "the managers would admit it; the Node's allocatable less what its other pods request "
            "is too little",
        )
    guaranteed = is_guaranteed(pod)
    return FitRow(
        pod=pod.name,
        admitted=admitted,
        reason=reason,
        message=message,
        container=verdict.container,
        why=why,
        policy=settings.policy,
        scope=settings.scope,
        policy_origin=policy_origin,
        guaranteed=guaranteed,
        questions=tuple(_question(ask) for ask in verdict.asks),
        containers=tuple(_container(placement) for placement in verdict.placements),
        unserved=tuple(verdict.unserved),
        warnings=tuple(_warnings(snap, pod, settings, machine, verdict)),
    )


def _check(pod: Pod, settings: Settings, joined: Joined) -> None:
    count = len(joined.machine.numa_nodes)
    if settings.policy is not Policy.NONE and count > settings.most_nodes:
        raise ValueError(
            f"a kubelet does not start with policy {settings.policy} here: unsupported on machines "
            f"with more than {settings.most_nodes} NUMA Nodes (this one has {count})"
        )
    if settings.pod_level_managers and has_pod_level(pod):
        raise ValueError(
            "the pod has resources of its own (spec.resources) and the kubelet the gate "
            "PodLevelResourceManagers, whose arithmetic dpctl does not know"
        )


# -- the Node's own arithmetic ---------------------------------------------------------------------


def _lacking(snap: Snapshot, pod: Pod) -> tuple[str, str] | None:
    """The kubelet's predicate: reason and message of the first resource that is short."""
    node = snap.node
    if node is None or snap.pods is None:
        return None
    others = [each for each in snap.pods if not each.terminal]
    room = quantity.count(node.allocatable.get("pods"))
    if room is not None and len(others) + 1 > room:
        return _out_of("pods", 1, len(others), room)
    for resource in _predicate_names(pod):
        text = node.allocatable.get(resource)
        if text is None:
            continue  # dropped before the check (kubelet-facts §6.3)
        requested = _amount(pod, resource)
        used = sum(_amount(each, resource) for each in others)
        whole = _scaled(text, resource)
        if requested and requested + used > whole:
            return _out_of(resource, requested, used, whole)
    return None


def _out_of(resource: str, requested: int, used: int, capacity: int) -> tuple[str, str]:
    return f"OutOf{resource}", (
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}"
    )


def _predicate_names(pod: Pod) -> list[str]:
    asked = {r for c in pod.containers for r in c.requests} | set(pod.pod_requests)
    first = [r for r in ("cpu", "memory", "ephemeral-storage") if r in asked]
    return first + sorted(r for r in asked if names.is_extended(r) or r.startswith("hugepages-"))


def _amount(pod: Pod, resource: str) -> int:
    """CPUs in thousandths, as the scheduler counts them."""
    if resource not in _MILLI:
        return effective_request(pod, resource)
    return effective_request(_in_milli(pod), resource)


def _in_milli(pod: Pod) -> Pod:
    """The pod with its CPU amounts a thousandfold, so that they are whole numbers."""

    def scaled(amounts: dict[str, str]) -> dict[str, str]:
        return {"cpu": str(_scaled(amounts["cpu"], "cpu"))} if "cpu" in amounts else {}

    return pod._replace(
        containers=tuple(c._replace(requests=scaled(dict(c.requests))) for c in pod.containers),
        pod_requests=scaled(dict(pod.pod_requests)),
        overhead=scaled(dict(pod.overhead)),
    )


def _scaled(text: str, resource: str) -> int:
    value = quantity.parse(text) * (1000 if resource in _MILLI else 1)
    return -(-value.numerator // value.denominator)


# -- what the row tells ----------------------------------------------------------------------------


def _question(ask: Ask) -> FitQuestion:
    mask = ask.merged.hint.mask
    return FitQuestion(
        container=ask.container,
        choices=tuple(
            FitChoice(
                resource=resource,
                requested=ask.requested[resource],
                available=ask.available.get(resource),
                preferred=_sets(hint for hint in hints or () if hint.preferred),
                possible=_sets(hint for hint in hints or () if not hint.preferred),
                any=hints is None,
            )
            for resource, hints in sorted(ask.hints.items())
        ),
        numa_nodes=None if mask is None else nodes_of(mask),
        preferred=ask.merged.hint.preferred,
        admitted=ask.merged.admitted,
    )


def _sets(hints: Iterable[Hint]) -> tuple[tuple[int, ...], ...]:
    return tuple(nodes_of(hint.mask) for hint in hints if hint.mask is not None)


def _container(placement: Placement) -> FitContainer:
    return FitContainer(
        container=placement.container,
        devices=tuple(
            FitShare(share.resource, share.requested, share.devices, share.eligible)
            for share in placement.shares
        ),
        cpus=placement.cpus,
        memory_numa_nodes=placement.memory_nodes,
    )


def _warnings(
    snap: Snapshot, pod: Pod, settings: Settings, joined: Joined, verdict: Verdict
) -> Iterable[str]:
    asked = {r for c in pod.containers for r in (*c.limits, *c.requests)}
    for resource in verdict.unserved:
        node = snap.node
        gone = node is not None and resource not in node.allocatable
        absent = " and the Node lacks the key" if gone else ""
        yield (
            f"{resource}: the kubelet knows no plugin for it{absent}, so the managers ignore it: "
            "containers would start WITHOUT these devices"
        )
    for resource, doubt in joined.doubts.items() if settings.policy is not Policy.NONE else ():
        if resource in asked or (resource == "memory" and settings.static_memory):
            yield f"{resource}: {doubt}, so the answer may be wrong"
    pinned = pins_nothing(is_guaranteed(pod), settings, sorted(asked))
    if pinned is not None:
        yield pinned
    if has_pod_level(pod) and (settings.static_cpus or settings.static_memory):
        yield (
            "the pod has resources of its own (spec.resources): its containers get no exclusive "
            "CPUs and no pinned memory"
        )
    if snap.node is None or snap.pods is None:
        yield "the Node or its pods were not read: OutOf… refusals could not be looked for"
