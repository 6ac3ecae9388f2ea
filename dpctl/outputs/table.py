"""Tables as kubectl prints them, made by ourselves: rich would cost 100 ms and more.

Pure: columns of texts in, lines out. What a cell says is `columns.cell_text`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpctl.columns import Column, Emphasis, Row, cell_text
from dpctl.outputs.terminal import paint
from dpctl.text import width, wrapped

GAP = "   "
_NARROW_GAPS = (2, 1)
"""Blanks between columns, where three would leave too little room."""
_WORD = 14
"""Up to this many columns a text is one word, mostly a state, and not cut."""
_LEAST = 8
"""Below this many columns a text is not cut: nothing could be told from it."""
_PROSE = 32
"""Columns in which sentences can be read."""


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
    earlier, so that the parts line up. On a narrow terminal the gaps shrink first, then sentences
    in the last column go on below, and then texts are cut, but words and numbers never are, and no
    column below its title.
    """
    if not columns:
        return []
    widths = column_widths(columns, headers=headers)
    for at, least in enumerate(least_widths):
        widths[at] = max(widths[at], least)
    gap = GAP
    if limit:
        widths, gap = _fit(columns, widths, limit)
    at_last = len(columns) - 1
    *before, last = columns
    cells = [
        _cells(column, room, headers=headers, pad=True)
        for column, room in zip(before, widths, strict=False)
    ]
    if limit and _is_prose(last) and any(width(text) > widths[at_last] for text in last.texts):
        margin = " " * (sum(widths[:at_last]) + len(gap) * at_last)
        parts = [wrapped(text, widths[at_last], "") for text in last.texts]
        if headers:
            parts.insert(0, [last.title])
        heads = [gap.join((*head, "")) for head in zip(*cells, strict=True)] or [""] * len(parts)
        return [
            (head if at == 0 else margin) + part
            for head, those in zip(heads, parts, strict=True)
            for at, part in enumerate(those)
        ]
    cells.append(_cells(last, widths[at_last], headers=headers, pad=last.align == "right"))
    return [gap.join(line) for line in zip(*cells, strict=True)]


def _is_prose(column: TextColumn) -> bool:
    return (
        column.align == "left"
        and column.emphasis is None
        and any(text.count(" ") > 2 for text in column.texts)
    )


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
    """`text` in at most `room` terminal columns, `…` where it was cut: a sentence at its end, a
    name in its middle, since names and IDs mostly differ at their ends."""
    if width(text) <= room:
        return text
    if room <= 0:
        return ""
    end = "" if " " in text else _kept(text[::-1], (room - 1) // 2)[::-1]
    return _kept(text, room - 1 - width(end)) + "…" + end


def _kept(text: str, room: int) -> str:
    """As many of its first characters as fit."""
    used = 0
    for at, character in enumerate(text):
        used += width(character)
        if used > room:
            return text[:at]
    return text


def _fit(columns: Sequence[TextColumn], widths: list[int], limit: int) -> tuple[list[int], str]:
    """Widths and a gap that fit into `limit`; what is cut is taken from the widest texts."""
    gaps = len(columns) - 1
    for gap in (len(GAP), *_NARROW_GAPS):
        if sum(widths) + gap * gaps <= limit:
            return widths, " " * gap
    wanted = list(widths)
    if _is_prose(columns[-1]):
        wanted[-1] = min(wanted[-1], max(_PROSE, width(columns[-1].title)))
    for gap in _NARROW_GAPS:
        room = limit - gap * gaps
        fitted = _cut_to(columns, wanted, room, _WORD)
        if sum(fitted) <= room:
            break
    else:
        fitted = _cut_to(columns, wanted, room, _LEAST)
    if _is_prose(columns[-1]):
        fitted[-1] = max(fitted[-1], room - sum(fitted[:-1]))
    return fitted, " " * gap


def _cut_to(columns: Sequence[TextColumn], widths: list[int], room: int, word: int) -> list[int]:
    """Widths of at most `room` in all, if that can be; numbers, titles and words are not cut."""
    if sum(widths) <= room:
        return list(widths)
    floors = [
        found
        if column.align == "right" or found <= word
        else min(found, max(width(column.title), _LEAST))
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
