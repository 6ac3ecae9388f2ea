"""The journal of a change of many Nodes: what was begun, made and looked at, so that a run that was
killed can be taken up again (`--resume FILE`). dpctl's own file: JSON lines, appended and fsynced.

A line that was being written when the run was killed is cut off; whether its patch was made the
Node tells. What a line means for a Node is `states`; deciding anything is `fleet`'s.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from dpctl.errors import BadDataError, DeniedError, DpctlError, NotAppliedError, UsageError
from dpctl.model.changes import AppliedChange, KeyChange, KeyOutcome, Outcome

_API_VERSION = "dpctl/v1"
_KIND = "NodeChangeJournal"
_BEGINNING = b'{"apiVersion":"dpctl/v1","kind":"NodeChangeJournal","question":'
_LARGEST = 1 << 30
_LONGEST_LINE = 4 << 20
_LONGEST_PERIOD = 86_400.0
"""Seconds: it is waited for."""


class NodeState(NamedTuple):
    """How far one Node has come."""

    begun: AppliedChange | None = None
    """What was about to be sent, last."""
    undo_file: str | None = None
    applied: bool = False
    outcomes: tuple[KeyOutcome, ...] = ()
    """After the verify window; empty: not looked at to its end."""


class Journal:
    """Open for appending by one run at a time. Methods may be called from several threads; they
    return when what they wrote is on disk. Raises NotAppliedError when it cannot be."""

    def __init__(self, path: str, descriptor: int, states: dict[str, NodeState]) -> None:
        self.path = path
        self.states: Mapping[str, NodeState] = states
        """By Node, of the runs before."""
        self._descriptor = descriptor
        self._writing = threading.Lock()
        self._syncing = threading.Lock()
        self._written = self._synced = 0

    def begin(self, applied: AppliedChange, undo_file: str | None) -> None:
        """Before the patch."""
        self._append(
            {
                "node": applied.node,
                "begun": applied.at,
                "uid": applied.uid,
                "changes": [list(change) for change in applied.changes],
                "period": applied.period,
                "kubeletManager": applied.kubelet_manager,
                "undoFile": undo_file,
            }
        )

    def applied(self, applied: AppliedChange) -> None:
        self._append(
            {"node": applied.node, "applied": applied.at, "gone": list(applied.gone_already)}
        )

    def failed(self, node: str, reason: str) -> None:
        """Surely not made: the next run tries again."""
        self._append({"node": node, "failed": reason})

    def verified(self, node: str, outcomes: tuple[KeyOutcome, ...]) -> None:
        self._append({"node": node, "outcomes": [list(outcome) for outcome in outcomes]})

    def close(self) -> None:
        os.close(self._descriptor)

    def _append(self, record: dict[str, object]) -> None:
        """One line, on disk. Threads that come while another one syncs share the next sync."""
        data = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        try:
            with self._writing:
                self._write(data)
                self._written += 1
                mine = self._written
            with self._syncing:
                if self._synced < mine:
                    with self._writing:
                        upto = self._written
                    os.fsync(self._descriptor)
                    self._synced = upto
        except OSError as error:
            raise NotAppliedError(
                f"the journal {self.path} cannot be written: {error.strerror}",
                "free the disk, then run the same again: it goes on where it stopped",
            ) from error

    def _write(self, data: bytes) -> None:
        """A whole line or nothing: half of one would spoil the next."""
        end = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            os.ftruncate(self._descriptor, end)
            raise


def open_journal(path: str, question: Mapping[str, object]) -> Journal:
    """A new journal, or one of the same question to be taken up again. `question`: what was asked,
    as JSON; another one in the file is no resuming.

    Raises UsageError, DeniedError, BadDataError.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise _cannot_open(path, error) from error
    try:
        return _opened(path, descriptor, question)
    except BaseException:
        os.close(descriptor)
        raise


def _opened(path: str, descriptor: int, question: Mapping[str, object]) -> Journal:
    import stat

    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"--resume {path} is no file", "name a file, new or of an earlier run")
    if found.st_size > _LARGEST:
        raise BadDataError(f"{path} is larger than any journal", f"ls -l {path}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(
            f"another dpctl is writing {path}", "wait for it, or name another file"
        ) from error
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        states, begins_with, whole = _read(path, file)
    if whole != found.st_size:
        os.ftruncate(descriptor, whole)
    journal = Journal(path, descriptor, states)
    if begins_with is None:
        journal._append({"apiVersion": _API_VERSION, "kind": _KIND, "question": dict(question)})
    elif begins_with != json.loads(json.dumps(question)):
        raise UsageError(
            f"{path} is of another change than this one", "run the same command, or name a new file"
        )
    return journal


def _read(path: str, file: Any) -> tuple[dict[str, NodeState], object, int]:
    """(states by Node, the question or None for a new file, bytes of whole lines)."""
    states: dict[str, NodeState] = {}
    question: object = None
    whole = number = 0
    while line := file.readline(_LONGEST_LINE):
        if not line.endswith(b"\n"):
            if len(line) == _LONGEST_LINE or not (number or _begins(line)):
                raise _no_journal(path, number + 1)
            break  # torn: the run was killed while it wrote
        number += 1
        try:
            record = json.loads(line)
            if number == 1:
                if record["kind"] != _KIND or record["apiVersion"] != _API_VERSION:
                    raise ValueError("another kind")
                question = record["question"]
            else:
                _take(states, record)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
                ValueError) as error:  # fmt: skip
            raise _no_journal(path, number) from error
        whole += len(line)
    return states, question, whole


def _begins(torn: bytes) -> bool:
    """Whether it is what a run left that was killed at its first line, and no file of others'."""
    return torn.startswith(_BEGINNING) or _BEGINNING.startswith(torn)


def _take(states: dict[str, NodeState], record: dict[str, Any]) -> None:
    """One line, whose types the callers of `_read` take care of."""
    node = str(record["node"])
    before = states.get(node, NodeState())
    if "begun" in record:
        changes = tuple(KeyChange(*map(_text, change)) for change in record["changes"])  # type: ignore[arg-type]
        begun = AppliedChange(
            node=node,
            uid=_text(record["uid"]),
            changes=changes,
            at=float(record["begun"]),
            period=_seconds(record["period"]),
            kubelet_manager=str(record["kubeletManager"]),
        )
        states[node] = NodeState(begun, _text(record["undoFile"]))
    elif "applied" in record:
        if before.begun is None:
            raise ValueError("applied, but never begun")
        gone = tuple(map(str, record["gone"]))
        done = before.begun._replace(at=float(record["applied"]), gone_already=gone)
        states[node] = before._replace(begun=done, applied=True)
    elif "failed" in record:
        states[node] = NodeState()
    else:
        outcomes = tuple(
            KeyOutcome(str(r), Outcome(o), _text(d), _text(n), _text(c), _text(a), tuple(w))
            for r, o, d, n, c, a, w in record["outcomes"]
        )
        states[node] = before._replace(outcomes=outcomes)


def _seconds(value: Any) -> float:
    if not 0 <= float(value) <= _LONGEST_PERIOD:  # neither is NaN
        raise ValueError("no status period")
    return float(value)


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _no_journal(path: str, line: int) -> BadDataError:
    return BadDataError(
        f"{path} is no journal of dpctl (line {line})", "name a new file, or one of an earlier run"
    )


def _cannot_open(path: str, error: OSError) -> DpctlError:
    if isinstance(error, PermissionError):
        return DeniedError(
            f"--resume {path} may not be written: {error.strerror}", "name a file of your own"
        )
    return UsageError(f"--resume {path}: {error.strerror}", "name a file, new or of an earlier run")
