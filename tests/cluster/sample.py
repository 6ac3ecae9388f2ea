"""What most tests look at: four devices on two NUMA nodes, and a pod that holds some."""

from __future__ import annotations

from .bench import Bench
from .plugins import LabPlugin, devices

GPU = "ready.test/gpu"
GPUS = devices(["gpu-0", "gpu-1", "gpu-2", "gpu-10"], [0, 0, 1, 1])
NOTHING = "No resources found"


def gpus(bench: Bench) -> LabPlugin:
    """Four devices on two NUMA nodes; the first goes first."""
    return bench.plugin(GPU, GPUS, preferred=True)


def holder(bench: Bench, count: int = 1) -> str:
    """A running pod that holds that many."""
    name = f"holder-{bench.node.name}"
    bench.node.create_pod(name, {GPU: count})
    return name
