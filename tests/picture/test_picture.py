"""The NUMA picture as text and SVG: golden files, widths, and hostile names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from dpctl.inventory.rows import DeviceState
from dpctl.picture.boxes import picture_text
from dpctl.picture.svg import picture_svg
from dpctl.text import width
from tests.picture.rows import LONG, device, machine
from tests.run import golden

HOSTILE = "\x1b[31m\u202e\ud800<&>\"'\n\x00"


@pytest.mark.parametrize("count", [1, 2, 8])
def test_text(count: int) -> None:
    text = picture_text(machine(count))
    assert max(width(line) for line in text.splitlines()) <= 100
    golden(f"picture/{count}.txt", text)


@pytest.mark.parametrize("columns", [20, 40, 79, 91, 100, 200])
def test_a_terminal_of_any_width(columns: int) -> None:
    text = picture_text(machine(2), columns=columns)
    boxes = [line for line in text.splitlines() if line.startswith(("┌", "│", "└"))]
    page = min(columns, 100)
    assert {width(line) for line in boxes} <= {max(24, page), page // 2 * 2}
    beside = [line for line in boxes if "NUMA node 0" in line and "NUMA node 1" in line]
    assert bool(beside) == (columns >= 91)


def test_nothing_is_cut() -> None:
    """A long ID is wrapped: all of it is there."""
    text = picture_text(machine(1))
    joined = "".join(line.strip("│ ") for line in text.splitlines())
    assert LONG in joined


def test_unknown_is_not_none() -> None:
    """A device whose NUMA node nobody told is no device without one."""
    row = machine(2)
    told, untold = (device(name, DeviceState.FREE) for name in ("told", "untold"))
    row = row._replace(devices_elsewhere=(told, untold._replace(numa_known=False)))
    for text in (picture_text(row), picture_svg(row)):
        without, _, unknown = text.partition("Devices whose NUMA node is not known")
        assert "Devices without a NUMA node" in without
        assert "untold" in unknown
        assert "untold" not in without


def test_many_devices_are_counted() -> None:
    many = tuple(device(f"d{at}", DeviceState.FREE, 0) for at in range(100))
    row = machine(1)
    row = row._replace(numa_nodes=(row.numa_nodes[0]._replace(devices=many),))
    assert "and 68 more" in picture_text(row)
    complete = picture_text(row, complete=True)
    assert "more" not in complete.split("Distances")[0]
    assert "d99" in complete
    assert "and 68 more" in picture_svg(row)


@pytest.mark.parametrize("draw", [picture_text, picture_svg])
def test_hostile_names(draw) -> None:
    text = draw(machine(2, HOSTILE))
    text.encode()  # no lone surrogate
    assert not {"\x1b", "\u202e", "\x00"} & set(text)
    assert "trainer\\e[31m" in text


@pytest.mark.parametrize("count", [1, 2, 8])
def test_svg(count: int) -> None:
    text = picture_svg(machine(count))
    root = ET.fromstring(text)
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum(title.startswith("CPU ") and "reserved" in title for title in titles) == 2
    assert sum("gpu-1: free" in title for title in titles) == 1
    tags = {e.tag.rpartition("}")[2] for e in root.iter()}
    assert tags <= {"svg", "g", "rect", "text", "title"}
    golden(f"picture/{count}.svg", text + "\n")


def test_svg_shapes_lie_inside() -> None:
    root = ET.fromstring(picture_svg(machine(2, HOSTILE)))
    whole = float(root.get("height", "0"))
    for group in root.iterfind("{http://www.w3.org/2000/svg}g"):
        x, y = map(float, re.findall(r"[0-9]+", group.get("transform", "")))
        for rect in group.iter("{http://www.w3.org/2000/svg}rect"):
            assert y + float(rect.get("y", "0")) + float(rect.get("height", "0")) <= whole
            assert x + float(rect.get("x", "0")) + float(rect.get("width", "0")) <= 1000
