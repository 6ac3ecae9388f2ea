"""Which undo files may go, so that the directory does not grow for ever.

Only dpctl's own names there are looked at; a file of the user's (`--undo-file`) is the user's.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from dpctl.changes.undo_file import numbered_names, read_undo
from dpctl.errors import DpctlError
from dpctl.model.changes import UndoRecord, UndoState

KEPT = 100
"""The newest ones stay, whatever became of them."""
KEPT_DAYS = 90
_DAY = 86400.0
# A change of thousands of Nodes leaves as many files: a bound on what one run reads of them.
_MOST = 1000
_OVER = (UndoState.UNDONE, UndoState.NOT_APPLIED)


def clear_undo(directory: str, now: float | None = None) -> int:
    """Remove all but the newest 100 whose change is undone or was never made, or is older than 90
    days by record and file both. What cannot be read, or removed, stays. How many went.
    """
    now = time.time() if now is None else now
    gone = 0
    names: list[str] = []
    with suppress(DpctlError):
        names = numbered_names(directory)
    for name in names[KEPT:][::-1][:_MOST]:
        path = os.path.join(directory, name)
        with suppress(DpctlError, OSError):
            record = read_undo(path)
            if may_go(record, os.stat(path).st_mtime, now):
                os.unlink(path)
                gone += 1
    return gone


def may_go(record: UndoRecord, written: float, now: float) -> bool:
    """Of one that is not among the newest. `written`: when the file was; clocks jump, so that both
    have to be old."""
    if record.state in _OVER:
        return True
    return now - max(record.created, written) > KEPT_DAYS * _DAY
