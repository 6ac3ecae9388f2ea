"""Whole admissions: two scopes, what one container leaves to the next, and every kind of refusal.

The cases that a real kubelet was asked are in tests/cluster/test_fit.py; these are the corners.
"""

from __future__ import annotations

import pytest

from dpctl.topology.admission import Machine, admit
from dpctl.topology.cpus import CpuOptions, CpuPool
from dpctl.topology.merge import Policy
from dpctl.topology.settings import Settings
from dpctl.topology.words import pins_nothing, why_refused
from tests.topology.pods import container, exact, pod
from tests.topology.test_cpus import FLAT, SMT
from tests.topology.test_devices import pool
from tests.topology.test_memory import machine as memory

GPU, NIC = "v.example/gpu", "v.example/nic"
GPUS = pool((0,), (0,), (1,), (1,))
NICS = pool((0,), (1,))


def node(**changes: object) -> Machine:
    """Two NUMA nodes with four CPUs, two GPUs, a NIC and 10 GiB each; CPU 0 is reserved."""
    cpus = CpuPool(FLAT, frozenset({0}), frozenset(FLAT.places))
    found = Machine((0, 1), {0: (10, 21), 1: (21, 10)}, {GPU: GPUS, NIC: NICS}, cpus)
    return found._replace(memory=memory(10, 10))._replace(**changes)  # type: ignore[arg-type]


def settings(policy: str = "single-numa-node", scope: str = "container") -> Settings:
    return Settings(Policy(policy), scope)


def test_containers_one_after_the_other():
    found = admit(pod(exact(3, gpu="2"), exact(4, gpu="2")), node(), settings())
    assert found.admitted
    first, second = found.placements
    assert (first.shares[0].devices, first.cpus, first.memory_nodes) == (
        ("d0", "d1"),
        (1, 2, 3),
        (0,),
    )
    assert (second.shares[0].devices, second.cpus, second.memory_nodes) == (
        ("d2", "d3"),
        (4, 5, 6, 7),
        (1,),
    )
    assert [ask.container for ask in found.asks] == ["c0", "c1"]


def test_cpus_and_memory_are_given_once():
    asked = pod(exact(3, "6Gi"), exact(3, "6Gi"))
    found = admit(asked, node(), settings())
    assert [placement.cpus for placement in found.placements] == [(1, 2, 3), (4, 5, 6)]
    assert [placement.memory_nodes for placement in found.placements] == [(0,), (1,)]
    assert admit(pod(exact(3), exact(3), exact(2)), node(), settings()).container == "c2"
    more = pod(exact(1, "6Gi"), exact(1, "6Gi"), exact(1, "6Gi"))
    assert admit(more, node(), settings()).container == "c2"


def test_the_second_is_refused():
    found = admit(pod(exact(3, gpu="2"), exact(3, gpu="1"), exact(1, gpu="2")), node(), settings())
    assert (found.admitted, found.container) == (False, "c2")
    assert [placement.container for placement in found.placements] == ["c0", "c1"]
    assert why_refused(found, settings()) == (f"{GPU}: 2 requested, 1 free",)


def test_the_pod_as_a_whole():
    two = pod({GPU: "2"}, {GPU: "2"})
    assert admit(two, node(), settings()).admitted
    found = admit(two, node(), settings(scope="pod"))
    assert (found.admitted, found.container, found.reason) == (
        False,
        None,
        "TopologyAffinityError",
    )
    assert why_refused(found, settings()) == (
        f"{GPU}: 4 do not fit one NUMA node even on an empty machine, and single-numa-node admits "
        "nothing else",
    )


def test_init_containers_pass_on_and_sidecars_keep():
    asked = pod(
        container("side", exact(1, gpu="1"), "sidecar"),
        container("init", exact(3, gpu="2"), "init"),
        exact(3, gpu="2"),
    )
    found = admit(asked, node(), settings())
    assert found.admitted
    side, init, main = found.placements
    assert init.shares[0].devices == main.shares[0].devices
    assert init.cpus == main.cpus
    assert set(side.cpus).isdisjoint(main.cpus)


def test_eligible_is_what_the_choice_is_from():
    found = admit(pod({GPU: "1"}, {GPU: "2"}), node(), settings("best-effort"))
    one, two = (placement.shares[0] for placement in found.placements)
    assert (one.devices, one.eligible) == (("d0",), ("d0", "d1"))
    assert (two.devices, two.eligible) == (("d2", "d3"), ("d2", "d3"))
    spread = admit(pod({GPU: "3"}), node(), settings("none")).placements[0].shares[0]
    assert spread.eligible == ("d0", "d1", "d2", "d3")
    # What the first takes is not decided, so the second may get any.
    found = admit(pod({GPU: "1"}, {GPU: "1"}), node(), settings("none"))
    assert found.placements[1].shares[0].eligible == ("d0", "d1", "d2", "d3")


@pytest.mark.parametrize(
    ("asked", "policy", "where", "reason", "words"),
    [
        (
            {GPU: "2", NIC: "1"},
            "restricted",
            node(pools={GPU: pool((0,), (0,)), NIC: pool((1,))}),
            "TopologyAffinityError",
            f"each resource alone fits, but not all on the same NUMA nodes: {GPU} on 0; {NIC} on 1",
        ),
        (
            {GPU: "2"},
            "restricted",
            node(pools={GPU: pool((0,), (0,), (1,), (1,), in_use=("d0", "d2"))}),
            "TopologyAffinityError",
            f"{GPU}: on an empty machine 2 would fit on fewer NUMA nodes, but what is free now lies"
            " on 2 (0+1)",
        ),
        (
            {GPU: "1"},
            "restricted",
            node(pools={GPU: pool((-1,))}),
            "TopologyAffinityError",
            f"{GPU}: no set of NUMA nodes has 1 of the 1 that are free (a device whose NUMA node is"
            " -1 or unknown to the machine is on none)",
        ),
        (
            {GPU: "1"},
            "none",
            node(pools={GPU: GPUS._replace(healthy=frozenset())}),
            "UnexpectedAdmissionError",
            "the kubelet knows the resource, but none of its devices is healthy: is the plugin "
            "there? `dpctl resources -o wide`",
        ),
        (
            {GPU: "5"},
            "none",
            node(),
            "UnexpectedAdmissionError",
            "too few devices are healthy and not held by another container: `dpctl devices`",
        ),
        (
            exact(8),
            "none",
            node(),
            "UnexpectedAdmissionError",
            "too few CPUs are left that a container could have alone (reserved ones are not given)",
        ),
        (
            exact(1, "30Gi"),
            "none",
            node(),
            "UnexpectedAdmissionError",
            "no NUMA node, nor group of NUMA nodes that may be joined, has that much memory "
            "unpinned",
        ),
        (
            exact(1, "12Gi", gpu="1"),
            "restricted",
            node(memory={**memory(10, 10), 0: memory(10)[0]._replace(assignments=1)}),
            "UnexpectedAdmissionError",
            "the memory that is not pinned does not lie where the devices and CPUs are",
        ),
        (
            exact(3),
            "none",
            node(cpus=CpuPool(SMT, frozenset(), frozenset(range(8)), CpuOptions(True))),
            "SMTAlignmentError",
            "full-pcpus-only gives whole cores only: ask for a multiple of the threads of a core",
        ),
        (
            exact(8),
            "none",
            node(cpus=CpuPool(SMT, frozenset({0}), frozenset(range(8)), CpuOptions(True))),
            "SMTAlignmentError",
            "full-pcpus-only gives whole cores only, and none that shares one with a reserved CPU",
        ),
    ],
)
def test_refusals_in_words(asked, policy, where, reason, words):
    found = admit(pod(asked), where, settings(policy))
    assert (found.admitted, found.reason) == (False, reason)
    assert why_refused(found, settings(policy)) == (words,)


def test_what_the_kubelet_does_not_know_is_skipped():
    found = admit(pod({"a.b/c": "1", "a.b/none": "0"}), node(), settings())
    assert found.admitted
    assert found.unserved == ("a.b/c",)


def test_not_guaranteed_is_not_looked_at():
    found = admit(pod({"cpu": "99"}), node(), settings())
    assert found.admitted
    assert found.placements[0].cpus == ()
    static = settings()._replace(static_cpus=True)
    warning = pins_nothing(False, static, ["cpu", "memory"])
    assert warning is not None
    assert "so its cpu are not exclusive" in warning
    assert pins_nothing(True, static, ["cpu"]) is None
    assert pins_nothing(False, settings(), ["cpu"]) is None
