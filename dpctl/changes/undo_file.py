"""The undo files on disk: dpctl's own, 0600, written through a temporary file, fsync and rename."""

from __future__ import annotations

from dpctl.env import Env
from dpctl.model.changes import UndoRecord


def undo_directory(env: Env) -> str:
    """`$XDG_STATE_HOME/dpctl/undo` where that is set, `/var/lib/dpctl/undo` (below the host root)
    for root, else `~/.local/state/dpctl/undo`."""
    raise NotImplementedError


def write_undo(record: UndoRecord, directory: str, file: str | None = None) -> str:
    """Write a new record, durably; its path. `file`: a path of the user's own, which must not be
    there. Raises DeniedError, NotAppliedError: then nothing must be changed."""
    raise NotImplementedError


def rewrite_undo(path: str, record: UndoRecord) -> None:
    """Replace a record (its state has changed), durably."""
    raise NotImplementedError


def last_undo(directory: str, node: str) -> tuple[tuple[str, UndoRecord], ...]:
    """Records of this node, the last one first; unreadable ones are left out."""
    raise NotImplementedError
