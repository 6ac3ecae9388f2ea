"""A terminal for the tests: as much of one as textual and dpctl use, and nothing is skipped.

A sequence that it does not know is a failure: so a device's name that reached the terminal raw
cannot hide in it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from types import TracebackType

_TOKEN = re.compile(
    r"\x1b\[(?P<mark>[?<>]?)(?P<numbers>[0-9;]*)(?P<kind>\$?[A-Za-z])"
    r"|(?P<osc>\x1b\]22;[a-z]+\x07)|(?P<text>[^\x00-\x1f\x7f]+)|(?P<control>[\r\n])"
)
_MODES = {"7", "25", "1004", "1049", "2004", "2026", "2048"}


class Screen:
    """What stands where; `modes`: private modes that are on."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.cells = [[" "] * columns for _ in range(lines)]
        self.row = self.column = 0
        self.modes: set[str] = {"7", "25"}
        self.kitty = 0
        self.styles: set[str] = set()
        """Every number of a colour or attribute that was used."""
        self._rest = ""

    def feed(self, text: str) -> None:
        text = self._rest + text
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or (found.end() == len(text) and found["text"] is None):
                rest = text[at:]
                whole = found is not None
                assert whole or len(rest) < 40, f"what is this to a terminal? {rest[:80]!r}"
                if not whole:
                    self._rest = rest
                    return
            assert found is not None
            self._obey(found)
            at = found.end()
        self._rest = ""

    def _obey(self, found: re.Match[str]) -> None:
        if found["text"] is not None:
            for character in found["text"]:
                if self.row < self.lines and self.column < self.columns:
                    self.cells[self.row][self.column] = character
                self.column += 1
            return
        if found["control"] is not None or found["osc"] is not None:
            if found["control"] == "\r":
                self.column = 0
            elif found["control"] == "\n":
                self.row += 1
            return
        self._sequence(found["mark"], found["numbers"], found["kind"])

    def _sequence(self, mark: str, numbers: str, kind: str) -> None:
        if (mark, kind) == ("", "H"):
            row, _, column = numbers.partition(";")
            self.row, self.column = int(row or 1) - 1, int(column or 1) - 1
        elif (mark, kind) == ("", "J"):
            assert numbers == "2"
            self.blank()
        elif (mark, kind) == ("", "m"):
            self.styles |= set(numbers.split(";"))
        elif mark == "?" and kind in ("h", "l"):
            assert numbers in _MODES, numbers
            if numbers == "1049":  # the other screen, which is empty
                self.cells = [[" "] * self.columns for _ in range(self.lines)]
            (self.modes.add if kind == "h" else self.modes.discard)(numbers)
        elif (mark, kind) == (">", "u"):
            self.kitty += 1
        elif (mark, kind) == ("<", "u"):
            self.kitty -= 1
        else:
            assert (mark, kind) == ("?", "$p"), f"unknown: {mark}{numbers}{kind}"

    def blank(self) -> None:
        """Nothing is left of what stood there, as after somebody else had the terminal."""
        self.cells = [[" "] * self.columns for _ in range(self.lines)]

    @property
    def text(self) -> str:
        return "\n".join("".join(line).rstrip() for line in self.cells)


class Running:
    """A program on a pseudo-terminal, as a person starts it."""

    def __init__(
        self, arguments: list[str], env: Mapping[str, str], *, columns: int = 80, lines: int = 24
    ) -> None:
        self.screen = Screen(columns, lines)
        self.sent = b""
        """Everything that came to the terminal."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("DPCTL_", "NO_COLOR"))}
        for name in ("COLUMNS", "LINES", "KUBECONFIG"):
            ours.pop(name, None)
        whole = {**ours, "TERM": "xterm-256color", **env}
        size = struct.pack("HHHH", lines, columns, 0, 0)
        ready, go = os.pipe()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.close(go)
            os.read(ready, 1)  # until the terminal has its size
            os.execvpe(sys.executable, [sys.executable, "-m", "dpctl", *arguments], whole)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        self.before = termios.tcgetattr(self.master)
        os.close(ready)
        os.close(go)
        self.code: int | None = None

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.code is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def until(self, condition: Callable[[Screen], bool], seconds: float = 60.0) -> str:
        """The screen's text once it holds; a failure shows what was there instead."""
        end = time.monotonic() + seconds
        while not condition(self.screen):
            assert time.monotonic() < end, f"never came:\n{self.screen.text}"
            self._take(0.1)
        return self.screen.text

    def shows(self, *texts: str, seconds: float = 60.0) -> str:
        return self.until(lambda screen: all(text in screen.text for text in texts), seconds)

    def ended(self, seconds: float = 60.0) -> int:
        """Its exit code, a signal that killed it as a negative number."""
        end = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                self._take(0.0)
                return self.code
            assert time.monotonic() < end, f"it does not end:\n{self.screen.text}"
            self._take(0.05)

    def stopped(self) -> None:
        """Wait until it has gone to sleep, and take what it wrote before."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        self._take(0.1)

    @property
    def given_back(self) -> bool:
        """The terminal is as it was: no other screen, a cursor, echo and lines."""
        plain = self.screen.modes == {"7", "25"} and self.screen.kitty == 0
        return plain and termios.tcgetattr(self.master) == self.before

    def _take(self, seconds: float) -> None:
        while select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                return
            if not data:
                return
            self.sent += data
            self.screen.feed(data.decode("utf-8", "surrogateescape"))
            seconds = 0.0
