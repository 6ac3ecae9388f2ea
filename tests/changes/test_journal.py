"""The journal on disk: torn lines, foreign files, two runs at once, many threads."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.changes.journal import Journal, open_journal
from dpctl.errors import BadDataError, DpctlError, NotAppliedError, UsageError
from dpctl.model.changes import AppliedChange, KeyChange, KeyOutcome, Outcome

QUESTION = {"names": ("a.example/x",), "action": "remove", "include": []}

WHOLE = {
    "node": "n",
    "begun": 1,
    "uid": "u",
    "changes": [],
    "period": 1,
    "kubeletManager": "kubelet",
    "undoFile": None,
}


def change(node: str) -> AppliedChange:
    keys = (KeyChange("capacity", "a.example/x", "0", None),)
    return AppliedChange(node, f"uid-{node}", keys, 1000.5, 10.4, "kubelet")


def outcome(word: Outcome = Outcome.CHANGED) -> KeyOutcome:
    return KeyOutcome("a.example/x", word, None, None, None, None, ("kubelet",))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal")


def written(path: str) -> Journal:
    journal = open_journal(path, QUESTION)
    journal.begin(change("n-1"), "/undo/1")
    journal.begin(change("n-2"), "/undo/2")
    journal.applied(change("n-2")._replace(at=2000.0, gone_already=("a.example/x",)))
    journal.begin(change("n-3"), None)
    journal.failed("n-3", "refused")
    journal.begin(change("n-4"), "/undo/4")
    journal.applied(change("n-4"))
    journal.verified("n-4", (outcome(),))
    journal.close()
    return journal


def test_what_a_run_before_has_come_to(path: str) -> None:
    written(path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    journal = open_journal(path, QUESTION)
    states = journal.states
    journal.close()
    assert states["n-1"].begun == change("n-1")
    assert (states["n-1"].applied, states["n-1"].undo_file) == (False, "/undo/1")
    assert states["n-2"].applied
    assert states["n-2"].begun == change("n-2")._replace(at=2000.0, gone_already=("a.example/x",))
    assert states["n-3"].begun is None
    assert states["n-4"].outcomes == (outcome(),)


def test_a_line_that_was_torn_is_cut_off_wherever(path: str) -> None:
    written(path)
    whole = Path(path).read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord(b"\n")]
    for length in sorted({0, 1, *(end + near for end in ends for near in (-2, -1, 0, 1))}):
        Path(path).write_bytes(whole[:length])
        journal = open_journal(path, QUESTION)
        journal.begin(change("n-9"), None)
        journal.close()
        again = open_journal(path, QUESTION)
        again.close()
        assert again.states["n-9"].begun == change("n-9")
        assert set(journal.states) <= {"n-1", "n-2", "n-3", "n-4"}


@pytest.mark.parametrize(
    "data",
    [
        b"hello\n",
        b"[]\n",
        b'{"kind":"Node","apiVersion":"dpctl/v1"}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b"a token of one line",
        b'{"Data":{"PodDeviceEntries":null},"Checksum":1}',  # the kubelet's own, without an end
    ],
)
def test_another_file_is_not_written_to(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)
    with pytest.raises(BadDataError, match="is no journal of dpctl"):
        open_journal(path, QUESTION)
    assert Path(path).read_bytes() == data


@pytest.mark.parametrize(
    "line",
    [
        {"node": "n", "applied": 1, "gone": []},
        {"node": "n", "begun": 1},
        {"node": "n", "begun": "x", "uid": 1, "changes": 3},
        {**WHOLE, "begun": 10**400},
        {**WHOLE, "period": float("inf")},
        {**WHOLE, "period": float("nan")},
        {"node": "n", "outcomes": [["a"]]},
        {"node": "n", "outcomes": [["a", "Nonsense", None, None, None, None, []]]},
        [],
        7,
    ],
)
def test_a_broken_line_in_the_middle_is_named(path: str, line: object) -> None:
    written(path)
    data = Path(path).read_bytes()
    Path(path).write_bytes(data + json.dumps(line).encode() + b"\n")
    with pytest.raises(BadDataError, match="line 10"):
        open_journal(path, QUESTION)


def test_a_full_disk_leaves_no_half_line(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = open_journal(path, QUESTION)
    write = os.write
    left = [10]

    def full(descriptor: int, data: bytes) -> int:
        if left[0] == 0:
            raise OSError(28, "No space left on device")
        done = write(descriptor, data[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(NotAppliedError, match="No space left"):
        journal.begin(change("n-1"), None)
    monkeypatch.undo()
    journal.begin(change("n-2"), None)
    journal.close()
    again = open_journal(path, QUESTION)
    again.close()
    assert set(again.states) == {"n-2"}


def test_another_question_is_not_taken_up(path: str) -> None:
    written(path)
    with pytest.raises(UsageError, match="is of another change"):
        open_journal(path, {**QUESTION, "names": ("b.example/x",)})


def test_one_run_at_a_time(path: str) -> None:
    journal = open_journal(path, QUESTION)
    with pytest.raises(UsageError, match="another dpctl is writing"):
        open_journal(path, QUESTION)
    journal.close()
    open_journal(path, QUESTION).close()


def test_no_link_and_no_fifo_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError):
        open_journal(str(tmp_path / "link"), QUESTION)
    assert not (tmp_path / "target").exists()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DpctlError):
        open_journal(str(tmp_path / "fifo"), QUESTION)


def test_many_threads_write_whole_lines(path: str) -> None:
    journal = open_journal(path, QUESTION)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: journal.begin(change(f"n-{n}"), None), range(100)))
    journal.close()
    again = open_journal(path, QUESTION)
    again.close()
    assert set(again.states) == {f"n-{n}" for n in range(100)}


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("j") / "journal"
    path.write_bytes(data)
    with suppress(DpctlError):
        open_journal(str(path), QUESTION).close()
