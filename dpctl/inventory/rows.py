"""The rows that joins make: what every table, document, screen and check reads.

Field names are the JSON field names (in camelCase) and so are stable. `None` is missing or
unknown; where the two differ a neighbouring field says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class ResourceState(StrEnum):
    """The contract's table, in its order."""

    MALFORMED = "Malformed"
    EMPTY = "Empty"
    MISMATCH = "Mismatch"
    DEGRADED = "Degraded"
    READY = "Ready"
    UNREGISTERED = "Unregistered"
    GRACE = "Grace"
    DRA = "DRA"
    ABSENT = "Absent"
    FOREIGN = "Foreign"
    STALE = "Stale"
    GHOST = "Ghost"
    UNKNOWN = "Unknown"


class DeviceState(StrEnum):
    ORPHANED = "Orphaned"
    UNKNOWN = "Unknown"
    UNHEALTHY = "Unhealthy"
    MISSING = "Missing"
    ALLOCATED = "Allocated"
    REUSABLE = "Reusable"
    FREE = "Free"


class ResourceRow(NamedTuple):
    """One resource of the node."""

    resource: str
    state: ResourceState
    evidence: tuple[str, ...]
    """Sentences: what was seen, and where."""
    missing_sources: tuple[str, ...]
    """Sources whose absence left the state Unknown."""
    healthy: int | None
    """IDs in RegisteredDevices while connected."""
    total: int | None
    """Node capacity; null: the Node was not read or lacks the key."""
    allocated: int | None
    """Distinct IDs held by active pods."""
    free: int | None
    numa: Mapping[str, int] | None
    """NUMA node to number of devices; a device on two nodes counts on both. Empty: no topology."""
    endpoints: tuple[str, ...]
    endpoints_inferred: bool
    capacity: str | None
    allocatable: str | None
    """Both as the API has them; null: no such key (or no Node)."""
    node_read: bool
    registered: int | None
    """Length of the RegisteredDevices entry; null: not tracked (or no checkpoint)."""
    tracked: bool | None
    connected: bool | None
    connected_inferred: bool
    served: bool | None
    kubelet: int | None
    """Devices that GetAllocatableResources offers; null: not asked."""
    requested: int | None
    """By non-terminal pods bound to the node, as the scheduler counts."""
    owners: tuple[str, ...] | None
    """Managers of the capacity key; null: unknown (no managedFields)."""
    notes: tuple[str, ...]


class Holder(NamedTuple):
    """A container that has a device, by PodResources, the checkpoint or both."""

    namespace: str | None
    pod: str | None
    """Null: only the UID is known."""
    uid: str | None
    container: str
    kind: str | None
    """`init`, `sidecar`, `app`; null: nobody asked who could tell."""
    active: bool | None
    """Null: cannot be told."""
    sources: tuple[str, ...]

    @property
    def label(self) -> str:
        pod = f"{self.namespace}/{self.pod}" if self.pod else f"uid:{self.uid}"
        suffix = " (init)" if self.kind == "init" else ""
        return f"{pod}/{self.container}{suffix}"


class DeviceRow(NamedTuple):
    """One device, or (`device` null) the unhealthy ones whose IDs no harmless source tells."""

    device: str | None
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls on a row
    """1; more only where `device` is null."""
    resource: str
    health: str | None
    """`Healthy`, `Unhealthy`; null: unknown."""
    health_message: str | None
    numa_nodes: tuple[int, ...] | None
    """Null: no topology, or (`numaKnown` false) unknown."""
    numa_known: bool
    state: DeviceState
    holders: tuple[Holder, ...]
    base: str | None
    """The physical card behind a replica, slice or partition, as far as the ID tells."""
    address: str | None
    """PCI address in the ID."""
    sources: tuple[str, ...]


class GroupRow(NamedTuple):
    """Devices of one resource taken together (`--group-by`)."""

    group: str
    resource: str
    devices: int
    healthy: int
    allocated: int
    free: int
    device_ids: tuple[str, ...]


class HeldDevice(NamedTuple):
    id: str
    numa_nodes: tuple[int, ...] | None


class HeldMemory(NamedTuple):
    type: str
    size: int
    """Bytes."""
    numa_nodes: tuple[int, ...] | None


class AskedMount(NamedTuple):
    """A mount that the plugin asked for, against the host."""

    container_path: str
    host_path: str
    read_only: bool
    exists: bool | None
    """On the host; null: not looked (a bundle, or nobody asked)."""
    kind: str | None
    """`directory`, `file`, `socket`…; null: not there, or not looked."""
    problem: str | None
    """What is wrong, and what comes of it; null: nothing that was seen."""
    advice: str | None
    """What to do about the problem."""


class AskedDevice(NamedTuple):
    """A device node that the plugin asked for, against the host."""

    container_path: str
    host_path: str
    permissions: str
    exists: bool | None
    kind: str | None
    """`character device`, `block device`, or what stands in its place."""
    number: str | None
    """`major:minor`."""
    problem: str | None
    advice: str | None


class AskedCdi(NamedTuple):
    """A CDI name that a plugin or a DRA driver asked for, against the host's specifications."""

    name: str
    annotation: str | None
    """The annotation (`cdi.k8s.io/…`) that asks for it; null: the answer's own list does."""
    resolved: bool | None
    """Whether a runtime finds the device; null: not looked."""
    file: str | None
    """The specification that answers for it."""
    problem: str | None
    advice: str | None


class Clash(NamedTuple):
    """Something that the answer asks for and somebody else wants otherwise."""

    what: str
    """`annotation`, `environment variable`, `mount` or `device node`."""
    key: str
    """Its key, name, or path in the container."""
    resources: tuple[str, ...]
    """Whose plugins want it otherwise in the same container; empty: the kubelet itself does."""
    problem: str
    advice: str


class PluginAnswer(NamedTuple):
    """What the plugin asked the runtime to give this container for this resource."""

    envs: Mapping[str, str]
    mounts: tuple[AskedMount, ...]
    device_nodes: tuple[AskedDevice, ...]
    annotations: Mapping[str, str]
    cdi_devices: tuple[str, ...]
    clashes: tuple[Clash, ...]


class ContainerRow(NamedTuple):
    """What one container holds of one resource (or claim, or nothing but CPUs and memory)."""

    namespace: str | None
    pod: str | None
    uid: str | None
    container: str
    kind: str | None
    resource: str | None
    """Null: this row tells of CPUs and memory alone."""
    claim: str | None
    """`namespace/name` of a DRA claim; then `resource` is null."""
    devices: tuple[HeldDevice, ...]
    numa_nodes: tuple[int, ...] | None
    """Of the devices of this row, together."""
    cpus: tuple[int, ...] | None
    """Exclusive ones of the container; empty: the shared pool; null: no source told."""
    memory: tuple[HeldMemory, ...] | None
    aligned: bool | None
    """Whether all that the container holds fits on one NUMA node; null: nothing has topology."""
    cdi_devices: tuple[str, ...]
    """Of a claim's devices, else those of the plugin's answer."""
    cdi: tuple[AskedCdi, ...]
    """The same against the host, with those that annotations ask for."""
    answer: PluginAnswer | None
    """Null: the checkpoint has none (or was not read)."""
    requested: int | None
    """Of this resource, by the pod's spec; null: the API server was not asked."""
    active: bool | None
    sources: tuple[str, ...]


class FailedPodRow(NamedTuple):
    """A pod that the kubelet rejected at admission."""

    namespace: str
    pod: str
    uid: str
    reason: str
    message: str | None
    owner: str | None
    requests: Mapping[str, str]
    """Extended resources only."""


class PluginRow(NamedTuple):
    """One plugin socket or live listener."""

    endpoint: str
    directory: str
    """`device-plugins` or `plugins_registry`."""
    resource: str | None
    resource_inferred: bool
    resource_evidence: str | None
    state: str
    kubelet: str | None
    """`Connected`, `NotConnected`; null: cannot be told."""
    options: tuple[str, ...] | None
    """`PreStart`, `PreferredAllocation`; null: not asked or not answered."""
    type: str | None
    """Of plugins_registry: `DevicePlugin`, `DRAPlugin`, `CSIPlugin`."""
    versions: tuple[str, ...]
    pid: int | None
    command: str | None
    namespace: str | None
    pod: str | None
    pod_uid: str | None
    age: float | None
    """Seconds since the socket file was made, counted from `collectedAt`."""
    certain: bool
    """False: a listener whose directory cannot be told, so it may be one of device-plugins/."""
    detail: str | None


class UserRow(NamedTuple):
    """Answer to `who`: a container that holds a device, or a process that has its node open."""

    what: str
    """`container` or `process`."""
    device: str
    resource: str | None
    namespace: str | None
    pod: str | None
    container: str | None
    state: str | None
    """`open` for a process; for a container `active`, `gone`, null: cannot be told."""
    pid: int | None
    command: str | None
    sources: tuple[str, ...]


class NodeResourceRow(NamedTuple):
    """One extended resource of one Node, as the API server alone tells it."""

    node: str
    resource: str
    capacity: str | None
    allocatable: str | None
    """Both as the API has them; null: no such key."""
    requested: int | None
    """By pods that are bound to the Node and have not ended, as the scheduler counts; null: the
    pods could not be read."""
    free: int | None
    """Allocatable less requested, what the scheduler may still give away; below 0 when pods hold
    what is no longer offered."""
    state: ResourceState | None
    """`Malformed` or `Foreign`, which the Node alone tells; null: only the machine itself can."""
    owners: tuple[str, ...] | None
    """Managers of the capacity key; null: unknown (no managedFields)."""
