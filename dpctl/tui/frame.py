"""Lines of a screen: texts with a style's name each, cut and padded to the screen's width. Pure.

The one place through which every text goes on its way to the screen: what could move a cursor,
reorder a line or be taken for markup comes out as plain characters (`text.escape`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from dpctl.text import escape, width

StyleName = Literal[
    "plain", "dim", "strong", "head", "accent", "tab", "good", "warn", "bad", "chosen"
]
"""Each tells nothing that the text does not say: without colour only bold and reverse are left."""


class Span(NamedTuple):
    text: str
    style: StyleName = "plain"


Line = tuple[Span, ...]

_PLAIN = str.maketrans(
    {
        "┌": "+", "┐": "+", "└": "+", "┘": "+", "─": "-", "│": "|", "…": "~", "×": "x",
        "↑": "^", "↓": "v", "·": "-", "›": ">", "▏": "_",
    }
)  # fmt: skip
_LONGEST = 1000
"""Characters of one span that are looked at: no screen is wider, and names may have 64 KiB."""


def line(*spans: Span | str) -> Line:
    return tuple(Span(span) if isinstance(span, str) else span for span in spans)


def safe(text: str, *, ascii_only: bool = False) -> str:
    """On one line, and nothing in it that a terminal obeys."""
    text = escape(text)
    if ascii_only and not text.isascii():
        text = text.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")
    return text


def cut(text: str, room: int, mark: str = "…") -> str:
    """At most `room` columns, the cut marked."""
    if len(text) <= room and (text.isascii() or width(text) <= room):
        return text
    used = kept = 0
    for character in text:
        used += width(character)
        if used > room - 1:
            break
        kept += 1
    return text[:kept] + mark if room > 0 else ""


def fitted(spans: Iterable[Span], room: int, *, ascii_only: bool = False) -> Line:
    """Exactly `room` columns: the last text that fits is cut, the rest is blank."""
    found: list[Span] = []
    left = room
    style: StyleName = "plain"
    for span in spans:
        style = span.style
        if left <= 0:
            break
        text = safe(span.text[:_LONGEST], ascii_only=ascii_only)
        text = cut(text, left, "~" if ascii_only else "…")
        found.append(Span(text, style))
        left -= width(text)
    if left > 0:
        found.append(Span(" " * left, style if style == "chosen" else "plain"))
    return tuple(_joined(found))


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Neighbours of one style as one text: every change of style costs bytes on a slow line."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1].style == span.style:
            found[-1] = Span(found[-1].text + span.text, span.style)
        elif span.text:
            found.append(span)
    return found


def both_ends(left: Iterable[Span], right: Iterable[Span], room: int) -> Line:
    """Left-aligned and right-aligned parts of one line; the left one is cut where they meet."""
    ending = tuple(right)
    taken = sum(width(span.text) for span in ending)
    return (*fitted(left, max(room - taken - 2, 0)), Span("  "), *ending)
