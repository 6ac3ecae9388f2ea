"""Device rows: their states in the contract's order, health, NUMA nodes, holders and groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.inventory.devices import Devices, base_device, group_rows, is_free, pci_address
from dpctl.inventory.rows import DeviceRow, DeviceState
from dpctl.model import (
    Allocatable,
    ContainerHolding,
    Device,
    HealthWord,
    PodContainer,
    PodHolding,
    PodName,
    PodResources,
    Snapshot,
)
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"


def snapshot(**fields: object) -> Snapshot:
    base: dict[str, object] = {
        "collected_at": NOW,
        "sources": (),
        "node": build.node({R: "3"}),
        "checkpoint": build.checkpoint({R: ("g0", "g1", "g2")}),
        "directory": build.directory(build.entry("gpu.sock", 20)),
        "sockets": build.table(
            build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)
        ),
        "kubelets": (build.kubelet(),),
        "pods": (build.pod("p", build.container("c"), build.container("w", kind="init")),),
        "pod_resources": PodResources("v1", ()),
    }
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


def holding(
    name: str, *devices: tuple[str, tuple[int, ...] | None], container: str = "c"
) -> PodHolding:
    held = tuple(Device(R, device_id, nodes) for device_id, nodes in devices)
    return PodHolding("ml", name, (ContainerHolding(container, held),))


def devices(snap: Snapshot) -> dict[str | None, DeviceRow]:
    return {r.device: r for r in Devices(snap).rows()}


def test_free_and_allocated() -> None:
    rows = devices(snapshot(pod_resources=PodResources("v1", (holding("p", ("g0", (0,))),))))
    assert rows["g0"].state is DeviceState.ALLOCATED
    assert [h.label for h in rows["g0"].holders] == ["ml/p/c"]
    assert rows["g0"].numa_nodes == (0,)
    assert rows["g1"].state is DeviceState.FREE
    assert not rows["g1"].numa_known, "RegisteredDevices tells no topology"


def test_init_only_is_reusable_and_shown_beside_the_app() -> None:
    held = [
        build.allocation("uid-p", "w", R, {0: ["g0", "g1"]}),
        build.allocation("uid-p", "c", R, {0: ["g0"]}),
    ]
    rows = devices(
        snapshot(
            checkpoint=build.checkpoint({R: ("g0", "g1", "g2")}, held),
            pod_resources=PodResources("v1", (holding("p", ("g0", (0,))),)),
        )
    )
    assert rows["g0"].state is DeviceState.ALLOCATED
    assert [h.label for h in rows["g0"].holders] == ["ml/p/c", "ml/p/w (init)"]
    assert rows["g1"].state is DeviceState.REUSABLE


def test_init_is_told_without_the_api_server() -> None:
    """What only the checkpoint has of a pod that List shows can only be an init container."""
    held = [
        build.allocation("uid-p", "w", R, {0: ["g0"]}),
        build.allocation("uid-p", "c", R, {0: ["g0"]}),
    ]
    rows = devices(
        snapshot(
            pods=None,
            checkpoint=build.checkpoint({R: ("g0", "g1", "g2")}, held),
            pod_resources=PodResources("v1", (holding("p", ("g0", (0,))),)),
        )
    )
    assert [(h.label, h.kind) for h in rows["g0"].holders] == [
        ("ml/p/c", None),
        ("ml/p/w (init)", "init"),
    ]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_held_by_a_terminal_pod_is_orphaned(phase: str) -> None:
    held = [build.allocation("uid-p", "c", R, {0: ["g0"]})]
    snap = snapshot(
        pods=(build.pod("p", build.container("c"), phase=phase),),
        checkpoint=build.checkpoint({R: ("g0", "g1", "g2")}, held),
    )
    rows = devices(snap)
    assert rows["g0"].state is DeviceState.ORPHANED
    assert rows["g0"].holders[0].label == "ml/p/c"
    assert Devices(snap).allocated(R) == frozenset()


def test_held_by_a_pod_that_is_gone_is_orphaned() -> None:
    held = [build.allocation("uid-gone", "c", R, {0: ["g0"]})]
    rows = devices(snapshot(checkpoint=build.checkpoint({R: ("g0", "g1", "g2")}, held)))
    assert rows["g0"].state is DeviceState.ORPHANED
    assert rows["g0"].holders[0].label == "uid:uid-gone/c"


def test_a_pod_nobody_can_judge_counts_as_holding() -> None:
    held = [build.allocation("uid-x", "c", R, {0: ["g0"]})]
    snap = snapshot(
        pods=None,
        pod_resources=None,
        checkpoint=build.checkpoint({R: ("g0", "g1", "g2")}, held),
    )
    assert devices(snap)["g0"].state is DeviceState.ALLOCATED
    assert Devices(snap).free(R) == 2


TOLD, STATIC = "0f2d3a6e-5a1c-4b7e-9d1a-2c3b4d5e6f70", "d41d8cd98f00b204e9800998ecf8427e"


@pytest.mark.parametrize(
    ("listed", "state"),
    [
        ((), DeviceState.ALLOCATED),
        ((STATIC,), DeviceState.ALLOCATED),
        ((STATIC, TOLD), DeviceState.ORPHANED),
    ],
)
def test_a_restarted_kubelet_lists_no_pods_of_the_api_until_it_has_heard_of_them(
    listed: tuple[str, ...], state: DeviceState
) -> None:
    """Which takes as long as the API server is down: only then is one that it lacks gone."""
    held = [build.allocation("uid-x", "c", R, {0: ["g0"]})]
    snap = snapshot(
        pods=None,
        pod_names=(PodName("uid-x", "ml", "x"), *(PodName(uid, "ml", uid) for uid in listed)),
        pod_resources=PodResources("v1", tuple(holding(uid) for uid in listed)),
        checkpoint=build.checkpoint({R: ("g0", "g1", "g2")}, held),
    )
    row = devices(snap)["g0"]
    assert (row.state, row.holders[0].label) == (state, "ml/x/c")


def test_old_kubelets_list_terminated_pods_which_do_not_count() -> None:
    listed = PodResources("v1", (holding("p", ("g0", (0,))),))
    done = (build.pod("p", build.container("c"), phase="Succeeded"),)
    old = snapshot(node=build.node({R: "3"}, version="v1.33.1"), pods=done, pod_resources=listed)
    assert devices(old)["g0"].state is DeviceState.ORPHANED
    new = snapshot(node=build.node({R: "3"}, version="v1.34.4"), pods=done, pod_resources=listed)
    assert devices(new)["g0"].state is DeviceState.ALLOCATED, "1.34 lists active pods only"


def test_not_connected_is_unknown_but_the_holder_stays() -> None:
    snap = snapshot(
        sockets=build.table(), pod_resources=PodResources("v1", (holding("p", ("g0", (0,))),))
    )
    found = devices(snap)["g0"]
    assert (found.state, found.health) == (DeviceState.UNKNOWN, None)
    assert found.holders[0].label == "ml/p/c"


class TestHeldButNotHealthy:
    def snap(self, capacity: str, word: str | None = None) -> Snapshot:
        words = (HealthWord(R, "g9", word, "broken"),) if word else ()
        container = PodContainer("c", "app", {}, {}, "running", None, words)
        return snapshot(
            node=build.node({R: capacity}, {R: "3"}),
            pods=(build.pod("p", container),),
            pod_resources=PodResources("v1", (holding("p", ("g9", (0,))),)),
        )

    def test_the_pods_status_says_so(self) -> None:
        found = devices(self.snap("3", "Unhealthy"))["g9"]
        assert (found.state, found.health) == (DeviceState.UNHEALTHY, "Unhealthy")
        assert found.health_message == "broken"

    def test_the_count_has_room(self) -> None:
        rows = devices(self.snap("4"))
        assert rows["g9"].state is DeviceState.UNHEALTHY
        assert None not in rows, "the one that is missing from the healthy is this one"

    def test_no_room_in_the_count_is_missing(self) -> None:
        assert devices(self.snap("3"))["g9"].state is DeviceState.MISSING

    def test_numa_counts_what_the_total_counts(self) -> None:
        nodes = {"g0": (1,), "g1": None, "g2": None}
        offered = Allocatable(tuple(Device(R, name, numa) for name, numa in nodes.items()), (), ())
        four, three = (self.snap(n)._replace(allocatable=offered) for n in ("4", "3"))
        assert Devices(four).numa_counts(R) == {"0": 1, "1": 1}
        assert Devices(three).numa_counts(R) == {"1": 1}, "held, and in no list any more"

    def test_neither_is_unknown(self) -> None:
        assert devices(self.snap("2"))["g9"].state is DeviceState.UNKNOWN


def test_unhealthy_ones_nobody_holds_are_counted_without_an_id() -> None:
    rows = devices(snapshot(node=build.node({R: "5"}, {R: "3"})))
    assert (rows[None].count, rows[None].health) == (2, "Unhealthy")


def test_two_nodes_are_one_device() -> None:
    offered = Allocatable((Device(R, "g0", (0, 1)), Device(R, "g1", None)), (), ())
    rows = devices(snapshot(allocatable=offered))
    assert rows["g0"].numa_nodes == (0, 1)
    assert (rows["g1"].numa_nodes, rows["g1"].numa_known) == (None, True)
    assert Devices(snapshot(allocatable=offered)).numa_counts(R) == {"0": 1, "1": 1}


def test_v1alpha1_tells_no_topology_which_is_not_none() -> None:
    listed = PodResources("v1alpha1", (holding("p", ("g0", None)),))
    assert not devices(snapshot(pod_resources=listed))["g0"].numa_known


@pytest.mark.parametrize(
    ("device_id", "base"),
    [
        ("GPU-00000000-aaaa-bbbb-cccc-000000000000::3", "GPU-00000000-aaaa-bbbb-cccc-000000000000"),
        ("GPU-00000000-aaaa-bbbb-cccc-000000000000-12", "GPU-00000000-aaaa-bbbb-cccc-000000000000"),
        ("00000000-aaaa-bbbb-cccc-000000000000-_-4", "00000000-aaaa-bbbb-cccc-000000000000"),
        ("GPU-00000000-aaaa-bbbb-cccc-000000000000", None),
        ("gpu-2", None),
        ("0000:3b:00.2", None),
    ],
)
def test_base(device_id: str, base: str | None) -> None:
    assert base_device(device_id) == base


@pytest.mark.parametrize(
    ("device_id", "address"),
    [
        ("0000:3b:00.2", "0000:3b:00.2"),
        ("pci-0000:AF:00.7", "0000:af:00.7"),
        ("0000:3b:00.9", None),
        ("10000:3b:00.2", None),
        ("gpu-0", None),
    ],
)
def test_pci_address(device_id: str, address: str | None) -> None:
    assert pci_address(device_id) == address


@given(st.text(max_size=80))
def test_ids_never_break_the_readers_of_ids(device_id: str) -> None:
    base, address = base_device(device_id), pci_address(device_id)
    assert base is None or device_id.startswith(base)
    assert address is None or device_id.lower().endswith(address)


def test_groups() -> None:
    ids = tuple(f"GPU-00000000-aaaa-bbbb-cccc-00000000000{c}::{n}" for c in "01" for n in range(3))
    held = PodResources("v1", (holding("p", (ids[0], (0,)), (ids[3], (1,))),))
    snap = snapshot(
        node=build.node({R: "6"}), checkpoint=build.checkpoint({R: ids}), pod_resources=held
    )
    rows = Devices(snap).rows()
    physical = group_rows(rows, "physical")
    assert [(g.devices, g.allocated, g.free) for g in physical] == [(3, 1, 2), (3, 1, 2)]
    assert [(g.group, g.devices) for g in group_rows(rows, "pod")] == [("-", 4), ("ml/p", 2)]
    assert [(g.group, g.devices) for g in group_rows(rows, "numa")] == [
        ("0", 1),
        ("1", 1),
        ("?", 4),
    ]


def test_many_lost_devices_take_no_square_time() -> None:
    """100 000 held and none healthy: every step looks at a device a bounded number of times."""
    ids = [f"g{i}" for i in range(100_000)]
    snap = snapshot(
        checkpoint=build.checkpoint({R: ("h",)}, [build.allocation("uid-p", "c", R, {0: ids})]),
        node=build.node({R: "100001"}, {R: "1"}),
    )
    assert sum(r.state is DeviceState.UNHEALTHY for r in Devices(snap).rows()) == 100_000


def test_an_orphaned_device_can_be_given_again() -> None:
    """FREE of a resource, of its groups and of the devices mean the same."""
    held = [build.allocation("uid-gone", "c", R, {0: ["g0"]})]
    snap = snapshot(checkpoint=build.checkpoint({R: ("g0", "g1", "g2")}, held))
    joined = Devices(snap)
    assert joined.free(R) == 3
    assert sum(g.free for g in group_rows(joined.rows(), "pod")) == 3
    assert sum(is_free(r) for r in joined.rows()) == 3
