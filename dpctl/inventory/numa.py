"""Snapshot → the NUMA picture: what each NUMA node has and who has it, the policies in force, and
how what containers hold lies on it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from dpctl import cpuset
from dpctl.inventory.containers import container_rows
from dpctl.inventory.devices import Devices, is_free
from dpctl.inventory.holders import is_active
from dpctl.inventory.machine import Joined, exclusive_holders, machine_of
from dpctl.inventory.rows import ContainerRow, DeviceRow
from dpctl.inventory.topology_rows import (
    AlignmentRow,
    ExclusiveCpus,
    MemoryUse,
    NumaDevice,
    NumaRow,
    PolicyRow,
    TopologyRow,
)
from dpctl.model import NumaNode, Snapshot, Source
from dpctl.topology.alignment import Alignment, Holding, Judgement, Room, judge
from dpctl.topology.settings import POD, Settings, settings_of


class Policies(NamedTuple):
    """The settings in force, and where each was read."""

    settings: Settings
    rows: tuple[PolicyRow, ...]
    known: bool
    """Whether the configuration was read: else the topology manager's policy is a guess."""

    def origin(self, name: str) -> str:
        return next((row.origin for row in self.rows if row.name == name), "default")


_FIELDS = (
    "topologyManagerPolicy",
    "topologyManagerScope",
    "topologyManagerPolicyOptions",
    "cpuManagerPolicy",
    "cpuManagerPolicyOptions",
    "reservedSystemCPUs",
    "memoryManagerPolicy",
)
_DEFAULTS = {
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
    "cpuManagerPolicy": "none",
    "memoryManagerPolicy": "None",
}


def policies(snap: Snapshot) -> Policies:
    """Out of the kubelet's configuration; CPU and memory manager's also out of what their state
    files were written under. Raises ValueError for a value that is none."""
    config = snap.kubelet_config
    if config is not None:
        settings = settings_of(config)
        rows = tuple(
            PolicyRow(name, _value(config, name), _origin(snap, config, name))
            for name in _FIELDS
            if config.get(name) or name in _DEFAULTS
        )
        return Policies(settings, rows, True)
    guessed = _without_config(snap)
    unread = PolicyRow("topologyManagerPolicy", None, "the kubelet's configuration was not read")
    return Policies(settings_of({r.name: r.value for r in guessed}), (unread, *guessed), False)


def _without_config(snap: Snapshot) -> tuple[PolicyRow, ...]:
    """What the state files were written under; else GetAllocatableResources, which tells of CPUs
    and memory only where their managers are static."""
    found: list[PolicyRow] = []
    allocatable = snap.allocatable
    for name, state, source, told, static, none in (
        (
            "cpuManagerPolicy",
            snap.cpu_state,
            Source.CPU_STATE,
            allocatable.cpus if allocatable else None,
            "static",
            "none",
        ),
        (
            "memoryManagerPolicy",
            snap.memory_state,
            Source.MEMORY_STATE,
            allocatable.memory if allocatable else None,
            "Static",
            "None",
        ),
    ):
        recorded = state.content if state else None
        if recorded is not None and recorded.policy:
            found.append(PolicyRow(name, recorded.policy, _where(snap, source)))
        elif told is not None:
            origin = f"inferred from {_where(snap, Source.ALLOCATABLE)}"
            found.append(PolicyRow(name, static if told else none, origin))
    return tuple(found)


def _origin(snap: Snapshot, config: Mapping[str, object], name: str) -> str:
    """Flags win over the file."""
    flag = snap.kubelet_flags.get(name)
    if flag is not None:
        return f"the kubelet's --{flag}"
    return _where(snap, Source.KUBELET) if config.get(name) else "default"


def _where(snap: Snapshot, source: Source) -> str:
    row = snap.source(source)
    return row.where if row else str(source)


def _value(config: Mapping[str, object], name: str) -> str | None:
    value = config.get(name)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={given}" for key, given in sorted(value.items()))
    return str(value) if value else _DEFAULTS.get(name)


def topology_row(snap: Snapshot, found: Policies | None = None) -> TopologyRow:
    """The whole picture. Raises ValueError where there is no NUMA tree, or a policy is nonsense."""
    found = found or policies(snap)
    joined = Devices(snap)
    machine = machine_of(snap, found.settings, joined)
    rows = joined.rows()
    assert snap.numa is not None
    devices = [(row, _device(row)) for row in rows if row.device is not None]
    exclusive = exclusive_holders(snap, joined)
    nodes = tuple(
        _node(
            node,
            machine,
            exclusive,
            tuple(shown for row, shown in devices if node.numa_node in (row.numa_nodes or ())),
            _memory_holders(snap, node.numa_node),
        )
        for node in snap.numa.nodes
    )
    known = {node.numa_node for node in nodes}
    elsewhere = tuple(shown for row, shown in devices if not known & set(row.numa_nodes or ()))
    return TopologyRow(
        numa_nodes=nodes,
        policies=found.rows,
        containers=tuple(alignment_rows(snap, joined, machine, found.settings)),
        offline_cpus=snap.cpus.offline if snap.cpus else None,
        devices_elsewhere=elsewhere,
        notes=tuple(_notes(snap, found, nodes, elsewhere, exclusive)),
    )


def _node(
    node: NumaNode,
    joined: Joined,
    exclusive: Mapping[int, str] | None,
    devices: tuple[NumaDevice, ...],
    memory_holders: Mapping[str, tuple[str, ...]],
) -> NumaRow:
    pool = joined.machine.cpus
    reserved = joined.reserved_cpus
    alone = [(exclusive[cpu], cpu) for cpu in node.cpus if exclusive and cpu in exclusive]
    taken = {cpu for _, cpu in alone}
    account = (joined.machine.memory or {}).get(node.numa_node)
    shared: tuple[int, ...] | None = None
    if exclusive is not None:
        left = pool.available if pool is not None else set(node.cpus) - taken
        shared = tuple(cpu for cpu in node.cpus if cpu in left)
    return NumaRow(
        numa_node=node.numa_node,
        cpus=node.cpus,
        reserved_cpus=None if reserved is None else tuple(c for c in node.cpus if c in reserved),
        shared_cpus=shared,
        exclusive_cpus=tuple(
            ExclusiveCpus(holder, tuple(cpu for _, cpu in cpus))
            for holder, cpus in groupby(sorted(alone), key=lambda pair: pair[0])
        ),
        memory_total=node.memory_total,
        memory_free=node.memory_free,
        memory=tuple(
            MemoryUse(kind, table.allocatable, table.free, memory_holders.get(kind, ()))
            for kind, table in sorted(account.tables.items() if account else ())
        ),
        hugepages=node.hugepages,
        devices=devices,
        distances=node.distances,
    )


def _device(row: DeviceRow) -> NumaDevice:
    return NumaDevice(
        id=row.device or "",
        resource=row.resource,
        state=row.state,
        free=is_free(row),
        numa_nodes=row.numa_nodes,
        numa_known=row.numa_known,
        holders=tuple(h.label for h in row.holders if is_active(h)),
    )


def _memory_holders(snap: Snapshot, numa_node: int) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        for container in pod.containers:
            for block in container.memory:
                if numa_node in (block.numa_nodes or ()):
                    holder = f"{pod.namespace}/{pod.name}/{container.name}"
                    found.setdefault(block.memory_type, []).append(holder)
    return {kind: tuple(holders) for kind, holders in found.items()}


# -- alignment -------------------------------------------------------------------------------------


def alignment_rows(
    snap: Snapshot, joined: Devices, machine: Joined, settings: Settings
) -> Iterable[AlignmentRow]:
    """One a container, or under scope pod one a pod, that holds something with a NUMA node."""
    room = _room(snap, machine)
    cpu_nodes = snap.numa.node_of_cpu() if snap.numa else {}
    by_pod = settings.scope == POD

    def key(row: ContainerRow) -> tuple[object, ...]:
        pod = (row.namespace, row.pod, row.uid)
        return pod if by_pod else (*pod, row.container)

    for _, group in groupby(container_rows(snap, joined), key=key):
        rows = list(group)
        judged = judge(_holding(rows, cpu_nodes), room)
        if judged.alignment is None and not judged.numa_nodes:
            continue
        first = rows[0]
        yield AlignmentRow(
            namespace=first.namespace,
            pod=first.pod,
            uid=first.uid,
            container=None if by_pod else first.container,
            alignment=judged.alignment,
            numa_nodes=judged.numa_nodes,
            needed=judged.needed,
            too_big=judged.too_big,
            note=_note(judged),
        )


def _holding(rows: Iterable[ContainerRow], cpu_nodes: Mapping[int, int]) -> Holding:
    devices: dict[str, dict[str, tuple[int, ...] | None]] = {}
    cpus: dict[int, int] = {}
    memory: dict[str, tuple[tuple[str, int, tuple[int, ...] | None], ...]] = {}
    for row in rows:
        if row.resource is not None:
            # A device that an init container passed on is one device.
            devices.setdefault(row.resource, {}).update((d.id, d.numa_nodes) for d in row.devices)
        cpus.update((cpu, cpu_nodes[cpu]) for cpu in row.cpus or () if cpu in cpu_nodes)
        memory[row.container] = tuple((m.type, m.size, m.numa_nodes) for m in row.memory or ())
    return Holding(
        {resource: tuple(held.values()) for resource, held in devices.items()},
        tuple(cpus.values()),
        tuple(block for blocks in memory.values() for block in blocks),
    )


def _room(snap: Snapshot, joined: Joined) -> Room:
    assert snap.numa is not None
    machine = joined.machine
    return Room(
        numa_nodes=machine.numa_nodes,
        devices={r: tuple(pool.nodes.values()) for r, pool in machine.pools.items()},
        cpus={node.numa_node: len(node.cpus) for node in snap.numa.nodes},
        memory={node.numa_node: _whole_memory(node, joined) for node in snap.numa.nodes},
    )


def _whole_memory(node: NumaNode, joined: Joined) -> dict[str, int]:
    account = (joined.machine.memory or {}).get(node.numa_node)
    if account is not None:
        return {kind: table.allocatable for kind, table in account.tables.items()}
    return {"memory": node.memory_total or 0}


def _note(judged: Judgement) -> str:
    if judged.alignment is Alignment.TOO_BIG:
        return f"too big for one NUMA node: {', '.join(judged.too_big)}"
    if judged.alignment is Alignment.APART:
        return "no NUMA node has all of its resources"
    if judged.alignment is Alignment.SPREAD:
        where = "one NUMA node" if judged.needed == 1 else f"{judged.needed} NUMA nodes"
        return f"spread although it fits {where}"
    return "on one NUMA node" if judged.alignment else "cannot be told"


# -- notes -----------------------------------------------------------------------------------------


def _notes(
    snap: Snapshot,
    found: Policies,
    nodes: tuple[NumaRow, ...],
    elsewhere: tuple[NumaDevice, ...],
    exclusive: Mapping[int, str] | None,
) -> Iterable[str]:
    settings = found.settings
    if not found.known:
        yield "the topology manager's policy is unknown: the kubelet's configuration was not read"
    if len(nodes) > settings.most_nodes:
        yield (
            f"more than {settings.most_nodes} NUMA nodes: a kubelet starts here with policy none "
            "only, or with the option max-allowable-numa-nodes"
        )
    if len(nodes) == 1:
        yield "one NUMA node: everything is aligned (a hypervisor may hide the real ones)"
    elif any(not device.numa_known for device in elsewhere):
        yield (
            "on which NUMA node devices are is not known of all: the kubelet's list of them "
            "(GetAllocatableResources) was not read, or does not have them"
        )
    elif elsewhere and not any(node.devices for node in nodes):
        yield (
            "no device has a NUMA node: its plugin does not tell, or a hypervisor hides it; the "
            "topology manager ignores such resources"
        )
    if not settings.static_memory:
        yield "memory manager policy None: containers' memory has no NUMA node"
    if not settings.static_cpus:
        yield "CPU manager policy none: no container has CPUs alone"
    if exclusive is None:
        yield "who has CPUs alone is unknown: PodResources List was not read"
    if snap.cpus is not None and snap.cpus.offline:
        yield f"CPUs offline: {cpuset.render(snap.cpus.offline)}"
