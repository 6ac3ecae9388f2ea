"""Snapshot → what the kubelet's managers have in memory, for `topology.admission`: devices, CPUs
and memory that are free, with what could not be told. Pure.

The state files come first, since the managers themselves go by them; without them PodResources
tells nearly the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpctl.inventory.devices import Devices
from dpctl.model import Snapshot
from dpctl.model.node import minor_version
from dpctl.model.statefiles import CpuAssignments
from dpctl.topology.admission import Machine
from dpctl.topology.cpu_choice import CpuPlace, Layout, NotEnoughCpusError, choose
from dpctl.topology.cpus import CpuPool
from dpctl.topology.devices import Pool
from dpctl.topology.memory import Machine as MemoryMachine
from dpctl.topology.memory import MemoryNode, MemoryTable, pinned, released
from dpctl.topology.settings import Settings


@dataclass(slots=True)
class Joined:
    """The machine, and what of it is a guess."""

    machine: Machine
    reserved_cpus: frozenset[int] | None = None
    """Known with the static policy only."""
    doubts: dict[str, str] = field(default_factory=dict)
    """Resource (`cpu` and `memory` too) to a sentence: why an answer about it may be wrong."""


def kubelet_minor(snap: Snapshot) -> int | None:
    """1.N of the kubelet; None: unknown."""
    version = snap.node.kubelet_version if snap.node else None
    return minor_version(version or snap.kubelet_version)


def machine_of(snap: Snapshot, settings: Settings, joined: Devices | None = None) -> Joined:
    """Raises ValueError where there is no NUMA tree: without one nothing can be said."""
    if snap.numa is None or not snap.numa.nodes:
        raise ValueError("the NUMA nodes of this machine were not read")
    joined = joined or Devices(snap)
    found = Joined(
        Machine(
            numa_nodes=tuple(node.numa_node for node in snap.numa.nodes),
            distances={node.numa_node: node.distances for node in snap.numa.nodes},
            pools={},
            minor=kubelet_minor(snap),
        )
    )
    pools = {r: _pool(snap, joined, r, found.doubts) for r in _known(joined)}
    cpus = _cpu_pool(snap, settings, joined, found) if settings.static_cpus else None
    memory = _memory(snap, joined, found.doubts) if settings.static_memory else None
    found.machine = found.machine._replace(pools=pools, cpus=cpus, memory=memory)
    return found


# -- devices ---------------------------------------------------------------------------------------


def _known(joined: Devices) -> list[str]:
    """Resources that the device manager would not skip (kubelet-facts §6.2, step 1)."""
    return sorted({*joined.connections.tracked, *joined.offered, *joined.held})


def _pool(snap: Snapshot, joined: Devices, resource: str, doubts: dict[str, str]) -> Pool:
    offered = joined.offered.get(resource, set())
    connected = joined.connected(resource)
    healthy = joined.healthy(resource)
    if healthy is None:
        healthy = frozenset(offered)
    if connected is None and snap.checkpoint is not None:
        doubts[resource] = "it cannot be told whether the kubelet is connected to its plugin"
    tracked = snap.checkpoint is None or resource in joined.connections.registered
    ids = joined.ids(resource)
    nodes: dict[str, tuple[int, ...] | None] = {}
    untold = []
    for device_id in ids:
        known = joined.numa_nodes(resource, device_id)
        if joined.is_below_zero(resource, device_id):
            known = (*(known or ()), -1)
        elif known is None and not joined.is_numa_known(resource, device_id):
            untold.append(device_id)
        nodes[device_id] = known
    if untold and resource not in doubts:
        doubts[resource] = f"the NUMA nodes of {len(untold)} of its devices were not read"
    unseen = joined.unseen(resource)
    if unseen and resource not in doubts:
        which = "its unhealthy device is" if unseen == 1 else f"its {unseen} unhealthy ones are"
        doubts[resource] = f"it is not known on which NUMA node {which}"
    return Pool(
        nodes,
        healthy if tracked or offered else None,
        joined.allocated(resource) or frozenset(),
    )


# -- CPUs ------------------------------------------------------------------------------------------


def layout_of(snap: Snapshot) -> tuple[Layout, bool]:
    """Where each online CPU sits, and whether cores and sockets were read: else each CPU counts as
    a core, each NUMA node as a socket."""
    assert snap.numa is not None
    tree = snap.cpus
    places: dict[int, CpuPlace] = {}
    read = tree is not None
    for cpu, node in snap.numa.node_of_cpu().items():
        core = tree.cores.get(cpu) if tree else None
        socket = tree.sockets.get(cpu) if tree else None
        read = read and core is not None and socket is not None
        places[cpu] = CpuPlace(
            cpu if core is None else core, node if socket is None else socket, node
        )
    return Layout(places), read


def reserved_cpus(snap: Snapshot, settings: Settings, layout: Layout) -> frozenset[int]:
    """CPUs that no container gets alone: named, else what GetAllocatableResources leaves out, else
    as many as are reserved, chosen as the kubelet chooses."""
    online = frozenset(layout.places)
    if settings.reserved_cpus is not None:
        return frozenset(settings.reserved_cpus) & online
    if snap.allocatable is not None and snap.allocatable.cpus:
        return online - frozenset(snap.allocatable.cpus)
    try:
        return choose(layout, online, settings.reserved_cpu_count)
    except NotEnoughCpusError:
        return online


def _cpu_pool(snap: Snapshot, settings: Settings, joined: Devices, found: Joined) -> CpuPool:
    layout, read = layout_of(snap)
    reserved = reserved_cpus(snap, settings, layout)
    found.reserved_cpus = reserved
    options = settings.cpu_options
    if not read and (options.full_pcpus_only or options.align_by_socket):
        found.doubts["cpu"] = "the cores and sockets of this machine were not read"
    exclusive = exclusive_holders(snap, joined)
    if exclusive is None:
        found.doubts["cpu"] = "which CPUs containers have alone was not read"
    shared = frozenset(layout.places) - frozenset(exclusive or ())
    recorded = snap.cpu_state.content if snap.cpu_state else None
    if recorded is not None and recorded.policy == "static" and recorded.default_cpus:
        # The manager's own word, which also leaves out what nobody holds and nobody can have.
        gone = _cpus_of_gone(recorded, joined)
        shared = frozenset(layout.places) & (frozenset(recorded.default_cpus) | gone)
    return CpuPool(layout, reserved, shared, options)


def _cpus_of_gone(recorded: CpuAssignments, joined: Devices) -> frozenset[int]:
    """CPUs of pods that are over: the manager takes them back before it gives any."""
    return frozenset(
        cpu
        for uid, containers in recorded.containers.items()
        if joined.pods.by_uid(uid).active is False
        for cpus in containers.values()
        for cpu in cpus
    )


def exclusive_holders(snap: Snapshot, joined: Devices) -> dict[int, str] | None:
    """CPU to `namespace/pod/container` that has it alone; None: no source told. A CPU that an init
    container passed on is its app container's."""
    recorded = snap.cpu_state.content if snap.cpu_state else None
    listed = _exclusive_listed(snap)
    if recorded is None or recorded.policy != "static":
        return listed
    found: dict[int, str] = {}
    for uid, containers in recorded.containers.items():
        who = joined.pods.by_uid(uid)
        if who.active is not False:
            pod = f"{who.namespace}/{who.name}" if who.name else f"uid:{uid}"
            found.update((c, f"{pod}/{name}") for name, cpus in containers.items() for c in cpus)
    return {**found, **(listed or {})}


def _exclusive_listed(snap: Snapshot) -> dict[int, str] | None:
    listed = snap.pod_resources
    if listed is None or listed.version != "v1":
        return None
    return {
        cpu: f"{pod.namespace}/{pod.name}/{container.name}"
        for pod in listed.pods
        for container in pod.containers
        for cpu in container.cpus
    }


# -- memory ----------------------------------------------------------------------------------------


def _memory(snap: Snapshot, joined: Devices, doubts: dict[str, str]) -> MemoryMachine:
    recorded = snap.memory_state.content if snap.memory_state else None
    if recorded is None or recorded.policy != "Static" or not recorded.nodes:
        return _memory_listed(snap, doubts)
    found: MemoryMachine = {
        number: MemoryNode(
            {t: MemoryTable(v.allocatable, v.free) for t, v in node.tables.items() if v},
            node.group or (number,),
            node.assignments,
        )
        for number, node in recorded.nodes.items()
        if node is not None
    }
    for uid, containers in recorded.containers.items():
        if joined.pods.by_uid(uid).active is False:  # given back before anything is taken
            for blocks in containers.values():
                for block in blocks:
                    nodes = block.numa_nodes or ()
                    found = released(found, nodes, block.memory_type, block.size)
    return found


def _memory_listed(snap: Snapshot, doubts: dict[str, str]) -> MemoryMachine:
    """From GetAllocatableResources less what List shows pinned."""
    assert snap.numa is not None
    if snap.allocatable is None or snap.pod_resources is None:
        doubts["memory"] = "which memory containers have pinned was not read"
    found: dict[int, MemoryNode] = {
        node.numa_node: MemoryNode({}, (node.numa_node,)) for node in snap.numa.nodes
    }
    for block in snap.allocatable.memory if snap.allocatable else ():
        for number in block.numa_nodes or ():
            if number in found:
                table = MemoryTable(block.size, block.size)
                tables = {**found[number].tables, block.memory_type: table}
                found[number] = found[number]._replace(tables=tables)
    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        for container in pod.containers:
            for block in container.memory:
                nodes = [n for n in block.numa_nodes or () if n in found]
                found = pinned(found, nodes, block.memory_type, block.size)
    return found
