"""A screen as SVG: the same lines that the terminal gets, at fixed places. Pure, no textual.

Each text is stretched to its columns, so that the picture is aligned whatever font shows it, and
the same lines give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape as xml_escape

from dpctl.text import width
from dpctl.tui.frame import Line, StyleName

_CELL = 8.4
_LINE = 19
_EDGE = 14
_BACK, _FORE = "#15181e", "#d5d9e0"
_COLORS: dict[StyleName, str] = {
    "dim": "#8b93a1",
    "accent": "#56b6c2",
    "tab": "#56b6c2",
    "good": "#98c379",
    "warn": "#e5c07b",
    "bad": "#e06c75",
    "chosen": _BACK,
}
_CELLS = re.compile(r"\S+(?: \S+)*")
_BOLD = frozenset({"strong", "head", "accent", "tab", "bad"})


def screen_svg(lines: Sequence[Line], columns: int, title: str) -> str:
    """A whole document. `lines`: each of exactly `columns` columns."""
    wide = round(columns * _CELL + 2 * _EDGE)
    high = len(lines) * _LINE + 2 * _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        f'width="{wide}" height="{high}" role="img">',
        f"<title>{xml_escape(title)}</title>",
        f'<rect width="{wide}" height="{high}" rx="8" fill="{_BACK}"/>',
        f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" '
        f'font-size="14" fill="{_FORE}" xml:space="preserve">',
    ]
    for at, found in enumerate(lines):
        parts += _line(found, _EDGE + at * _LINE)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _line(found: Line, top: int) -> list[str]:
    parts: list[str] = []
    column = 0
    for span in found:
        size = width(span.text)
        left = round(_EDGE + column * _CELL, 1)
        column += size
        if span.style == "chosen":
            parts.append(
                f'<rect x="{left}" y="{top}" width="{round(size * _CELL, 1)}" height="{_LINE}" '
                f'fill="{_FORE}"/>'
            )
        look = f' fill="{_COLORS[span.style]}"' if span.style in _COLORS else ""
        look += ' font-weight="bold"' if span.style in _BOLD else ""
        for found_at in _CELLS.finditer(span.text):  # each cell by itself, at its own place
            text = found_at.group()
            at = round(left + width(span.text[: found_at.start()]) * _CELL, 1)
            long = round(width(text) * _CELL, 1)
            parts.append(
                f'<text x="{at}" y="{top + 14}" textLength="{long}" '
                f'lengthAdjust="spacingAndGlyphs"{look}>{xml_escape(text)}</text>'
            )
    return parts
