"""The first screen, before textual is there: importing that takes longer than all the rest.

A person who starts the dashboard sees at once that it runs, and where the pages are. Whatever ends
the run before textual takes over (Ctrl-C, a signal, a failure) gives the terminal back.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from dpctl.tui.frame import Line, StyleName

_SGR: dict[StyleName, str] = {
    "dim": "2",
    "strong": "1",
    "head": "1",
    "accent": "1;36",
    "tab": "1;36",
    "good": "32",
    "warn": "33",
    "bad": "1;31",
    "chosen": "7",
}
ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
LEAVE = "\x1b[?7h\x1b[?1049l\x1b[?25h"


def screen_text(lines: Sequence[Line], *, color: bool) -> str:
    """The lines as a terminal takes them, each at its place."""
    parts = [ENTER]
    for at, found in enumerate(lines):
        parts.append(f"\x1b[{at + 1};1H")
        for text, style in found:
            code = _SGR.get(style, "")
            if not color:
                code = ";".join(c for c in code.split(";") if c in ("1", "2", "7"))
            parts.append(f"\x1b[{code}m{text}\x1b[0m" if code else text)
    return "".join(parts)


class Curtain:
    """Whether the terminal is still ours to give back."""

    def __init__(self) -> None:
        self.up = False

    def lift(self) -> None:
        """Textual has the terminal, and will give it back by itself."""
        self.up = True


@contextmanager
def opened(lines: Sequence[Line], *, color: bool) -> Iterator[Curtain]:
    """Show them; back to what was there before, unless the curtain has been lifted."""
    curtain = Curtain()
    # asyncio would put its own handler in the place of Python's for SIGINT: that cancels a task of
    # textual's, which starts all the same.
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, _leave) for n in ends}
    try:
        _write(screen_text(lines, color=color))
        yield curtain
    finally:
        if not curtain.up:
            _write(LEAVE)
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _write(text: str) -> None:
    """Where textual writes, too."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return  # a terminal that hung up has nothing to be given back
