"""Tables as kubectl prints them, made by ourselves: rich would cost 100 ms and more.

Pure: columns of texts in, lines out. What a cell says is `columns.cell_text`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpctl.columns import Column, Emphasis, Row, cell_text
from dpctl.outputs.terminal import paint
from dpctl.text import width

GAP = "   "
_LEAST = 8
"""Below this many columns a text is not cut: nothing could be told from it."""


@dataclass(slots=True)
class TextColumn:
    """One column as text, all rows of it; every text is one line and safe to print."""

    title: str
    texts: list[str]
    align: Literal["left", "right"] = "left"
    emphasis: list[Emphasis | None] | None = None
    """One per row; None: nothing is coloured."""


def text_columns(
    rows: Sequence[Row], columns: Sequence[Column[Row]], *, color: bool = False
) -> list[TextColumn]:
    return [
        TextColumn(
            column.title,
            [cell_text(column.get(row)) for row in rows],
            column.align,
            [column.emphasis(row) for row in rows] if color and column.emphasis else None,
        )
        for column in columns
    ]


def table_lines(
    columns: Sequence[TextColumn],
    *,
    headers: bool = True,
    limit: int = 0,
    least_widths: Sequence[int] = (),
) -> list[str]:
    """The lines, without line ends. `limit`: columns of the terminal, 0 for no cutting.

    Three spaces between columns, nothing after the last text. `least_widths`: of a part printed
    earlier, so that the parts line up. A column is never cut below its title.
    """
    if not columns:
        return []
    widths = column_widths(columns, headers=headers)
    for at, least in enumerate(least_widths):
        widths[at] = max(widths[at], least)
    if limit:
        widths = _fit(columns, widths, limit)
    last = len(columns) - 1
    cells = [
        _cells(column, widths[at], headers=headers, pad=at < last or column.align == "right")
        for at, column in enumerate(columns)
    ]
    return [GAP.join(line) for line in zip(*cells, strict=True)]


def column_widths(columns: Sequence[TextColumn], *, headers: bool = True) -> list[int]:
    return [
        max(
            width(column.title) if headers else 0,
            max(map(len if _ascii(column) else width, column.texts), default=0),
        )
        for column in columns
    ]


def _ascii(column: TextColumn) -> bool:
    return all(map(str.isascii, column.texts))


def _cells(column: TextColumn, room: int, *, headers: bool, pad: bool) -> list[str]:
    texts = column.texts
    if any(len(text) > room or not text.isascii() for text in texts):
        texts = [cut(text, room) for text in texts]
    title = [column.title] if headers else []
    plain = [*title, *texts]
    if not pad:
        padded = plain
    elif all(map(str.isascii, plain)):
        padded = (
            [f"{t:>{room}}" for t in plain]
            if column.align == "right"
            else [f"{t:<{room}}" for t in plain]
        )
    else:
        blanks = [" " * (room - width(text)) for text in plain]
        right = column.align == "right"
        padded = [b + t if right else t + b for t, b in zip(plain, blanks, strict=True)]
    if column.emphasis is None:
        return padded
    # The codes go around the text alone, so that they neither count nor stretch into the gap.
    marks: list[Emphasis | None] = [*([None] if headers else []), *column.emphasis]
    return [
        whole.replace(text, paint(text, mark), 1) if mark else whole
        for whole, text, mark in zip(padded, plain, marks, strict=True)
    ]


def cut(text: str, room: int) -> str:
    """`text` in at most `room` terminal columns, `…` where it was cut."""
    if width(text) <= room:
        return text
    used, kept = 1, 0
    for character in text:
        used += width(character)
        if used > room:
            break
        kept += 1
    return text[:kept] + "…" if room > 0 else ""


def _fit(columns: Sequence[TextColumn], widths: list[int], limit: int) -> list[int]:
    """Widths that fit into `limit`, taken from the widest texts; numbers are never cut."""
    room = limit - len(GAP) * (len(columns) - 1)
    if sum(widths) <= room:
        return widths
    floors = [
        found if column.align == "right" else min(found, max(width(column.title), _LEAST))
        for column, found in zip(columns, widths, strict=True)
    ]
    low, high = 0, max(widths)
    while low < high:  # the highest level at which everything fits
        level = (low + high + 1) // 2
        if sum(_levelled(widths, floors, level)) <= room:
            low = level
        else:
            high = level - 1
    fitted = _levelled(widths, floors, low)
    spare = room - sum(fitted)
    for at, found in enumerate(widths):  # what the level left over, one column each
        if spare > 0 and low == fitted[at] < found:
            fitted[at] += 1
            spare -= 1
    return fitted


def _levelled(widths: list[int], floors: list[int], level: int) -> list[int]:
    return [min(w, max(level, floor)) for w, floor in zip(widths, floors, strict=True)]
