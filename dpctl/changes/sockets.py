"""Which socket files of device-plugins/ may go (pure), and what became of each.

A file goes only if a connection was refused, it is no name or link of kubelet.sock, and it is old
enough that nobody is about to listen on it. Connect decides, not the kernel's table: that lacks
listeners of other network namespaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpctl.errors import DeniedError, DpctlError, PeerError
from dpctl.model import DirectoryEntry, PluginSocket, Snapshot, SocketState
from dpctl.model.changes import Outcome, Verdict
from dpctl.model.leftovers import SocketChangeRow
from dpctl.text import is_glob, matches_any, natural_key
from dpctl.writes.socket_files import Fate, deal_with_aside, original_of, remove_socket

if TYPE_CHECKING:
    from collections.abc import Sequence

KUBELET_SOCKET = "kubelet.sock"
# A plugin binds, which makes the file, and listens a moment later; in between it looks dead.
YOUNGEST = 10.0


def plan_sockets(snap: Snapshot, patterns: Sequence[str] = ()) -> tuple[SocketChangeRow, ...]:
    """One row per socket file that the patterns name (none: all), in natural order."""
    if snap.directory is None:
        return ()
    own = snap.directory.entry(KUBELET_SOCKET)
    probed = {plugin.endpoint: plugin for plugin in snap.plugins or ()}
    rows = [
        _row(snap, entry, probed.get(entry.name), own, patterns)
        for entry in snap.directory.entries
        if entry.kind == "socket" and matches_any(entry.name, patterns)
    ]
    return tuple(sorted(rows, key=lambda row: natural_key(row.endpoint)))


def _row(
    snap: Snapshot,
    entry: DirectoryEntry,
    probed: PluginSocket | None,
    own: DirectoryEntry | None,
    patterns: Sequence[str],
) -> SocketChangeRow:
    age = None
    if entry.modified is not None and snap.collected_at is not None:
        age = snap.collected_at - entry.modified
    named = any(not is_glob(pattern) for pattern in patterns)
    kubelets = entry.name == KUBELET_SOCKET or (
        own is not None and (entry.inode, entry.device) == (own.inode, own.device)
    )
    verdict, reason, step = (
        (Verdict.REFUSE, "it is the kubelet's own", "leave it alone")
        if kubelets
        else _verdict(entry, probed, age)
    )
    if verdict is Verdict.REFUSE and not named:
        verdict, step = Verdict.KEEP, step if not kubelets else None
    return SocketChangeRow(
        endpoint=entry.name,
        state=str(probed.state) if probed is not None and not kubelets else "-",
        verdict=verdict,
        outcome=None,
        reason=reason,
        next_step=step,
        age=age,
        named=named,
        inode=entry.inode,
        device=entry.device,
    )


def _verdict(
    entry: DirectoryEntry, probed: PluginSocket | None, age: float | None
) -> tuple[Verdict, str, str | None]:
    if original_of(entry.name) is not None:
        words = "an earlier prune was killed while it had this file set aside"
        return Verdict.CHANGE, words, None
    if "/" in entry.name:
        words = "it lies in a directory below: only device-plugins/ itself is tidied"
        return Verdict.REFUSE, words, None
    if probed is None:
        return Verdict.REFUSE, "it was not spoken to", "dpctl plugins -v"
    if probed.state is SocketState.GONE:
        return Verdict.KEEP, "it went away by itself", None
    if probed.state is SocketState.NO_RIGHTS:
        return Verdict.REFUSE, "it may not be connected to", "run as root"
    if probed.state is SocketState.UNKNOWN:
        return Verdict.REFUSE, probed.detail or "whether anybody listens cannot be told", None
    if probed.state is not SocketState.DEAD:
        return Verdict.REFUSE, f"somebody listens on it ({probed.state})", "stop that plugin first"
    if age is None or age < 0:
        return Verdict.REFUSE, "its time lies in the future: the clock was set", "rm it by hand"
    if age < YOUNGEST:
        words = f"it is {age:.0f} s old: a plugin may be about to listen on it"
        return Verdict.REFUSE, words, "run the same again in a moment"
    return Verdict.CHANGE, "nobody listens on it (connection refused)", None


def prune_socket(directory: str, row: SocketChangeRow) -> SocketChangeRow:
    """Do what a row plans; the row with its outcome. Never raises for one file."""
    try:
        if original_of(row.endpoint) is not None:
            fate = deal_with_aside(directory, row.endpoint)
        else:
            assert row.inode is not None
            assert row.device is not None
            fate = remove_socket(directory, row.endpoint, inode=row.inode, device=row.device)
    except OSError as error:
        failure = _failure(error)
        return row._replace(
            outcome=Outcome.NOT_APPLIED, reason=failure.message, next_step=failure.hint
        )
    outcome, words, step = _FATES[fate]
    if fate is Fate.ALIVE and (original := original_of(row.endpoint)) is not None:
        return row._replace(
            outcome=Outcome.CHANGED,
            reason=f"somebody listens on it: it is {original} again",
            next_step=None,
        )
    return row._replace(outcome=outcome, reason=words or row.reason, next_step=step)


_FATES: dict[Fate, tuple[Outcome, str | None, str | None]] = {
    Fate.REMOVED: (Outcome.CHANGED, None, None),
    Fate.GONE: (Outcome.GONE_ALREADY, "it went away by itself", None),
    Fate.ALIVE: (
        Outcome.NOT_APPLIED,
        "somebody listens on it by now: it stands as it was",
        "dpctl plugins shows who",
    ),
    Fate.ANOTHER: (
        Outcome.NOT_APPLIED,
        "another file has the name by now: it stands as it was",
        "dpctl plugins shows who",
    ),
    Fate.STRANDED: (
        Outcome.NOT_APPLIED,
        "somebody listens on it, and another plugin took its name meanwhile: it lies beside it",
        "restart the older plugin; the next dpctl plugins prune tidies up",
    ),
}


def _failure(error: OSError) -> DpctlError:
    words = f"it could not be removed: {error.strerror or error}"
    if isinstance(error, PermissionError):
        return DeniedError(words, "run as root; the directory may be mounted read-only")
    return PeerError(words, "check the directory: ls -la")
