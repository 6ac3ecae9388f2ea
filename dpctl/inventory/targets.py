"""Which plugin socket a person means: by a path, by its name in the directory, or by the resource
that it serves; and whether the kubelet is connected to it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpctl.errors import UnreachableError, UsageError
from dpctl.inventory.plugins import plugin_rows
from dpctl.inventory.rows import PluginRow
from dpctl.inventory.sockets import KUBELET_SOCKET, registry_connected, socket_facts
from dpctl.model import DirectoryEntry, Snapshot
from dpctl.names import is_extended
from dpctl.text import did_you_mean, shorten

_LIST = "`dpctl plugins` lists the sockets and what they serve"
_CONNECTED = {"Connected": True, "NotConnected": False}


class Target(NamedTuple):
    """One socket to speak to."""

    path: str
    follow: bool
    """A person typed the path, so a symbolic link may stand there."""
    resource: str | None
    inferred: bool
    """The resource is."""
    connected: bool | None
    """This kubelet to it; None: cannot be told."""
    evidence: str
    """For `connected`."""
    pid: int | None = None
    command: str | None = None


def is_path(text: str) -> bool:
    """Whether it is surely meant as a path: no resource and no endpoint begins like that."""
    return text.startswith(("/", "./", "../"))


def target_by_name(snap: Snapshot, text: str) -> Target:
    """The socket called so in device-plugins/ or plugins_registry/, else the one socket that serves
    the resource called so. Raises UsageError (several do), UnreachableError (none does, or it
    cannot be dialled)."""
    if text == KUBELET_SOCKET:
        raise kubelets_own(text)
    rows = [row for row in plugin_rows(snap) if row.certain]
    found = [row for row in rows if row.endpoint == text]
    if not found:
        found = [row for row in rows if row.resource == text and row.type in (None, "DevicePlugin")]
        # What cannot be dialled is in nobody's way.
        found = [row for row in found if row.state not in ("Unlinked", "Dead", "Gone")] or found
    found = [row for row in found if row.state != "Unlinked"] or found[:1]
    if len(found) > 1:
        names = ", ".join(row.endpoint for row in found[:5])
        raise UsageError(
            f"several sockets serve {shorten(text, 80)}: {names}", "name one of them instead"
        )
    if not found:
        raise _unknown(snap, rows, text)
    return _of_row(snap, found[0])


def _unknown(snap: Snapshot, rows: Sequence[PluginRow], text: str) -> UnreachableError:
    if not rows:
        where = snap.directory.path if snap.directory is not None else "the plugins' directory"
        return UnreachableError(
            f'no plugin "{shorten(text, 80)}": there is no plugin socket in {where}', _LIST
        )
    resources = {row.resource for row in rows if row.resource is not None}
    endpoints = [row.endpoint for row in rows if row.state != "Unlinked"]
    near = did_you_mean(text, sorted({*endpoints, *resources}))
    name = shorten(text, 80)
    if not is_extended(text):
        return UnreachableError(
            f'no plugin socket "{name}" here, and none that serves a resource of that name',
            f"{near}{_LIST}; a path begins with / or ./",
        )
    tracked = snap.checkpoint.registered if snap.checkpoint is not None else {}
    if text in tracked:
        near, known = "", ": the kubelet has the name of a plugin that is gone"
    elif snap.node is not None and (text in snap.node.capacity or text in snap.node.allocatable):
        near, known = "", ": only the Node has the name"
    else:
        known = ""
    untold = [r.endpoint for r in rows if r.resource is None and r.directory == "device-plugins"]
    if untold:
        names = ", ".join(untold[:3]) + (f" and {len(untold) - 3} more" if len(untold) > 3 else "")
        known += f"; what {shorten(names, 200)} would serve could not be told"
    return UnreachableError(f"nobody here serves {name}{known}", f"{near}{_LIST}")


def _of_row(snap: Snapshot, row: PluginRow) -> Target:
    if row.state == "Unlinked":
        raise UnreachableError(
            f"the socket file of {row.endpoint} is gone: its plugin (process {row.pid}) lives, and "
            "nobody can dial it",
            "restart the plugin, so that it makes its socket and registers anew",
        )
    directory = snap.directory.path if snap.directory is not None else ""
    if row.directory == "plugins_registry":
        source = next(s for s in snap.sources if s.name == "plugins_registry")
        directory = source.where
        socket = next(s for s in snap.registry or () if s.path == row.endpoint)
        path = f"{directory.rstrip('/')}/{row.endpoint}"
        if socket.service_endpoint not in (None, "", path):
            raise UsageError(
                f"{row.endpoint} only registers; it says that its plugin listens on "
                f"{shorten(socket.service_endpoint or '', 200)}",
                "give that path, if it is right",
            )
    return Target(
        path=f"{directory.rstrip('/')}/{row.endpoint}",
        follow=False,
        resource=row.resource,
        inferred=row.resource_inferred,
        connected=_CONNECTED.get(row.kubelet or ""),
        evidence=_evidence(snap, _CONNECTED.get(row.kubelet or "")),
        pid=row.pid,
        command=row.command,
    )


def target_by_path(snap: Snapshot, path: str, entry: DirectoryEntry) -> Target:
    """The socket file that a person named; its resource is known if it is one of the directory's.
    Raises UsageError for the kubelet's own socket."""
    own = snap.directory.entry(KUBELET_SOCKET) if snap.directory is not None else None
    if own is not None and _same(own, entry):
        raise kubelets_own(path)
    for known in snap.directory.entries if snap.directory is not None else ():
        if _same(known, entry):
            for row in plugin_rows(snap):
                if (row.directory, row.endpoint) == ("device-plugins", known.name):
                    return _of_row(snap, row)._replace(path=path, follow=True)
    facts = socket_facts(snap)
    connected = None
    if facts.trusted and entry.inode is not None:
        connected = registry_connected(snap, facts, entry.inode, entry.device)
    return Target(path, True, None, False, connected, _evidence(snap, connected))


def _same(one: DirectoryEntry, other: DirectoryEntry) -> bool:
    return one.inode is not None and (one.inode, one.device) == (other.inode, other.device)


def _evidence(snap: Snapshot, connected: bool | None) -> str:
    if connected is None:
        facts = socket_facts(snap)
        return facts.why if not facts.trusted else "the socket table does not tell"
    return "by the kernel's socket table"


def kubelets_own(text: str) -> UsageError:
    return UsageError(
        f"{text} is the kubelet's own socket, on which plugins register",
        f"name a plugin's; {_LIST}",
    )
