"""Bringing a lab up and down, and running a command inside one: what `dpctl lab` does."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from dpctl.errors import DeniedError, PeerError, UnreachableError, UsageError
from dpctl.lab import directory as lab_directory
from dpctl.lab.api_errors import Json
from dpctl.lab.client import LabClient
from dpctl.lab.spec import LabSpec

_DOWN_LIMIT = 10.0
_PATIENCE = 5.0
"""Seconds until a supervisor that was asked to end is made to."""


@dataclass(frozen=True, slots=True)
class Running:
    """A lab that is up."""

    directory: Path
    pid: int
    env: Mapping[str, str]
    """What to set to look at it."""
    process: subprocess.Popen[bytes] | None = None
    """The supervisor, where it is our child."""


def start(directory: Path, spec: LabSpec) -> Running:
    """Start the supervisor and wait until the lab stands; what a killed lab left is removed first.

    With `spec.watch_parent` the lab ends when the returned process's stdin is closed.
    Raises UsageError, DeniedError (the directory), PeerError (it did not come up).
    """
    directory = lab_directory.prepare(directory)
    held = lab_directory.lock(directory)
    if held is None:
        raise UsageError(f"a lab runs already in {directory}", "dpctl lab down ends it")
    try:
        with lab_directory.explained(directory):
            process = _spawn(directory, held)
    except BaseException:
        lab_directory.clean(directory)
        raise
    finally:
        os.close(held)
    try:
        told = _first_words(process, spec)
    except BaseException:
        process.terminate()  # Ctrl-C while it comes up: its own session did not get it
        process.wait()
        _clean_after(directory)
        raise
    if "error" in told:
        full = lab_directory.full(directory)
        process.wait()
        _clean_after(directory)
        if told.get("no_space", full):
            raise lab_directory.no_space(directory)
        raise PeerError(f"the lab did not come up: {told['error']}")
    return Running(directory, told["pid"], told["env"], process)


def _spawn(directory: Path, held: int) -> subprocess.Popen[bytes]:
    """The supervisor, in an emptied directory. Raises OSError."""
    lab_directory.empty(directory)
    logs = directory / "log"
    logs.mkdir(mode=0o700)
    with (logs / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dpctl.lab.supervisor", str(directory), str(held)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env=_environment(),
            start_new_session=True,
            pass_fds=(held,),  # the lock goes over without a moment in between
        )


def _clean_after(directory: Path) -> bool:
    """What a lab that has ended left. False: another one has its lock by now."""
    if not directory.exists():
        return True
    held = lab_directory.lock(directory)
    if held is None:
        return False
    try:
        with lab_directory.explained(directory):
            lab_directory.clean(directory)
    finally:
        os.close(held)
    return True


def _environment() -> dict[str, str]:
    """Ours, with the place dpctl was loaded from: the supervisor runs in `/`."""
    package_parent = str(Path(__file__).resolve().parent.parent.parent)
    paths = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _first_words(process: subprocess.Popen[bytes], spec: LabSpec) -> Json:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended: its words, if any, come below
        process.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")
        process.stdin.flush()
    if not spec.watch_parent:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    line = process.stdout.readline()
    told: Json = json.loads(line) if line else {"error": "its supervisor ended without a word"}
    return told


def running(directory: Path) -> Running | None:
    """The lab that runs there, None: none does. Raises UsageError, DeniedError."""
    if not directory.exists():
        return None
    lab_directory.check(directory)
    if not _locked(directory):
        return None
    try:
        state = json.loads((directory / "lab.json").read_bytes())
    except (OSError, ValueError):
        raise UnreachableError(
            f"a lab is coming up or going down in {directory}", "try again in a moment"
        ) from None
    return Running(directory, state["pid"], state["env"])


def stop(directory: Path) -> bool:
    """End the lab, also one that comes up, and remove its directory. Whether one was running.

    Raises UsageError, DeniedError, UnreachableError (it does not end).
    """
    if not directory.exists():
        return False
    lab_directory.check(directory)
    if _clean_after(directory):
        return False  # what a killed lab left
    started = time.monotonic()
    asked: int | None = None
    while directory.exists() and _locked(directory):
        waited = time.monotonic() - started
        found = lab_directory.holder(directory)
        if found is None:
            # It comes up and has not signed yet, or it is an older dpctl's.
            if waited > 1.0:
                with contextlib.suppress(UnreachableError):
                    LabClient(directory, patience=1.0).ask("down")
        else:
            pid, pidfd = found
            try:
                if asked is None or (asked == pid and waited > _PATIENCE):
                    _end(pid, pidfd, by_force=waited > _PATIENCE)
                    asked = asked or pid
            finally:
                os.close(pidfd)
            if asked != pid:
                return True  # ours has ended, and somebody has started another one
        if waited > _DOWN_LIMIT:
            raise UnreachableError(
                f"the lab in {directory} does not end",
                f"kill its supervisor: the process that holds {directory}/lock",
            )
        time.sleep(0.02)
    _clean_after(directory)
    return True


def _end(pid: int, pidfd: int, *, by_force: bool) -> None:
    """Ask this supervisor to end; by force, end it and its children. Raises DeniedError."""
    try:
        if by_force:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.killpg(pid, signal.SIGKILL)  # they are its group: it has a session of its own
        else:
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
            signal.pidfd_send_signal(pidfd, signal.SIGCONT)  # somebody may have paused it
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise DeniedError(
            f"the lab's supervisor (process {pid}) is not yours to end",
            "ask as its user or as root",
        ) from error


def end_with_us(lab: Running) -> None:
    """End a lab started with `watch_parent`."""
    if lab.process is not None and lab.process.stdin is not None:
        with contextlib.suppress(OSError):
            lab.process.stdin.close()
        lab.process.wait()


def run(command: Sequence[str], spec: LabSpec, directory: Path | None = None) -> int:
    """A lab for the time of one command, its environment set. The command's exit code (128 + N
    when signal N ended it).

    Ctrl-C is the command's; SIGTERM and SIGHUP are handed on to it. Killing us ends the lab and the
    command: both hang on our pipe. Raises UsageError (no such command), and as `start`.
    """
    with _directory(directory) as where:
        lab = start(where, spec)
        try:
            return _run_inside(command, lab)
        finally:
            end_with_us(lab)


def _run_inside(command: Sequence[str], lab: Running) -> int:
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def hand_on(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT:
            return  # the terminal gives Ctrl-C to both of us
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    # Before the command is there: its first line may be what somebody waits for to end us.
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, hand_on) for number in signals}
    try:
        child = _command(command, lab)
        for number in early:
            child.send_signal(number)
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _command(command: Sequence[str], lab: Running) -> subprocess.Popen[bytes]:
    """Started, and its process told to the supervisor, which ends it when we are killed.

    It tells so itself, before it is the command: we may be killed at its first line.
    """

    def tell() -> None:
        if lab.process is not None and lab.process.stdin is not None:
            with contextlib.suppress(OSError):
                line = json.dumps({"command": os.getpid()}).encode() + b"\n"
                os.write(lab.process.stdin.fileno(), line)

    try:
        return subprocess.Popen(command, env={**os.environ, **lab.env}, preexec_fn=tell)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from error


@contextlib.contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    """The given one, or one of its own: several `lab run` do not meet."""
    if given is not None:
        yield given
        return
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    made = Path(tempfile.mkdtemp(prefix="dpctl-", dir=base))
    try:
        yield made
    finally:
        if made.exists():
            lab_directory.clean(made)


def _locked(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
