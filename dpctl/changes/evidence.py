"""Does what was read on this machine count for this Node? Pure.

Local evidence counts only for the Node it belongs to, and only whole: one missing piece, and
nothing that looks abandoned may go. Which piece it is, is what a person wants to know.
"""

from __future__ import annotations

from typing import NamedTuple

from dpctl.errors import ExitCode
from dpctl.inventory.devices import Devices
from dpctl.inventory.sockets import Listener
from dpctl.model import Snapshot, Source


class Evidence(NamedTuple):
    why_not: str | None
    """The piece that is missing; None: all of it is there, and it is this Node's."""
    hint: str | None
    here: bool
    """This is the Node's machine (by boot ID), whether its evidence is whole or not."""
    unclaimed: tuple[str, ...]
    """Live listeners whose resource is not known for sure: one of them may serve any key. Each as
    `NAME (process PID COMMAND)`."""

    @property
    def local(self) -> bool:
        return self.why_not is None


def evidence_of(snap: Snapshot, joined: Devices) -> Evidence:
    """What can be relied on. `snap.node` must be there."""
    node = snap.node
    assert node is not None
    here = node.boot_id is not None and node.boot_id == snap.boot_id
    why_not, hint = _missing(snap, joined)
    return Evidence(why_not, hint, here, _unclaimed(snap, joined))


def _unclaimed(snap: Snapshot, joined: Devices) -> tuple[str, ...]:
    """Stricter than the tables: a resource told by a socket's name is a guess, and a guess must not
    clear another key."""
    connections = joined.connections
    if not connections.facts.trusted:
        return ()
    named_only = [
        listener
        for key, listener in connections.listener.items()
        if not listener.connected
        and key in connections.services
        and connections.services[key].proof == "name"
    ]
    doubtful = (*connections.unclaimed(), *named_only, *unaccounted(joined))
    return tuple(dict.fromkeys(_described(snap, listener) for listener in doubtful))


def unaccounted(joined: Devices) -> tuple[Listener, ...]:
    """Connected listeners of which one may serve any name: more than there are names that the
    kubelet offers devices of. Elimination alone does not tell: a plugin whose first list has not
    come is in no checkpoint, and one that has just died is there still, on the Node for a status
    period, too. What the kubelet offers goes with the connection, at once."""
    connections = joined.connections
    sure: set[str] = set()
    open_: list[Listener] = []
    for key, listener in connections.listener.items():
        service = connections.services.get(key)
        if service is not None and service.proof in ("info", "process"):
            sure.add(service.resource)
        elif listener.connected:
            open_.append(listener)
    alive = [
        name for name in joined.offered if name not in sure and not connections.in_registry(name)
    ]
    return tuple(open_) if len(open_) > len(alive) else ()


def _described(snap: Snapshot, listener: Listener) -> str:
    """So that it can be found: its file in the directory, else what it was bound as; and whose."""
    socket = listener.socket
    name = listener.endpoint if listener.certain else socket.name or listener.endpoint
    if socket.pid is None:
        return name
    process = (snap.processes or {}).get(socket.pid)
    return f"{name} (process {socket.pid}{f' {process.command}' if process else ''})"


def _missing(snap: Snapshot, joined: Devices) -> tuple[str | None, str | None]:
    """The first piece that lacks, and what to do about it."""
    node = snap.node
    assert node is not None
    on_node = f"run dpctl on {node.name}, as root and in the host's network namespace"
    if snap.from_bundle:
        return "a bundle is no evidence for a change", on_node
    local = (snap.directory, snap.checkpoint, snap.sockets)
    if all(part is None for part in local):
        return _nothing_local(snap), on_node
    if node.boot_id is None:
        return (
            "the Node has no boot ID (status.nodeInfo.bootID): it may be another machine",
            on_node,
        )
    if snap.boot_id is None:
        return "this machine's boot ID could not be read", "check /proc/sys/kernel/random/boot_id"
    if node.boot_id != snap.boot_id:
        words = f"is another machine (its boot ID is {node.boot_id}, here {snap.boot_id})"
        return f"Node {node.name} {words}", on_node
    facts = joined.connections.facts
    if not facts.trusted:
        return facts.why, on_node
    kubelet = facts.kubelet
    if kubelet is None or kubelet.node_name is None:
        return (
            "the Node of the kubelet here cannot be told: it has neither --hostname-override nor a"
            " client certificate that can be read",
            "run dpctl as root; `dpctl env` shows what was found",
        )
    if kubelet.node_name != node.name:
        return (
            f"the kubelet here is {kubelet.node_name}'s, not {node.name}'s",
            f"run dpctl on {node.name}, or name this one: --node {kubelet.node_name}",
        )
    return _checkpoint(snap, joined)


def _checkpoint(snap: Snapshot, joined: Devices) -> tuple[str | None, str | None]:
    checkpoint = snap.checkpoint
    write = "it is written anew when a plugin lists its devices, or after a kubelet restart"
    if checkpoint is None:
        row = snap.source(Source.CHECKPOINT)
        root = row is None or row.code == ExitCode.DENIED
        hint = "run dpctl as root" if root else write
        return f"the checkpoint was not read{_reason(snap, Source.CHECKPOINT)}", hint
    if not checkpoint.verified:
        return "the checkpoint's checksum does not fit: what it says is not known", write
    connected = [x.endpoint for x in joined.connections.facts.listeners if x.connected]
    if checkpoint.absent and connected:
        return (
            "the checkpoint file is gone although the kubelet is connected to"
            f" {', '.join(connected)}: what else it tracks is not known",
            write,
        )
    row = snap.source(Source.REGISTRY)
    if row is not None and row.state == "failed" and row.code != ExitCode.UNREACHABLE:
        return f"plugins_registry was not read{_reason(snap, Source.REGISTRY)}", "run dpctl as root"
    if row is None and snap.registry is None:
        return "plugins_registry was not looked at", None
    return None, None


def _nothing_local(snap: Snapshot) -> str:
    row = snap.source(Source.SOCKETS) or snap.source(Source.CHECKPOINT)
    if row is not None and row.state == "skipped" and row.reason:
        return row.reason
    return "nothing was read on the Node itself: no checkpoint, no sockets"


def _reason(snap: Snapshot, source: Source) -> str:
    row = snap.source(source)
    return f": {row.reason}" if row is not None and row.reason else ""
