"""A machine to draw."""

from __future__ import annotations

from dpctl.inventory.rows import DeviceState
from dpctl.inventory.topology_rows import (
    AlignmentRow,
    ExclusiveCpus,
    MemoryUse,
    NumaDevice,
    NumaRow,
    PolicyRow,
    TopologyRow,
)
from dpctl.topology.alignment import Alignment

GI = 1 << 30
HOLDER = "ml/trainer/main"
LONG = "GPU-5a1c0d3e-7b42-4f19-9c6e-1d2f3a4b5c6d-and-something-that-makes-it-longer-than-a-box"


def device(name: str, state: DeviceState, *nodes: int, holder: str | None = None) -> NumaDevice:
    return NumaDevice(
        id=name,
        resource="vendor.example/gpu",
        state=state,
        free=state is DeviceState.FREE,
        numa_nodes=nodes or None,
        numa_known=True,
        holders=() if holder is None else (holder,),
    )


def numa_node(number: int, count: int, hostile: str = "") -> NumaRow:
    first = number * 16
    cpus = tuple(range(first, first + 16))
    return NumaRow(
        numa_node=number,
        cpus=cpus,
        reserved_cpus=cpus[:1] if number == 0 else (),
        shared_cpus=cpus[5:],
        exclusive_cpus=(ExclusiveCpus(f"ml/trainer{hostile}/main", cpus[1:5]),),
        memory_total=64 * GI,
        memory_free=12 * GI + 300,
        memory=(
            MemoryUse("hugepages-1Gi", 0, 0, ()),
            MemoryUse("memory", 62 * GI, 46 * GI, ("ml/trainer/main",)),
        ),
        hugepages={"hugepages-2Mi": 512, "hugepages-1Gi": 0},
        devices=(
            device(f"gpu-{number * 4}{hostile}", DeviceState.ALLOCATED, number, holder=HOLDER),
            device(f"gpu-{number * 4 + 1}", DeviceState.FREE, number),
            device(f"gpu-{number * 4 + 2}", DeviceState.FREE, number),
            device(LONG, DeviceState.UNHEALTHY, number),
            device("bond0", DeviceState.FREE, number, (number + 1) % count),
        ),
        distances=tuple(10 if n == number else 21 for n in range(count)),
    )


def machine(count: int, hostile: str = "") -> TopologyRow:
    return TopologyRow(
        numa_nodes=tuple(numa_node(number, count, hostile) for number in range(count)),
        policies=(
            PolicyRow("topologyManagerPolicy", "restricted", "/var/lib/kubelet/config.yaml"),
            PolicyRow("topologyManagerScope", "container", "/var/lib/kubelet/config.yaml"),
            PolicyRow("cpuManagerPolicy", None, "default"),
        ),
        containers=(
            AlignmentRow(
                "ml", f"trainer{hostile}", "u", "main", Alignment.SPREAD, (0, 1), 1, (), "n"
            ),
            AlignmentRow(None, None, "u-2", None, None, (0,), None, (), "cannot be told"),
        ),
        offline_cpus=(200,),
        devices_elsewhere=(device("fuse-0", DeviceState.ORPHANED),),
        notes=("a note " + "that is long " * 12,),
    )
