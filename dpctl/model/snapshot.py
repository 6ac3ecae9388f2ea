"""Everything one run learnt, frozen: the only thing that joins, checks and screens ever see."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from dpctl.model.asked import CdiSpec, HostPath
from dpctl.model.host import (
    CpuTree,
    DirectoryListing,
    Kubelet,
    NumaTree,
    PluginSocket,
    PodName,
    Process,
    RegistrySocket,
    SocketTable,
)
from dpctl.model.kubelet import Allocatable, Checkpoint, PodResources
from dpctl.model.node import DeviceClass, Node, Pod
from dpctl.model.rows import SourceRow

if TYPE_CHECKING:  # only `state` and `topology` read them
    from dpctl.model.statefiles import (
        CpuManagerState,
        DraHealthState,
        DraManagerState,
        KubeletPod,
        MemoryManagerState,
        PodResourcesState,
        ReadFailure,
    )


class Source(StrEnum):
    """The places facts come from; a command names the ones it wants."""

    POD_RESOURCES = "podresources"
    ALLOCATABLE = "allocatable"
    CHECKPOINT = "checkpoint"
    DIRECTORY = "device-plugins"
    """The listing alone."""
    PLUGINS = "plugins"
    """Speaking to the sockets of that directory."""
    REGISTRY = "plugins_registry"
    SOCKETS = "sockets"
    """The kernel's table, with the processes behind it."""
    NODE = "node"
    PODS = "pods"
    UNSCHEDULED = "unscheduled"
    """Pods of the cluster that are bound to no node: before a change, never in a bundle."""
    DEVICE_CLASSES = "deviceclasses"
    NUMA = "numa"
    CPUS = "cpus"
    """Cores and sockets, and CPUs that are offline."""
    PCI = "pci"
    POD_NAMES = "podnames"
    HOST_PATHS = "hostpaths"
    """What is at the paths that plugins and CDI specifications name."""
    CDI = "cdi"
    """What the container runtime may be asked for by CDI name."""
    KUBELET = "kubelet"
    """Running kubelets, and the configuration of this one."""
    CPU_STATE = "cpu_manager_state"
    """State files are called as they are."""
    MEMORY_STATE = "memory_manager_state"
    DRA_STATE = "dra_manager_state"
    DRA_HEALTH = "dra_health_state"
    ALLOCATED_PODS = "allocated_pods_state"
    ACTUATED_PODS = "actuated_pods_state"
    PODS_API = "pods-api"
    """The kubelet's own pods (1.37)."""
    POD_DIRS = "poddirs"
    """UIDs that the kubelet keeps a directory for."""


class Snapshot(NamedTuple):
    """A field is None when its source was not read (or not wanted): `source()` tells why."""

    collected_at: float | None
    """None: a bundle without `meta.json`."""
    sources: tuple[SourceRow, ...]
    from_bundle: bool = False
    complete: bool = False
    """A bundle that has all that `dpctl snapshot` found: what was asked of the node is asked of it,
    and nothing is inferred that the node's own answers would have told."""
    pod_resources: PodResources | None = None
    allocatable: Allocatable | None = None
    checkpoint: Checkpoint | None = None
    directory: DirectoryListing | None = None
    plugins: tuple[PluginSocket, ...] | None = None
    registry: tuple[RegistrySocket, ...] | None = None
    sockets: SocketTable | None = None
    processes: Mapping[int, Process] = MappingProxyType({})
    """By pid: holders of sockets that matter here."""
    node: Node | None = None
    pods: tuple[Pod, ...] | None = None
    """Pods bound to the node."""
    unscheduled: tuple[Pod, ...] | None = None
    """Pods bound to no node; a node's own credentials may not see them."""
    device_classes: tuple[DeviceClass, ...] | None = None
    numa: NumaTree | None = None
    cpus: CpuTree | None = None
    pci: Mapping[str, int | None] | None = None
    """PCI address (`0000:3b:00.2`) to NUMA node; None: the kernel does not know."""
    pod_names: tuple[PodName, ...] | None = None
    kubelets: tuple[Kubelet, ...] | None = None
    kubelet_config: Mapping[str, object] | None = None
    """Of this kubelet: its KubeletConfiguration as read."""
    kubelet_flags: Mapping[str, str] = MappingProxyType({})
    """Field of the configuration to the flag of this kubelet that sets it, whatever its file
    says."""
    host_paths: Mapping[str, HostPath] | None = None
    """Host paths of plugins' answers and of CDI device nodes."""
    cdi: tuple[CdiSpec, ...] | None = None
    """In order of directory and name."""
    openers: tuple[Process, ...] | None = None
    """Processes that have the asked device node open (`who`)."""
    lost_at: Mapping[str, float] = MappingProxyType({})
    """Resource to when the kubelet noticed that its plugin was gone, as far as its log tells."""
    cpu_state: CpuManagerState | None = None
    memory_state: MemoryManagerState | None = None
    dra_state: DraManagerState | None = None
    dra_health: DraHealthState | None = None
    allocated_pods: PodResourcesState | None = None
    actuated_pods: PodResourcesState | None = None
    unreadable: Mapping[str, ReadFailure | None] = MappingProxyType({})
    """State file (its source) that is there and is none to be read, to how a kubelet's own read of
    it fails; None: not known."""
    kubelet_pods: tuple[KubeletPod, ...] | None = None
    """What the Pods API said: finished pods too, static ones under the kubelet's UID."""
    pod_dirs: tuple[str, ...] | None = None
    """UIDs of the kubelet's `pods/` directory."""
    state_root: str = "/var/lib/kubelet"
    """The root directory as the kubelet names it, for the words that it would log."""
    boot_id: str | None = None
    kubelet_version: str | None = None
    """From a bundle's `meta.json`, else its Node's; live, of the running kubelet (its program
    says), where that was looked for. None: ask the Node."""

    def source(self, source: Source) -> SourceRow | None:
        return next((row for row in self.sources if row.name == source), None)
