"""The static CPU manager's hints, its SMT rule, and which CPUs it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.topology.cpu_choice import CpuPlace, Layout, NotEnoughCpusError, choose
from dpctl.topology.cpus import CpuOptions, CpuPool, cpu_hints, take_cpus
from dpctl.topology.hints import Hint
from dpctl.topology.requests import RefusedError


def layout(nodes: int, cores: int, threads: int = 1, per_socket: int = 1) -> Layout:
    """`cores` per NUMA node, `per_socket` NUMA nodes a socket; siblings are numbered apart, as on
    real machines."""
    total = nodes * cores
    return Layout(
        {
            thread * total + core: CpuPlace(core, core // cores // per_socket, core // cores)
            for thread in range(threads)
            for core in range(total)
        }
    )


FLAT = layout(2, 4)  # 0-3 on NUMA node 0, 4-7 on 1
SMT = layout(2, 2, 2)  # cores 0+4, 1+5 on NUMA node 0; 2+6, 3+7 on 1


def pool(where: Layout, reserved: set[int] = frozenset(), **options: bool) -> CpuPool:  # type: ignore[assignment]
    return CpuPool(where, reserved, frozenset(where.places), CpuOptions(**options))


@pytest.mark.parametrize(
    ("reserved", "count", "expected"),
    [
        (set(), 4, (Hint(1, True), Hint(2, True), Hint(3, False))),
        ({0}, 4, (Hint(2, True), Hint(3, False))),  # reserved ones count for an empty machine
        (set(), 5, (Hint(3, True),)),
        (set(), 9, ()),
    ],
)
def test_hints(reserved, count, expected):
    assert cpu_hints(pool(FLAT, reserved), count, frozenset()) == expected


def test_what_is_taken_counts_for_an_empty_machine():
    found = pool(FLAT, {0})._replace(shared=frozenset(FLAT.places) - {4})
    assert cpu_hints(found, 4, frozenset()) == (Hint(3, False),)


def test_hints_hold_what_an_init_container_had():
    shared = frozenset(FLAT.places) - {4, 5}
    found = pool(FLAT)._replace(shared=shared)
    assert cpu_hints(found, 3, frozenset({4, 5})) == (Hint(2, True), Hint(3, False))


def test_align_by_socket():
    """Four NUMA nodes in two sockets: a whole socket is as good as one NUMA node."""
    found = cpu_hints(pool(layout(4, 2, 1, 2), align_by_socket=True), 2, frozenset())
    assert {hint.mask for hint in found if hint.preferred} == {1, 2, 4, 8, 0b0011, 0b1100}


@pytest.mark.parametrize(
    ("where", "candidates", "count", "options", "expected"),
    [
        (FLAT, range(8), 4, {}, {0, 1, 2, 3}),
        (FLAT, range(1, 8), 4, {}, {4, 5, 6, 7}),  # a whole NUMA node before a broken one
        (FLAT, range(1, 8), 3, {}, {1, 2, 3}),  # the one with fewer free CPUs
        (SMT, range(8), 2, {}, {0, 4}),  # a whole core
        (SMT, range(8), 3, {}, {0, 1, 4}),
        (SMT, {0, 1, 5, 2, 6, 3, 7}, 1, {}, {0}),  # the broken core
        (SMT, range(8), 2, {"spread": True}, {0, 1}),
        (FLAT, range(8), 4, {"distribute": True}, {0, 1, 2, 3}),
        (FLAT, range(8), 6, {"distribute": True}, {0, 1, 2, 4, 5, 6}),
        (SMT, range(8), 6, {"distribute": True, "group": 2}, {0, 4, 1, 5, 2, 6}),
        (FLAT, range(8), 0, {}, set()),
    ],
)
def test_choice(where, candidates, count, options, expected):
    assert choose(where, frozenset(candidates), count, **options) == expected


@given(
    st.sampled_from([FLAT, SMT, layout(4, 2, 2, 2), layout(1, 3)]),
    st.data(),
    st.booleans(),
    st.booleans(),
)
def test_a_choice_is_so_many_of_the_candidates(where, data, distribute, spread):
    candidates = data.draw(st.frozensets(st.sampled_from(sorted(where.places))))
    count = data.draw(st.integers(0, len(where.places)))
    group = data.draw(st.sampled_from([1, where.per_core]))
    options = {"distribute": distribute, "spread": spread, "group": group}
    if count > len(candidates):
        with pytest.raises(NotEnoughCpusError, match=f"requested={count}, available="):
            choose(where, candidates, count, **options)
        return
    found = choose(where, candidates, count, **options)
    assert len(found) == count
    assert found <= candidates


def test_aligned_first():
    assert take_cpus(pool(FLAT, {0}), 3, frozenset(), 0b10) == {4, 5, 6}
    assert take_cpus(pool(FLAT, {0}), 6, frozenset(), 0b10) == {1, 2, 4, 5, 6, 7}
    assert take_cpus(pool(FLAT, {0}), 2, frozenset(), None) == {1, 2}


@pytest.mark.parametrize(
    ("reserved", "count", "words"),
    [
        (set(), 3, "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"),
        (
            {0},  # its sibling 4 is lost, too
            8,
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, "
            "requested CPUs = 8, CPUs per core = 2",
        ),
    ],
)
def test_whole_cores_only(reserved, count, words):
    with pytest.raises(RefusedError) as caught:
        take_cpus(pool(SMT, reserved, full_pcpus_only=True), count, frozenset(), None)
    assert (caught.value.reason, caught.value.message) == ("SMTAlignmentError", words)
    assert take_cpus(pool(SMT, reserved, full_pcpus_only=True), 2, frozenset(), None)
