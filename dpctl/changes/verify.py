"""Did it stay? `judge` looks at one reading of the Node, `verify` polls for a while."""

from __future__ import annotations

from collections.abc import Callable

from dpctl.model import Node
from dpctl.model.changes import AppliedChange, KeyOutcome

PERIODS = 2
"""The verify window, in status periods of the node."""


def judge(node: Node | None, applied: AppliedChange, *, final: bool) -> tuple[KeyOutcome, ...]:
    """One outcome per resource, from a Node read after the patch (a list page will do). None: the
    Node could not be read, or is gone. `final`: at the end of the window, so that what is still
    gone counts as CHANGED; before, it is UNVERIFIED."""
    raise NotImplementedError


def verify(
    read: Callable[[], Node | None], applied: AppliedChange, seconds: float
) -> tuple[KeyOutcome, ...]:
    """Poll to the end of the window; a key that was back once is CAME_BACK."""
    raise NotImplementedError
