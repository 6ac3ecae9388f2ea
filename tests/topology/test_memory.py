"""The static memory manager: hints, pinning, groups of NUMA nodes, release."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.topology.hints import Hint
from dpctl.topology.memory import MemoryNode, MemoryTable, memory_hints, pin, pinned, released
from dpctl.topology.requests import RefusedError

GI = 1 << 30


def machine(*free: int, whole: int = 10):
    return {
        at: MemoryNode({"memory": MemoryTable(whole * GI, each * GI)}, (at,))
        for at, each in enumerate(free)
    }


def ask(gib: int) -> dict[str, int]:
    return {"memory": gib * GI}


@pytest.mark.parametrize(
    ("where", "gib", "expected"),
    [
        (machine(10, 10), 4, (Hint(1, True), Hint(2, True), Hint(3, False))),
        (machine(10, 3), 4, (Hint(1, True), Hint(3, False))),
        (machine(10, 10), 12, (Hint(3, True),)),
        (machine(3, 3), 4, (Hint(3, False),)),
        (pinned(machine(10, 10), (0,), "memory", GI), 12, None),  # single and joined exclude
        (pinned(machine(10, 10), (0, 1), "memory", 12 * GI), 2, (Hint(3, False),)),
        (machine(10, 10), 21, None),
    ],
)
def test_hints(where, gib, expected):
    assert memory_hints(where, ask(gib), {}) == ({} if expected is None else {"memory": expected})


def test_all_types_must_fit():
    where = machine(10, 10)
    tables = {**where[1].tables, "hugepages-2Mi": MemoryTable(GI, GI)}
    where[1] = where[1]._replace(tables=tables)
    found = memory_hints(where, {**ask(1), "hugepages-2Mi": GI}, {})
    assert found["memory"] == found["hugepages-2Mi"] == (Hint(2, True), Hint(3, False))


def test_pin():
    where = machine(10, 10)
    assert pin(where, ask(4), {}, Hint(2, True)) == (1,)
    assert pin(where, ask(4), {}, Hint(None, True)) == (0,)
    assert pin(where, ask(12), {}, Hint(1, False)) == (0, 1)  # extended to what holds it


@pytest.mark.parametrize(
    ("where", "gib", "hint", "words"),
    [
        (
            machine(10, 10),
            21,
            Hint(None, True),
            "failed to get the default NUMA affinity, "
            "no NUMA nodes with enough memory is available",
        ),
        (
            machine(3, 3),
            4,
            Hint(None, True),
            "failed to find the default preferred hint",
        ),
        (
            pinned(machine(10, 10), (0,), "memory", GI),
            12,
            Hint(1, True),
            "failed to find NUMA nodes to extend the current topology hint",
        ),
        (machine(3, 3), 4, Hint(1, True), "failed to find the extended preferred hint"),
        (
            pinned(machine(10, 10), (0,), "memory", GI),
            1,
            Hint(3, False),
            "preferred hint violates NUMA node allocation",
        ),
    ],
)
def test_refusals(where, gib, hint, words):
    with pytest.raises(RefusedError) as caught:
        pin(where, ask(gib), {}, hint)
    assert caught.value.message == (
        f"Allocate failed due to [memorymanager] {words}, which is unexpected"
    )


@given(
    st.lists(st.integers(0, 10), min_size=2, max_size=3),
    st.integers(0, 40),
    st.sampled_from([(0,), (1,), (0, 1)]),
)
def test_what_is_released_is_as_before(free, gib, nodes):
    before = machine(*free)
    room = sum(before[node].tables["memory"].free for node in nodes)
    size = min(gib * GI, room)
    after = pinned(before, nodes, "memory", size)
    assert sum(n.tables["memory"].free for n in before.values()) - size == sum(
        n.tables["memory"].free for n in after.values()
    )
    assert all(after[node].cells == nodes for node in nodes)
    if all(each == 10 for each in free):  # nothing else was pinned: it must all come back
        assert released(after, nodes, "memory", size) == before
