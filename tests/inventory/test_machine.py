"""What the kubelet's managers have in memory, out of a snapshot; and the answer to a pod."""

from __future__ import annotations

import pytest

from dpctl.inventory.fit import fit_row
from dpctl.inventory.machine import layout_of, machine_of, reserved_cpus
from dpctl.inventory.numa import policies
from dpctl.model import (
    Allocatable,
    ContainerHolding,
    CpuTree,
    Device,
    MemoryBlock,
    NumaNode,
    NumaTree,
    PodHolding,
    PodResources,
    Snapshot,
    Source,
    SourceRow,
)
from dpctl.model.statefiles import (
    CpuAssignments,
    CpuManagerState,
    MemoryAssignments,
    MemoryManagerState,
    MemoryTable,
    NumaMemory,
)
from dpctl.topology.merge import Policy
from dpctl.topology.settings import Settings
from tests import build
from tests.build import NOW
from tests.topology.pods import exact, pod

R = "v.example/gpu"
GI = 1 << 30
NUMA = NumaTree(
    (
        NumaNode(0, (0, 1, 2, 3), 8 * GI, 4 * GI, {}, (10, 21)),
        NumaNode(1, (4, 5, 6, 7), 8 * GI, 4 * GI, {}, (21, 10)),
    )
)
STATIC = Settings(Policy.RESTRICTED, static_cpus=True, static_memory=True)


def snapshot(**fields: object) -> Snapshot:
    base: dict[str, object] = {"collected_at": NOW, "sources": (), "numa": NUMA}
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


def allocatable(*devices: Device) -> Allocatable:
    memory = tuple(MemoryBlock("memory", 7 * GI, (node,)) for node in (0, 1))
    return Allocatable(devices, tuple(range(1, 8)), memory)


def listed(*containers: ContainerHolding) -> PodResources:
    return PodResources("v1", (PodHolding("ml", "p", containers),))


def test_devices() -> None:
    held = ContainerHolding("c", (Device(R, "g1", (0,)),))
    offered = (
        Device(R, "g0", (0,)),
        Device(R, "g1", (0,)),
        Device(R, "g2", None, below_zero=True),
        Device(R, "g3", None),
    )
    snap = snapshot(pod_resources=listed(held), allocatable=allocatable(*offered))
    pool = machine_of(snap, STATIC).machine.pools[R]
    assert pool.nodes == {"g0": (0,), "g1": (0,), "g2": (-1,), "g3": None}
    assert pool.healthy == {"g0", "g1", "g2", "g3"}
    assert pool.in_use == {"g1"}


def test_a_plugin_that_is_gone_leaves_no_healthy_device() -> None:
    snap = snapshot(
        checkpoint=build.checkpoint({R: []}, []), pod_resources=listed(), allocatable=allocatable()
    )
    found = fit_row(snap, pod({R: "1"}), Settings(), "default")
    assert (found.admitted, found.reason) == (False, "UnexpectedAdmissionError")
    assert found.message == (
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
        f"{R}, which is unexpected"
    )


def test_numa_nodes_that_nobody_told_are_a_doubt() -> None:
    """v1alpha1 says who has what, and of no device where it is."""
    held = ContainerHolding("c", (Device(R, "g0", None),))
    answer = PodResources("v1alpha1", (PodHolding("ml", "p", (held,)),))
    joined = machine_of(snapshot(pod_resources=answer), STATIC)
    assert joined.doubts[R] == "the NUMA nodes of 1 of its devices were not read"
    assert joined.doubts["cpu"] == "which CPUs containers have alone was not read"
    assert joined.doubts["memory"] == "which memory containers have pinned was not read"


@pytest.mark.parametrize(
    ("settings", "offered", "expected"),
    [
        (Settings(reserved_cpus=(0, 5)), allocatable(), {0, 5}),
        (Settings(), allocatable(), {0}),
        (Settings(reserved_cpu_count=2), None, {0, 1}),
    ],
)
def test_reserved_cpus(settings: Settings, offered: Allocatable | None, expected: set[int]) -> None:
    snap = snapshot(allocatable=offered)
    assert reserved_cpus(snap, settings, layout_of(snap)[0]) == expected


def test_cores_and_sockets() -> None:
    cores = {cpu: cpu % 4 for cpu in range(8)}
    tree = CpuTree(tuple(range(8)), (), cores, dict.fromkeys(range(8), 0))
    layout, read = layout_of(snapshot(cpus=tree))
    assert read
    assert (layout.per_core, layout.sockets, layout.places[5].core) == (2, (0,), 1)
    layout, read = layout_of(snapshot())
    assert not read
    assert (layout.per_core, layout.sockets) == (1, (0, 1))


def cpu_state(**pods: dict[str, tuple[int, ...]]) -> CpuManagerState:
    taken = {cpu for found in pods.values() for cpus in found.values() for cpu in cpus}
    left = tuple(cpu for cpu in range(8) if cpu not in taken)
    return CpuManagerState(2, CpuAssignments("static", left, pods))


def test_cpus_of_pods_that_are_gone_can_be_given() -> None:
    alive = build.pod("p", uid="alive")
    snap = snapshot(
        cpu_state=cpu_state(alive={"c": (1, 2)}, gone={"c": (4, 5)}),
        allocatable=allocatable(),
        pods=(alive,),
    )
    pool = machine_of(snap, STATIC).machine.cpus
    assert pool is not None
    assert pool.available == {3, 4, 5, 6, 7}


def test_the_half_of_a_state_file_that_counts() -> None:
    """1.37 goes by `data`."""
    outer = CpuAssignments("static", (0, 1, 2, 3, 4, 5, 6, 7))
    data = CpuAssignments("static", (0, 1), {"u": {"c": (2, 3, 4, 5, 6, 7)}})
    snap = snapshot(cpu_state=CpuManagerState(4, outer, data), allocatable=allocatable())
    pool = machine_of(snap, STATIC).machine.cpus
    assert pool is not None
    assert pool.available == {1}


def memory_state() -> MemoryManagerState:
    def node(number: int, free: int) -> NumaMemory:
        table = MemoryTable(8 * GI, GI, 7 * GI, 7 * GI - free, free)
        return NumaMemory(1, {"memory": table}, (number,))

    block = MemoryBlock("memory", 5 * GI, (0,))
    other = MemoryBlock("memory", 5 * GI, (1,))
    pods = {"alive": {"c": (block,)}, "gone": {"c": (other,)}}
    nodes = {0: node(0, 2 * GI), 1: node(1, 2 * GI)}
    return MemoryManagerState(1, MemoryAssignments("Static", nodes, pods))


def test_memory_of_pods_that_are_gone_can_be_given() -> None:
    snap = snapshot(memory_state=memory_state(), pods=(build.pod("p", uid="alive"),))
    found = machine_of(snap, STATIC).machine.memory
    assert found is not None
    assert [found[n].tables["memory"].free for n in (0, 1)] == [2 * GI, 7 * GI]
    assert (found[1].cells, found[1].assignments) == ((1,), 0)


def test_memory_without_the_state_file() -> None:
    held = ContainerHolding("c", (), memory=(MemoryBlock("memory", 3 * GI, (1,)),))
    snap = snapshot(pod_resources=listed(held), allocatable=allocatable())
    found = machine_of(snap, STATIC).machine.memory
    assert found is not None
    assert [found[n].tables["memory"].free for n in (0, 1)] == [7 * GI, 4 * GI]


# -- policies --------------------------------------------------------------------------------------


def test_policies_out_of_the_configuration() -> None:
    row = SourceRow(Source.KUBELET, "/etc/kubelet.yaml", "read")
    snap = snapshot(kubelet_config={"topologyManagerPolicy": "restricted"}, sources=(row,))
    found = policies(snap)
    assert found.settings.policy is Policy.RESTRICTED
    assert {r.name: (r.value, r.origin) for r in found.rows} == {
        "topologyManagerPolicy": ("restricted", "/etc/kubelet.yaml"),
        "topologyManagerScope": ("container", "default"),
        "cpuManagerPolicy": ("none", "default"),
        "memoryManagerPolicy": ("None", "default"),
    }


def test_a_flag_wins_and_is_named() -> None:
    row = SourceRow(Source.KUBELET, "/etc/kubelet.yaml", "read")
    config = {"topologyManagerPolicy": "restricted", "cpuManagerPolicy": "static"}
    flags = {"topologyManagerPolicy": "topology-manager-policy"}
    found = policies(snapshot(kubelet_config=config, kubelet_flags=flags, sources=(row,)))
    assert found.origin("topologyManagerPolicy") == "the kubelet's --topology-manager-policy"
    assert found.origin("cpuManagerPolicy") == "/etc/kubelet.yaml"


def test_policies_without_it() -> None:
    """The state files say what they were written under, GetAllocatableResources what there is."""
    rows = (
        SourceRow(Source.CPU_STATE, "/k/cpu_manager_state", "read"),
        SourceRow(Source.ALLOCATABLE, "/k/kubelet.sock", "read"),
    )
    found = policies(snapshot(cpu_state=cpu_state(), allocatable=allocatable(), sources=rows))
    assert not found.known
    assert found.settings.static_cpus
    assert found.settings.static_memory
    assert [(r.name, r.value, r.origin) for r in found.rows] == [
        ("topologyManagerPolicy", None, "the kubelet's configuration was not read"),
        ("cpuManagerPolicy", "static", "/k/cpu_manager_state"),
        ("memoryManagerPolicy", "Static", "inferred from /k/kubelet.sock"),
    ]


# -- the Node's own arithmetic ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cpu": "1500m"}, None),
        (
            {"cpu": "1501m"},
            "Node didn't have enough resource: cpu, requested: 1501, used: 500, capacity: 2000",
        ),
        (
            {"memory": "2Gi"},
            "Node didn't have enough resource: memory, requested: 2147483648, used: 0, "
            "capacity: 1073741824",
        ),
        (
            {"a.b/c": "1"},
            "Node didn't have enough resource: a.b/c, requested: 1, used: 0, capacity: 0",
        ),
        ({"a.b/absent": "1"}, None),
    ],
)
def test_out_of(asked: dict[str, str], message: str | None) -> None:
    node = build.node({}, {"cpu": "2", "memory": "1Gi", "pods": "110", "a.b/c": "0"})
    other = build.pod("other", build.container("c", {"cpu": "500m"}))
    over = build.pod("over", build.container("c", {"cpu": "9"}), phase="Failed")
    snap = snapshot(node=node, pods=(other, over), allocatable=allocatable())
    found = fit_row(snap, pod(asked), Settings(), "default")
    assert found.message == message
    assert found.admitted == (message is None)
    if message:
        assert found.reason == f"OutOf{next(iter(asked))}"


def test_no_room_for_one_more_pod() -> None:
    node = build.node({}, {"pods": "1"})
    snap = snapshot(node=node, pods=(build.pod("other"),), allocatable=allocatable())
    assert fit_row(snap, pod({}), Settings(), "default").reason == "OutOfpods"


# -- what no answer can be given to ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("snap", "settings", "asked", "words"),
    [
        (snapshot(numa=None), Settings(), pod({}), "NUMA nodes of this machine were not read"),
        (
            snapshot(),
            Settings(Policy.RESTRICTED, most_nodes=1),
            pod({}),
            "unsupported on machines with more than 1 NUMA Nodes",
        ),
        (
            snapshot(),
            Settings(pod_level_managers=True),
            pod({}, pod_requests={"cpu": "1"}),
            "PodLevelResourceManagers",
        ),
    ],
)
def test_no_answer(snap, settings, asked, words) -> None:
    with pytest.raises(ValueError, match=words):
        fit_row(snap, asked, settings, "default")


def test_warnings() -> None:
    snap = snapshot(allocatable=allocatable())
    found = fit_row(snap, pod({"a.b/c": "1", "cpu": "1"}), STATIC, "default")
    assert found.admitted
    assert [warning.split(":")[0] for warning in found.warnings] == [
        "a.b/c",
        "cpu",
        "memory",
        "the pod is not Guaranteed (every container needs cpu and memory, limits equal to requests)"
        ", so its cpu are not exclusive and no NUMA node is looked at",
        "the Node or its pods were not read",
    ]
    assert "WITHOUT" in found.warnings[0]
    assert fit_row(snap, pod(exact(1)), STATIC, "default").guaranteed
