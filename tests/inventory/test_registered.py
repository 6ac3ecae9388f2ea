"""A checkpoint that lacks the kubelet's last write: several plugins have registered at once."""

from __future__ import annotations

import pytest

from dpctl.inventory.connections import Connections
from dpctl.inventory.devices import Devices
from dpctl.inventory.registered import offered, registered
from dpctl.inventory.resources import resource_rows
from dpctl.inventory.rows import ResourceRow
from dpctl.inventory.users import resources_of
from dpctl.inventory.waited import is_for_the_node, waited
from dpctl.model import (
    Allocatable,
    Checkpoint,
    Device,
    PluginSocket,
    PodResources,
    RegistrySocket,
    Snapshot,
    SocketState,
)
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"
IDS = ("gpu-0", "gpu-1", "gpu-2")


def snapshot(
    written: dict[str, tuple[str, ...]],
    offers: tuple[str, ...] | None,
    numbers: tuple[str, str] = ("3", "3"),
    **fields: object,
) -> Snapshot:
    """One connected plugin: what the file has, what the kubelet says, capacity and allocatable."""
    devices = tuple(Device(R, device, (0,)) for device in offers or ())
    base: dict[str, object] = {
        "collected_at": NOW,
        "sources": (),
        "node": build.node({R: numbers[0]}, {R: numbers[1]}),
        "checkpoint": build.checkpoint(written),
        "directory": build.directory(build.entry("gpu.sock", 20)),
        "sockets": build.table(
            build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)
        ),
        "kubelets": (build.kubelet(),),
        "pods": (),
        "pod_resources": PodResources("v1", ()),
        "allocatable": None if offers is None else Allocatable(devices, (), ()),
    }
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


def mended(snap: Snapshot) -> dict[str, frozenset[str]]:
    return registered(snap, offered(snap))


def row(snap: Snapshot) -> ResourceRow:
    (found,) = resource_rows(snap)
    return found


@pytest.mark.parametrize("written", [{R: ()}, {R: IDS[:1]}, {}])
def test_what_the_file_lacks_is_told_by_the_kubelet(written: dict[str, tuple[str, ...]]) -> None:
    snap = snapshot(written, IDS)
    found = row(snap)
    assert (found.state, found.healthy, found.free, found.tracked) == ("Ready", 3, 3, True)
    assert found.registered == (len(written[R]) if written else None)  # the file's, as it is
    assert "3 healthy: the checkpoint lacks the kubelet's last change" in found.evidence
    assert found.notes == ("checkpoint lacks the kubelet's last change",)
    assert [d.state for d in Devices(snap).rows()] == ["Free"] * 3
    assert resources_of(snap, "gpu-2") == (R,)
    for condition in ("allocatable", "healthy"):
        assert waited(snap, R, condition, 3).met


def test_what_the_kubelet_leaves_out_is_told_by_the_file() -> None:
    """Devices with an empty topology."""
    for offers in ((), IDS[:1]):
        found = row(snapshot({R: IDS}, offers))
        assert (found.state, found.healthy, found.free) == ("Ready", 3, 3)
        assert found.notes == (
            f"GetAllocatableResources offers {len(offers)} of the 3 healthy devices",
        )


def test_the_node_decides_when_the_file_has_more() -> None:
    """A device fell ill, and the write that said so was overtaken."""
    found = row(snapshot({R: IDS}, IDS[:2], ("3", "2")))
    assert (found.state, found.healthy, found.total) == ("Degraded", 2, 3)


@pytest.mark.parametrize(
    ("offers", "number", "seen"),
    [
        (IDS[:2], None, 2),  # no Node: the third is ill, or its topology is empty
        (IDS[:2], "2", 2),
        (IDS[:2], "3", 3),
        (IDS[:2], "0", 2),  # it has not caught up: it will tell
        ((), "0", 0),
        ((), "3", 3),
        ((), None, 3),  # nothing else tells of such a plugin on a machine that boots
        (IDS, None, 3),
        (None, None, 3),  # nobody asked the kubelet
    ],
)
def test_a_wait_is_not_over_by_an_old_file(
    offers: tuple[str, ...] | None, number: str | None, seen: int
) -> None:
    snap = snapshot(
        {R: IDS}, offers, ("3", number or ""), checkpoint=build.checkpoint({R: IDS}, age=0)
    )
    if number is None:
        snap = snap._replace(node=None)
    found = waited(snap, R, "healthy", 3)
    assert (found.met, found.seen) == (seen == 3, seen)
    assert waited(snap, R, "healthy", 2).seen == seen  # nor is more said than is known
    asked = offers is not None and offers != IDS and not (number == "3" or number == "2")
    assert is_for_the_node(snap, R, 3) is asked


@pytest.mark.parametrize("offers", [(), IDS[:2]])
def test_who_is_ill_by_an_old_file_is_counted_once(offers: tuple[str, ...]) -> None:
    """Under its name, and not once more among those that nobody names."""
    joined = Devices(snapshot({R: IDS}, offers, ("4", str(len(offers)))))
    assert [(d.device, d.count, d.health) for d in joined.rows()] == [
        *((i, 1, "Healthy" if i in offers else "Unhealthy") for i in IDS),
        (None, 1, "Unhealthy"),
    ]


def test_who_is_ill_is_left_open_where_the_numbers_do_not_say() -> None:
    """One is ill, and the file has two that are not offered."""
    joined = Devices(snapshot({R: IDS}, IDS[:1], ("2", "1")))
    assert {d.device: (d.health, d.state) for d in joined.rows()} == {
        "gpu-0": ("Healthy", "Free"),
        "gpu-1": (None, "Unknown"),
        "gpu-2": (None, "Unknown"),
        None: ("Unhealthy", "Unhealthy"),
    }


@pytest.mark.parametrize(
    ("age", "heartbeat", "healthy"),
    [
        (100.0, None, 0),
        (15.0, NOW - 300, 3),  # an empty topology, and the Node has not caught up yet
        (15.0, NOW - 3, 0),
    ],
)
def test_the_node_confirms_that_all_are_ill(
    age: float, heartbeat: float | None, healthy: int
) -> None:
    """The last write was overtaken, and a resource that offers nothing is not even named."""
    node = build.node({R: "3"}, {R: "0"})._replace(heartbeat=heartbeat)
    snap = snapshot({R: IDS}, (), node=node, checkpoint=build.checkpoint({R: IDS}, age=age))
    found = row(snap)
    assert (found.healthy, found.total, found.free) == (healthy, 3, healthy)
    assert (found.state == "Degraded") is (healthy == 0)
    assert {d.health for d in Devices(snap).rows()} == {"Healthy" if healthy else "Unhealthy"}


def test_of_a_plugin_that_is_gone_the_file_is_the_last_word() -> None:
    found = row(snapshot({R: IDS}, (), ("3", "0"), sockets=build.table()))
    assert (found.state, found.healthy) == ("Grace", 0)
    assert "RegisteredDevices has 3" in found.evidence
    assert found.notes == ()


def test_without_the_kubelets_word_the_file_counts() -> None:
    snap = snapshot({R: IDS[:1]}, None)
    assert mended(snap) == {R: frozenset(IDS[:1])}
    assert row(snap).notes == ()


@pytest.mark.parametrize(
    ("checkpoint", "why"),
    [
        (None, "checkpoint not read"),
        (build.checkpoint({R: IDS[:1]})._replace(stored_checksum=2), "checkpoint damaged"),
        (Checkpoint((), {}, 0, 0, absent=True), "there is no checkpoint"),
    ],
)
@pytest.mark.parametrize("numbers", [("3", "3"), ("3", "0"), ("0", "0")])
def test_without_a_file_to_trust_nothing_is_counted(
    checkpoint: Checkpoint | None, why: str, numbers: tuple[str, str]
) -> None:
    """The plugin itself says what it serves, so that the kubelet is known to be connected to it."""
    info = RegistrySocket("gpu.sock", SocketState.SERVING, "DevicePlugin", R)
    plugin = PluginSocket("gpu.sock", SocketState.SERVING, None, info, None)
    snap = snapshot({}, IDS, numbers, checkpoint=checkpoint, plugins=(plugin,))
    found = row(snap)
    assert (found.state, found.missing_sources) == ("Unknown", ("checkpoint",))
    assert (found.connected, found.tracked, found.evidence[0]) == (True, None, why)
    assert (found.healthy, found.free, found.numa, found.allocated) == (None, None, None, 0)
    rows = Devices(snap).rows()
    assert [(d.device, d.health, d.state) for d in rows] == [(i, None, "Unknown") for i in IDS]
    # Somebody who waits is told what the kubelet offers, and no more.
    assert waited(snap, R, "healthy", 3).met
    assert not waited(snap._replace(allocatable=None), R, "healthy", 1).met


def test_a_damaged_or_missing_file_is_not_mended() -> None:
    """It lacks more than the last write: who is tracked stays unknown."""
    damaged = build.checkpoint({})._replace(stored_checksum=2)
    assert mended(snapshot({}, IDS, checkpoint=damaged)) == {}
    assert row(snapshot({}, IDS, checkpoint=damaged)).tracked is None
    assert mended(snapshot({}, IDS, checkpoint=None)) == {}


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, True),  # the one socket and the one name left
        ({"checkpoint": build.checkpoint({R: IDS, "other.example/x": ()})}, True),
        ({"checkpoint": build.checkpoint({})}, True),  # a socket without a name
        ({"processes": {200: build.process(200, "plugin", f"--resource={R}")},
          "checkpoint": build.checkpoint({R: IDS, "other.example/x": ()})}, False),
        ({"sockets": build.table(build.listener("/dp/gpu.sock", 20))}, False),
        ({"checkpoint": Checkpoint((), {}, 0, 0, absent=True)}, False),
        ({"checkpoint": build.checkpoint({R: IDS})._replace(stored_checksum=2)}, False),
        ({"plugins": (PluginSocket("gpu.sock", SocketState.SERVING, None, RegistrySocket(
            "gpu.sock", SocketState.SERVING, "DevicePlugin", R), None),)}, False),
    ],
)  # fmt: skip
def test_the_kubelet_is_asked_where_names_hang_on_the_file(
    fields: dict[str, object], asked: bool
) -> None:
    snap = snapshot({R: IDS}, None)._replace(**fields)  # type: ignore[arg-type]
    assert Connections(snap).names_hang_on_the_file() is asked
