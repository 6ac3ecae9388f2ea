"""Which field of the snapshot a source of this machine fills. No reading."""

from __future__ import annotations

from dpctl.errors import UnreachableError
from dpctl.model import Source

# What this machine says of its own kubelet, and the field of the snapshot.
LOCAL = {
    Source.POD_RESOURCES: "pod_resources",
    Source.ALLOCATABLE: "allocatable",
    Source.CHECKPOINT: "checkpoint",
    Source.DIRECTORY: "directory",
    Source.PLUGINS: "plugins",
    Source.REGISTRY: "registry",
    Source.SOCKETS: "sockets",
    Source.POD_NAMES: "pod_names",
    Source.HOST_PATHS: "host_paths",
    Source.CDI: "cdi",
    Source.NUMA: "numa",
    Source.CPUS: "cpus",
    Source.PCI: "pci",
    Source.KUBELET: "kubelet_config",
    Source.CPU_STATE: "cpu_state",
    Source.MEMORY_STATE: "memory_state",
    Source.DRA_STATE: "dra_state",
    Source.DRA_HEALTH: "dra_health",
    Source.ALLOCATED_PODS: "allocated_pods",
    Source.ACTUATED_PODS: "actuated_pods",
    Source.PODS_API: "kubelet_pods",
    Source.POD_DIRS: "pod_dirs",
}
API = frozenset({Source.NODE, Source.PODS, Source.UNSCHEDULED, Source.DEVICE_CLASSES})
STATE_FILES = [s for s in LOCAL if s.endswith("_state")]


def named(name: str | None) -> str:
    """The Node's name, where one is needed. Raises UnreachableError."""
    if name is None:
        raise UnreachableError(
            "the name of this Node is not known", "name it: --node NODE, or set NODE_NAME"
        )
    return name
