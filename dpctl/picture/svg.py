"""The NUMA picture as SVG: a panel per NUMA node with its CPUs, memory and devices.

Stands alone: no script, no font, nothing loaded from elsewhere; full names are in tooltips.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape as xml_escape

from dpctl import cpuset
from dpctl.inventory.rows import DeviceState
from dpctl.inventory.topology_rows import NumaDevice, NumaRow, TopologyRow
from dpctl.picture.facts import MOST_DEVICES, holder_text, policy_texts, without_box
from dpctl.quantity import size_text
from dpctl.text import escape, shorten

_WIDTH = 1000
_MARGIN = 16
_LINE = 18
_CPU = 16
_CHIP_WIDTH, _CHIP_HEIGHT = 144, 34
_CHARACTER = 7.25
"""Width of one at 12 px; monospaced."""

_COLOURS = {
    "reserved": "#9aa0a6",
    "shared": "#aecbfa",
    "alone": "#f9ab00",
    "free": "#ceead6",
    "held": "#fde293",
    "bad": "#f28b82",
}
_LEGEND = (
    ("reserved", "CPU reserved"),
    ("shared", "CPU of the shared pool"),
    ("alone", "CPU alone with a container; memory pinned"),
    ("free", "device free"),
    ("held", "device held"),
    ("bad", "device unhealthy, missing or unknown"),
)


class _Panel:
    """Shapes below each other, from the upper left corner of their own."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.y = _MARGIN
        self.shapes: list[str] = []

    def text(self, words: str, *, x: int = _MARGIN, bold: bool = False) -> None:
        self.y += _LINE
        self.shapes.append(_text(x, self.y - 5, words, self.width - x - _MARGIN, bold=bold))

    def grid(self, cells: Sequence[tuple[str, str, str]], width: int, height: int) -> None:
        """Rectangles side by side: (colour, words, tooltip)."""
        per_row = max((self.width - 2 * _MARGIN) // (width + 4), 1)
        for at, (colour, words, tooltip) in enumerate(cells):
            x = _MARGIN + at % per_row * (width + 4)
            y = self.y + 2 + at // per_row * (height + 4)
            self.shapes.append(_cell(x, y, width, height, colour, words, tooltip))
        self.y += -(-len(cells) // per_row) * (height + 4) + 4

    def placed(self, x: int, y: int, height: int) -> str:
        frame = (
            f'<rect width="{self.width}" height="{height}" rx="8" fill="#fff" stroke="#5f6368"/>'
        )
        return f'<g transform="translate({x},{y})">{frame}{"".join(self.shapes)}</g>'


def picture_svg(row: TopologyRow) -> str:
    """The document, one line per part."""
    count = 2 if len(row.numa_nodes) > 1 else 1
    width = (_WIDTH - _MARGIN * (count + 1)) // count
    head = _head(row)
    parts, y = [head.placed(_MARGIN, _MARGIN, head.y + _MARGIN)], head.y + 3 * _MARGIN
    panels = [_node(node, width) for node in row.numa_nodes]
    panels.extend(_elsewhere(title, devices, width) for title, devices in without_box(row))
    for at in range(0, len(panels), count):
        beside = panels[at : at + count]
        height = max(panel.y for panel in beside) + _MARGIN
        for place, panel in enumerate(beside):
            parts.append(panel.placed(_MARGIN + place * (width + _MARGIN), y, height))
        y += height + _MARGIN
    foot = _foot(row)
    parts.append(foot.placed(_MARGIN, y, foot.y + _MARGIN))
    height = y + foot.y + 2 * _MARGIN
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="12">',
            "<title>NUMA nodes</title>",
            f'<rect width="{_WIDTH}" height="{height}" fill="#f8f9fa"/>',
            *parts,
            "</svg>",
        )
    )


def _head(row: TopologyRow) -> _Panel:
    panel = _Panel(_WIDTH - 2 * _MARGIN)
    for name, value in policy_texts(row.policies):
        panel.text(f"{name}: {value}")
    cells = [(colour, "", words) for colour, words in _LEGEND]
    for colour, _, words in cells:
        panel.text(words, x=_MARGIN + _CPU + 8)
        panel.shapes.append(_cell(_MARGIN, panel.y - 16, 12, 12, colour, "", words))
    return panel


def _node(row: NumaRow, width: int) -> _Panel:
    panel = _Panel(width)
    panel.text(f"NUMA node {row.numa_node}", bold=True)
    panel.text(f"CPUs {cpuset.render(row.cpus) or '-'} ({len(row.cpus)})")
    panel.grid(list(_cpus(row)), _CPU, _CPU)
    free = "?" if row.memory_free is None else size_text(row.memory_free)
    total = "?" if row.memory_total is None else size_text(row.memory_total)
    panel.text(f"Memory {total}, {free} free")
    for use in row.memory:
        if use.allocatable:
            pinned = use.allocatable - use.free
            words = f"{use.type}: {size_text(pinned)} of {size_text(use.allocatable)} pinned"
            _bar(panel, pinned / use.allocatable, ", ".join((words, *use.holders)), words)
    for kind, pages in row.hugepages.items():
        if pages:
            panel.text(f"{kind}: {pages} pages")
    _devices(panel, row.devices)
    if len(row.distances) > 1:
        panel.text(f"Distances {' '.join(map(str, row.distances))}")
    return panel


def _elsewhere(title: str, devices: Sequence[NumaDevice], width: int) -> _Panel:
    panel = _Panel(width)
    panel.text(title, bold=True)
    _devices(panel, devices)
    return panel


def _foot(row: TopologyRow) -> _Panel:
    panel = _Panel(_WIDTH - 2 * _MARGIN)
    for found in row.containers:
        pod = found.pod if found.pod is not None else f"uid:{found.uid}"
        names = [found.namespace or "?", pod, *([found.container] if found.container else [])]
        nodes = cpuset.render(found.numa_nodes)
        panel.text(f"{'/'.join(names)}: NUMA {nodes}, {found.alignment or '?'} ({found.note})")
    for note in row.notes:
        panel.text(f"* {note}")
    return panel


def _cpus(row: NumaRow) -> Iterator[tuple[str, str, str]]:
    alone = {cpu: each.holder for each in row.exclusive_cpus for cpu in each.cpus}
    reserved = frozenset(row.reserved_cpus or ())
    for cpu in row.cpus:
        if cpu in alone:
            yield "alone", "", f"CPU {cpu}: {alone[cpu]}"
        elif cpu in reserved:
            yield "reserved", "", f"CPU {cpu}: reserved"
        else:
            yield "shared", "", f"CPU {cpu}: shared pool"


def _devices(panel: _Panel, devices: Iterable[NumaDevice]) -> None:
    by_resource: dict[str, list[NumaDevice]] = {}
    for device in devices:
        by_resource.setdefault(device.resource, []).append(device)
    for resource, found in by_resource.items():
        free = sum(device.free for device in found)
        panel.text(f"{resource}: {len(found)}, {free} free")
        panel.grid([_chip(d) for d in found[:MOST_DEVICES]], _CHIP_WIDTH, _CHIP_HEIGHT)
        if len(found) > MOST_DEVICES:
            panel.text(f"and {len(found) - MOST_DEVICES} more")


def _chip(device: NumaDevice) -> tuple[str, str, str]:
    holder = holder_text(device)
    held = device.state in (DeviceState.ALLOCATED, DeviceState.REUSABLE)
    colour = "free" if device.free else "held" if held else "bad"
    return colour, f"{device.id}\n{holder}", f"{device.resource} {device.id}: {holder}"


# -- shapes ----------------------------------------------------------------------------------------


def _bar(panel: _Panel, part: float, tooltip: str, words: str) -> None:
    width = panel.width - 2 * _MARGIN
    y = panel.y + 2
    panel.shapes.append(_cell(_MARGIN, y, width, 12, "shared", "", tooltip))
    panel.shapes.append(_cell(_MARGIN, y, round(width * part), 12, "alone", "", tooltip))
    panel.y += 16
    panel.text(words)


def _cell(x: int, y: int, width: int, height: int, colour: str, words: str, tooltip: str) -> str:
    shape = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" '
        f'fill="{_COLOURS[colour]}" stroke="#5f6368" stroke-width="0.5"/>'
    )
    lines = "".join(
        _text(x + 4, y + 14 + 14 * at, line, width - 8)
        for at, line in enumerate(words.split("\n") if words else ())
    )
    return f"<g><title>{_safe(tooltip)}</title>{shape}{lines}</g>"


def _text(x: int, y: int, words: str, width: int, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    shown = shorten(escape(words), max(int(width / _CHARACTER), 1))
    return f'<text x="{x}" y="{y}"{weight}>{xml_escape(shown)}</text>'


def _safe(words: str) -> str:
    """No control character, which XML has no way to write."""
    return xml_escape(escape(words))
