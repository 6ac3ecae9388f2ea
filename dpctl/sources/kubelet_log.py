"""What the kubelet's log says of devices: when it noticed that a plugin was gone, and for a bundle
the lines themselves.

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

from dpctl.errors import UnreachableError
from dpctl.sources.files import file_error

_TAIL = 8 << 20
"""Bytes from the end: five minutes of a talkative kubelet are less."""
_JOURNAL_SECONDS = 3.0
_JOURNAL_LINES = "400"
# Up to 1.36, and since (several plugins may serve one resource now: the last of them counts).
_NOTICED = "Endpoint became unhealthy|Last device plugin for this resource disconnected"
_LINE = re.compile(
    rb"[IWE](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,9}) [^\n]*"
    rb'"(?:' + _NOTICED.encode() + rb')"'
    rb' resource(?:Name)?="([^"\n]{1,400})"'
)
_DAY = 86400.0
# What the device, CPU, memory, topology and DRA managers and the plugin watcher log under.
_ABOUT_DEVICES = (
    "device.?plugin|device.?manager|DevicePlugin|resourceName=|[Ee]ndpoint|plugin_watcher|"
    "plugin_manager|operation_generator|plugins_registry|cpu.?manager|memory.?manager|"
    "topology.?manager|TopologyManager|topology.?affinity|podresources|UnexpectedAdmissionError|"
    "Allocate|dra.?manager|DRA|ResourceClaim|kubelet_internal_checkpoint|_state"
)
_MOST_LINES = "2000"
_LARGEST_LINES = 1 << 20


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


def read_device_lines(proc: str, pid: int) -> bytes:
    """The last lines about devices, 1 MiB of them at most. Raises UnreachableError where neither
    a log file nor the journal of that kubelet can be read."""
    path = f"{proc}/{pid}/fd/2"
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return lines_about_devices(_tail(path))
    except OSError as e:
        raise file_error(e, path) from e
    if not stat.S_ISSOCK(mode) or proc != "/proc":
        raise UnreachableError(
            "the kubelet logs neither into a file nor into a journal that can be read here",
            "add its log by hand",
        )
    pattern = f"--grep={_ABOUT_DEVICES}"
    found = _journalctl("--output=short-iso", "--since=-1d", f"--lines={_MOST_LINES}", pattern, pid)
    if found is None:
        raise UnreachableError("journalctl does not answer", "add the kubelet's log by hand")
    return lines_about_devices(found)


def lines_about_devices(log: bytes) -> bytes:
    """The last of them, whole ones."""
    wanted = re.compile(_ABOUT_DEVICES.encode())
    found = b"".join(line + b"\n" for line in log.splitlines() if wanted.search(line))
    if len(found) <= _LARGEST_LINES:
        return found
    return found[-_LARGEST_LINES:].partition(b"\n")[2]


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
    lines, pattern = f"--lines={_JOURNAL_LINES}", f"--grep={_NOTICED}"
    return _journalctl("--output=cat", "--since=-10min", lines, pattern, pid) or b""


def _journalctl(output: str, since: str, lines: str, pattern: str, pid: int) -> bytes | None:
    """None: there is none, or it took too long."""
    import shutil
    import subprocess

    journalctl = shutil.which("journalctl", path="/usr/bin:/bin")
    if journalctl is None:
        return None
    command = [journalctl, "--quiet", "--no-pager", output, since, lines, pattern, f"_PID={pid}"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_JOURNAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[-_TAIL:]
