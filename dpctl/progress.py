"""How far a long change has come, on stderr: a bar on a terminal, JSON lines anywhere else.

What is counted is the caller's. Rich is loaded for a terminal alone.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any


class Progress:
    """`with Progress("removing", 1000) as progress:`; one thread at a time."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, node: str, outcome: str, detail: str | None = None) -> None:
        """One Node is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
            return
        line = {
            "node": node,
            "outcome": outcome,
            "detail": detail,
            "done": self._done,
            "total": self._total,
        }
        with suppress(AttributeError, OSError, ValueError):  # closed: there is nobody to tell
            sys.stderr.write(json.dumps(line, separators=(",", ":")) + "\n")
            sys.stderr.flush()
