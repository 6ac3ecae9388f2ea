"""What a change is to the dashboard: something that plans, shows rows, asks and carries out.

The plans and what they do are those of the commands (`dpctl node prune`, `node remove`, `plugins
prune`, `pods prune --failed`), which hand them in; here are only the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpctl.columns import View

Tell = Callable[[str], None]
"""Says a sentence while something goes on."""


class Result(NamedTuple):
    rows: Sequence[Any]
    said: str
    """One sentence: how it ended."""
    good: bool


class Proposal(NamedTuple):
    """A plan over a fresh look, shown before anything is done."""

    view: View[Any]
    rows: Sequence[Any]
    notes: tuple[str, ...]
    question: str | None
    """What would be done, a sentence; None: there is nothing to do."""
    word: str
    """What a person types to agree."""
    carry_out: Callable[[Tell], Result]
    """Raises DpctlError: then nothing was changed, or the error says what is not known."""
    if_left: str = ""
    """What to type when a person has left in the middle of it."""
    hints: tuple[str, ...] = ()
    """What to do about what is left alone."""


Planner = Callable[[], Proposal]
"""Looks at everything anew and plans. Raises DpctlError."""


class Changes(NamedTuple):
    """The changes that the dashboard offers."""

    prune_keys: Planner
    remove_key: Callable[[str], Planner]
    prune_sockets: Planner
    prune_pods: Planner
