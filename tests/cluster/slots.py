"""Slots: a short directory, a control group and a port range for one cluster, and their end.

A slot belongs to whoever holds its lock, and the kernel drops the lock when its holders end. So a
slot with a directory and without a holder was left behind, and the next `acquire` clears it. In
between a small `reaper` process waits for the end of the runner and clears the slot right then.

Everything that concerns the whole machine (folders to mount over, kernel settings that a kubelet
changes) is noted in `host.json` before the first slot is used and put back after the last.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from . import cgroups

# Short, because the path of a unix socket holds 107 bytes.
BASE = Path("/run/dpc")
HOST_STATE = BASE / "host.json"
# One part for the process that starts the control plane, one each for those that add nodes to it.
PARTS = 9
PORTS = PARTS * 28  # two per node, three for the control plane
FIRST_PORT = 21000
SLOTS = 45  # so that the last port is below 32768, from where on the kernel gives clients theirs

MOUNT_POINTS = (Path("/var/lib/kubelet"), Path("/run/cdi"), Path("/run/containerd"))
SYSCTLS = tuple(
    Path("/proc/sys") / name
    for name in (
        "vm/overcommit_memory",
        "vm/panic_on_oom",
        "kernel/panic",
        "kernel/panic_on_oops",
        "kernel/keys/root_maxkeys",
        "kernel/keys/root_maxbytes",
    )
)
# Upstream's sample plugin makes a file per device, always here.
DEVICE_FILES = (Path("/tmp/Dev-1"), Path("/tmp/Dev-2"))


class Place:
    """One process's share of a slot: where its files are, and its ports."""

    def __init__(self, number: int, part: int = 0) -> None:
        self.number = number
        self.part = part
        self.path = BASE / str(number)
        self.cgroup = f"dpc/{number}"
        self._ports = iter(range(_first_port(number, part), _first_port(number, part + 1)))

    def port(self) -> int:
        """A TCP port on 127.0.0.1 that is free now, and that nobody else will ask for."""
        for port in self._ports:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
                return port
        raise OSError(f"no free port left in part {self.part} of slot {self.number}")


def _first_port(number: int, part: int) -> int:
    return FIRST_PORT + number * PORTS + part * (PORTS // PARTS)


class Slot:
    """A slot that this process holds."""

    def __init__(self, number: int, lock: int) -> None:
        self.place = Place(number)
        self._lock = lock
        self._reaper = self._start_reaper()

    def release(self) -> None:
        """Kill and remove everything in the slot, and give it back."""
        if self._reaper.stdin is None or self._reaper.stdin.closed:
            return
        try:
            clear(self.place.number)
        finally:
            self._reaper.stdin.close()
            self._reaper.wait()
            os.close(self._lock)

    def _start_reaper(self) -> subprocess.Popen[bytes]:
        package = __package__ or ""
        root = Path(__file__).resolve().parents[package.count(".") + 1]
        return subprocess.Popen(
            [sys.executable, "-m", f"{package}.reaper", str(self.place.number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # It holds the lock, too: nobody takes the slot before it has cleared it.
            pass_fds=[self._lock],
            # Away from the terminal's Ctrl-C.
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(root)},
        )


def acquire() -> Slot:
    """Take a free slot, after clearing all that were left behind."""
    BASE.mkdir(parents=True, exist_ok=True)
    with _machine_lock():
        sweep()
        for number in range(SLOTS):
            lock = _try_lock(number)
            if lock is None:
                continue
            _note_host()
            slot = Slot(number, lock)
            slot.place.path.mkdir()
            return slot
    raise OSError(f"all {SLOTS} slots under {BASE} are in use")


def sweep() -> None:
    """Clear every slot that has a directory and no holder."""
    for number in _numbers():
        lock = _try_lock(number)
        if lock is not None:
            try:
                _clear_slot(number)
            finally:
                os.close(lock)


def clear(number: int) -> None:
    """Clear a slot whose lock the caller holds, and the machine if it was the last."""
    _clear_slot(number)
    with _machine_lock():
        if not set(held()) - {number}:
            _restore_host()


def clear_abandoned() -> None:
    """Clear what was left behind, and the machine if nobody holds a slot."""
    if not BASE.exists():
        return
    with _machine_lock():
        sweep()
        if not held():
            _restore_host()


def held() -> list[int]:
    """Numbers of the slots that somebody holds."""
    found = []
    for number in _numbers():
        lock = _try_lock(number)
        if lock is None:
            found.append(number)
        else:
            os.close(lock)
    return found


def _clear_slot(number: int) -> None:
    path = BASE / str(number)
    cgroups.kill(f"dpc/{number}")
    # The nodes' mounts are in mount namespaces that have just ended. Should one have come through
    # to this namespace, deleting below it would delete what it shows.
    for line in Path("/proc/self/mountinfo").read_text().splitlines()[::-1]:
        target = line.split(" ")[4]
        if Path(target).is_relative_to(path):
            subprocess.run(["umount", "--lazy", target], check=True)
    cgroups.remove(f"dpc/{number}")
    if path.exists():
        shutil.rmtree(path)


def _note_host() -> None:
    if not HOST_STATE.exists():
        state = {
            "absent": [str(p) for p in MOUNT_POINTS if not p.exists()],
            "files": [str(p) for p in DEVICE_FILES if not p.exists()],
            "sysctls": {str(p): p.read_text() for p in SYSCTLS if p.exists()},
        }
        temporary = HOST_STATE.with_suffix(".new")
        temporary.write_text(json.dumps(state))
        temporary.rename(HOST_STATE)
    for point in MOUNT_POINTS:
        point.mkdir(parents=True, exist_ok=True)


def _restore_host() -> None:
    cgroups.remove("dpc")
    if not HOST_STATE.exists():
        return
    state = json.loads(HOST_STATE.read_text())
    for name, value in state["sysctls"].items():
        if Path(name).read_text() != value:
            Path(name).write_text(value)
    for name in state["absent"]:
        # It stays when somebody else uses it by now.
        with suppress(OSError):
            Path(name).rmdir()
    for name in state["files"]:
        if Path(name).is_file() and Path(name).stat().st_size == 0:
            Path(name).unlink()
    HOST_STATE.unlink()


def _numbers() -> list[int]:
    return sorted(int(p.stem) for p in BASE.glob("*.lock") if p.stem.isdigit())


def _try_lock(number: int) -> int | None:
    handle = os.open(BASE / f"{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


@contextmanager
def _machine_lock() -> Iterator[None]:
    with (BASE / "machine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
