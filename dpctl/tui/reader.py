"""A text on the screen: a row in full, a pod, the NUMA picture, the keys. Pure.

It is made anew from every reading, so that what is shown is never older than the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpctl.text import escape, width, wrapped
from dpctl.tui.facts import Facts
from dpctl.tui.frame import Line, Span


class Face(NamedTuple):
    """One way to show the same thing: described, as YAML, as JSON."""

    name: str
    make: Callable[[Facts | None, int], str | None]
    """The text, for a screen that wide; None: the thing is no longer there."""


class Reader:
    def __init__(self, title: str, faces: Sequence[Face]) -> None:
        self.title = title
        self.top = 0
        self.gone = False
        """What is shown is of the last reading that had it."""
        self._faces = faces
        self._at = 0
        self._text = ""
        self._made: tuple[Facts | None, int, int] | None = None
        self._lines: list[str] = []
        self._height = 1

    @property
    def face(self) -> str:
        return self._faces[self._at].name

    def turn(self) -> None:
        """The next way to show it."""
        self._at = (self._at + 1) % len(self._faces)
        self.top = 0

    def press(self, key: str) -> bool:
        page = max(self._height - 2, 1)
        whole = len(self._lines)
        moves = {
            "up": -1, "k": -1, "down": 1, "j": 1,
            "pageup": -page, "ctrl+b": -page, "pagedown": page, "ctrl+f": page, "space": page,
            "home": -whole, "g": -whole, "end": whole, "G": whole,
        }  # fmt: skip
        if key not in moves:
            return False
        self.top += moves[key]
        self._hold()
        return True

    def lines(self, facts: Facts | None, room: int, height: int) -> list[Line]:
        self._height = height
        wanted = (facts, self._at, room)
        if self._made != wanted:
            text = self._faces[self._at].make(facts, room - 4)
            self.gone = text is None
            same = text in (None, self._text) and self._made is not None and self._made[2] == room
            self._text = self._text if text is None else text
            self._made = wanted
            if not same:
                parts = (_lines(line, room - 4) for line in self._text.splitlines())
                self._lines = [part for each in parts for part in each]
        self._hold()
        shown = self._lines[self.top : self.top + height]
        return [(Span("  "), *_styled(text)) for text in shown]

    @property
    def more(self) -> bool:
        """Whether lines are left below those in sight."""
        return self.top + self._height < len(self._lines)

    def position(self) -> str:
        whole = len(self._lines)
        if whole <= self._height:
            return ""
        return f"lines {self.top + 1}-{min(self.top + self._height, whole)} of {whole}"

    def _hold(self) -> None:
        self.top = max(min(self.top, len(self._lines) - self._height), 0)


_HEAD = re.compile(r" *(?:\S+ )*\S+(?:: +|  +)(?=\S)")
"""A key and its blanks: `HOLDER:  `, `Enter   `."""


def _lines(text: str, room: int) -> list[str]:
    """What is wrapped goes on where the value began."""
    text = escape(text)
    if width(text) <= room:
        return [text]
    head = _HEAD.match(text[:60])
    hanging = head.end() if head is not None else len(text) - len(text.lstrip(" "))
    return wrapped(text, room, " " * (hanging if hanging < room // 2 else 4))


def _styled(text: str) -> Line:
    """Keys of a description or a document stand out a little."""
    key, colon, rest = text.partition(":")
    if colon and rest[:1] in ("", " ") and len(key) <= 48 and "  " not in key.strip():
        return (Span(f"{key}:", "dim"), Span(rest))
    return (Span(text),)
