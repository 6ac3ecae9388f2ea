"""Trees that are mounted over /sys/devices/system/{node,cpu}, to give a kubelet another machine.

The kubelet believes them: its topology, CPU and memory managers decide by them. CPUs that the
machine lacks fail only when a container is to be pinned to them.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

LOCAL, NEAR, REMOTE = 10, 12, 21  # distances
HUGEPAGES = ("hugepages-2048kB", "hugepages-1048576kB")


class Machine(NamedTuple):
    """What a kubelet finds."""

    numa: int = 1  # NUMA nodes
    cpus: int = 16


def write_trees(folder: Path, machine: Machine) -> dict[Path, Path]:
    """Write `node` and `cpu` below `folder`; answers tree -> where to mount it.

    The CPUs go to the NUMA nodes in blocks, one socket per NUMA node, one thread per core; the
    machine's memory is split evenly. Of more than two NUMA nodes, 2 and 3 are near, 4 and 5, and so
    on; 0 and 1 are not: what is nearest shall not be what comes first. Trees that are mounted
    already become those of another machine.
    """
    numa, cpus = machine
    if cpus % numa:
        raise ValueError(f"{cpus} CPUs do not split into {numa} NUMA nodes")
    per_node = cpus // numa
    trees = {folder / name: Path("/sys/devices/system") / name for name in ("cpu", "node")}
    for tree in trees:
        _clear(tree)
    _write_cpus(folder / "cpu", cpus, per_node)
    _write_nodes(folder / "node", numa, per_node)
    return trees


def _clear(tree: Path) -> None:
    """Empty it; the folder stays, since it may be mounted."""
    tree.mkdir(parents=True, exist_ok=True)
    for path in tree.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _write_cpus(tree: Path, cpus: int, per_node: int) -> None:
    for name in ("online", "possible", "present"):
        _write(tree / name, _range(0, cpus))
    _write(tree / "offline", "")
    _write(tree / "isolated", "")
    _write(tree / "kernel_max", "255")
    for cpu in range(cpus):
        socket = cpu // per_node
        siblings = _range(socket * per_node, per_node)
        topology = tree / f"cpu{cpu}" / "topology"
        values = {
            "physical_package_id": socket,
            "die_id": 0,
            "cluster_id": -1,
            "core_id": cpu % per_node,
            "thread_siblings_list": cpu,
            "core_cpus_list": cpu,
            "core_siblings_list": siblings,
            "package_cpus_list": siblings,
            "die_cpus_list": siblings,
        }
        for name, value in values.items():
            _write(topology / name, value)
        _write(tree / f"cpu{cpu}" / "online", 1)
        _write_caches(tree / f"cpu{cpu}" / "cache", cpu, socket, siblings)


def _write_caches(folder: Path, cpu: int, socket: int, siblings: str) -> None:
    caches = (
        ("Data", 1, "32K", cpu, str(cpu)),
        ("Instruction", 1, "32K", cpu, str(cpu)),
        ("Unified", 2, "1024K", cpu, str(cpu)),
        ("Unified", 3, "16384K", socket, siblings),
    )
    for index, (kind, level, size, number, shared) in enumerate(caches):
        values = {
            "type": kind,
            "level": level,
            "size": size,
            "id": number,
            "shared_cpu_list": shared,
        }
        for name, value in values.items():
            _write(folder / f"index{index}" / name, value)


def _write_nodes(tree: Path, numa: int, per_node: int) -> None:
    for name in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        _write(tree / name, _range(0, numa))
    total = memory_kib() // numa
    for node in range(numa):
        folder = tree / f"node{node}"
        first = node * per_node
        _write(folder / "cpulist", _range(first, per_node))
        _write(folder / "cpumap", f"{((1 << per_node) - 1) << first:x}")
        _write(folder / "distance", *(_distance(node, other) for other in range(numa)))
        memory = {"MemTotal": total, "MemFree": total // 2, "MemUsed": total - total // 2}
        lines = [f"Node {node} {name}:{value:>15} kB" for name, value in memory.items()]
        _write(folder / "meminfo", "\n".join(lines))
        for pages in HUGEPAGES:
            for name in ("nr_hugepages", "free_hugepages", "surplus_hugepages"):
                _write(folder / "hugepages" / pages / name, 0)
        # Without these links the kubelet stops: "could not detect number of cpus".
        for cpu in range(first, first + per_node):
            (folder / f"cpu{cpu}").symlink_to(f"../../cpu/cpu{cpu}")


def _distance(node: int, other: int) -> int:
    if node == other:
        return LOCAL
    return NEAR if node // 2 == other // 2 > 0 else REMOTE


def memory_kib() -> int:
    """The machine's memory, which is that of every machine here."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1])
    raise ValueError("/proc/meminfo has no MemTotal")


def _range(first: int, count: int) -> str:
    return f"{first}-{first + count - 1}" if count > 1 else str(first)


def _write(path: Path, *values: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(" ".join(str(value) for value in values) + "\n")
