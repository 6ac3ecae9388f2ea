"""The NUMA picture as text: a box per NUMA node, two beside each other where there is room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpctl.inventory.topology_rows import AlignmentRow, NumaRow, TopologyRow
from dpctl.picture.facts import (
    MOST_DEVICES,
    Line,
    cpu_lines,
    device_lines,
    distance_line,
    memory_lines,
    policy_texts,
    without_box,
)
from dpctl.text import escape, width, wrapped

WIDTH = 100
"""Of the whole picture, where nothing says how wide the page is."""
_LEAST_BOX = 44
_GAP = 2
_INDENT = "  "
_ASCII = str.maketrans("┌┐└┘─│×", "++++-|x")


def picture_text(row: TopologyRow, *, columns: int = 0, complete: bool = False) -> str:
    """The whole picture. `columns`: of the terminal, 0 for none; `complete`: every device by name.

    Long values are wrapped, never cut.
    """
    most = 1 << 30 if complete else MOST_DEVICES
    page = min(columns or WIDTH, WIDTH)
    count = 2 if len(row.numa_nodes) > 1 and page >= 2 * _LEAST_BOX + _GAP else 1
    size = max((page - _GAP * (count - 1)) // count, 24)
    nodes = tuple(node.numa_node for node in row.numa_nodes)
    boxes = [_box(node, nodes, size, most) for node in row.numa_nodes]
    parts = [list(_policies(row))]
    for at in range(0, len(boxes), count):
        parts.append(_beside(boxes[at : at + count], size))
    for title, devices in without_box(row):
        lines = device_lines(devices, most=most)
        parts.append([f"{title}:", *_fields(lines, page, _INDENT)])
    if row.containers:
        parts.append(_alignment(row.containers, columns))
    if row.notes:
        notes = (wrapped(f"* {escape(note)}", page, _INDENT) for note in row.notes)
        parts.append([line for note in notes for line in note])
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts if part)


def in_ascii(picture: str) -> str:
    """The same lines for a stdout that has no others."""
    return picture.translate(_ASCII)


def _policies(row: TopologyRow) -> Iterator[str]:
    texts = list(policy_texts(row.policies))
    longest = max((len(name) for name, _ in texts), default=0)
    for name, value in texts:
        yield f"{name + ':':<{longest + 1}}  {value}"


# -- boxes -----------------------------------------------------------------------------------------


def _box(row: NumaRow, nodes: Sequence[int], size: int, most: int) -> list[str]:
    title = f" NUMA node {row.numa_node} "
    distance = distance_line(row, nodes)
    lines = [
        *cpu_lines(row),
        *memory_lines(row),
        *device_lines(row.devices, most=most),
        *([distance] if distance else []),
    ]
    inner = size - 4
    top = f"┌─{title}{'─' * (size - 3 - len(title))}┐"
    body = [f"│ {text}{' ' * (inner - width(text))} │" for text in _fields(lines, inner)]
    return [top, *body, f"└{'─' * (size - 2)}┘"]


def _beside(boxes: Sequence[list[str]], size: int) -> list[str]:
    height = max(len(box) for box in boxes)
    padded = []
    for box in boxes:
        blank = f"│{' ' * (size - 2)}│"
        padded.append([*box[:-1], *[blank] * (height - len(box)), box[-1]])
    return [(" " * _GAP).join(parts) for parts in zip(*padded, strict=True)]


def _fields(lines: Iterable[Line], size: int, indent: str = "") -> Iterator[str]:
    """Labels and values, the values in one column where the labels are short."""
    found = list(lines)
    labels = [_INDENT * line.deeper + line.label for line in found]
    column = max((width(label) for label in labels if width(label) <= 12), default=0) + 2
    for line, label in zip(found, labels, strict=True):
        room = size - len(indent)
        if width(label) + 2 <= column:
            head = label + " " * (column - width(label))
            hanging = " " * column
        else:
            head = f"{label}  "
            hanging = _INDENT * (line.deeper + 2)
        for text in wrapped(head + line.value, room, hanging):
            yield indent + text


# -- alignment -------------------------------------------------------------------------------------


def _alignment(rows: Sequence[AlignmentRow], columns: int) -> list[str]:
    from dpctl.outputs.table import table_lines, text_columns
    from dpctl.views.numa import ALIGNMENT

    return table_lines(text_columns(rows, ALIGNMENT.shown(wide=False)), limit=columns)
