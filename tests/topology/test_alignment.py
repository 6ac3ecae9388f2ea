"""How what is held lies on the NUMA nodes, and whether it could have lain better."""

from __future__ import annotations

import pytest

from dpctl.topology.alignment import Alignment, Holding, Room, judge

GPU, NIC = "v.example/gpu", "v.example/nic"
GI = 1 << 30
ROOM = Room(
    numa_nodes=(0, 1, 2),
    devices={GPU: [(0,)] * 4 + [(1,)] * 4, NIC: [(2,)], "v.example/wide": [(0, 1)] * 2},
    cpus={0: 8, 1: 8, 2: 8},
    memory={0: {"memory": 10 * GI}, 1: {"memory": 10 * GI}, 2: {"memory": 10 * GI}},
)


def held(gpus=(), cpus=(), memory=(), **more) -> Holding:
    devices = {GPU: [None if n is None else (n,) for n in gpus]}
    devices |= {f"v.example/{name}": nodes for name, nodes in more.items()}
    return Holding(devices, cpus, memory)


@pytest.mark.parametrize(
    ("holding", "alignment", "nodes", "needed"),
    [
        (held([0, 0], [0]), Alignment.ALIGNED, (0,), 1),
        (held([0, 1]), Alignment.SPREAD, (0, 1), 1),
        (held([0] * 4 + [1]), Alignment.TOO_BIG, (0, 1), 2),
        (held([0], nic=[(2,)]), Alignment.APART, (0, 2), 2),
        (held([0, 1], nic=[(2,)]), Alignment.SPREAD, (0, 1, 2), 2),
        (held([0], [0, 1]), Alignment.SPREAD, (0, 1), 1),
        (held(cpus=[0] * 8 + [1]), Alignment.TOO_BIG, (0, 1), 2),
        (held([1], memory=[("memory", 12 * GI, (0, 1))]), Alignment.TOO_BIG, (0, 1), 2),
        (held([1], memory=[("memory", GI, (0, 1))]), Alignment.SPREAD, (0, 1), 1),
        (held([1], wide=[(0, 1)]), Alignment.ALIGNED, (1,), 1),  # either will do
        (held([0, None]), Alignment.ALIGNED, (0,), 1),
        (held([None]), None, (), None),
        (held(), None, (), None),
        (held([7]), Alignment.ALIGNED, (7,), 1),  # a NUMA node that the machine has no more
    ],
)
def test_judgement(holding, alignment, nodes, needed):
    found = judge(holding, ROOM)
    assert (found.alignment, found.numa_nodes, found.needed) == (alignment, nodes, needed)


def test_what_is_too_big_is_named():
    assert judge(held([0] * 4 + [1], [0] * 8 + [1]), ROOM).too_big == (GPU, "cpu")


def test_too_many_numa_nodes_to_combine():
    room = ROOM._replace(numa_nodes=tuple(range(20)))
    found = judge(held([0, 1]), room)
    assert (found.alignment, found.numa_nodes) == (None, (0, 1))
