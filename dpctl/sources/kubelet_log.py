"""When the kubelet noticed that a plugin was gone, by its own log; nothing else is read there.

The log is a file where standard error goes into one, else the journal. A kubelet writes the line
with -v=2 or more, which is the usual. Where it cannot be read, nothing is said: the upper bound
from the Node's status will do.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Mapping

_TAIL = 8 << 20
"""Bytes from the end: five minutes of a talkative kubelet are less."""
_JOURNAL_SECONDS = 3.0
_JOURNAL_LINES = "400"
_LINE = re.compile(
    rb"[IWE](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,9}) [^\n]*"
    rb'"Endpoint became unhealthy" resourceName="([^"\n]{1,400})"'
)
_DAY = 86400.0


def read_lost_at(proc: str, pid: int) -> Mapping[str, float]:
    """Resource to the Unix time of the last such line; empty where there is none to read."""
    path = f"{proc}/{pid}/fd/2"
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return parse_lost_at(_tail(path), time.time())
    except OSError:
        return {}
    if stat.S_ISSOCK(mode) and proc == "/proc":
        return parse_lost_at(_journal(pid), time.time())
    return {}


def parse_lost_at(log: bytes, now: float) -> dict[str, float]:
    """klog's lines; they carry no year, and the time of this machine's zone."""
    found: dict[str, float] = {}
    year = time.localtime(now).tm_year
    for match in _LINE.finditer(log):
        month, day, hour, minute, second = (int(part) for part in match.groups()[:5])
        fraction = float(b"0." + match[6])
        for candidate in (year, year - 1):  # a log of December, read in January
            moment = (candidate, month, day, hour, minute, second, 0, 0, -1)
            try:
                at = time.mktime(moment) + fraction
            except (ValueError, OverflowError):
                continue
            if at <= now + _DAY:
                found[match[7].decode("utf-8", "replace")] = at
                break
    return found


def _tail(path: str) -> bytes:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        return file.read(_TAIL)


def _journal(pid: int) -> bytes:
    """Asked only for a kubelet of this machine, for lines that no plugin can write."""
    import shutil
    import subprocess

    journalctl = shutil.which("journalctl", path="/usr/bin:/bin")
    if journalctl is None:
        return b""
    command = [journalctl, "--quiet", "--no-pager", "--output=cat", "--since=-10min"]
    command += [f"--lines={_JOURNAL_LINES}", "--grep=Endpoint became unhealthy", f"_PID={pid}"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_JOURNAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout[-_TAIL:]
