"""Which field of the snapshot a source of this machine fills. No reading."""

from __future__ import annotations

from dpctl.env import Place
from dpctl.errors import UnreachableError
from dpctl.model import Kubelet, Node, Source

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


def is_guessed(place: Place) -> bool:
    """The host's name, for want of a better one: there may be no Node of that name, or another."""
    return place.origin.startswith("host name")


def another_machine(node: Node, boot_id: str | None) -> str | None:
    """Why this is not the Node of the machine with that boot ID; None: it may be."""
    if node.boot_id and boot_id and node.boot_id != boot_id:
        return (
            f"Node {node.name} is another machine (its boot ID is {node.boot_id}, here {boot_id})"
        )
    return None


def another_kubelet(name: str, kubelet: Kubelet | None) -> str | None:
    """Why the Node of that name is not this kubelet's; None: it may be."""
    if kubelet is not None and kubelet.node_name not in (None, name):
        return f"Node {name} is not the Node of this kubelet, which is {kubelet.node_name}"
    return None
