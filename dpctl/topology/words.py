"""Why a pod is refused, in plain words. Pure.

The kubelet says `Resources cannot be allocated with Topology locality` and nothing of which
resource was in the way; its hints tell.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpctl.topology.admission import Ask, Verdict
from dpctl.topology.hints import Hint, nodes_of
from dpctl.topology.merge import Policy
from dpctl.topology.requests import amount_text, is_pinned_memory
from dpctl.topology.settings import Settings


def why_refused(verdict: Verdict, settings: Settings) -> tuple[str, ...]:
    """Sentences; empty when it was admitted or the kubelet's own words say it all."""
    if verdict.admitted:
        return ()
    if verdict.reason == "TopologyAffinityError" and verdict.asks:
        return tuple(_affinity(verdict.asks[-1], settings.policy))
    message = verdict.message or ""
    for mark, words in _MESSAGES:
        if mark in message:
            return (words,)
    return ()


_MESSAGES = (
    (
        "no healthy devices present",
        "the kubelet knows the resource, but none of its devices is healthy: is the plugin there?"
        " `dpctl resources -o wide`",
    ),
    (
        "requested number of devices unavailable",
        "too few devices are healthy and not held by another container: `dpctl devices`",
    ),
    (
        "not enough cpus available",
        "too few CPUs are left that a container could have alone (reserved ones are not given)",
    ),
    (
        "not multiple cpus per core",
        "full-pcpus-only gives whole cores only: ask for a multiple of the threads of a core",
    ),
    (
        "not enough free physical CPUs",
        "full-pcpus-only gives whole cores only, and none that shares one with a reserved CPU",
    ),
    (
        "no NUMA nodes with enough memory",
        "no NUMA node, nor group of NUMA nodes that may be joined, has that much memory unpinned",
    ),
    (
        "violates NUMA node allocation",
        "a NUMA node that single containers have pinned memory on cannot be joined with others, "
        "and a joined one not be used alone",
    ),
    (
        "[memorymanager]",
        "the memory that is not pinned does not lie where the devices and CPUs are",
    ),
)


def _affinity(ask: Ask, policy: Policy) -> Iterable[str]:
    blocked = False
    for resource, hints in ask.hints.items():
        sentence = _alone(ask, resource, hints, policy)
        if sentence is not None:
            blocked = True
            yield sentence
    if not blocked:
        yield _together(ask, policy)


def _alone(ask: Ask, resource: str, hints: Iterable[Hint] | None, policy: Policy) -> str | None:
    """Why this resource by itself is refused; None: it is not."""
    if hints is None:
        return None
    found = list(hints)
    requested = amount_text(resource, ask.requested[resource])
    available = amount_text(resource, ask.available.get(resource, 0))
    if not found:
        if ask.available.get(resource, 0) < ask.requested[resource]:
            return f"{resource}: {requested} requested, {available} free"
        return (
            f"{resource}: no set of NUMA nodes has {requested} of the {available} that are free "
            "(a device whose NUMA node is -1 or unknown to the machine is on none)"
        )
    preferred = [h for h in found if h.preferred]
    if not preferred:
        smallest = min((h.mask or 0).bit_count() for h in found)
        return (
            f"{resource}: on an empty machine {requested} would fit on fewer NUMA nodes, but what "
            f"is free now lies on {smallest} ({_sets(found, smallest)})"
        )
    width = (preferred[0].mask or 0).bit_count()
    if policy is Policy.SINGLE_NUMA_NODE and width > 1:
        return (
            f"{resource}: {requested} do not fit one NUMA node even on an empty machine, and "
            "single-numa-node admits nothing else"
        )
    return None


def _together(ask: Ask, policy: Policy) -> str:
    wishes = [
        f"{resource} on {_sets(preferred)}"
        for resource, hints in ask.hints.items()
        if (preferred := [h for h in hints or () if h.preferred])
    ]
    what = "one NUMA node" if policy is Policy.SINGLE_NUMA_NODE else "the same NUMA nodes"
    return f"each resource alone fits, but not all on {what}: {'; '.join(wishes)}"


def _sets(hints: Iterable[Hint], width: int | None = None) -> str:
    """`0 or 1`, `0+1`."""
    found = [h.mask for h in hints if h.mask is not None]
    if width is not None:
        found = [mask for mask in found if mask.bit_count() == width]
    return " or ".join("+".join(map(str, nodes_of(mask))) for mask in found)


def pins_nothing(guaranteed: bool, settings: Settings, asked: Iterable[str]) -> str | None:
    """A warning where CPUs or memory are asked for that will not be exclusive."""
    names = [
        r
        for r in asked
        if (r == "cpu" and settings.static_cpus) or (is_pinned_memory(r) and settings.static_memory)
    ]
    if guaranteed or not names:
        return None
    return (
        f"the pod is not Guaranteed (every container needs cpu and memory, limits equal to "
        f"requests), so its {' and '.join(names)} are not exclusive and no NUMA node is looked at"
    )
