"""Small builders of model objects for tests of the pure rooms. Every default is the plain case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpctl.model import (
    Allocation,
    Checkpoint,
    DirectoryEntry,
    DirectoryListing,
    Kubelet,
    Node,
    Pod,
    PodContainer,
    Process,
    SocketTable,
    UnixSocket,
)

DEVICE = (8 << 20) | 1
DIRECTORY_INODE = 2
KUBELET_PID = 100
NOW = 1_000_000.0


def node(
    capacity: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    owners: Mapping[str, tuple[str, ...]] | str | None = "kubelet",
    version: str = "v1.37.2",
) -> Node:
    """`owners="kubelet"`: every capacity key is the kubelet's."""
    capacity = dict(capacity or {})
    allocatable = dict(capacity) if allocatable is None else dict(allocatable)
    if owners == "kubelet":
        owned: Mapping[str, tuple[str, ...]] | None = dict.fromkeys(capacity, ("kubelet",))
    else:
        assert not isinstance(owners, str)
        owned = owners
    return Node(
        name="worker-0",
        uid="u",
        boot_id="b",
        kubelet_version=version,
        capacity=capacity,
        allocatable=allocatable,
        owners=owned,
        kubelet_manager="kubelet",
        ready=True,
        heartbeat=NOW - 1,
    )


def checkpoint(
    registered: Mapping[str, Sequence[str]] | None = None,
    allocations: Sequence[Allocation] = (),
    *,
    age: float = 100.0,
) -> Checkpoint:
    return Checkpoint(
        allocations=tuple(allocations),
        registered={k: tuple(v) for k, v in (registered or {}).items()},
        stored_checksum=1,
        computed_checksum=1,
        modified=NOW - age,
    )


def allocation(
    uid: str, container: str, resource: str, devices: Mapping[int, Sequence[str]]
) -> Allocation:
    return Allocation(uid, container, resource, {k: tuple(v) for k, v in devices.items()}, None)


def pod(
    name: str,
    *containers: PodContainer,
    uid: str | None = None,
    namespace: str = "ml",
    phase: str = "Running",
    reason: str | None = None,
) -> Pod:
    return Pod(
        namespace=namespace,
        name=name,
        uid=uid or f"uid-{name}",
        config_hash=None,
        node_name="worker-0",
        phase=phase,
        reason=reason,
        message=None,
        deleted=False,
        containers=containers,
        pod_requests={},
        overhead={},
        owner=None,
    )


def container(
    name: str, requests: Mapping[str, str] | None = None, kind: str = "app"
) -> PodContainer:
    return PodContainer(name, kind, dict(requests or {}), dict(requests or {}), "running", None, ())


def entry(name: str, inode: int, *, age: float = 100.0, kind: str = "socket") -> DirectoryEntry:
    return DirectoryEntry(name, kind, 0o755, 0, 0, inode, DEVICE, NOW - age)


def directory(*entries: DirectoryEntry, kubelet_age: float = 1000.0) -> DirectoryListing:
    """With kubelet.sock as inode 10."""
    own = entry("kubelet.sock", 10, age=kubelet_age)
    return DirectoryListing("/dp", (own, *entries), DIRECTORY_INODE, DEVICE)


def kubelet_listener(pid: int | None = KUBELET_PID) -> UnixSocket:
    return UnixSocket(1000, "listen", "/dp/kubelet.sock", 10, DEVICE, None, pid)


def listener(
    name: str,
    inode: int,
    *,
    pid: int = 200,
    parent: tuple[int, int] | None = (DIRECTORY_INODE, DEVICE),
) -> UnixSocket:
    """A plugin's listening socket bound to file inode `inode`."""
    return UnixSocket(
        2000 + inode,
        "listen",
        name,
        inode,
        DEVICE,
        None,
        pid,
        parent_inode=parent[0] if parent else None,
        parent_device=parent[1] if parent else None,
        parent_known=parent is not None,
    )


def accepted(name: str, inode: int, *, peer: int = KUBELET_PID) -> UnixSocket:
    """The plugin's end of a connection, its other end held by process `peer`."""
    return UnixSocket(3000 + inode, "established", name, inode, DEVICE, 4000 + inode, 200, (peer,))


def table(*sockets: UnixSocket, own: bool = True) -> SocketTable:
    return SocketTable((kubelet_listener(), *sockets) if own else sockets)


def process(pid: int, *arguments: str, environment: Mapping[str, str] | None = None) -> Process:
    return Process(pid, "plugin", arguments, dict(environment or {}), None, None)


def kubelet(pid: int = KUBELET_PID) -> Kubelet:
    return Kubelet(pid, ("kubelet",), "worker-0", NOW - 1000, None, None)
