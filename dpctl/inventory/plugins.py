"""Snapshot → one row per plugin socket or live listener."""

from __future__ import annotations

from dpctl.inventory.connections import Connections, listener_key, socket_files
from dpctl.inventory.pods import Pods
from dpctl.inventory.rows import PluginRow
from dpctl.inventory.served import Service
from dpctl.inventory.sockets import Listener, registry_connected
from dpctl.model import (
    DirectoryEntry,
    PluginOptions,
    PluginSocket,
    Process,
    RegistrySocket,
    Snapshot,
    SocketState,
)
from dpctl.text import natural_key


def plugin_rows(snap: Snapshot) -> tuple[PluginRow, ...]:
    """Socket files of device-plugins/ and live listeners without a file, then plugins_registry/."""
    connections, pods = Connections(snap), Pods(snap)
    probes = {p.endpoint: p for p in snap.plugins or ()}
    linked: dict[str | int, list[Listener]] = {}  # by name, and by inode for a second name
    for listener in connections.facts.listeners:
        if listener.linked:
            linked.setdefault(listener.endpoint, []).append(listener)
            if listener.socket.file_inode is not None:
                linked.setdefault(listener.socket.file_inode, []).append(listener)
    rows = [
        _file_row(
            snap,
            connections,
            pods,
            entry,
            probes.get(entry.name),
            linked.get(entry.name) or linked.get((entry.inode or 0) & 0xFFFFFFFF),
        )
        for entry in socket_files(snap)
    ]
    listed = {entry.name for entry in socket_files(snap)}
    # A bundle may have a plugin's recorded answers without a listing that names its socket.
    rows += [
        _file_row(snap, connections, pods, _unseen_entry(probe.endpoint), probe, None)
        for probe in snap.plugins or ()
        if probe.endpoint not in listed
    ]
    rows += [
        _listener_row(snap, connections, pods, listener)
        for listener in connections.facts.listeners
        if not listener.linked
    ]
    rows += [_registry_row(snap, connections, pods, socket) for socket in snap.registry or ()]
    return tuple(
        sorted(rows, key=lambda r: (r.directory, natural_key(r.endpoint), r.pid or 0, r.state))
    )


def _unseen_entry(name: str) -> DirectoryEntry:
    """A socket file that is known by name alone."""
    return DirectoryEntry(name, "socket", 0, 0, 0, None, None, None)


def _file_row(
    snap: Snapshot,
    connections: Connections,
    pods: Pods,
    entry: DirectoryEntry,
    probe: PluginSocket | None,
    listeners: list[Listener] | None,
) -> PluginRow:
    listener = listeners[0] if listeners else None
    key = listener_key(listener) if listener else entry.name
    state = probe.state if probe else SocketState.UNKNOWN
    kubelet: bool | None = None
    if connections.facts.trusted:
        kubelet = any(x.connected for x in listeners or ())
    return _row(
        snap,
        pods,
        endpoint=entry.name,
        directory="device-plugins",
        service=connections.services.get(key),
        state=state,
        connected=kubelet,
        options=probe.options if probe else None,
        process=_process(snap, listener),
        pid=listener.socket.pid if listener else None,
        modified=entry.modified,
        detail=probe.detail if probe else None,
    )


def _listener_row(
    snap: Snapshot, connections: Connections, pods: Pods, listener: Listener
) -> PluginRow:
    """Its file is gone: nobody can dial it any more, a kubelet that is connected still may talk."""
    detail = "its socket file is gone: a kubelet that starts removes every socket of the directory"
    if not listener.certain:
        detail = (
            f"bound as {listener.socket.name}; its directory cannot be told, it may be this one"
        )
    return _row(
        snap,
        pods,
        endpoint=listener.endpoint,
        directory="device-plugins",
        service=connections.services.get(listener_key(listener)),
        # One that cannot be told to be of this directory may have its file elsewhere.
        state=SocketState.UNLINKED if listener.certain else SocketState.UNKNOWN,
        connected=listener.connected,
        options=None,
        process=_process(snap, listener),
        pid=listener.socket.pid,
        modified=None,
        detail=detail,
        certain=listener.certain,
    )


def _registry_row(
    snap: Snapshot, connections: Connections, pods: Pods, socket: RegistrySocket
) -> PluginRow:
    connected: bool | None = None
    if connections.facts.trusted and socket.inode is not None:
        connected = registry_connected(snap, connections.facts, socket.inode, socket.device)
    pid = _registry_pid(snap, socket)
    service = None
    if socket.type == "DevicePlugin" and socket.name:
        service = Service(socket.name, False, "says so itself (GetInfo)")
    return _row(
        snap,
        pods,
        endpoint=socket.path,
        directory="plugins_registry",
        service=service,
        state=socket.state,
        # The kubelet hangs up after registering, unless the socket is the service itself.
        connected=connected if connected or socket.type == "DevicePlugin" else None,
        options=None,
        process=snap.processes.get(pid) if pid is not None else None,
        pid=pid,
        modified=socket.modified,
        detail=socket.detail,
        registry=socket,
    )


def _registry_pid(snap: Snapshot, socket: RegistrySocket) -> int | None:
    if snap.sockets is None or socket.inode is None:
        return None
    low = socket.inode & 0xFFFFFFFF
    return next(
        (
            s.pid
            for s in snap.sockets.sockets
            if s.state == "listen" and s.file_inode == low and socket.device in (None, s.device)
        ),
        None,
    )


def _process(snap: Snapshot, listener: Listener | None) -> Process | None:
    if listener is None or listener.socket.pid is None:
        return None
    return snap.processes.get(listener.socket.pid)


def _row(
    snap: Snapshot,
    pods: Pods,
    *,
    endpoint: str,
    directory: str,
    service: Service | None,
    state: SocketState,
    connected: bool | None,
    options: PluginOptions | None,
    process: Process | None,
    pid: int | None,
    modified: float | None,
    detail: str | None,
    registry: RegistrySocket | None = None,
    certain: bool = True,
) -> PluginRow:
    pod = pods.by_uid(process.pod_uid) if process and process.pod_uid else None
    words = {True: "Connected", False: "NotConnected", None: None}
    age = None
    if modified is not None and snap.collected_at is not None:
        age = max(snap.collected_at - modified, 0.0)  # clocks differ
    resource = service.resource if service else None
    if resource is None and registry is not None:
        resource = registry.name  # a driver's name: what the socket calls itself
    return PluginRow(
        endpoint=endpoint,
        directory=directory,
        resource=resource,
        resource_inferred=service.inferred if service else False,
        resource_evidence=service.evidence if service else None,
        state=str(state.value),
        kubelet=words[connected],
        options=_options(options),
        type=registry.type if registry else None,
        versions=registry.versions if registry else (),
        pid=pid,
        command=process.command if process else None,
        namespace=pod.namespace if pod else None,
        pod=pod.name if pod else None,
        pod_uid=process.pod_uid if process else None,
        age=age,
        certain=certain,
        detail=detail,
    )


def _options(options: PluginOptions | None) -> tuple[str, ...] | None:
    if options is None:
        return None
    found = []
    if options.pre_start_required:
        found.append("PreStart")
    if options.preferred_allocation:
        found.append("PreferredAllocation")
    return tuple(found)
