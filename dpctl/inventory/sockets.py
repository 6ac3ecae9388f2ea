"""The kernel's unix-socket table read as facts about plugins: whether it may be trusted, which
kubelet is ours, which listeners belong to device-plugins/, and which of them it is connected to.

Everything is matched by inode and device, never by name: a containerised plugin binds another
path than the kubelet dials, and a table of another network namespace is empty without an error
(kubelet-facts §15).
"""

from __future__ import annotations

from typing import NamedTuple

from dpctl.model import DirectoryEntry, Kubelet, Snapshot, UnixSocket

KUBELET_SOCKET = "kubelet.sock"


class Listener(NamedTuple):
    """A live listener of device-plugins/ (or one that cannot be told not to be)."""

    endpoint: str
    """File name in the directory; the bound name's last part when the file is gone."""
    socket: UnixSocket
    linked: bool
    """Its file is there."""
    certain: bool
    """False: its directory could not be told, so it may be one of this directory."""
    connected: bool
    """By this kubelet."""


class SocketFacts(NamedTuple):
    """What the table proves. Without trust there are no listeners, and `why` says what lacks."""

    trusted: bool
    why: str
    kubelet: Kubelet | None
    listeners: tuple[Listener, ...] = ()


def socket_facts(snap: Snapshot) -> SocketFacts:
    """Read the table, if it may be trusted: it must hold this kubelet's own listener."""
    if snap.sockets is None:
        row = next((r for r in snap.sources if r.name == "sockets"), None)
        reason = row.reason if row is not None and row.reason else "not read"
        return SocketFacts(False, f"socket table: {reason}", None)
    if snap.directory is None:
        return SocketFacts(False, "the device-plugins directory was not read", None)
    entry = snap.directory.entry(KUBELET_SOCKET)
    if entry is None or entry.inode is None:
        return SocketFacts(False, "no kubelet.sock in the device-plugins directory", None)
    own = snap.sockets.listener_of(entry)
    if own is None:
        reason = (
            "the table lacks the kubelet's own listener (another network namespace, or no kubelet)"
        )
        return SocketFacts(False, reason, None)
    if own.pid is None:
        reason = (
            "the process behind kubelet.sock cannot be seen (not root, or another PID namespace)"
        )
        return SocketFacts(False, reason, None)
    pid = snap.sockets.kubelet_pid(entry, [k.pid for k in snap.kubelets or ()])
    if pid is None:
        holders = ", ".join(map(str, own.holders))
        return SocketFacts(False, f"several processes hold kubelet.sock ({holders})", None)
    kubelet = next((k for k in snap.kubelets or () if k.pid == pid), None)
    if kubelet is None:
        kubelet = Kubelet(pid, (), None, None, None, None)
    listeners = _listeners(snap, own, pid)
    return SocketFacts(True, f"socket table holds kubelet.sock of pid {pid}", kubelet, listeners)


def _listeners(snap: Snapshot, own: UnixSocket, kubelet: int) -> tuple[Listener, ...]:
    assert snap.sockets is not None
    assert snap.directory is not None
    files: dict[int | None, list[DirectoryEntry]] = {}  # a hard link is a second name of one socket
    for entry in snap.directory.entries:
        if entry.kind == "socket" and entry.inode is not None and entry.name != KUBELET_SOCKET:
            files.setdefault(_low(entry.inode), []).append(entry)
    listening = [
        row
        for row in snap.sockets.sockets
        if row.state == "listen"
        and row is not own
        and row.name is not None
        # An abstract name has no file; a path may begin with @ as well.
        and (row.file_inode is not None or not row.name.startswith("@"))
        # The kubelet's own sockets, and an older kubelet's that lost its file.
        and row.pid != kubelet
        and _base(row) != KUBELET_SOCKET
    ]
    claimed = {row.file_inode for row in listening if row.file_inode is not None}
    unclaimed = {e.name: e for low, found in files.items() if low not in claimed for e in found}
    found: list[Listener] = []
    for row in listening:
        entries = [e for e in files.get(row.file_inode, ()) if row.is_bound_to(e)]
        base = _base(row)
        if entries:
            entry = next((e for e in entries if e.name == base), entries[0])
            found.append(_listener(snap, kubelet, row, entry.name, entry, certain=True))
        elif row.parent_known:
            if _is_directory(snap, row):
                # In another network namespace's table a row has no inode: its name must do, unless
                # a listener here is bound to that very file.
                file = unclaimed.get(base) if row.other_namespace else None
                found.append(_listener(snap, kubelet, row, base, file, certain=True))
        elif row.device is None or row.device == snap.directory.device:
            found.append(_listener(snap, kubelet, row, base, None, certain=False))
    return tuple(found)


def _base(row: UnixSocket) -> str:
    return (row.name or "").rsplit("/", 1)[-1]


def _listener(
    snap: Snapshot,
    kubelet: int,
    row: UnixSocket,
    endpoint: str,
    entry: DirectoryEntry | None,
    *,
    certain: bool,
) -> Listener:
    connected = _connected(snap, kubelet, row, entry)
    return Listener(endpoint, row, entry is not None, certain, connected)


def _connected(snap: Snapshot, kubelet: int, row: UnixSocket, entry: DirectoryEntry | None) -> bool:
    """Whether an accepted socket of this listener has its other end in this kubelet."""
    assert snap.sockets is not None
    for other in snap.sockets.sockets:
        if other.state != "established" or kubelet not in other.peer_pids:
            continue
        if row.file_inode is not None:
            if other.file_inode == row.file_inode and other.device == row.device:
                return True
        elif entry is not None:
            if other.is_bound_to(entry):
                return True
        elif other.name == row.name:
            return (
                True  # file gone, listener in another network namespace: the name is all there is
            )
    return False


def registry_connected(snap: Snapshot, facts: SocketFacts, inode: int, device: int | None) -> bool:
    """Whether this kubelet is connected to the socket file with this inode and device."""
    if snap.sockets is None or facts.kubelet is None:
        return False
    return any(
        s.state == "established"
        and s.file_inode == _low(inode)
        and (device is None or s.device == device)
        and facts.kubelet.pid in s.peer_pids
        for s in snap.sockets.sockets
    )


def _is_directory(snap: Snapshot, row: UnixSocket) -> bool:
    assert snap.directory is not None
    return (
        row.parent_inode is not None
        and row.parent_inode == snap.directory.inode
        and row.parent_device == snap.directory.device
    )


def _low(inode: int | None) -> int | None:
    """The kernel's diagnostics carry the low 32 bits of an inode."""
    return None if inode is None else inode & 0xFFFFFFFF
