"""Container rows: the join of List, checkpoint, log names and pods; alignment; rejected pods."""

from __future__ import annotations

import pytest

from dpctl.inventory.containers import container_rows, failed_pod_rows, holds_something
from dpctl.inventory.rows import ContainerRow
from dpctl.inventory.users import user_rows
from dpctl.model import (
    AllocResponse,
    Claim,
    ClaimDevice,
    ContainerHolding,
    Device,
    DeviceSpec,
    HostPath,
    MemoryBlock,
    NumaNode,
    NumaTree,
    PodHolding,
    PodName,
    PodResources,
    Process,
    Snapshot,
)
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"
NUMA = NumaTree((NumaNode(0, (0, 1), None, None, {}, ()), NumaNode(1, (2, 3), None, None, {}, ())))


def snapshot(**fields: object) -> Snapshot:
    base: dict[str, object] = {"collected_at": NOW, "sources": (), "numa": NUMA}
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


def listed(*containers: ContainerHolding, name: str = "p") -> PodResources:
    return PodResources("v1", (PodHolding("ml", name, containers),))


def only(snap: Snapshot) -> ContainerRow:
    (row,) = container_rows(snap)
    return row


def test_two_entries_of_one_device_are_one() -> None:
    held = ContainerHolding("c", (Device(R, "g0", (0, 1)),))
    row = only(
        snapshot(
            pod_resources=listed(held),
            checkpoint=build.checkpoint(
                {}, [build.allocation("u", "c", R, {0: ["g0"], 1: ["g0"]})]
            ),
        )
    )
    assert [d.id for d in row.devices] == ["g0"]
    assert row.numa_nodes == (0, 1)
    assert row.uid is None, "nothing here ties the UID to the name but the devices"
    assert row.sources == ("checkpoint", "podresources")


def test_log_names_join_uids() -> None:
    entry = build.allocation("uid-p", "warmup", R, {0: ["g0"]})
    snap = snapshot(
        pod_resources=listed(ContainerHolding("c", ())),
        checkpoint=build.checkpoint({}, [entry]),
        pod_names=(PodName("uid-p", "ml", "p"),),
    )
    rows = {r.container: r for r in container_rows(snap)}
    assert (rows["warmup"].pod, rows["warmup"].kind) == ("p", "init")
    assert rows["c"].kind is None, "app or sidecar: only the API server tells"


def test_a_new_pod_of_the_same_name_does_not_inherit_the_old_ones_devices() -> None:
    """Deleted and made again, as a StatefulSet does: the checkpoint still has the old UID."""
    old = build.allocation("uid-old", "c", R, {0: ["g0"]})
    snap = snapshot(
        pod_resources=listed(ContainerHolding("c", ())),
        checkpoint=build.checkpoint({}, [old]),
        pod_names=(PodName("uid-old", "ml", "p"), PodName("uid-new", "ml", "p")),
    )
    assert not any(r.devices for r in container_rows(snap))


@pytest.mark.parametrize("order", [("uid-a", "uid-z"), ("uid-z", "uid-a")])
def test_of_two_uids_under_one_name_the_one_that_holds_is_the_pod(order: tuple[str, str]) -> None:
    old, new = order
    snap = snapshot(
        pod_resources=listed(ContainerHolding("c", (Device(R, "g1", (0,)),))),
        checkpoint=build.checkpoint(
            {},
            [
                build.allocation(old, "c", R, {0: ["g0"]}),
                build.allocation(new, "c", R, {0: ["g1"]}),
                build.allocation(new, "warmup", R, {0: ["g2"]}),
            ],
        ),
        pod_names=tuple(PodName(uid, "ml", "p") for uid in sorted(order)),
    )
    rows = {r.container: r for r in container_rows(snap)}
    assert [d.id for d in rows["c"].devices] == ["g1"]
    assert rows["c"].uid == new
    assert (rows["warmup"].pod, rows["warmup"].kind) == ("p", "init")
    assert [(r.device, r.state) for r in user_rows(snap, "g*")] == [
        ("g1", "active"),
        ("g0", "gone"),
        ("g2", "active"),
    ]


@pytest.mark.parametrize(
    ("devices", "cpus", "memory", "aligned"),
    [
        ([(0,)], (), [], True),
        ([(0,), (1,)], (), [], False),
        ([(0, 1), (1,)], (), [], True),
        ([(0,)], (0, 1), [], True),
        ([(0,)], (2,), [], False),
        ([(0, 1)], (0, 2), [], False),
        ([None], (), [], None),
        ([None], (0,), [], True),
        ([(1,)], (), [(0, 1)], False),
        ([(1,)], (3,), [(1,)], True),
        ([], (), [], None),
    ],
)
def test_aligned(
    devices: list[tuple[int, ...] | None],
    cpus: tuple[int, ...],
    memory: list[tuple[int, ...]],
    aligned: bool | None,
) -> None:
    held = ContainerHolding(
        "c",
        tuple(Device(R, f"g{i}", nodes) for i, nodes in enumerate(devices)),
        cpus,
        tuple(MemoryBlock("memory", 1, nodes) for nodes in memory),
    )
    assert only(snapshot(pod_resources=listed(held))).aligned is aligned


def test_cpus_without_a_numa_tree_give_no_verdict() -> None:
    held = ContainerHolding("c", (Device(R, "g0", (0,)),), (0,))
    assert only(snapshot(pod_resources=listed(held), numa=None)).aligned is None


def test_pod_level_cpus_are_not_added_to_the_containers() -> None:
    pod = PodHolding("ml", "p", (ContainerHolding("c", (), (2, 3)),), cpus=(2, 3))
    assert only(snapshot(pod_resources=PodResources("v1", (pod,)))).cpus == (2, 3)


def test_v1alpha1_tells_no_cpus() -> None:
    pods = PodResources("v1alpha1", (PodHolding("ml", "p", (ContainerHolding("c", ()),)),))
    row = only(snapshot(pod_resources=pods))
    assert (row.cpus, row.memory) == (None, None)


def test_claims_are_rows_of_their_own() -> None:
    devices = tuple(ClaimDevice("drv", "pool", f"d{i}", None, ("a/b=1",)) for i in range(2))
    held = ContainerHolding("c", (), claims=(Claim("ml", "claim", None, devices),))
    row = only(snapshot(pod_resources=listed(held)))
    assert row.claim == "ml/claim"
    assert [d.id for d in row.devices] == ["drv/pool/d0", "drv/pool/d1"]
    assert row.cdi_devices == ("a/b=1",), "the kubelet repeats earlier devices' IDs"


def test_requested_and_not_given_is_shown() -> None:
    """A pod that was admitted while the kubelet knew nothing of its resource runs without it."""
    snap = snapshot(
        pod_resources=listed(ContainerHolding("c", ())),
        pods=(build.pod("p", build.container("c", {R: "1"})),),
    )
    row = only(snap)
    assert (row.resource, row.devices, row.requested) == (R, (), 1)
    assert holds_something(row)


def test_a_container_with_nothing_is_a_row_without_a_resource() -> None:
    row = only(snapshot(pod_resources=listed(ContainerHolding("c", ()))))
    assert (row.resource, row.claim) == (None, None)
    assert not holds_something(row)


def test_the_plugins_answer_with_what_the_host_has() -> None:
    answer = AllocResponse(
        envs={"A": "1"},
        device_specs=(DeviceSpec("/dev/a", "/dev/a", "rw"), DeviceSpec("/dev/b", "/dev/b", "r")),
    )
    entry = build.allocation("u", "c", R, {0: ["g0"]})._replace(answer=answer)
    snap = snapshot(
        checkpoint=build.checkpoint({}, [entry]),
        host_paths={"/dev/a": HostPath("character device", 0o666), "/dev/b": HostPath(None)},
    )
    given = only(snap).answer
    assert given is not None
    assert [(d.host_path, d.exists) for d in given.device_nodes] == [
        ("/dev/a", True),
        ("/dev/b", False),
    ]


@pytest.mark.parametrize(
    ("reason", "rejected"),
    [
        ("UnexpectedAdmissionError", True),
        ("TopologyAffinityError", True),
        ("OutOfvendor.example/gpu", True),
        ("Evicted", False),
        (None, False),
    ],
)
def test_rejected_pods(reason: str | None, rejected: bool) -> None:
    pod = build.pod("p", build.container("c", {R: "1500m"}), phase="Failed", reason=reason)
    rows = failed_pod_rows(snapshot(pods=(pod,)))
    assert bool(rows) is rejected
    if rejected:
        assert rows[0].requests == {R: "2"}


def test_who_holds_a_device_node() -> None:
    answer = AllocResponse(device_specs=(DeviceSpec("/dev/x", "/dev/nvidia3", "rw"),))
    entry = build.allocation("uid-p", "c", R, {0: ["g3"]})._replace(answer=answer)
    snap = snapshot(
        checkpoint=build.checkpoint({}, [entry]),
        pods=(build.pod("p", build.container("c")),),
        openers=(
            Process(7, "python", (), {}, "uid-p", None),
            Process(8, "bash", (), {}, None, None),
        ),
    )
    rows = user_rows(snap, "/dev/nvidia3")
    assert [(r.what, r.pod, r.container, r.pid) for r in rows] == [
        ("container", "p", "c", None),
        ("process", "p", None, 7),
        ("process", None, None, 8),
    ]
    assert [r.pod for r in user_rows(snap, "g3")] == ["p"]
    assert [r.pod for r in user_rows(snap, "g*")] == ["p"]
    assert user_rows(snap, "g4") == ()
