"""The merge against a slow one that goes through every permutation, as the kubelet does."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.topology.hints import Hint, TooManyNodesError, mask_of, masks, nodes_of
from dpctl.topology.merge import Merged, Policy, filtered, merge

NODES = 4


# -- the slow one: a transcription of the kubelet's code, case by case


def slow_merge(providers: Any, policy: Policy, nodes: Any, distances: Any) -> Merged:
    if policy is Policy.NONE:
        return Merged(Hint(None, False), True)
    lists: Any = []
    for answer in providers:
        if not answer:
            lists.append([Hint(None, True)])
            continue
        for hints in answer.values():
            if hints is None:
                lists.append([Hint(None, True)])
            elif not hints:
                lists.append([Hint(None, False)])
            else:
                lists.append(list(hints))
    if policy is Policy.SINGLE_NUMA_NODE:
        lists = [
            [h for h in hints if h.preferred and (h.mask is None or h.mask.bit_count() == 1)]
            for hints in lists
        ]
    everywhere = mask_of(nodes)
    narrowest = [
        min(h.mask.bit_count() for h in hints if h.mask is not None)
        for hints in lists
        if any(h.mask is not None for h in hints)
    ]
    limit = max(narrowest, default=0)
    closest = distances is not None and policy is not Policy.SINGLE_NUMA_NODE

    def average(mask: Any) -> Any:
        bits = nodes_of(mask)
        return sum(distances[a][b] for a in bits for b in bits) / len(bits) ** 2

    def fitter(current: Any, candidate: Any) -> Any:
        one, two = current.mask, candidate.mask
        if one == two:
            return current
        if one.bit_count() != two.bit_count():
            return current if one.bit_count() < two.bit_count() else candidate
        if closest and average(one) != average(two):
            return current if average(one) < average(two) else candidate
        return current if one < two else candidate

    def compare(current: Any, candidate: Any) -> Any:
        if candidate.mask == 0:
            return current
        if current is None:
            return candidate
        if candidate.preferred != current.preferred:
            return candidate if candidate.preferred else current
        if current.preferred:
            return fitter(current, candidate)
        now, then = current.mask.bit_count(), candidate.mask.bit_count()
        if now > limit:
            return fitter(current, candidate)
        if now == limit:
            return fitter(current, candidate) if then == limit else current
        if then > limit:
            return current
        if then == limit or then > now:
            return candidate
        return current if then < now else fitter(current, candidate)

    best: Any = None
    for permutation in product(*lists):
        given_masks = [h.mask for h in permutation if h.mask is not None]
        mask = everywhere
        for each in given_masks:
            mask &= each
        preferred = all(h.preferred for h in permutation) and len(set(given_masks)) <= 1
        best = compare(best, Hint(mask, preferred))
    best = best or Hint(everywhere, False)
    if policy is Policy.SINGLE_NUMA_NODE and best.mask == everywhere:
        best = Hint(None, best.preferred)
    return Merged(best, policy is Policy.BEST_EFFORT or best.preferred)


hints = st.builds(Hint, st.one_of(st.none(), st.integers(1, (1 << NODES) - 1)), st.booleans())
answers = st.dictionaries(
    st.sampled_from(["cpu", "memory", "a/b", "c/d"]),
    st.one_of(st.none(), st.lists(hints, max_size=5)),
    max_size=2,
)
rows = st.lists(st.integers(10, 40), min_size=NODES, max_size=NODES)
distances = st.one_of(
    st.none(),
    st.lists(rows, min_size=NODES, max_size=NODES).map(lambda found: dict(enumerate(found))),
)


@given(st.lists(answers, max_size=3), st.sampled_from(list(Policy)), distances)
def test_same_as_every_permutation(providers, policy, closest):
    nodes = range(NODES)
    expected = slow_merge(providers, policy, nodes, closest)
    assert merge(providers, policy, nodes, closest) == expected


@given(st.lists(answers, max_size=3), st.sampled_from(list(Policy)), st.integers(1, NODES))
def test_masks_beyond_the_machine(providers, policy, count):
    """A hint may name NUMA nodes that the machine does not have."""
    assert merge(providers, policy, range(count)) == slow_merge(
        providers, policy, range(count), None
    )


def upward(*least: int, nodes: int = 8) -> tuple[Hint, ...]:
    """Hints as providers make them: every mask that holds one of these."""
    possible = [m for m in masks(range(nodes)) if any(m & one == one for one in least)]
    width = min(m.bit_count() for m in possible)
    return tuple(Hint(m, m.bit_count() == width) for m in possible)


def test_eight_numa_nodes_take_no_time():
    """255 hints of four resources are four thousand million permutations."""
    wide = {"a": upward(0b11), "b": upward(0b1100), "c": upward(1), "d": upward(1 << 7)}
    found = merge([wide], Policy.BEST_EFFORT, range(8))
    assert not found.hint.preferred
    assert found.hint.mask is not None
    assert found.hint.mask.bit_count() == 2


@pytest.mark.parametrize(
    ("providers", "policy", "expected"),
    [
        # Nobody cares.
        ([{}, {}, {}], Policy.RESTRICTED, Merged(Hint(0b11, True), True)),
        ([{}, {}, {}], Policy.SINGLE_NUMA_NODE, Merged(Hint(None, True), True)),
        # One that nothing can satisfy.
        ([{"a": ()}], Policy.BEST_EFFORT, Merged(Hint(0b11, False), True)),
        ([{"a": ()}], Policy.RESTRICTED, Merged(Hint(0b11, False), False)),
        ([{"a": ()}], Policy.SINGLE_NUMA_NODE, Merged(Hint(None, False), False)),
        # Too big for one NUMA node: restricted admits it, single-numa-node never.
        ([{"a": (Hint(0b11, True),)}], Policy.RESTRICTED, Merged(Hint(0b11, True), True)),
        ([{"a": (Hint(0b11, True),)}], Policy.SINGLE_NUMA_NODE, Merged(Hint(None, False), False)),
        # Each on its own NUMA node.
        (
            [{"a": (Hint(1, True), Hint(3, False))}, {"b": (Hint(2, True), Hint(3, False))}],
            Policy.BEST_EFFORT,
            Merged(Hint(1, False), True),
        ),
    ],
)
def test_by_hand(providers, policy, expected):
    assert merge(providers, policy, (0, 1)) == expected


def test_nothing_asked_is_no_preference():
    assert filtered([{}, {"a": None}, {"b": ()}]) == [
        [Hint(None, True)],
        [Hint(None, True)],
        [Hint(None, False)],
    ]


def test_too_many_numa_nodes():
    with pytest.raises(TooManyNodesError):
        masks(range(13))


def test_single_numa_node_does_not_look_at_distances():
    either = {"a": (Hint(1, True), Hint(2, True))}
    distances = {0: (30, 21), 1: (21, 10)}
    found = [
        merge([either], policy, (0, 1), distances).hint.mask
        for policy in (Policy.SINGLE_NUMA_NODE, Policy.RESTRICTED)
    ]
    assert found == [1, 2]
