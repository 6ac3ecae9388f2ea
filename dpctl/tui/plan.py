"""A change on the screen: its plan, the typed agreement, how it goes, how it ended. Pure.

The rows are those that the command prints. Nothing is done before a person has typed the word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dpctl.columns import Column
from dpctl.errors import DpctlError
from dpctl.model.changes import Verdict
from dpctl.text import wrapped
from dpctl.tui.frame import Line, Span, line
from dpctl.tui.grid import Grid
from dpctl.tui.prompt import Prompt
from dpctl.tui.proposal import Planner, Proposal, Result, Tell

_MOST_NOTES = 6
_REASON = "REASON"


class Job(NamedTuple):
    """Work for a thread of its own. `tell` and `done` are called by the screen's own thread."""

    run: Callable[[Tell], Any]
    tell: Tell
    done: Callable[[Any], None]
    """Gets what `run` returned, or the DpctlError that it raised."""


class PlanPage:
    """From the look at the node to the report."""

    def __init__(self, title: str, planner: Planner, start: Callable[[Job], None]) -> None:
        self.title = title
        self.proposal: Proposal | None = None
        self.result: Result | None = None
        self.error: DpctlError | None = None
        self.running = False
        """Something is being changed, or watched whether it stays."""
        self.grid: Grid | None = None
        self.said: list[str] = []
        self._start = start
        start(Job(lambda tell: planner(), self.said.append, self._planned))

    @property
    def asks(self) -> bool:
        proposal = self.proposal
        asked = proposal is not None and proposal.question is not None
        return asked and not self.running and self.result is None and self.error is None

    def prompt(self, left: Callable[[], None]) -> Prompt:
        """For the word; `left`: Esc was pressed."""
        assert self.proposal is not None
        return Prompt(f"Type {self.proposal.word} to agree: ", entered=self._agreed, left=left)

    def state(self) -> str:
        if self.error is not None:
            return "nothing was changed" if self.result is None else ""
        if self.result is not None:
            return "done" if self.result.good else "done, not all of it"
        if self.running:
            return "at work"
        return "looking" if self.proposal is None else "the plan"

    def press(self, key: str) -> bool:
        return self.grid is not None and self.grid.press(key)

    def lines(self, room: int, height: int) -> list[Line]:
        below = [*self._reason(room), *self._below(room)][: max(height - 4, 0)]
        grid = self.grid
        if grid is None:
            return below
        rows = min(len(grid.rows) + 1, max(height - len(below) - 1, 3))
        return [*grid.lines(room, rows), (), *below]

    def hidden(self, room: int) -> list[tuple[str, str]]:
        """The reason apart, which is above."""
        return [pair for pair in self._hidden(room) if pair[0] != _REASON]

    def _hidden(self, room: int) -> list[tuple[str, str]]:
        return self.grid.hidden(room) if self.grid is not None else []

    def _reason(self, room: int) -> list[Line]:
        """The chosen row's, whole, where its line has no room for it."""
        return [
            each
            for title, text in self._hidden(room)
            if title == _REASON
            for each in [*_texts(f"{title} {text}", room), ()]
        ]

    # -- what happens

    def _planned(self, found: Proposal | DpctlError) -> None:
        if isinstance(found, DpctlError):
            self.error = found
            return
        self.proposal = found
        self.grid = Grid(found.view)
        self.grid.wide = False
        self.grid.take(found.rows)
        verdicts = [getattr(row, "verdict", None) for row in self.grid.rows]
        if Verdict.CHANGE in verdicts:  # what it is about is what the eye falls on
            self.grid.cursor = verdicts.index(Verdict.CHANGE)

    def _agreed(self, word: str) -> None:
        proposal = self.proposal
        assert proposal is not None
        if word != proposal.word:
            self.said = [f"that was not {proposal.word}: nothing was changed"]
            return
        self.said = []
        self.running = True
        self._start(Job(proposal.carry_out, self._tell, self._done))

    def _tell(self, text: str) -> None:
        self.said.append(text)

    def _done(self, found: Result | DpctlError) -> None:
        self.running = False
        if isinstance(found, DpctlError):
            self.error = found
            return
        self.result = found
        assert self.proposal is not None
        cursor = self.grid.cursor if self.grid is not None else 0
        self.grid = Grid(self.proposal.view, shown=_with_outcome)
        self.grid.wide = False
        self.grid.cursor = cursor
        self.grid.take(found.rows)

    def _below(self, room: int) -> list[Line]:
        found: list[Line] = []
        proposal = self.proposal
        if self.error is not None:
            found += _texts(f"! {self.error.message}", room, "bad")
            if self.error.hint:
                found += _texts(self.error.hint, room, "plain")
            return [*found, *(each for text in self.error.lines for each in _texts(text, room))]
        if proposal is None:
            return [line(Span("  looking at everything anew …", "dim"))]
        if self.result is not None:
            good = self.result.good
            mark = "" if good else "! "
            return _texts(f"{mark}{self.result.said}", room, "strong" if good else "bad")
        for note in proposal.notes[:_MOST_NOTES]:
            found += _texts(f"note: {note}", room, "warn")
        if proposal.question is None:
            found += _texts(_nothing_to_do(proposal), room, "strong")
            return [*found, *(each for hint in proposal.hints for each in _texts(hint, room))]
        if not self.running:
            found += _texts(proposal.question, room, "strong")
        for text in self.said[-_MOST_NOTES:]:
            found += _texts(text, room, "plain" if self.running else "bad")
        return found


def _nothing_to_do(proposal: Proposal) -> str:
    verdicts = {getattr(row, "verdict", None) for row in proposal.rows}
    if Verdict.WAIT in verdicts:
        return "nothing is to be done yet"
    return "nothing is done: refused" if Verdict.REFUSE in verdicts else "there is nothing to do"


def _with_outcome(column: Column[Any]) -> bool:
    return not column.wide or column.title == "OUTCOME"


def _texts(text: str, room: int, style: Any = "plain") -> list[Line]:
    return [line("  ", Span(part, style)) for part in wrapped(text, room - 4)]
