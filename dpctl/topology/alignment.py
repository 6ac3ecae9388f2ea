"""Whether what a container holds lies on one NUMA node (kubelet-facts §9.3). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def is_aligned(
    device_nodes: Iterable[Collection[int] | None],
    cpu_nodes: Collection[int],
    memory_nodes: Iterable[Collection[int] | None],
) -> bool | None:
    """True: some node is in every device's set, is all that the CPUs use, and all of every block.

    None or empty sets are neutral (no topology, shared CPUs, memory not pinned). None when nothing
    has topology.
    """
    devices = [set(nodes) for nodes in device_nodes if nodes]
    exact = [set(cpu_nodes)] if cpu_nodes else []
    exact += [set(nodes) for nodes in memory_nodes if nodes]
    if not devices and not exact:
        return None
    candidates = set.intersection(*devices, *exact)
    return any(all(nodes == {node} for nodes in exact) for node in candidates)
