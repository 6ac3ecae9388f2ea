"""What a kubelet makes of a ListAndWatch message, and what is odd about it (kubelet-facts §3.3)."""

from __future__ import annotations

import pytest

from dpctl.inventory.listed import device_list, listed_rows, summary
from dpctl.inventory.targets import Target
from dpctl.model import ListedDevice, NumaNode, NumaTree
from dpctl.model.plugin_calls import RECEIVE_LIMIT, DeviceMessage

TARGET = Target("/dp/x.sock", False, "vendor.example/gpu", False, True, "by the table")
TREE = NumaTree(tuple(NumaNode(n, (), None, None, {}, ()) for n in (0, 1)))


def message(*devices: tuple[str, str, tuple[int, ...] | None], size: int = 10) -> DeviceMessage:
    return DeviceMessage(tuple(ListedDevice(*device) for device in devices), size)


def notes(device_id: str = "a", health: str = "Healthy", nodes: tuple[int, ...] | None = None):
    (row,) = listed_rows(message((device_id, health, nodes)), TREE)
    return "; ".join(row.notes)


def test_the_plain_case() -> None:
    sent = message(("gpu-10", "Healthy", (0,)), ("gpu-2", "Unhealthy", None))
    row = device_list(sent, TREE, TARGET)
    assert [(d.device, d.health, d.numa_nodes, d.notes) for d in row.devices] == [
        ("gpu-2", "Unhealthy", None, ()),
        ("gpu-10", "Healthy", (0,), ()),
    ]
    assert (row.capacity, row.allocatable, row.accepted, row.findings) == (2, 1, True, ())
    assert row.kubelet == "Connected"


def test_duplicates_count_as_the_kubelet_counts_them() -> None:
    """9 entries with one duplicate are 8; one ID with two healths is in both sets."""
    twice = message(*[(f"d-{n % 8}", "Healthy", None) for n in range(9)])
    row = device_list(twice, None, TARGET)
    assert (row.capacity, row.allocatable, len(row.devices)) == (8, 8, 8)
    assert row.findings == ("d-0: listed 2 times",)
    both = device_list(message(("a", "Healthy", None), ("a", "Unhealthy", (1,))), None, TARGET)
    assert (both.capacity, both.allocatable) == (2, 1)
    (device,) = both.devices
    assert (device.health, device.numa_nodes, device.entries) == ("Unhealthy", (1,), 2)
    assert "counts it twice" in device.notes[0]


@pytest.mark.parametrize(
    ("device_id", "words"),
    [
        ("", "the ID is empty"),
        (" a", "blank"),
        ("a\udcff", "no UTF-8"),
        ("a\x1b[2J", "control or invisible"),
        ("a\u202e", "control or invisible"),
        ("x" * 1025, "1025 bytes"),
        ("GPU-5a1c0d3e-7b42-4f19-9c6e-1d2f3a4b5c6d::0", ""),
    ],
)
def test_odd_ids(device_id: str, words: str) -> None:
    assert words in notes(device_id)
    assert bool(words) == bool(notes(device_id))


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (None, ""),
        ((), "topology without nodes"),
        ((-1,), "below 0"),
        ((0, 2, 7), "no NUMA node 2, 7"),
        ((0, 0), "twice"),
        ((0, 1), ""),
    ],
)
def test_odd_nodes(nodes: tuple[int, ...] | None, words: str) -> None:
    assert words in notes(nodes=nodes)
    assert bool(words) == bool(notes(nodes=nodes))


def test_nothing_is_said_of_nodes_where_the_host_is_not_known() -> None:
    (row,) = listed_rows(message(("a", "Healthy", (63,))), None)
    assert row.notes == ()


def test_a_word_that_is_none() -> None:
    assert "counts as unhealthy" in notes(health="healthy")
    assert device_list(message(("a", "healthy", None)), None, TARGET).allocatable == 0


@pytest.mark.parametrize(
    ("size", "accepted", "words"),
    [
        (RECEIVE_LIMIT + 1, False, "larger than the 4 MiB"),
        (RECEIVE_LIMIT, True, "100 %"),
        (RECEIVE_LIMIT * 3 // 4, True, None),
    ],
)
def test_the_size(size: int, accepted: bool, words: str | None) -> None:
    row = device_list(message(("a", "Healthy", None), size=size), None, TARGET)
    assert row.accepted is accepted
    assert (words is None) == (row.findings == ())
    assert words is None or words in row.findings[0]
    assert f"{size} bytes" in summary(row)


def test_a_list_that_no_kubelet_can_decode() -> None:
    row = device_list(DeviceMessage((), 3, sound=False), None, TARGET)
    assert not row.accepted
    assert "no UTF-8" in row.findings[0]
    assert "the list is empty" in row.findings[1]


def test_one_sentence_for_a_hundred_thousand() -> None:
    many = message(*[(f"d-{n}", "ill", None) for n in range(100_000)])
    row = device_list(many, TREE, TARGET)
    (finding,) = row.findings
    assert finding.startswith("d-0 and 99999 more: its health word")
