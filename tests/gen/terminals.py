"""Shells on a pseudo-terminal, where somebody presses TAB and then Enter."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "-i"],
}
TELL = {
    "bash": "trap 'echo \"RAN<$BASH_COMMAND>\"' DEBUG",
    "zsh": 'preexec() { print -r -- "RAN<$1>"; }',
    "fish": 'function tell --on-event fish_preexec; echo "RAN<$argv>"; end',
}
"""What makes the shell say which line Enter has given it, after all completion."""


class Terminal:
    """An interactive shell; `load`: the lines that it is given first."""

    def __init__(self, shell: str, env: Mapping[str, str], load: str, where: Path) -> None:
        self._seen = b""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(where)
            os.execvpe(START[shell][0], START[shell], {**env, "TERM": "dumb", "LINES": "24"})
        # Where typed lines are echoed the marker must not be found in the echo.
        self._type(f"{load}\n")
        self._type(f"{TELL[shell]}\n")
        self._type("echo rea''dy\n")
        self._until(rb"ready\r?\n")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def tab(self, line: str) -> str:
        """The command line that ran after the line, TAB and Enter."""
        self._seen = b""
        self._type(f"{line}\t")
        self._quiet()
        self._type("\n")
        return self._until(rb"RAN<([^\r\n]*)>\r?\n")[1].decode().rstrip()

    def _type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def _quiet(self) -> None:
        """Until the completion has come to its end: nothing has been written for a while."""
        while self._more(0.7):
            pass

    def _more(self, seconds: float) -> bool:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        self._seen += os.read(self._terminal, 4096)
        return True

    def _until(self, wanted: bytes) -> re.Match[bytes]:
        end = time.monotonic() + 60
        while (found := re.search(wanted, self._seen)) is None:
            assert time.monotonic() < end, self._seen
            self._more(0.2)
        return found
