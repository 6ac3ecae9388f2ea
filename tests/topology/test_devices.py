"""The device manager's hints and choices (kubelet-facts §6.2, §9.2)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.topology.devices import Pool, Split, device_hints, split, take
from dpctl.topology.hints import Hint
from dpctl.topology.requests import RefusedError


def pool(*nodes: tuple[int, ...] | None, in_use: tuple[str, ...] = ()) -> Pool:
    found = {f"d{at}": each for at, each in enumerate(nodes)}
    return Pool(found, frozenset(found), frozenset(in_use))


TWO = pool((0,), (0,), (1,), (1,))


@pytest.mark.parametrize(
    ("devices", "request_", "expected"),
    [
        (TWO, 1, (Hint(1, True), Hint(2, True), Hint(3, False))),
        (TWO, 3, (Hint(3, True),)),
        (TWO, 5, ()),
        # What is taken counts for what an empty machine could do.
        (TWO._replace(in_use=frozenset({"d0"})), 2, (Hint(2, True), Hint(3, False))),
        (TWO._replace(in_use=frozenset({"d0", "d2"})), 2, (Hint(3, False),)),
        # Nobody has topology: nobody cares.
        (pool(None, None), 1, None),
        (pool((), ()), 1, None),
        # -1 is on no NUMA node, and makes the resource care.
        (pool((-1,), (-1,)), 1, ()),
        (pool((0,), None), 2, ()),
        # A device on two NUMA nodes counts for either.
        (pool((0, 1), (0, 1)), 2, (Hint(1, True), Hint(2, True), Hint(3, False))),
        (TWO, 0, (Hint(1, True), Hint(2, True), Hint(3, False))),
    ],
)
def test_hints(devices, request_, expected):
    assert device_hints(devices, request_, frozenset(), (0, 1)) == expected


def test_numa_nodes_without_a_device():
    """1.36 leaves them out; before, they made wider hints."""
    one = pool((0,))
    assert device_hints(one, 1, frozenset(), (0, 1), 36) == (Hint(1, True),)
    assert device_hints(one, 1, frozenset(), (0, 1), 35) == (Hint(1, True), Hint(3, False))
    unknown = pool((5,), (0,))  # the machine has no NUMA node 5
    assert device_hints(unknown, 1, frozenset(), (0, 1)) == (Hint(1, True),)


def test_what_an_init_container_passed_on_must_be_in_the_mask():
    used = TWO._replace(in_use=frozenset({"d0"}))
    assert device_hints(used, 2, frozenset({"d0"}), (0, 1)) == (Hint(1, True), Hint(3, False))


node_sets = st.one_of(st.none(), st.lists(st.integers(-1, 3), max_size=2, unique=True).map(tuple))
pools = st.lists(node_sets, max_size=6).flatmap(
    lambda nodes: st.sets(st.sampled_from(range(len(nodes) or 1))).map(
        lambda used: pool(*nodes, in_use=tuple(f"d{at}" for at in used if at < len(nodes)))
    )
)


@given(pools, st.integers(0, 5))
def test_hints_are_what_can_be_counted(devices, count):
    """Every combination of NUMA nodes, counted device by device."""
    hints = device_hints(devices, count, frozenset(), range(4), 35)
    if hints is None:
        assert not any(devices.nodes.values())
        return
    if len(devices.available) < count:
        assert hints == ()
        return

    def within(ids: Iterable[str], nodes: Iterable[int]) -> int:
        return sum(bool(set(devices.nodes[i] or ()) & set(nodes)) for i in ids)

    sets = [c for size in range(1, 5) for c in combinations(range(4), size)]
    fit = [c for c in sets if within(devices.available, c) >= count]
    ever = [len(c) for c in sets if within(devices.nodes, c) >= count]
    expected = {sum(1 << n for n in c): len(c) == min(ever, default=4) for c in fit}
    assert {hint.mask: hint.preferred for hint in hints} == expected


def test_split():
    devices = pool((0,), (1,), (0, 1), None, (-1,), (-1, 1))
    found = split(devices, devices.available, 0b01)
    assert found == Split({"d0", "d2"}, {"d1", "d5"}, {"d3", "d4"})
    assert split(devices, devices.available, None) == Split(set(), set(), devices.available)


@pytest.mark.parametrize(
    ("devices", "required", "mask", "expected"),
    [
        (TWO, 2, 2, {"d2", "d3"}),
        (TWO, 3, 2, {"d0", "d2", "d3"}),  # the aligned ones first
        (pool(None, (1,)), 2, 2, {"d0", "d1"}),
        (TWO, 0, 1, set()),
    ],
)
def test_take(devices, required, mask, expected):
    assert take("r", devices, required, frozenset(), mask) == expected


def test_take_reuses_first_and_asks_the_plugin_within_the_mask():
    asked: list[object] = []

    def prefer(available, must, size):
        asked.append((available, must, size))
        return {"d1", "d2"}

    used = TWO._replace(in_use=frozenset({"d0"}))
    assert take("r", used, 1, frozenset({"d0"}), 1, preferred=prefer) == {"d0"}
    assert take("r", TWO, 1, frozenset(), 1, preferred=prefer) == {"d1"}
    assert asked == [({"d0", "d1"}, frozenset(), 1)]


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        (TWO._replace(healthy=None), "cannot allocate unregistered device r"),
        (
            TWO._replace(healthy=frozenset()),
            "no healthy devices present; cannot allocate unhealthy devices r",
        ),
        (
            TWO._replace(in_use=frozenset({"d0", "d1"})),
            "requested number of devices unavailable for r. Requested: 3, Available: 2",
        ),
    ],
)
def test_refusals(devices, words):
    with pytest.raises(RefusedError) as caught:
        take("r", devices, 3, frozenset(), None)
    assert caught.value.reason == "UnexpectedAdmissionError"
    assert caught.value.message == f"Allocate failed due to {words}, which is unexpected"
