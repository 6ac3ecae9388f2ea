"""Everything one run learnt, frozen: the only thing that joins, checks and screens ever see."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from dpctl.model.host import (
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
    PCI = "pci"
    POD_NAMES = "podnames"
    HOST_PATHS = "hostpaths"
    """Whether the paths that plugins asked for are there (needs the checkpoint)."""
    KUBELET = "kubelet"
    """Running kubelets, and the configuration of this one."""


class Snapshot(NamedTuple):
    """A field is None when its source was not read (or not wanted): `source()` tells why."""

    collected_at: float | None
    """None: a bundle without `meta.json`."""
    sources: tuple[SourceRow, ...]
    from_bundle: bool = False
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
    pci: Mapping[str, int | None] | None = None
    """PCI address (`0000:3b:00.2`) to NUMA node; None: the kernel does not know."""
    pod_names: tuple[PodName, ...] | None = None
    kubelets: tuple[Kubelet, ...] | None = None
    kubelet_config: Mapping[str, object] | None = None
    """Of this kubelet: its KubeletConfiguration as read."""
    host_paths: Mapping[str, bool] | None = None
    """Host path of a plugin's answer to whether it exists."""
    openers: tuple[Process, ...] | None = None
    """Processes that have the asked device node open (`who`)."""
    lost_at: Mapping[str, float] = MappingProxyType({})
    """Resource to when the kubelet noticed that its plugin was gone, as far as its log tells."""
    boot_id: str | None = None
    kubelet_version: str | None = None
    """From a bundle's `meta.json`; live, the Node's."""

    def source(self, source: Source) -> SourceRow | None:
        return next((row for row in self.sources if row.name == source), None)
