"""The topology manager's merge: all providers' hints to one, by policy (kubelet-facts §9.2). Pure.

The kubelet goes through every permutation of all hints. The outcome hangs only on which merged
masks there are, not on their order, so here sets of masks are folded: the same answer (a test
compares the two), and no wait on eight NUMA nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from dpctl.topology.hints import Hint, Hints, mask_of, nodes_of


class Policy(StrEnum):
    """topologyManagerPolicy."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Merged(NamedTuple):
    hint: Hint
    admitted: bool


ANYWHERE = Hint(None, True)
NOWHERE = Hint(None, False)
Distances = Mapping[int, Sequence[int]]
"""NUMA node to its distances to all, as sysfs lists them."""


def merge(
    providers: Iterable[Hints],
    policy: Policy,
    nodes: Sequence[int],
    closest: Distances | None = None,
) -> Merged:
    """The best hint of all providers on a machine with these NUMA nodes, and whether the policy
    admits it. `closest`: distances, where prefer-closest-numa-nodes is set."""
    if policy is Policy.NONE:
        return Merged(NOWHERE, True)
    everywhere = mask_of(nodes)
    lists = filtered(providers)
    single = policy is Policy.SINGLE_NUMA_NODE
    if single:
        lists = [[hint for hint in hints if _is_single(hint)] for hints in lists]
    order = _by_distance(closest) if closest is not None and not single else _narrowest
    best = _best(lists, everywhere, order)
    if single and best.mask == everywhere:
        best = Hint(None, best.preferred)
    return Merged(best, policy is Policy.BEST_EFFORT or best.preferred)


def filtered(providers: Iterable[Hints]) -> list[list[Hint]]:
    """One list per resource; a provider without any has no preference."""
    lists: list[list[Hint]] = []
    for answer in providers:
        if not answer:
            lists.append([ANYWHERE])
        for hints in answer.values():
            if hints is None:
                lists.append([ANYWHERE])
            else:
                lists.append(list(hints) or [NOWHERE])
    return lists


def _is_single(hint: Hint) -> bool:
    return hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)


_Order = Callable[[int], tuple[int, ...]]


def _best(lists: Sequence[Sequence[Hint]], everywhere: int, order: _Order) -> Hint:
    if not all(lists):
        return Hint(everywhere, False)
    preferred = _preferred(lists, everywhere)
    if preferred:
        return Hint(min(preferred, key=order), True)
    reached = {everywhere}
    for hints in lists:
        reached = {
            mask if hint.mask is None else mask & hint.mask for mask in reached for hint in hints
        }
    reached.discard(0)
    if not reached:
        return Hint(everywhere, False)
    widest = _widest_need(lists)

    def unpreferred(mask: int) -> tuple[int, ...]:
        # As wide as the neediest resource, or below it the wider the better; wider only at last.
        width = mask.bit_count()
        return (width > widest, width if width > widest else -width, *order(mask))

    return Hint(min(reached, key=unpreferred), False)


def _preferred(lists: Sequence[Sequence[Hint]], everywhere: int) -> set[int]:
    """Merged masks of permutations whose hints are all preferred and all equal."""
    choices = [{hint.mask for hint in hints if hint.preferred} for hints in lists]
    found = {
        mask & everywhere
        for mask in set[int | None]().union(*choices)
        if mask is not None and all(mask in choice or None in choice for choice in choices)
    }
    if all(None in choice for choice in choices):
        found.add(everywhere)
    return found - {0}


def _widest_need(lists: Sequence[Sequence[Hint]]) -> int:
    """The largest of the resources' narrowest hints."""
    widths = [[h.mask.bit_count() for h in hints if h.mask is not None] for hints in lists]
    return max((min(each) for each in widths if each), default=0)


def _narrowest(mask: int) -> tuple[int, ...]:
    return (mask.bit_count(), mask)


def _by_distance(distances: Distances) -> _Order:
    def order(mask: int) -> tuple[int, ...]:
        nodes = nodes_of(mask)
        # Masks of one size are compared, so the sum orders them as the average does.
        total = sum(_distance(distances, a, b) for a in nodes for b in nodes)
        return (len(nodes), total, mask)

    return order


def _distance(distances: Distances, one: int, other: int) -> int:
    row = distances.get(one, ())
    return row[other] if other < len(row) else 0
