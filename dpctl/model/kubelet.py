"""What the kubelet says of devices: PodResources answers, and its device checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Device(NamedTuple):
    """One device of one resource, its entries (one per NUMA node on the wire) merged."""

    resource: str
    device_id: str
    numa_nodes: tuple[int, ...] | None
    """Ascending; None: the device came without topology."""
    below_zero: bool = False
    """It came with a NUMA node below 0 (-1 passed through from sysfs): no node, and yet the kubelet
    takes the resource for one that cares about NUMA nodes (kubelet-facts §12)."""


class MemoryBlock(NamedTuple):
    """A block of the static memory manager; one block may span NUMA nodes."""

    memory_type: str
    """`memory` or `hugepages-<size>`."""
    size: int
    """Bytes."""
    numa_nodes: tuple[int, ...] | None


class ClaimDevice(NamedTuple):
    """One device that a DRA driver gave to a claim."""

    driver: str
    pool: str
    device: str
    share_id: str | None
    cdi_devices: tuple[str, ...]


class Claim(NamedTuple):
    """A DRA claim as PodResources shows it (`dynamic_resources`)."""

    namespace: str
    name: str
    class_name: str | None
    """Sent by kubelets 1.27 to 1.30 only."""
    devices: tuple[ClaimDevice, ...]


class ContainerHolding(NamedTuple):
    """What PodResources says one container holds. Ordinary init containers never appear."""

    name: str
    devices: tuple[Device, ...]
    cpus: tuple[int, ...] = ()
    """Exclusive CPUs, ascending; empty: the shared pool."""
    memory: tuple[MemoryBlock, ...] = ()
    claims: tuple[Claim, ...] = ()


class PodHolding(NamedTuple):
    namespace: str
    name: str
    containers: tuple[ContainerHolding, ...]
    cpus: tuple[int, ...] = ()
    """Pod level (1.37): overlaps with the containers' own, so the two are never added."""
    memory: tuple[MemoryBlock, ...] = ()


class PodResources(NamedTuple):
    """The answer to PodResources `List`."""

    version: str
    """`v1` or `v1alpha1` (then without topology, CPUs, memory, sidecars)."""
    pods: tuple[PodHolding, ...]


class Allocatable(NamedTuple):
    """The answer to `GetAllocatableResources`: healthy right now, whether in use or not."""

    devices: tuple[Device, ...]
    cpus: tuple[int, ...]
    memory: tuple[MemoryBlock, ...]


class Mount(NamedTuple):
    container_path: str
    host_path: str
    read_only: bool


class DeviceSpec(NamedTuple):
    container_path: str
    host_path: str
    permissions: str


NO_ENTRIES: Mapping[str, str] = MappingProxyType({})


class AllocResponse(NamedTuple):
    """What the plugin asked the runtime to give a container (decoded `AllocResp`)."""

    envs: Mapping[str, str] = NO_ENTRIES
    mounts: tuple[Mount, ...] = ()
    device_specs: tuple[DeviceSpec, ...] = ()
    annotations: Mapping[str, str] = NO_ENTRIES
    cdi_devices: tuple[str, ...] = ()


class Allocation(NamedTuple):
    """One entry of the checkpoint: a container's devices of one resource."""

    pod_uid: str
    container: str
    resource: str
    devices: Mapping[int, tuple[str, ...]]
    """NUMA node to device IDs, order as in the file. Under -1: no topology, and flat lists."""
    alloc_resp: bytes | None
    """The plugin's answer, protobuf; None where the file says null."""
    answer: AllocResponse | None = None
    """`alloc_resp` decoded; None where there is none or it cannot be decoded."""
    flat: bool = False
    """The device list was a flat one, as kubelets before 1.20 wrote it."""

    def device_nodes(self) -> dict[str, tuple[int, ...] | None]:
        """Device ID to its NUMA nodes, ascending; None: no topology. Order of first appearance."""
        nodes: dict[str, set[int]] = {}
        for numa_node, ids in self.devices.items():
            for device_id in ids:
                found = nodes.setdefault(device_id, set())
                if numa_node >= 0:
                    found.add(numa_node)
        return {i: tuple(sorted(found)) if found else None for i, found in nodes.items()}


class Checkpoint(NamedTuple):
    """`kubelet_internal_checkpoint`, decoded.

    A file whose checksum does not fit is decoded all the same (`verified` False): the kubelet
    would start from nothing, a person wants to see what it said.
    """

    allocations: tuple[Allocation, ...]
    registered: Mapping[str, tuple[str, ...]]
    """RegisteredDevices: resource to the IDs healthy at the time of the write."""
    stored_checksum: int
    computed_checksum: int
    modified: float | None = None
    """mtime of the file; None where only the content is known."""
    absent: bool = False
    """There is no file: what a kubelet that never had a plugin looks like, and one whose file was
    deleted while it ran (kubelet-facts §5.1, §12)."""

    @property
    def verified(self) -> bool:
        return self.stored_checksum == self.computed_checksum
