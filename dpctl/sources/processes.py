"""Processes out of /proc: names, arguments, their pod, and the sockets and devices they hold.

Any process may vanish between two reads, and most may not be looked at without being root: both
are normal here, and answered with "not known". No sockets' meaning, no kubelets.
"""

from __future__ import annotations

import functools
import os
import signal
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from dpctl import names
from dpctl.env import Env, resolve_inside
from dpctl.env.reading import read_limited
from dpctl.errors import UnreachableError, UsageError
from dpctl.model import Process
from dpctl.sources.files import file_error

_LARGEST = 1 << 20
_MOST_ARGUMENTS = 4096
_LONGEST_VALUE = 4096
_LONGEST_UID = 64
_CONTAINER_PREFIXES = ("cri-containerd-", "crio-conmon-", "crio-", "docker-", "libpod-")
_CONTAINER_ID = 64
_EXITING = 0x4  # PF_EXITING
_KILLED = 1 << (signal.SIGKILL - 1)
_HEX = frozenset("0123456789abcdef")
_UID = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.")


class DeviceHolders(NamedTuple):
    """Who has a device node open."""

    processes: tuple[Process, ...]
    denied: int
    """Processes that could not be looked at: not root."""


def list_pids(proc: str) -> list[int]:
    """Ascending. Raises UnreachableError, DeniedError."""
    try:
        return sorted(int(name) for name in os.listdir(proc) if name.isascii() and name.isdigit())
    except OSError as e:
        raise file_error(e, proc) from e


def read_process(proc: str, pid: int) -> Process | None:
    """None: gone. What may not be read is empty or None."""
    base = f"{proc}/{pid}"
    command = _read(f"{base}/comm")
    if command is None:
        return None
    pod_uid, container_id = parse_cgroup(_read(f"{base}/cgroup") or b"")
    return Process(
        pid=pid,
        command=os.fsdecode(command).removesuffix("\n"),
        arguments=split_arguments(_read(f"{base}/cmdline") or b""),
        environment=telling_environment(_read(f"{base}/environ") or b""),
        pod_uid=pod_uid,
        container_id=container_id,
        started=started(proc, pid),
    )


def split_arguments(data: bytes) -> tuple[str, ...]:
    """Of /proc/<pid>/cmdline; at most 4096 of them."""
    parts = data.removesuffix(b"\0").split(b"\0", _MOST_ARGUMENTS)[:_MOST_ARGUMENTS]
    return tuple(os.fsdecode(part) for part in parts) if data else ()


def telling_environment(data: bytes) -> dict[str, str]:
    """Only variables whose value is one or several resource names, or the path of a `.sock`.

    The rest of an environment is nobody's business: it may hold secrets, and bundles keep this.
    """
    found: dict[str, str] = {}
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if not equals or not name or len(value) > _LONGEST_VALUE:
            continue
        text = os.fsdecode(value)
        parts = [part for part in text.replace(",", " ").split(" ") if part]
        if text.endswith(".sock") or (parts and all(names.is_extended(part) for part in parts)):
            found[os.fsdecode(name)] = text
    return found


def parse_cgroup(data: bytes) -> tuple[str | None, str | None]:
    """(pod UID, container ID) of /proc/<pid>/cgroup.

    Both drivers, both versions: `/kubepods/burstable/pod<uid>/<id>`, and
    `/kubepods.slice/…-pod<uid, - as _>.slice/cri-containerd-<id>.scope`. The innermost pod counts
    (kind inside a cluster).
    """
    container_alone: str | None = None
    for line in os.fsdecode(data[:_LARGEST]).splitlines():
        path = line.split(":", 2)[-1]
        parts = path.split("/")
        for position in range(len(parts) - 1, -1, -1):
            # A runtime without the systemd driver takes "slice:prefix:name" for a name.
            slice_, _, tail = parts[position].partition(":")
            uid = _pod_uid(slice_)
            if uid is not None:
                below = [*(tail.rpartition(":")[2:] if tail else ()), *parts[position + 1 :]]
                found = (_container_id(part) for part in below)
                return uid, next((container for container in found if container), None)
        if container_alone is None:
            container_alone = next(filter(None, map(_container_id, reversed(parts))), None)
    return None, container_alone


def _pod_uid(name: str) -> str | None:
    if name.endswith(".slice"):
        # systemd's `-` parts slices, so the UID's own are written `_`.
        _, found, uid = name.removesuffix(".slice").rpartition("-pod")
        uid = uid.replace("_", "-") if found else ""
    elif name.startswith("pod"):
        uid = name[3:]
    else:
        return None
    # `podruntime`, `podman…` and the like are no pods: a UID has digits, and 32 or 36 characters.
    if not 32 <= len(uid) <= _LONGEST_UID or not _UID.issuperset(uid):
        return None
    return uid


def _container_id(name: str) -> str | None:
    name = name.removesuffix(".scope")
    for prefix in _CONTAINER_PREFIXES:
        name = name.removeprefix(prefix)
    return name if len(name) == _CONTAINER_ID and _HEX.issuperset(name) else None


def started(proc: str, pid: int) -> float | None:
    """Unix seconds, to the hundredth as far as ticks go; None: gone, or no clock to count from."""
    data, clock = _read(f"{proc}/{pid}/stat"), _boot_time(proc)
    if data is None or clock is None:
        return None
    # The name in brackets may hold anything, brackets and spaces too: count from the last one.
    fields = data.rpartition(b")")[2].split()
    if len(fields) < 20 or not fields[19].isdigit():
        return None
    return clock + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def is_ending(proc: str, pid: int) -> bool:
    """Whether it is about to end, and may have descriptors still; not what is left when it has."""
    # The name in brackets may hold anything, see `started`.
    fields = (_read(f"{proc}/{pid}/stat") or b"").rpartition(b")")[2].split()
    if len(fields) < 18 or not (fields[6].isdigit() and fields[17].isdigit()):
        return False
    if fields[0] == b"Z":  # its first thread has ended: with the others, or alone
        return int(fields[17]) > 1 and all(
            thread == str(pid) or _is_killed(f"{proc}/{pid}/task/{thread}")
            for thread in _listed(f"{proc}/{pid}/task")
        )
    return bool(int(fields[6]) & _EXITING)


def _is_killed(thread: str) -> bool:
    """Whether a thread has ended, or will as soon as it gets a processor: the end of a process, of
    whatever kind, is a SIGKILL to each of its threads."""
    status = _read(f"{thread}/status")
    if status is None:
        return True
    values = dict(line.partition(b":\t")[::2] for line in status.splitlines())
    if values.get(b"State", b"")[:1] in (b"Z", b"X"):
        return True
    try:
        if int(values.get(b"SigPnd", b""), 16) & _KILLED:
            return True
        fields = (_read(f"{thread}/stat") or b"").rpartition(b")")[2].split()
        return len(fields) < 7 or bool(int(fields[6]) & _EXITING)
    except ValueError:
        return False


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


@functools.lru_cache(maxsize=8)  # /proc/stat takes a millisecond on a machine of many CPUs
def _boot_time(proc: str) -> float | None:
    for line in (_read(f"{proc}/stat") or b"").splitlines():
        name, _, value = line.partition(b" ")
        if name == b"btime" and value.strip().isdigit():
            return float(value)
    return None


def find_holders(
    proc: str, pids: Collection[int], inodes: Collection[int]
) -> dict[int, tuple[int, ...]]:
    """Socket inode to the processes that hold it, ascending; one pass over their descriptors.

    Processes that may not be looked at hold nothing as far as this goes.
    """
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[int, set[int]] = {}
    if not wanted:
        return {}
    for pid in pids:
        for _, text in _links(f"{proc}/{pid}/fd"):
            inode = wanted.get(text)
            if inode is not None:
                found.setdefault(inode, set()).add(pid)
    return {inode: tuple(sorted(holders)) for inode, holders in found.items()}


def _links(directory: str) -> Iterator[tuple[str, str]]:
    try:
        descriptors = os.listdir(directory)
    except OSError:
        return
    for descriptor in descriptors:
        try:
            yield descriptor, os.readlink(f"{directory}/{descriptor}")
        except OSError:
            continue  # closed meanwhile


def device_holders(env: Env, path: str) -> DeviceHolders:
    """Processes that have a device node open, by its number: names differ in containers.

    Descriptors only (a device that was mapped and closed is not seen), and of those the ones whose
    name begins with `/dev/` or ends like `path`: asking a hung network file for its number would
    hang dpctl. Raises UnreachableError, DeniedError, UsageError (no device node).
    """
    return holders_of_devices(env, {path: device_number(env, path)})[path]


class DeviceNumber(NamedTuple):
    kind: int
    """`S_IFCHR` or `S_IFBLK`."""
    number: int


def device_number(env: Env, path: str) -> DeviceNumber:
    """Of a device node of the host. Raises as `device_holders`."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as e:
        root = env.host_root.value or "/"
        try:
            found = os.stat(resolve_inside(root, path))
        except (OSError, ValueError):
            raise file_error(e, path) from e
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        raise UsageError(f"{path} is no device node", "name one such as /dev/nvidia0")
    return DeviceNumber(stat.S_IFMT(found.st_mode), found.st_rdev)


def holders_of_devices(env: Env, devices: Mapping[str, DeviceNumber]) -> dict[str, DeviceHolders]:
    """The same for many, by path, in one pass over the processes. Raises UnreachableError."""
    proc = env.proc.value or "/proc"
    by_number: dict[DeviceNumber, list[str]] = {}
    for path, device in devices.items():
        by_number.setdefault(device, []).append(path)
    bases = {os.path.basename(path) for path in devices}
    found: dict[str, list[Process]] = {path: [] for path in devices}
    denied = 0
    for pid in list_pids(proc):
        if pid == os.getpid() and proc == "/proc":
            continue
        directory = f"{proc}/{pid}/fd"
        try:
            os.listdir(directory)
        except PermissionError:
            denied += 1
            continue
        except OSError:
            continue
        held = _held(directory, by_number, bases)
        if held and (process := read_process(proc, pid)) is not None:
            for path in held:
                found[path].append(process)
    return {path: DeviceHolders(tuple(holders), denied) for path, holders in found.items()}


def _held(
    directory: str, wanted: Mapping[DeviceNumber, Sequence[str]], bases: Collection[str]
) -> set[str]:
    """Paths of those devices that are open in that `/proc/<pid>/fd`."""
    held: set[str] = set()
    for descriptor, text in _links(directory):
        name = text.removesuffix(" (deleted)")
        if not name.startswith("/dev/") and name.rpartition("/")[2] not in bases:
            continue
        try:
            found = os.stat(f"{directory}/{descriptor}")
        except OSError:
            continue
        held.update(wanted.get(DeviceNumber(stat.S_IFMT(found.st_mode), found.st_rdev), ()))
    return held


def same_namespace(proc: str, pid: int, kind: str) -> bool | None:
    """Whether a process shares our namespace of that kind (`mnt`, `net`); None: cannot be told."""
    own, other = namespace("/proc", "self", kind), namespace(proc, pid, kind)
    return None if own is None or other is None else own == other


def namespace(proc: str, pid: int | str, kind: str) -> tuple[int, int] | None:
    try:
        found = os.stat(f"{proc}/{pid}/ns/{kind}")
    except OSError:
        return None
    return found.st_ino, found.st_dev


def needs_live(env: Env) -> str:
    """The /proc to read. Raises UnreachableError for a bundle."""
    if not env.live or env.proc.value is None:
        raise UnreachableError("a bundle has no /proc", "run without --from, on the node itself")
    return env.proc.value


def _read(path: str) -> bytes | None:
    try:
        return read_limited(path, _LARGEST)
    except OSError:
        return None
