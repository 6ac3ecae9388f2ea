"""When a wait is over: never by the Node's word alone where the machine itself can tell."""

from __future__ import annotations

import pytest

from dpctl.inventory.waited import missing_step, waited, with_step
from dpctl.model import Allocatable, Device, PodResources, Snapshot, Source, SourceRow
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"
IDS = ("g0", "g1")


def snapshot(**fields: object) -> Snapshot:
    """A plugin with two devices, connected, and a Node that says so."""
    base: dict[str, object] = {
        "collected_at": NOW,
        "sources": (),
        "checkpoint": build.checkpoint({R: IDS}),
        "directory": build.directory(build.entry("gpu.sock", 20)),
        "sockets": build.table(
            build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)
        ),
        "kubelets": (build.kubelet(),),
        "node": build.node({R: "2"}),
    }
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


QUIET = build.table(build.listener("/dp/gpu.sock", 20))
STRANGE = build.table(own=False)


@pytest.mark.parametrize("condition", ["allocatable", "healthy"])
def test_there(condition: str) -> None:
    row = waited(snapshot(), R, condition, 2)
    assert (row.met, row.seen, row.waiting_for) == (True, 2, None)
    more = waited(snapshot(), R, condition, 3)
    assert (more.met, more.seen) == (False, 2)
    assert more.waiting_for is not None


@pytest.mark.parametrize("condition", ["allocatable", "healthy"])
def test_old_counts_on_the_node_are_not_believed(condition: str) -> None:
    """After a reboot: the Node and the checkpoint still say two, and nobody is connected."""
    for fields in (
        {"sockets": QUIET},
        {"directory": None},
        {"directory": build.directory()._replace(entries=())},
        {"sockets": STRANGE},
        {"checkpoint": build.checkpoint({})},
        {"sockets": STRANGE, "pod_resources": PodResources("v1", ()),
         "allocatable": Allocatable((), (), ())},
    ):  # fmt: skip
        row = waited(snapshot(**fields), R, condition, 1)
        assert not row.met, fields
        assert row.waiting_for


def test_devices_of_a_plugin_that_is_gone_are_not_counted() -> None:
    """The checkpoint has two of three, and nobody serves them."""
    row = waited(snapshot(sockets=QUIET), R, "healthy", 3)
    assert (row.met, row.seen) == (False, 0)


def test_two_files_say_enough_of_what_cannot_be_met() -> None:
    row = waited(snapshot(sockets=None, kubelets=None, node=None), R, "allocatable", 3)
    assert row.waiting_for == "2 of 3 allocatable (by the kubelet's checkpoint)"


def test_without_a_table_the_kubelets_offer_counts() -> None:
    offered = Allocatable(tuple(Device(R, i, None) for i in IDS), (), ())
    kubelet = {"sockets": STRANGE, "pod_resources": PodResources("v1", ()), "allocatable": offered}
    assert waited(snapshot(**kubelet), R, "allocatable", 2).met
    assert not waited(snapshot(**kubelet), R, "allocatable", 3).met


def test_the_node_must_say_so_too() -> None:
    behind = snapshot(node=build.node({R: "2"}, {R: "0"}))
    assert waited(behind, R, "healthy", 2).met
    row = waited(behind, R, "allocatable", 2)
    assert (row.met, row.seen) == (False, 0)
    failed = SourceRow(Source.NODE, "api", "failed", "no answer")
    row = waited(snapshot(node=None, sources=(failed,)), R, "allocatable", 2)
    assert (row.met, row.waiting_for) == (False, "the node: no answer")


def test_another_machines_node_alone() -> None:
    far = snapshot(directory=None, checkpoint=None, sockets=None)
    assert waited(far, R, "allocatable", 2, elsewhere=True).met
    assert not waited(far, R, "allocatable", 2).met


def test_gone() -> None:
    nothing = build.checkpoint({})
    gone = snapshot(checkpoint=nothing, sockets=QUIET, node=build.node({R: "0"}))
    assert waited(gone, R, "gone", 1).met
    assert waited(gone._replace(node=build.node({})), R, "gone", 1).met
    for still in (
        gone._replace(checkpoint=build.checkpoint({R: ()})),
        gone._replace(node=build.node({R: "2"}, {R: "0"})),
        gone._replace(node=None),
        gone._replace(checkpoint=None),
    ):
        row = waited(still, R, "gone", 1)
        assert not row.met
        assert row.waiting_for


NOBODY = {"checkpoint": build.checkpoint({"other.example/nic": ()}), "sockets": build.table()}
"""A kubelet, and no plugin that serves the resource."""


@pytest.mark.parametrize(
    ("fields", "resource", "missing", "hint"),
    [
        # A plugin that has not noticed the kubelet's restart.
        (
            {"sockets": QUIET},
            R,
            "gpu.sock serves it, but has not registered it with this kubelet",
            "restart its plugin",
        ),
        ({"sockets": build.table()}, R, "its plugin is gone", "start its plugin"),
        (NOBODY, R, "no plugin has registered it: the Node's 2 is a left-over", "start its plugin"),
        (
            NOBODY,
            "vendor.example/gpuu",
            "no plugin has registered it, and the Node does not know the name",
            'did you mean "vendor.example/gpu"? `dpctl resources` lists what there is',
        ),
        ({**NOBODY, "node": None}, R, "no plugin has registered it", "`dpctl resources` lists"),
    ],
)
def test_the_step_that_is_missing(
    fields: dict[str, object], resource: str, missing: str, hint: str
) -> None:
    snap = snapshot(**fields)
    step = missing_step(snap, resource)
    assert step is not None
    assert step.missing.startswith(missing)
    assert step.hint.startswith(hint)
    row = with_step(waited(snap, resource, "healthy", 4), step)
    assert row.waiting_for is not None
    assert step.missing in row.waiting_for


def test_no_step_is_made_up() -> None:
    for fields in (
        {},  # connected
        {"sockets": STRANGE},
        {"directory": None},
        {"checkpoint": None},
    ):
        assert missing_step(snapshot(**fields), R) is None
