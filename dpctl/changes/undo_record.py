"""What it takes to put a change back: made of a plan, written as JSON, planned again. Pure."""

from __future__ import annotations

from dpctl.model import Snapshot
from dpctl.model.changes import ChangePlan, UndoRecord


def record_of(plan: ChangePlan, server: str, at: float) -> UndoRecord:
    """State PLANNED."""
    raise NotImplementedError


def encode_record(record: UndoRecord) -> bytes:
    raise NotImplementedError


def parse_record(data: bytes, what: str) -> UndoRecord:
    """Raises BadDataError naming `what`."""
    raise NotImplementedError


def plan_undo(
    snap: Snapshot, record: UndoRecord, *, restore_value: bool = False, manager: str = "dpctl"
) -> ChangePlan:
    """Same Node UID, key as the change left it, not served; else refused with the reason."""
    raise NotImplementedError
