"""The dashboard's part of `make bench`: what it costs untouched, and how soon it is there.

It runs on a pseudo-terminal, as a person starts it; the other side takes what it sends.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from pathlib import Path
from typing import NamedTuple

_SETTLE = 8.0
"""Seconds after the first data until a usual round is a usual round."""


class Idle(NamedTuple):
    share: float
    """Of one core."""
    sent: float
    """Bytes a second to the terminal."""


def start(command: list[str], environ: dict[str, str]) -> tuple[int, int]:
    """pid, and the terminal's other side (80 by 24)."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, {**environ, "TERM": "xterm-256color"})
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    return pid, master


def first_paint(command: list[str], environ: dict[str, str]) -> float:
    """Milliseconds from the start to the first text of the screen; it is ended then."""
    begun = time.perf_counter()
    pid, master = start(command, environ)
    seen = b""
    while b"reading the node" not in seen:
        seen += os.read(master, 65536)
    took = (time.perf_counter() - begun) * 1000
    end(pid, master)
    return took


def idle(command: list[str], environ: dict[str, str], seconds: float) -> Idle:
    """What it takes of a core while nothing changes and nobody presses a key."""
    pid, master = start(command, environ)
    seen = b""
    while b" old" not in seen:  # the age of the data: a reading is on the screen
        seen += os.read(master, 65536)
    _drain(master, _SETTLE)
    before = _cpu(pid)
    begun = time.monotonic()
    sent = _drain(master, seconds)
    took = time.monotonic() - begun
    spent = _cpu(pid) - before
    end(pid, master)
    return Idle(spent / took, sent / took)


def end(pid: int, master: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(master)


def _drain(master: int, seconds: float) -> int:
    until = time.monotonic() + seconds
    taken = 0
    while (left := until - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            taken += len(os.read(master, 65536))
    return taken


def _cpu(pid: int) -> float:
    """Seconds of CPU of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
