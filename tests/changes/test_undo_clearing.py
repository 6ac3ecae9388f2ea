"""Which undo files go by themselves, and which never do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpctl.changes.undo_clearing import KEPT, clear_undo, may_go
from dpctl.changes.undo_file import write_undo
from dpctl.model.changes import Action, UndoRecord, UndoState

NOW = 2_000_000_000.0
DAY = 86400.0


def record(state: UndoState, age: float = 0.0) -> UndoRecord:
    return UndoRecord(Action.SET, "worker-0", "uid", "server", NOW - age, (), state)


def write(directory: Path, state: UndoState, age: float = 0.0) -> Path:
    path = Path(write_undo(record(state, age), str(directory)))
    os.utime(path, (NOW - age, NOW - age))
    return path


def fill(directory: Path, count: int) -> list[Path]:
    return [write(directory, UndoState.UNDONE, 200 * DAY) for _ in range(count)]


@pytest.mark.parametrize("state", UndoState)
def test_what_may_go(state: UndoState) -> None:
    over = state in (UndoState.UNDONE, UndoState.NOT_APPLIED)
    assert may_go(record(state), NOW, NOW) is over
    assert may_go(record(state, 89 * DAY), NOW - 89 * DAY, NOW) is over
    assert may_go(record(state, 91 * DAY), NOW - 91 * DAY, NOW)
    assert may_go(record(state, 91 * DAY), NOW, NOW) is over, "a clock that jumped"
    assert may_go(record(state), NOW - 91 * DAY, NOW) is over


def test_the_newest_stay_and_what_can_be_undone(tmp_path: Path) -> None:
    undoable = write(tmp_path, UndoState.APPLIED, DAY)
    planned = write(tmp_path, UndoState.PLANNED, DAY)
    old = write(tmp_path, UndoState.APPLIED, 100 * DAY)
    over = write(tmp_path, UndoState.NOT_APPLIED, DAY)
    newest = fill(tmp_path, KEPT)
    assert clear_undo(str(tmp_path), NOW) == 2
    assert not old.exists()
    assert not over.exists()
    assert all(path.exists() for path in (undoable, planned, *newest))
    assert clear_undo(str(tmp_path), NOW) == 0


def test_what_is_not_dpctls_stays(tmp_path: Path) -> None:
    (tmp_path / "000001-worker-0-set.json").write_text("half of a rec")
    (tmp_path / "000002-worker-0-set.json").symlink_to("/etc/passwd")
    (tmp_path / "000003-worker-0-set.json").mkdir()
    (tmp_path / "mine.json").write_text("{}")
    before = {path.name for path in tmp_path.iterdir()}
    fill(tmp_path, KEPT)
    assert clear_undo(str(tmp_path), NOW) == 0
    assert before <= {path.name for path in tmp_path.iterdir()}
    assert clear_undo(str(tmp_path / "nothing"), NOW) == 0
