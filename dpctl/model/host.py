"""What the machine itself shows: directories, sockets, processes, NUMA nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple


class DirectoryEntry(NamedTuple):
    name: str
    kind: str
    """Of the name itself: `socket`, `file`, `directory`, `symlink` (to `link_target`), `other`."""
    mode: int
    uid: int
    gid: int
    inode: int | None
    device: int | None
    """`st_dev` as the kernel's socket diagnostics give it (see `UnixSocket.device`)."""
    modified: float | None
    size: int = 0
    link_target: str | None = None


class DirectoryListing(NamedTuple):
    """A directory of sockets at one moment. Names starting with a dot are unfinished writes: kept
    here, ignored by the joins."""

    path: str
    entries: tuple[DirectoryEntry, ...]
    inode: int | None = None
    device: int | None = None

    def entry(self, name: str) -> DirectoryEntry | None:
        return next((e for e in self.entries if e.name == name), None)


class SocketState(StrEnum):
    """How a socket behaved when it was spoken to."""

    SERVING = "Serving"
    UNLINKED = "Unlinked"
    """A live listener whose file is gone (only the kernel's table knows it)."""
    DEAD = "Dead"
    """Connection refused: nobody listens behind the file."""
    HUNG = "Hung"
    """Accepted, or queued, and no answer within the deadline."""
    NOT_GRPC = "NotGRPC"
    WRONG_SERVICE = "WrongService"
    """gRPC, but not `v1beta1.DevicePlugin`."""
    NO_RIGHTS = "NoRights"
    GONE = "Gone"
    """The file vanished between listing and connecting."""
    UNKNOWN = "Unknown"
    """Not spoken to (a bundle without a record, or an error that fits none of the above)."""


class PluginOptions(NamedTuple):
    """Answer to GetDevicePluginOptions."""

    pre_start_required: bool
    preferred_allocation: bool


class ListedDevice(NamedTuple):
    """One entry of a ListAndWatch message."""

    device_id: str
    health: str
    """`Healthy`; any other word counts as unhealthy."""
    numa_nodes: tuple[int, ...] | None
    """None: no topology."""


class PluginSocket(NamedTuple):
    """A socket file of device-plugins/ after one harmless call (never kubelet.sock)."""

    endpoint: str
    """File name; `a/b.sock` for one in a sub-directory."""
    state: SocketState
    options: PluginOptions | None
    info: RegistrySocket | None
    """Its GetInfo answer, where the plugin also serves pluginregistration."""
    detail: str | None
    """The peer's or the system's words when the state is not Serving."""
    recorded_devices: tuple[ListedDevice, ...] | None = None
    """A recorded ListAndWatch message (`devices.json`), as sent, duplicates too. Never live."""


class RegistrySocket(NamedTuple):
    """A socket of plugins_registry/ (or one in device-plugins that answers GetInfo)."""

    path: str
    """Relative to the directory."""
    state: SocketState
    type: str | None = None
    """`DevicePlugin`, `DRAPlugin`, `CSIPlugin`."""
    name: str | None = None
    """Resource name of a device plugin; the driver's name otherwise."""
    service_endpoint: str | None = None
    """Path of the service socket as the plugin gave it; empty: the same socket."""
    versions: tuple[str, ...] = ()
    detail: str | None = None
    modified: float | None = None
    inode: int | None = None
    device: int | None = None


class UnixSocket(NamedTuple):
    """One row of the kernel's unix-socket table."""

    inode: int
    """The socket's own inode (what `/proc/<pid>/fd` shows as `socket:[N]`)."""
    state: str
    """`listen`, `established` or `other`."""
    name: str | None
    """As bound, in the binder's mount namespace; abstract names start with `@`. None: unnamed."""
    file_inode: int | None
    """Inode of the socket file, low 32 bits (UNIX_DIAG_VFS); None: another namespace's table."""
    device: int | None
    """Device of the socket file in the kernel's encoding: major << 20 | minor."""
    peer: int | None
    """Socket inode of the other end."""
    pid: int | None = None
    """A process that holds the socket; None: not found (or not looked up)."""
    peer_pids: tuple[int, ...] = ()
    """Processes that hold the other end (an inherited descriptor has several)."""
    parent_inode: int | None = None
    """For a listener: inode of the bound name's parent directory, seen from the holder's root."""
    parent_device: int | None = None
    parent_known: bool = False
    """Whether the parent could be told at all."""
    other_namespace: bool = False
    """Seen only in another network namespace's table."""
    holders: tuple[int, ...] = ()
    """All processes that hold it, ascending: workers inherit it, or it was handed to them."""

    def is_bound_to(self, entry: DirectoryEntry | None) -> bool:
        """Whether the socket carries this file; names are not looked at (see `name`)."""
        return (
            entry is not None
            and entry.inode is not None
            and self.file_inode == entry.inode & 0xFFFFFFFF
            and entry.device in (None, self.device)
        )


class SocketTable(NamedTuple):
    """Listeners and connections of this network namespace, and listeners of the others.

    Only rows that can matter are kept: listeners with a path, and established sockets that carry
    the path of a listener.
    """

    sockets: tuple[UnixSocket, ...]

    def kubelet_pid(self, entry: DirectoryEntry | None, kubelets: Collection[int]) -> int | None:
        """The process behind kubelet.sock; None: cannot be told.

        Of several holders the one that is a known kubelet, else the one that has connections of
        its own (the kubelet dials its plugins); two of a kind decide nothing.
        """
        own = self.listener_of(entry)
        if own is None or own.pid is None:
            return None
        holders = own.holders or (own.pid,)
        if len(holders) == 1:
            return holders[0]
        dialling = {pid for s in self.sockets if s.state == "established" for pid in s.peer_pids}
        for known in (set(kubelets), dialling):
            found = [pid for pid in holders if pid in known]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def listener_of(self, entry: DirectoryEntry | None) -> UnixSocket | None:
        """The listener bound to this very file, by inode and device."""
        return next((s for s in self.sockets if s.state == "listen" and s.is_bound_to(entry)), None)


class Process(NamedTuple):
    pid: int
    command: str
    """Name (`comm`)."""
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """Only values that look like resource names or endpoints are kept."""
    pod_uid: str | None
    """From its cgroup."""
    container_id: str | None
    started: float | None = None


class Kubelet(NamedTuple):
    """A kubelet found in /proc, or the holder of device-plugins/kubelet.sock."""

    pid: int
    arguments: tuple[str, ...]
    node_name: str | None
    """`--hostname-override`, else the name in its client certificate; None: neither readable."""
    started: float | None
    config_path: str | None
    root_dir: str | None


class NumaNode(NamedTuple):
    """One directory of /sys/devices/system/node."""

    numa_node: int
    cpus: tuple[int, ...]
    memory_total: int | None
    """Bytes."""
    memory_free: int | None
    hugepages: Mapping[str, int]
    """`hugepages-2Mi` to number of pages."""
    distances: tuple[int, ...]


class NumaTree(NamedTuple):
    nodes: tuple[NumaNode, ...]

    def node_of_cpu(self) -> dict[int, int]:
        return {cpu: node.numa_node for node in self.nodes for cpu in node.cpus}


class CpuTree(NamedTuple):
    """/sys/devices/system/cpu: which CPUs there are, and which share a core or a socket."""

    online: tuple[int, ...]
    offline: tuple[int, ...]
    """There and switched off: in no NUMA node's list."""
    cores: Mapping[int, int]
    """CPU to the lowest CPU of its core; a CPU that sysfs does not tell of is absent."""
    sockets: Mapping[int, int]


class PodName(NamedTuple):
    """UID to name without the API server (`/var/log/pods/<namespace>_<name>_<uid>/`)."""

    uid: str
    namespace: str
    name: str
