"""The what-if of GetPreferredAllocation: the answer checked, and the kubelet's own choice."""

from __future__ import annotations

from typing import Any

import pytest

from dpctl.inventory.by_hand_rows import PreferenceRow
from dpctl.inventory.preferring import (
    check_answer,
    choice_words,
    free_devices,
    kubelet_choice,
    takes_words,
)
from dpctl.model import Allocatable, Device, NumaNode, NumaTree, PodResources, Snapshot
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"
NODES = {"g0": 0, "g1": 0, "g2": 1, "g3": 1, "g4": 1}
IDS = tuple(NODES)


def snapshot(policy: str = "none", **fields: object) -> Snapshot:
    """Five GPUs: two on NUMA node 0, three on node 1."""
    base: dict[str, object] = {
        "collected_at": NOW,
        "sources": (),
        "checkpoint": build.checkpoint({R: IDS}),
        "directory": build.directory(build.entry("gpu.sock", 20)),
        "sockets": build.table(
            build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)
        ),
        "kubelets": (build.kubelet(),),
        "processes": {200: build.process(200, R)},
        "pod_resources": PodResources("v1", ()),
        "allocatable": Allocatable(tuple(Device(R, i, (n,)) for i, n in NODES.items()), (), ()),
        "numa": NumaTree(tuple(NumaNode(n, (n,), None, None, {}, (10, 20)) for n in (0, 1))),
        "kubelet_config": {"topologyManagerPolicy": policy},
    }
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


def failed(answer: tuple[str, ...] | None, must: tuple[str, ...] = (), size: int = 2) -> list[str]:
    return [c.check for c in check_answer(answer, IDS, must, size) if not c.good]


@pytest.mark.parametrize(
    ("answer", "must", "wrong"),
    [
        (("g0", "g1"), ("g1",), []),
        (("g0",), (), ["exactly 2 devices"]),
        (("g0", "g1", "g2"), (), ["exactly 2 devices"]),
        (("g0", "g0"), (), ["exactly 2 devices", "each of them once"]),
        (("g0", "x"), (), ["only available ones"]),
        (("g0", "g1"), ("g2",), ["all that must be included"]),
        ((), ("g2",), ["exactly 2 devices", "all that must be included"]),
        (None, (), ["an answer for the container"]),
    ],
)
def test_checks(answer: tuple[str, ...] | None, must: tuple[str, ...], wrong: list[str]) -> None:
    assert failed(answer, must) == wrong


def test_free_ones_and_known_ones() -> None:
    held = build.allocation("uid-a", "main", R, {0: ["g0"]})
    snap = snapshot(
        checkpoint=build.checkpoint({R: IDS}, [held]), pods=(build.pod("a", uid="uid-a"),)
    )
    assert free_devices(snap, R) == (("g1", "g2", "g3", "g4"), frozenset(IDS))


def choose(
    policy: str, size: int, answer: Any = None, must: tuple[str, ...] = (), **fields: object
):
    snap = snapshot(policy, **fields)
    choice, takes, unknown = kubelet_choice(snap, R, IDS, must, size, answer)
    return choice, takes, unknown


def test_without_a_policy_any() -> None:
    choice, takes, _ = choose("none", 2, ("g1", "g4"))
    assert choice is not None
    assert (choice.eligible, choice.numa_nodes, choice.asks) == (IDS, None, True)
    assert takes == ("g1", "g4")


def test_aligned_ones_that_just_do_are_not_asked_for() -> None:
    choice, takes, _ = choose("single-numa-node", 2, ("g2", "g3"))
    assert choice is not None
    assert (choice.eligible, choice.numa_nodes, choice.asks) == (("g0", "g1"), (0,), False)
    assert takes == ("g0", "g1")


def test_only_what_is_aligned_counts_of_an_answer() -> None:
    choice, takes, _ = choose("restricted", 2, ("g0", "g4"), must=("g3",))
    assert choice is not None
    # What it has already decides the NUMA node.
    assert (choice.eligible, choice.numa_nodes, choice.asks) == (("g2", "g3", "g4"), (1,), True)
    assert takes == ("g3", "g4")


def test_refused() -> None:
    choice, takes, _ = choose("single-numa-node", 4)
    assert choice is not None
    assert (choice.admitted, choice.devices, takes) == (False, (), None)
    assert "Topology locality" in (choice.message or "")


def test_what_it_has_already_is_not_counted_twice() -> None:
    """Three on NUMA node 1, one of them its own: the other two just do."""
    choice, _, _ = choose("restricted", 3, must=("g2",))
    assert choice is not None
    assert (choice.eligible, choice.asks) == (("g2", "g3", "g4"), False)


def test_what_cannot_be_told() -> None:
    assert choose("none", 2, numa=None) == (
        None,
        None,
        "the NUMA nodes of this machine were not read",
    )
    assert kubelet_choice(snapshot(), None, IDS, (), 2, None)[2] is not None


def row(policy: str, size: int, answer: tuple[str, ...] | None) -> PreferenceRow:
    choice, takes, unknown = choose(policy, size, answer)
    return PreferenceRow("/s", R, size, IDS, (), True, answer, (), True, takes, choice, unknown)


def test_in_words() -> None:
    assert choice_words(row("none", 2, None)) == (
        "any 2 of g0, g1, g2, g3, g4, at random (policy none)"
    )
    assert choice_words(row("restricted", 2, None)) == (
        "all of g0, g1 on NUMA node 0 (policy restricted)"
    )
    assert choice_words(row("single-numa-node", 4, None)).startswith("it would refuse the pod")
    assert takes_words(row("none", 2, ("g3", "x"))) == (
        "g0, g3 (1 of them filled up by itself, at random)"
    )
    assert "without asking the plugin" in takes_words(row("restricted", 2, ("g3", "g4")))
