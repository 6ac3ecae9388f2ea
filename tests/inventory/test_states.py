"""The contract's table of resource states, row by row, over the smallest snapshot that shows it."""

from __future__ import annotations

import pytest

from dpctl.inventory.resources import resource_rows
from dpctl.inventory.rows import ResourceRow, ResourceState
from dpctl.model import (
    Allocatable,
    Checkpoint,
    Device,
    DeviceClass,
    PluginSocket,
    PodHolding,
    PodResources,
    RegistrySocket,
    Snapshot,
    SocketState,
    SourceRow,
)
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"
FOUR = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")


def live(**fields: object) -> Snapshot:
    """A node with a trusted table, one kubelet, nothing else."""
    base: dict[str, object] = {
        "collected_at": NOW,
        "sources": (),
        "node": build.node(),
        "checkpoint": build.checkpoint(),
        "directory": build.directory(),
        "sockets": build.table(),
        "kubelets": (build.kubelet(),),
        "pods": (),
        "pod_resources": PodResources("v1", ()),
    }
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


def row(snap: Snapshot, resource: str = R) -> ResourceRow:
    return next(r for r in resource_rows(snap) if r.resource == resource)


def with_plugin(*, connected: bool, linked: bool = True) -> dict[str, object]:
    sockets = [build.listener("/dp/gpu.sock", 20)]
    if connected:
        sockets.append(build.accepted("/dp/gpu.sock", 20))
    files = (build.entry("gpu.sock", 20),) if linked else ()
    return {"sockets": build.table(*sockets), "directory": build.directory(*files)}


def test_ready() -> None:
    snap = live(
        node=build.node({R: "4"}),
        checkpoint=build.checkpoint({R: FOUR}),
        **with_plugin(connected=True),
    )
    found = row(snap)
    assert found.state is ResourceState.READY
    assert (found.healthy, found.total, found.allocated, found.free) == (4, 4, 0, 4)
    assert found.endpoints == ("gpu.sock",)
    assert not found.endpoints_inferred, "one connected socket and one tracked name is no guess"
    assert found.connected is True
    assert found.connected_inferred is False


def test_degraded_counts_what_is_not_healthy() -> None:
    snap = live(
        node=build.node({R: "5"}, {R: "4"}),
        checkpoint=build.checkpoint({R: FOUR}),
        **with_plugin(connected=True),
    )
    assert row(snap).state is ResourceState.DEGRADED


def test_all_unhealthy_is_degraded_not_empty() -> None:
    snap = live(
        node=build.node({R: "4"}, {R: "0"}),
        checkpoint=build.checkpoint({R: ()}),
        **with_plugin(connected=True),
    )
    assert row(snap).state is ResourceState.DEGRADED


def test_empty() -> None:
    snap = live(
        node=build.node({R: "0"}),
        checkpoint=build.checkpoint({R: ()}),
        **with_plugin(connected=True),
    )
    assert row(snap).state is ResourceState.EMPTY


@pytest.mark.parametrize(
    ("age", "state"), [(19.0, ResourceState.READY), (30.0, ResourceState.MISMATCH)]
)
def test_mismatch_only_when_the_node_had_two_periods(age: float, state: ResourceState) -> None:
    snap = live(
        node=build.node({R: "4"}, {R: "3"}),
        checkpoint=build.checkpoint({R: FOUR}, age=age),
        **with_plugin(connected=True),
    )
    assert row(snap).state is state


def test_mismatch_uses_the_configured_period() -> None:
    snap = live(
        node=build.node({R: "4"}, {R: "3"}),
        checkpoint=build.checkpoint({R: FOUR}, age=30.0),
        kubelet_config={"nodeStatusUpdateFrequency": "1m0s"},
        **with_plugin(connected=True),
    )
    assert row(snap).state is ResourceState.READY


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("linked", [True, False])
def test_unregistered_whether_the_checkpoint_names_it_or_not(tracked: bool, linked: bool) -> None:
    snap = live(
        node=build.node({R: "0"}),
        checkpoint=build.checkpoint({R: ()} if tracked else {}),
        **with_plugin(connected=False, linked=linked),
    )
    assert row(snap).state is ResourceState.UNREGISTERED


def test_connection_of_another_process_is_none_of_the_kubelet() -> None:
    fields = with_plugin(connected=False)
    fields["sockets"] = build.table(
        build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20, peer=999)
    )
    snap = live(node=build.node({R: "4"}), checkpoint=build.checkpoint({R: FOUR}), **fields)
    assert row(snap).state is ResourceState.UNREGISTERED


def test_a_socket_of_the_same_name_elsewhere_is_not_the_plugins() -> None:
    elsewhere = build.listener("/dp/gpu.sock", 77, parent=(3, build.DEVICE))
    snap = live(
        node=build.node({R: "4"}, {R: "0"}),
        checkpoint=build.checkpoint({R: FOUR}),
        directory=build.directory(build.entry("gpu.sock", 20)),
        sockets=build.table(elsewhere, build.accepted("/dp/gpu.sock", 77)),
    )
    assert row(snap).state is ResourceState.GRACE


def test_grace() -> None:
    snap = live(node=build.node({R: "4"}, {R: "0"}), checkpoint=build.checkpoint({R: FOUR}))
    found = row(snap)
    assert found.state is ResourceState.GRACE
    assert (found.healthy, found.total, found.free) == (0, 4, 0)


def test_dra() -> None:
    snap = live(node=build.node({R: "0"}), device_classes=(DeviceClass("gpu.example", R),))
    assert row(snap).state is ResourceState.DRA


def test_absent_by_request() -> None:
    wants = build.pod("p", build.container("c", {R: "1"}))
    assert row(live(pods=(wants,))).state is ResourceState.ABSENT


def test_what_only_a_gone_pod_held_is_no_resource() -> None:
    """The checkpoint keeps the entry until the kubelet's next write, the key may be gone long."""
    entry = build.allocation("uid-gone", "c", R, {-1: ["d"]})
    fields: dict[str, object] = {
        "node": build.node({}),
        "checkpoint": build.checkpoint({}, (entry,)),
    }
    assert resource_rows(live(**fields, pods=())) == ()
    assert (
        resource_rows(live(**fields, pods=(build.pod("p", phase="Failed", uid="uid-gone"),))) == ()
    )
    for may_live in (None, (build.pod("p", uid="uid-gone"),)):
        assert row(live(**fields, pods=may_live)).state is ResourceState.ABSENT


def test_a_terminal_pods_request_makes_nothing() -> None:
    done = build.pod("p", build.container("c", {R: "1"}), phase="Succeeded")
    assert resource_rows(live(pods=(done,))) == ()


def test_foreign_whatever_the_value() -> None:
    for value in ("3", "0"):
        snap = live(node=build.node({R: value}, owners={R: ("kubectl-patch",)}))
        assert row(snap).state is ResourceState.FOREIGN


@pytest.mark.parametrize("manager", ["kubelet", "dpctl-kubelet"])
def test_stale(manager: str) -> None:
    snap = live(node=build.node({R: "0"}, owners={R: (manager,)}))
    assert row(snap).state is ResourceState.STALE


def test_zero_without_an_owner_is_stale() -> None:
    assert row(live(node=build.node({R: "0"}, owners={}))).state is ResourceState.STALE


@pytest.mark.parametrize(("capacity", "allocatable"), [("4", "4"), ("0", "4"), ("4", "0")])
def test_ghost(capacity: str, allocatable: str) -> None:
    snap = live(node=build.node({R: capacity}, {R: allocatable}))
    assert row(snap).state is ResourceState.GHOST


def test_above_zero_without_an_owner_is_unknown() -> None:
    found = row(live(node=build.node({R: "4"}, owners={})))
    assert found.state is ResourceState.UNKNOWN
    assert "owned by nobody" in found.evidence[0]


@pytest.mark.parametrize("key", ["nodomain", "kubernetes.io/foo", "requests.a/b"])
def test_malformed_needs_the_node_alone(key: str) -> None:
    snap = Snapshot(NOW, (), node=build.node({}, {key: "3"}))
    assert row(snap, key).state is ResourceState.MALFORMED


def test_native_resources_are_not_ours() -> None:
    native = {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "0", "attachable-volumes-aws-ebs": "3"}
    assert resource_rows(live(node=build.node(native))) == ()


class TestMissingEvidence:
    def test_without_managed_fields_the_owner_is_unknown(self) -> None:
        found = row(live(node=build.node({R: "0"}, owners=None)))
        assert found.state is ResourceState.UNKNOWN
        assert found.missing_sources == ("managedFields",)

    def test_without_checkpoint(self) -> None:
        found = row(live(node=build.node({R: "0"}), checkpoint=None))
        assert found.state is ResourceState.UNKNOWN
        assert found.missing_sources == ("checkpoint",)

    def test_before_the_first_plugin_there_is_no_checkpoint_file(self) -> None:
        empty = Checkpoint((), {}, 0, 0, absent=True)
        snap = live(node=build.node({R: "0"}), checkpoint=empty)
        assert row(snap).state is ResourceState.STALE

    def test_a_checkpoint_deleted_under_the_kubelet_decides_nothing(self) -> None:
        empty = Checkpoint((), {}, 0, 0, absent=True)
        snap = live(
            node=build.node({R: "4", "b.example/x": "1"}),
            checkpoint=empty,
            **with_plugin(connected=True),
        )
        assert row(snap).state is ResourceState.UNKNOWN
        assert row(snap).missing_sources == ("checkpoint",)

    def test_foreign_without_checkpoint(self) -> None:
        snap = live(node=build.node({R: "2"}, owners={R: ("nfd",)}), checkpoint=None)
        assert row(snap).state is ResourceState.FOREIGN

    def test_untrusted_table_live_decides_nothing(self) -> None:
        snap = live(
            node=build.node({R: "0"}),
            sockets=build.table(own=False),
            checkpoint=build.checkpoint({}),
        )
        found = row(snap)
        assert found.state is ResourceState.UNKNOWN
        assert found.missing_sources == ("sockets",)
        assert found.connected is None

    def test_a_table_whose_kubelet_cannot_be_seen_is_not_trusted(self) -> None:
        sockets = build.table(build.kubelet_listener(pid=None), own=False)
        found = row(live(node=build.node({R: "0"}), sockets=sockets))
        assert found.state is ResourceState.UNKNOWN

    def test_unread_device_classes_decide_nothing(self) -> None:
        refused = SourceRow("deviceclasses", "", "failed", "forbidden", code=5)
        found = row(live(node=build.node({R: "0"}), sources=(refused,)))
        assert found.state is ResourceState.STALE
        assert "DeviceClasses not read" in found.notes

    def test_no_node(self) -> None:
        snap = live(
            node=None, checkpoint=build.checkpoint({R: FOUR}), **with_plugin(connected=True)
        )
        found = row(snap)
        assert found.state is ResourceState.UNKNOWN
        assert found.missing_sources == ("node",)
        assert (found.healthy, found.total) == (4, None)


class TestWithoutATable:
    """A bundle: connected is inferred from the checkpoint's age and the Node's numbers."""

    def bundle(self, **fields: object) -> Snapshot:
        return live(**{"from_bundle": True, "sockets": None, "pods": (), **fields})

    def test_allocatable_is_the_number_of_registered(self) -> None:
        snap = self.bundle(node=build.node({R: "4"}), checkpoint=build.checkpoint({R: FOUR}))
        found = row(snap)
        assert found.state is ResourceState.READY
        assert found.connected_inferred
        assert any("inferred" in sentence for sentence in found.evidence)

    def test_checkpoint_older_than_kubelet_socket(self) -> None:
        snap = self.bundle(
            node=build.node({R: "4"}),
            checkpoint=build.checkpoint({R: FOUR}, age=2000),
        )
        found = row(snap)
        assert found.state is ResourceState.GRACE
        assert any("may be Unregistered" in sentence for sentence in found.evidence)

    @pytest.mark.parametrize(
        ("socket_age", "state"), [(5.0, ResourceState.EMPTY), (5000.0, ResourceState.GRACE)]
    )
    def test_zero_of_zero_wants_a_young_socket(
        self, socket_age: float, state: ResourceState
    ) -> None:
        snap = self.bundle(
            node=build.node({R: "0"}),
            checkpoint=build.checkpoint({R: ()}),
            directory=build.directory(build.entry("gpu.sock", 20, age=socket_age)),
        )
        assert row(snap).state is state

    def test_without_times_nothing_is_inferred(self) -> None:
        snap = self.bundle(
            node=build.node({R: "4"}), checkpoint=build.checkpoint({R: FOUR}), directory=None
        )
        found = row(snap)
        assert found.state is ResourceState.UNKNOWN
        assert found.missing_sources == ("device-plugins",)


class TestWhichResource:
    def test_two_sockets_two_names_by_the_processes(self) -> None:
        nic = "vendor.example/nic"
        snap = live(
            node=build.node({R: "4", nic: "0"}, {R: "4", nic: "0"}),
            checkpoint=build.checkpoint({R: FOUR, nic: ()}),
            directory=build.directory(build.entry("a.sock", 20), build.entry("b.sock", 21)),
            sockets=build.table(
                build.listener("/dp/a.sock", 20, pid=201),
                build.accepted("/dp/a.sock", 20),
                build.listener("/dp/b.sock", 21, pid=202),
            ),
            processes={
                201: build.process(201, "plugin", f"--resource={R}"),
                202: build.process(202, "plugin", environment={"RESOURCE": nic}),
            },
        )
        assert row(snap).state is ResourceState.READY
        assert row(snap).endpoints == ("a.sock",)
        assert row(snap, nic).state is ResourceState.UNREGISTERED
        assert row(snap, nic).endpoints_inferred

    def test_get_info_wins(self) -> None:
        info = RegistrySocket("a.sock", SocketState.SERVING, "DevicePlugin", R)
        snap = live(
            node=build.node({R: "4"}),
            checkpoint=build.checkpoint({R: FOUR, "other.example/gpu": ()}),
            directory=build.directory(build.entry("other-gpu.sock", 20)),
            sockets=build.table(
                build.listener("/dp/other-gpu.sock", 20), build.accepted("/dp/other-gpu.sock", 20)
            ),
            plugins=(PluginSocket("other-gpu.sock", SocketState.SERVING, None, info, None),),
        )
        assert row(snap).state is ResourceState.READY
        assert not row(snap).endpoints_inferred
        assert row(snap, "other.example/gpu").state is ResourceState.GRACE

    def test_as_many_unnamed_connections_as_names(self) -> None:
        """dp.1 and dp.2 say nothing of themselves, but both names must be theirs."""
        other = "b.example/fpga"
        snap = live(
            node=build.node({R: "4", other: "1"}),
            checkpoint=build.checkpoint({R: FOUR, other: ("f",)}),
            directory=build.directory(build.entry("dp.1", 20), build.entry("dp.2", 21)),
            sockets=build.table(
                build.listener("/dp/dp.1", 20),
                build.accepted("/dp/dp.1", 20),
                build.listener("/dp/dp.2", 21, pid=202),
                build.accepted("/dp/dp.2", 21),
            ),
        )
        assert row(snap).state is ResourceState.READY
        assert row(snap, other).state is ResourceState.READY
        assert not row(snap).connected_inferred

    def test_fewer_connections_than_names_fall_back_on_the_node(self) -> None:
        other, third = "b.example/fpga", "c.example/nic"
        snap = live(
            node=build.node({R: "4", other: "1", third: "0"}, {R: "4", other: "0", third: "0"}),
            checkpoint=build.checkpoint({R: FOUR, other: ("f",), third: ("n",)}),
            directory=build.directory(build.entry("dp.1", 20)),
            sockets=build.table(build.listener("/dp/dp.1", 20), build.accepted("/dp/dp.1", 20)),
        )
        assert row(snap).state is ResourceState.READY
        assert row(snap).connected_inferred
        assert row(snap, other).state is ResourceState.GRACE

    @pytest.mark.parametrize(
        ("registered", "allocatable", "states"),
        [
            # The one socket is the one's whose devices the Node confirms.
            ((4, 0, 0), "400", ("Ready", "Grace", "Grace")),
            ((0, 2, 4), "004", ("Grace", "Grace", "Ready")),
            # One of them has just died, or the kubelet has not noticed: which one?
            ((4, 2, 0), "420", ("Unknown", "Unknown", "Unknown")),
            ((0, 0), "00", ("Unknown", "Unknown")),
        ],
    )
    def test_a_connected_socket_serves_one_name(
        self, registered: tuple[int, ...], allocatable: str, states: tuple[str, ...]
    ) -> None:
        names = ("a.example/a", "b.example/b", "c.example/c")[: len(states)]
        snap = live(
            node=build.node(dict.fromkeys(names, "4"), dict(zip(names, allocatable, strict=True))),
            checkpoint=build.checkpoint(
                {name: FOUR[:n] for name, n in zip(names, registered, strict=True)}
            ),
            directory=build.directory(build.entry("dp.1", 20)),
            sockets=build.table(build.listener("/dp/dp.1", 20), build.accepted("/dp/dp.1", 20)),
        )
        assert tuple(row(snap, name).state for name in names) == states

    def test_only_a_connected_socket_speaks_for_zero_devices(self) -> None:
        names = ("a.example/a", "b.example/b", "c.example/c")
        snap = live(
            node=build.node(dict.fromkeys(names, "4"), dict.fromkeys(names, "0")),
            checkpoint=build.checkpoint(dict.fromkeys(names, ())),
            directory=build.directory(
                build.entry("dp.1", 20, age=2000.0), build.entry("dp.2", 21), build.entry("x", 22)
            ),
            sockets=build.table(build.listener("/dp/dp.1", 20), build.accepted("/dp/dp.1", 20)),
        )
        assert {r.state for r in resource_rows(snap)} == {ResourceState.GRACE}

    def test_an_unclaimed_listener_is_said_of_what_looks_abandoned(self) -> None:
        snap = live(
            node=build.node({R: "0", "b.example/x": "0"}),
            directory=build.directory(build.entry("dp.1", 20)),
            sockets=build.table(build.listener("/dp/dp.1", 20)),
        )
        assert row(snap).state is ResourceState.STALE
        assert any("dp.1" in note for note in row(snap).notes)


def test_checkpoint_and_list_are_counted_once() -> None:
    held = build.allocation("uid-p", "c", R, {0: ["gpu-0", "gpu-1"], 1: ["gpu-1"]})
    listed = PodHolding("ml", "p", ())
    snap = live(
        node=build.node({R: "4"}),
        checkpoint=build.checkpoint({R: FOUR}, [held]),
        pods=(build.pod("p", build.container("c", {R: "2"})),),
        pod_resources=PodResources("v1", (listed,)),
        **with_plugin(connected=True),
    )
    found = row(snap)
    assert (found.allocated, found.free, found.requested) == (2, 2, 2)
    assert found.numa is None  # of gpu-2 and gpu-3 nobody has told: half a count is none
    nodes = {"gpu-0": (0,), "gpu-1": (0, 1), "gpu-2": (1,), "gpu-3": None}
    offered = Allocatable(tuple(Device(R, name, numa) for name, numa in nodes.items()), (), ())
    assert row(snap._replace(allocatable=offered)).numa == {"0": 2, "1": 2}


class TestWhoServesNothing:
    """A socket that is known to be no device plugin must not take the last name left."""

    @pytest.mark.parametrize("state", [SocketState.NOT_GRPC, SocketState.WRONG_SERVICE])
    def test_a_stranger_in_the_directory(self, state: SocketState) -> None:
        snap = live(
            node=build.node({R: "4"}, {R: "0"}),
            checkpoint=build.checkpoint({R: FOUR}),
            directory=build.directory(build.entry("web.sock", 20)),
            sockets=build.table(build.listener("/dp/web.sock", 20)),
            plugins=(PluginSocket("web.sock", state, None, None, None),),
        )
        assert row(snap).state is ResourceState.GRACE
        assert row(snap).endpoints == ()

    def test_a_drivers_get_info_names_no_resource(self) -> None:
        info = RegistrySocket("p.sock", SocketState.SERVING, "CSIPlugin", R)
        snap = live(
            node=build.node({R: "2"}, {R: "0"}),
            directory=build.directory(build.entry("p.sock", 20), build.entry("q.sock", 21)),
            sockets=build.table(build.listener("/dp/p.sock", 20), build.listener("/dp/q.sock", 21)),
            plugins=(PluginSocket("p.sock", SocketState.SERVING, None, info, None),),
        )
        assert row(snap).state is ResourceState.GHOST


@pytest.mark.parametrize(("capacity", "allocatable"), [("-1", "0"), ("0x10", "0"), ("0", "x")])
def test_what_is_no_number_of_devices_is_no_ghost(capacity: str, allocatable: str) -> None:
    assert (
        row(live(node=build.node({R: capacity}, {R: allocatable}))).state is ResourceState.UNKNOWN
    )


def test_a_checkpoint_from_the_future_has_no_age() -> None:
    snap = live(
        node=build.node({R: "4"}, {R: "3"}),
        checkpoint=build.checkpoint({R: FOUR}, age=-1e6),
        **with_plugin(connected=True),
    )
    assert row(snap).state is ResourceState.UNKNOWN
