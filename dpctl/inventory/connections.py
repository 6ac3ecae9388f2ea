"""Per resource: who serves it, and is the kubelet connected to that plugin? True, False or None
(cannot be told), each with its evidence; from the socket table, or inferred where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from dpctl import names
from dpctl.inventory.registered import offered, registered
from dpctl.inventory.served import Candidate, Service, attribute
from dpctl.inventory.sockets import KUBELET_SOCKET, Listener, SocketFacts, socket_facts
from dpctl.model import DirectoryEntry, Node, Snapshot, SocketState, Source
from dpctl.quantity import count
from dpctl.text import natural_key

_NO_PLUGIN = (
    SocketState.NOT_GRPC,
    SocketState.WRONG_SERVICE,
    SocketState.DEAD,
    SocketState.GONE,
)
"""Whoever answered like this serves no resource."""


class Verdict(NamedTuple):
    """A tri-state with its reasons."""

    value: bool | None
    evidence: str
    inferred: bool = False
    missing: tuple[Source, ...] = ()
    """Sources that would settle it (value None)."""


class Connections:
    """Everything about plugins and the kubelet that one snapshot shows; made once per join."""

    def __init__(self, snap: Snapshot) -> None:
        self.snap = snap
        self.facts: SocketFacts = socket_facts(snap)
        self.offered: dict[str, set[str]] = offered(snap)
        self.registered: dict[str, frozenset[str]] = registered(snap, self.offered)
        self.tracked: tuple[str, ...] = tuple(self.registered)
        self.candidates: dict[str, Candidate] = self._candidates()
        self.services: dict[str, Service] = attribute(
            self.candidates.values(), self.tracked, _kubelet_keys(snap.node)
        )
        self.listener: dict[str, Listener] = {listener_key(x): x for x in self.facts.listeners}
        self.keys_of: dict[str, list[str]] = {}
        for key, service in self.services.items():
            self.keys_of.setdefault(service.resource, []).append(key)
        self._by_registry = self._registry_resources()
        self._unnamed_connected = [
            x for k, x in self.listener.items() if x.connected and k not in self.services
        ]
        self._names_left = [n for n in self.tracked if not self._named_connected(n)]
        self._attributed = {self.candidates[k].endpoint for k in self.services}

    def endpoints(self, resource: str) -> tuple[tuple[str, ...], bool]:
        """Sockets that serve the resource, and whether that is inferred."""
        keys = self.keys_of.get(resource, [])
        found = [self.candidates[k].endpoint for k in keys]
        found += [p for p, _ in self._by_registry.get(resource, ())]
        ordered = sorted(dict.fromkeys(found), key=natural_key)
        return tuple(ordered), any(self.services[k].inferred for k in keys)

    def connected(self, resource: str) -> Verdict:
        if self.facts.trusted:
            return self._connected_by_table(resource)
        if self.snap.from_bundle and not self.snap.complete:
            return self._connected_by_node(resource)
        return Verdict(None, self.facts.why, missing=(Source.SOCKETS,))

    def served(self, resource: str) -> Verdict:
        """Whether a live listener belongs to the resource."""
        if not self.facts.trusted:
            if self.snap.from_bundle and not self.snap.complete:
                return Verdict(False, "no socket table in the bundle: taken as not served", True)
            return Verdict(None, self.facts.why, missing=(Source.SOCKETS,))
        keys = self.keys_of.get(resource, [])
        if keys:
            key = keys[0]
            service = self.services[key]
            evidence = f"served by {self.candidates[key].endpoint}: {service.evidence}"
            return Verdict(True, evidence, service.inferred)
        if self._by_registry.get(resource):
            return Verdict(True, f"served by {self._by_registry[resource][0][0]} (GetInfo)")
        return Verdict(False, "no live listener belongs to it")

    def unclaimed(self) -> tuple[Listener, ...]:
        """Live listeners of unknown resource that the kubelet is not connected to: one of them may
        serve a name that looks abandoned."""
        return tuple(
            x
            for k, x in self.listener.items()
            if not x.connected
            and k not in self.services
            and (k in self.candidates or not x.certain)
        )

    def names_hang_on_the_file(self) -> bool:
        """Whether a connected socket has no name, or one by what was left over or by its own name:
        then a name that the checkpoint lacks is given to nobody, and another's to its plugin."""
        checkpoint = self.snap.checkpoint
        if checkpoint is None or not checkpoint.verified or checkpoint.absent:
            return False  # no such file is mended
        return any(
            x.connected
            and (k not in self.services or self.services[k].proof in ("elimination", "name"))
            for k, x in self.listener.items()
        )

    def in_registry(self, resource: str) -> bool:
        """Whether a socket of plugins_registry says (GetInfo) that it serves it."""
        return bool(self._by_registry.get(resource))

    # -- live -------------------------------------------------------------------------------------

    def _connected_by_table(self, resource: str) -> Verdict:
        for key in self.keys_of.get(resource, []):
            if self.candidates[key].connected:
                service = self.services[key]
                where = self.candidates[key].endpoint
                text = f"the kubelet is connected to {where} ({service.evidence})"
                return Verdict(True, text, service.inferred)
        if any(is_connected for _, is_connected in self._by_registry.get(resource, ())):
            return Verdict(True, "the kubelet is connected to its plugins_registry socket")
        if resource not in self.registered:
            if self.snap.checkpoint is None:
                return Verdict(None, "checkpoint not read", missing=(Source.CHECKPOINT,))
            if self.snap.checkpoint.absent and self._unnamed_connected:
                # Somebody is registered, so the file was there once: who, it can no longer tell.
                text = "the checkpoint file is gone although the kubelet is connected to plugins"
                return Verdict(None, text, missing=(Source.CHECKPOINT,))
            return Verdict(False, "the kubelet is connected to no socket of it")
        if not self._unnamed_connected:
            return Verdict(False, "the kubelet is connected to no socket of it")
        if len(self._unnamed_connected) == len(self._names_left):
            text = "as many connected sockets without a name as tracked names left: it has one"
            return Verdict(True, text)
        return self._shared_out(resource)

    def _shared_out(self, resource: str) -> Verdict:
        """By the Node, but each connected socket serves one name: first those whose devices the
        Node confirms, then 0 of 0 devices, which a plugin that has died has, too."""
        verdict = self._connected_by_node(resource)
        if not verdict.value:
            return verdict
        confirmed, empty = self._alive_by_node
        sockets = len(self._unnamed_connected)
        claims = len(confirmed) if resource in confirmed else len(confirmed) + len(empty)
        if claims <= sockets:
            return verdict
        if resource in empty and len(confirmed) == sockets:
            text = (
                "the connected sockets without a name are as many as names whose devices the Node "
                "confirms, and it has none"
            )
            return Verdict(False, text, True)
        text = f"{claims} names look alive by the Node, and {sockets} connected sockets are left"
        return Verdict(None, text, True)

    @cached_property
    def _alive_by_node(self) -> tuple[set[str], set[str]]:
        """Names left that the Node shows to be connected: with devices, and 0 of 0."""
        alive = [n for n in self._names_left if self._connected_by_node(n).value]
        confirmed = {n for n in alive if self.registered[n]}
        return confirmed, set(alive) - confirmed

    def _named_connected(self, resource: str) -> bool:
        return any(self.candidates[k].connected for k in self.keys_of.get(resource, [])) or any(
            is_connected for _, is_connected in self._by_registry.get(resource, ())
        )

    # -- without a table ---------------------------------------------------------------------------

    def _connected_by_node(self, resource: str) -> Verdict:
        """The contract's rule for a bundle: from the checkpoint's age and the Node's numbers."""
        snap = self.snap
        if snap.checkpoint is None:
            return Verdict(None, "checkpoint not read", True, (Source.CHECKPOINT,))
        if resource not in self.registered:
            return Verdict(False, "not in RegisteredDevices", True)
        written = snap.checkpoint.modified
        kubelet = self._kubelet_entry()
        if written is None or kubelet is None or kubelet.modified is None:
            text = "times of checkpoint and kubelet.sock are not known"
            return Verdict(None, text, True, (Source.DIRECTORY,))
        if written < kubelet.modified:
            text = (
                "checkpoint older than kubelet.sock: no plugin has sent anything since it started"
            )
            return Verdict(False, text, True)
        if snap.node is None:
            return Verdict(None, "Node not read", True, (Source.NODE,))
        allocatable = count(snap.node.allocatable.get(resource))
        healthy = len(self.registered[resource])
        if allocatable == healthy and healthy > 0:
            text = f"Node allocatable {allocatable} is the number of RegisteredDevices"
            return Verdict(True, text, True)
        if allocatable == 0 and healthy == 0:
            younger = self._younger_socket(resource, kubelet.modified)
            if younger:
                return Verdict(
                    True, f"0 of 0 devices, and {younger} is younger than kubelet.sock", True
                )
            return Verdict(False, "0 of 0 devices and no socket younger than kubelet.sock", True)
        text = f"Node allocatable {allocatable} is not the number of RegisteredDevices {healthy}"
        return Verdict(False, text, True)

    def _kubelet_entry(self) -> DirectoryEntry | None:
        return self.snap.directory.entry(KUBELET_SOCKET) if self.snap.directory else None

    def _younger_socket(self, resource: str, than: float) -> str | None:
        """A socket file of the resource (or of nobody known) that is younger than kubelet.sock."""
        own = {self.candidates[k].endpoint for k in self.keys_of.get(resource, [])}
        connected = {x.endpoint for x in self._unnamed_connected}
        for entry in socket_files(self.snap):
            if self.facts.trusted and entry.name not in connected:
                continue
            if entry.name not in self.candidates and not self.facts.trusted:
                continue  # somebody spoke to it, and it is no live plugin
            if entry.name in self._attributed and entry.name not in own:
                continue
            if entry.modified is None or entry.modified <= than:
                continue
            return entry.name
        return None

    # -- candidates --------------------------------------------------------------------------------

    def _candidates(self) -> dict[str, Candidate]:
        snap = self.snap
        # A CSI or DRA driver's GetInfo names a driver, not a resource.
        info = {
            p.endpoint: p.info
            for p in snap.plugins or ()
            if p.info is not None and p.info.type == "DevicePlugin"
        }
        strangers = {p.endpoint for p in snap.plugins or () if p.state in _NO_PLUGIN}
        found: dict[str, Candidate] = {}
        if self.facts.trusted:
            for listener in self.facts.listeners:
                if not listener.certain:
                    continue  # some daemon's, most likely: of unknown resource, see `unclaimed`
                if listener.linked and listener.endpoint in strangers and not listener.connected:
                    continue
                answer = info.get(listener.endpoint) if listener.linked else None
                pid = listener.socket.pid
                found[listener_key(listener)] = Candidate(
                    key=listener_key(listener),
                    endpoint=listener.endpoint,
                    info_name=answer.name if answer is not None else None,
                    process=snap.processes.get(pid) if pid is not None else None,
                    connected=listener.connected,
                )
            return found
        names = dict.fromkeys(entry.name for entry in socket_files(snap))
        # A bundle may have a plugin's recorded answers without a listing that names its socket.
        names.update(dict.fromkeys(p.endpoint for p in snap.plugins or ()))
        for endpoint in names:
            if endpoint in strangers:
                continue
            answer = info.get(endpoint)
            name = answer.name if answer is not None else None
            found[endpoint] = Candidate(endpoint, endpoint, name, None, None)
        return found

    def _registry_resources(self) -> dict[str, list[tuple[str, bool]]]:
        """Device plugins that register through plugins_registry: (socket, connected)."""
        from dpctl.inventory.sockets import registry_connected

        found: dict[str, list[tuple[str, bool]]] = {}
        for socket in self.snap.registry or ():
            if socket.type != "DevicePlugin" or not socket.name:
                continue
            connected = (
                self.facts.trusted
                and socket.inode is not None
                and registry_connected(self.snap, self.facts, socket.inode, socket.device)
            )
            found.setdefault(socket.name, []).append((socket.path, connected))
        return found


def socket_files(snap: Snapshot) -> Iterable[DirectoryEntry]:
    """Plugin socket files of device-plugins/: no kubelet.sock, no unfinished writes."""
    if snap.directory is None:
        return
    for entry in snap.directory.entries:
        if entry.kind == "socket" and entry.name != KUBELET_SOCKET and entry.name[:1] != ".":
            yield entry


def listener_key(listener: Listener) -> str:
    return f"{listener.endpoint}#{listener.socket.inode}"


def _kubelet_keys(node: Node | None) -> tuple[str, ...]:
    """Extended keys that are the kubelet's or nobody's: an unconnected plugin may have one."""
    if node is None:
        return ()
    keys = dict.fromkeys((*node.capacity, *node.allocatable))
    return tuple(k for k in keys if names.is_extended(k) and not foreign_owners(node, k))


def foreign_owners(node: Node, key: str) -> tuple[str, ...]:
    """Managers of the capacity key when the kubelet is none of them; empty otherwise, also where
    owners are unknown. `dpctl-kubelet` stands in for the kubelet (keys that dpctl put back)."""
    owners = (node.owners or {}).get(key, ())
    if not owners or any(o in (node.kubelet_manager, "dpctl-kubelet") for o in owners):
        return ()
    return owners
