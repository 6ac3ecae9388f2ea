"""The unix-socket table with the processes behind it: which plugin listens, who is connected to it.

`sock_diag` gives this network namespace, /proc/<pid>/net/unix the listeners of others. What a
listener means (served, connected, this kubelet) is decided by the joins, not here.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from dpctl.env import Env, Place, resolve_inside
from dpctl.env.reading import read_limited
from dpctl.errors import DpctlError
from dpctl.model import Process, SocketTable, UnixSocket
from dpctl.sources.directory import list_directory
from dpctl.sources.processes import (
    find_holders,
    is_ending,
    list_pids,
    namespace,
    needs_live,
    read_process,
    same_namespace,
)
from dpctl.sources.sock_diag import read_unix_sockets, socket_name
from dpctl.sources.sysfs import kernel_device, vfs_device

_ACCEPTS = 0x10000  # __SO_ACCEPTCON: the socket listens
_STREAM = 1
_LARGEST_TABLE = 64 << 20
# A socket handed on by systemd, or inherited by workers, has more holders than one.
_MOST_HOLDERS = 8
_LINGERING = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Seconds between looks at sockets of processes that end: it takes gRPC's threads up to a tenth to
do so, and longer where all processors are busy."""


def read_socket_table(env: Env) -> tuple[SocketTable, dict[int, Process]]:
    """Listeners and accepted connections that carry a path, and the processes behind the listeners.

    Without root most holders are unknown (`pid` None), which the joins count as not trusted.
    Raises UnreachableError, DeniedError, BadDataError (see `sock_diag.read_unix_sockets`).
    """
    proc = needs_live(env)
    own = read_unix_sockets()
    pids = list_pids(proc)
    sockets = (*own, *_other_listeners(proc, pids, {row.inode for row in own}))
    inodes = {row.inode for row in sockets}
    inodes.update(row.peer for row in own if row.peer)
    holders = find_holders(proc, pids, inodes)
    directory = _directory(env.device_plugin_dir.value)
    parents = _Parents(proc, directory)
    rows = [_with_processes(row, holders, parents) for row in sockets]
    rows = _still_there(rows, partial(_any_is_ending, proc))
    ours = _ours(rows, directory, _inodes(env.device_plugin_dir, env.plugins_registry))
    processes = (read_process(proc, pid) for pid in ours)
    return SocketTable(tuple(rows)), {p.pid: p for p in processes if p is not None}


def _still_there(
    rows: list[UnixSocket], lingers: Callable[[Collection[UnixSocket]], bool]
) -> list[UnixSocket]:
    """Without listeners that were closed while we looked for their processes: nobody can tell
    where they were, so for one reading they would count as plugins that may serve anything.

    A process that ends has no directories any more, and its sockets for some milliseconds still.
    """
    for pause in _LINGERING:
        time.sleep(pause)
        doubtful = {
            row.inode: row
            for row in rows
            if row.state == "listen" and not (row.parent_known or row.other_namespace)
        }
        if not doubtful:
            break
        # Asked before the table is read: what has ended by now is not in it.
        linger = lingers(doubtful.values())
        gone = set(doubtful) - {row.inode for row in read_unix_sockets()}
        rows = [row for row in rows if row.inode not in gone]
        if not linger:
            break
    return rows


def _any_is_ending(proc: str, rows: Collection[UnixSocket]) -> bool:
    """Whether one of them is the socket of a process that ends."""
    held = [row.holders for row in rows if row.holders]
    if any(all(is_ending(proc, pid) for pid in holders) for holders in held):
        return True
    # Whose first thread has ended shows no descriptors any more; without root hardly anybody does.
    nobodys = len(held) < len(rows) and os.geteuid() == 0
    return nobodys and any(is_ending(proc, pid) for pid in list_pids(proc))


def _with_processes(
    row: UnixSocket, holders: Mapping[int, tuple[int, ...]], parents: _Parents
) -> UnixSocket:
    pids = holders.get(row.inode, ())
    pid = _server(pids)
    if row.state != "listen":
        return row._replace(pid=pid, peer_pids=holders.get(row.peer or 0, ()))
    parent = parents.of(row, pids)
    return row._replace(
        pid=pid,
        holders=pids,
        parent_inode=parent.inode,
        parent_device=parent.device,
        parent_known=parent.known,
    )


def _server(pids: tuple[int, ...]) -> int | None:
    """Of several holders the oldest, but not init: it only opened the socket for the service."""
    return next((pid for pid in pids if pid != 1), pids[0] if pids else None)


def _other_listeners(proc: str, pids: Iterable[int], known: set[int]) -> list[UnixSocket]:
    """Listening stream sockets with a path in every network namespace but ours."""
    own = namespace("/proc", "self", "net")
    seen = {own}
    found: dict[int, UnixSocket] = {}
    for pid in pids:
        here = namespace(proc, pid, "net")
        if here is None or here in seen:
            continue
        try:
            data = read_limited(f"{proc}/{pid}/net/unix", _LARGEST_TABLE)
        except OSError:
            continue  # gone, or refused: the next process of that namespace may answer
        seen.add(here)
        for inode, name in parse_net_unix(data):
            if inode not in known:
                found[inode] = UnixSocket(
                    inode=inode,
                    state="listen",
                    name=name,
                    file_inode=None,
                    device=None,
                    peer=None,
                    other_namespace=True,
                )
    return [found[inode] for inode in sorted(found)]


def parse_net_unix(data: bytes) -> list[tuple[int, str]]:
    """(inode, name) of the listening stream sockets with a path in a /proc/net/unix.

    Lines that make no sense are skipped: a name may hold line feeds.
    """
    found: list[tuple[int, str]] = []
    for line in data.split(b"\n"):
        fields = line.split(None, 7)
        if len(fields) != 8 or not fields[0].endswith(b":") or fields[7].startswith(b"@"):
            continue
        try:
            flags, kind, inode = int(fields[3], 16), int(fields[4], 16), int(fields[6])
        except ValueError:
            continue
        if flags & _ACCEPTS and kind == _STREAM:
            found.append((inode, socket_name(fields[7])))
    return found


@dataclass(frozen=True, slots=True)
class _Directory:
    """device-plugins/ as we see it."""

    inode: int
    st_dev: int
    device: int
    """Its superblock's."""


def _directory(path: str | None) -> _Directory | None:
    if path is None:
        return None
    try:
        found = os.stat(path)
        return _Directory(found.st_ino, found.st_dev, vfs_device(path))
    except (OSError, ValueError, DpctlError):
        return None  # its own source says why


def _inodes(*places: Place) -> frozenset[int]:
    """Low halves of the inodes of all socket files in these directories."""
    found: set[int] = set()
    for place in places:
        with suppress(DpctlError):  # its own source says why
            entries = list_directory(place.value or "").entries
            found.update((e.inode or 0) & 0xFFFFFFFF for e in entries if e.kind == "socket")
    return frozenset(found)


def _ours(
    rows: Iterable[UnixSocket], directory: _Directory | None, inodes: frozenset[int]
) -> list[int]:
    """Processes whose listeners may be plugins; a machine has hundreds of others."""
    there = None if directory is None else (directory.inode, directory.device)
    return sorted(
        {
            row.pid
            for row in rows
            if row.state == "listen" and row.pid is not None
            if not row.parent_known
            or (row.parent_inode, row.parent_device) == there
            or row.file_inode in inodes
            or row.file_inode is None
        }
    )


@dataclass(frozen=True, slots=True)
class _Parent:
    """Where a listener's name was bound. Known without an inode: certainly not device-plugins."""

    inode: int | None
    device: int | None
    known: bool


_ELSEWHERE = _Parent(None, None, True)
_UNKNOWN = _Parent(None, None, False)


class _Parents:
    """Looks up the parent directories of bound names, seen from the holder's root."""

    def __init__(self, proc: str, directory: _Directory | None) -> None:
        self.proc = proc
        self.directory = directory
        self.cache: dict[tuple[int, str], _Parent] = {}

    def of(self, row: UnixSocket, pids: tuple[int, ...]) -> _Parent:
        # A socket file is on the superblock of the directory it was bound in, and the kernel keeps
        # that even when the file is gone: most listeners are ruled out without a look.
        if self.directory and row.device is not None and row.device != self.directory.device:
            return _ELSEWHERE
        answers = [self._of_holder(row, pid) for pid in pids[:_MOST_HOLDERS]]
        for answer in answers:
            if self._is_directory(answer):
                return answer
        known = [answer for answer in answers if answer.known]
        # One holder that cannot tell is enough doubt, unless another one found the place.
        found = next((answer for answer in known if answer.inode is not None), None)
        if found is not None:
            return found
        return _ELSEWHERE if known and len(known) == len(answers) else _UNKNOWN

    def _is_directory(self, parent: _Parent) -> bool:
        there = self.directory
        return there is not None and (parent.inode, parent.device) == (there.inode, there.device)

    def _of_holder(self, row: UnixSocket, pid: int) -> _Parent:
        name = row.name or ""
        if not name.startswith("/"):
            return self._relative(row, pid, name)
        if name.startswith("/proc/"):
            return _UNKNOWN  # /proc/self/fd/N/x: N may be something else by now
        parent = os.path.dirname(name)
        key = (pid, parent)
        if key not in self.cache:
            self.cache[key] = self._absolute(pid, parent)
        return self.cache[key]

    def _absolute(self, pid: int, parent: str) -> _Parent:
        root = f"{self.proc}/{pid}/root"
        try:
            os.stat(root)  # a process that is gone says "no such file", too
            # Links are followed by hand: an absolute one means the holder's root, not ours.
            return self._parent(os.stat(resolve_inside(root, parent)))
        except OSError as e:
            gone = e.errno in (errno.ENOENT, errno.ENOTDIR) and os.path.exists(root)
            # In other mounts the directory may have been there once, under that name.
            if gone and same_namespace(self.proc, pid, "mnt"):
                return _ELSEWHERE
            return _UNKNOWN

    def _relative(self, row: UnixSocket, pid: int, name: str) -> _Parent:
        """A relative name counts from the directory of that time: believed if the file is there."""
        base = f"{self.proc}/{pid}/cwd"
        try:
            parent = self._parent(os.stat(f"{base}/{os.path.dirname(name)}"))
        except OSError:
            return _UNKNOWN
        if self._is_directory(parent):
            return parent
        try:
            file = os.stat(f"{base}/{name}")
        except OSError:
            return _UNKNOWN
        same = row.file_inode is None or file.st_ino & 0xFFFFFFFF == row.file_inode
        return parent if same and stat.S_ISSOCK(file.st_mode) else _UNKNOWN

    def _parent(self, found: os.stat_result) -> _Parent:
        there = self.directory
        if there is not None and (found.st_ino, found.st_dev) == (there.inode, there.st_dev):
            return _Parent(there.inode, there.device, True)
        return _Parent(found.st_ino, kernel_device(found.st_dev), True)
