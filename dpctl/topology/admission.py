"""Would the kubelet admit this pod: providers asked and devices, CPUs and memory taken in its
order, container by container (kubelet-facts §6.1, §9.2). Pure.

The predicates that come after (OutOf…) are the scheduler's arithmetic and are not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from dpctl.model import Pod, PodContainer
from dpctl.topology import memory
from dpctl.topology.cpus import CpuPool, cpu_hints, take_cpus
from dpctl.topology.devices import Pool, device_hints, in_natural_order, split, take
from dpctl.topology.hints import Hint, Hints, mask_of
from dpctl.topology.merge import Distances, Merged, Policy, merge
from dpctl.topology.requests import (
    CPU,
    RefusedError,
    exclusive_cpus,
    pinned_memory,
    pod_cpus,
    pod_devices,
    pod_memory,
    whole,
)
from dpctl.topology.settings import POD, Settings


class Machine(NamedTuple):
    """What the kubelet's managers have in memory."""

    numa_nodes: tuple[int, ...]
    distances: Distances
    pools: Mapping[str, Pool]
    """Of resources that the device manager knows: registered, or ever allocated."""
    cpus: CpuPool | None = None
    """None: CPU manager policy none."""
    memory: memory.Machine | None = None
    """None: memory manager policy None."""
    minor: int | None = None
    """Of the kubelet; None: a new one."""


class Share(NamedTuple):
    """What one container would get of one resource that a plugin serves."""

    resource: str
    requested: int
    devices: tuple[str, ...]
    """One choice of possibly several: among equals the kubelet (or the plugin) picks."""
    eligible: tuple[str, ...]
    """All that it could be picked from."""


class Placement(NamedTuple):
    """What one container would get."""

    container: str
    hint: Hint
    """The topology manager's."""
    shares: tuple[Share, ...]
    cpus: tuple[int, ...]
    """Exclusive ones; empty: the shared pool."""
    memory_nodes: tuple[int, ...]
    """Empty: not pinned."""


class Ask(NamedTuple):
    """One question to the topology manager: of one container, or (`container` None) of the pod."""

    container: str | None
    hints: Hints
    """All providers' together, by resource."""
    requested: Mapping[str, int]
    available: Mapping[str, int]
    merged: Merged


class Verdict(NamedTuple):
    admitted: bool
    reason: str | None
    """As the pod's status would have it: `TopologyAffinityError`…"""
    message: str | None
    container: str | None
    """The one that was refused; None: the pod as a whole."""
    asks: tuple[Ask, ...]
    """Empty under policy none."""
    placements: tuple[Placement, ...]
    """Of the containers that got what they asked for."""
    unserved: tuple[str, ...]
    """Requested resources that the device manager does not know: containers start without."""


def admit(pod: Pod, machine: Machine, settings: Settings) -> Verdict:
    """What the kubelet would say now. Raises TooManyNodesError where hints are too many to make."""
    return _Admission(pod, machine, settings).run()


@dataclass(slots=True)
class _Admission:
    pod: Pod
    machine: Machine
    settings: Settings
    pools: dict[str, Pool] = field(init=False)
    undecided: dict[str, Pool] = field(init=False)
    """The same, less only what a container must have taken: it had no choice."""
    cpus: CpuPool | None = field(init=False)
    memory: memory.Machine | None = field(init=False)
    reusable_devices: dict[str, set[str]] = field(default_factory=dict)
    reusable_cpus: frozenset[int] = frozenset()
    reusable_memory: dict[tuple[int, str], int] = field(default_factory=dict)
    asks: list[Ask] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pools = dict(self.machine.pools)
        self.undecided = dict(self.machine.pools)
        self.cpus, self.memory = self.machine.cpus, self.machine.memory

    def run(self) -> Verdict:
        refused: tuple[str | None, RefusedError] | None = None
        hint = Hint(None, False)
        try:
            if self._asks(POD):
                hint = self._ask(None, self._pod_requests())
        except RefusedError as error:
            refused = None, error
        for container in self.pod.containers if refused is None else ():
            try:
                if self._asks("container"):
                    hint = self._ask(container.name, self._container_requests(container))
                self._allocate(container, hint)
            except RefusedError as error:
                refused = container.name, error
                break
        return Verdict(
            admitted=refused is None,
            reason=refused[1].reason if refused else None,
            message=refused[1].message if refused else None,
            container=refused[0] if refused else None,
            asks=tuple(self.asks),
            placements=tuple(self.placements),
            unserved=self._unserved(),
        )

    def _asks(self, scope: str) -> bool:
        return self.settings.policy is not Policy.NONE and self.settings.scope == scope

    # -- requests ----------------------------------------------------------------------------------

    def _container_requests(self, container: PodContainer) -> _Requests:
        return _Requests(
            {r: whole(text) for r, text in container.limits.items() if r in self.pools},
            exclusive_cpus(self.pod, container) if self.cpus else 0,
            pinned_memory(self.pod, container) if self.memory is not None else {},
        )

    def _pod_requests(self) -> _Requests:
        named = {r for c in self.pod.containers for r in c.limits if r in self.pools}
        return _Requests(
            {r: pod_devices(self.pod, r) for r in sorted(named)},
            pod_cpus(self.pod) if self.cpus else 0,
            pod_memory(self.pod) if self.memory is not None else {},
        )

    def _unserved(self) -> tuple[str, ...]:
        named = {
            r: None
            for c in self.pod.containers
            for r, text in c.limits.items()
            if "/" in r and r not in self.pools and whole(text)
        }
        return tuple(named)

    # -- the topology manager ----------------------------------------------------------------------

    def _ask(self, container: str | None, requests: _Requests) -> Hint:
        machine, in_pod = self.machine, container is None
        devices: dict[str, tuple[Hint, ...] | None] = {}
        available: dict[str, int] = {}
        for resource, count in requests.devices.items():
            pool = self.pools[resource]
            reusable = set() if in_pod else self.reusable_devices.get(resource, set())
            available[resource] = len(pool.available | reusable)
            devices[resource] = device_hints(
                pool, count, reusable, machine.numa_nodes, machine.minor
            )
        cpus: Hints = {}
        if self.cpus is not None and requests.cpus:
            cpus = {CPU: cpu_hints(self.cpus, requests.cpus, self.reusable_cpus)}
            available[CPU] = len(self.cpus.available | self.reusable_cpus)
        blocks: Hints = {}
        if self.memory is not None and requests.memory:
            blocks = memory.memory_hints(self.memory, requests.memory, self.reusable_memory)
            for kind in requests.memory:
                tables = (node.tables.get(kind) for node in self.memory.values())
                available[kind] = sum(table.free for table in tables if table)
        merged = merge(
            (devices, cpus, blocks),
            self.settings.policy,
            machine.numa_nodes,
            machine.distances if self.settings.prefer_closest else None,
        )
        requested = {**requests.devices, **requests.memory}
        if requests.cpus:
            requested[CPU] = requests.cpus
        hints = {**devices, **cpus, **blocks}
        self.asks.append(Ask(container, hints, requested, available, merged))
        if not merged.admitted:
            raise RefusedError.affinity()
        return merged.hint

    # -- allocation: devices, CPUs, memory ---------------------------------------------------------

    def _allocate(self, container: PodContainer, hint: Hint) -> None:
        requests = self._container_requests(container)
        shares = tuple(
            self._take_devices(container, resource, count, hint)
            for resource, count in requests.devices.items()
        )
        for share in shares:
            self._keep_for_reuse(container, share)
        cpus: frozenset[int] = frozenset()
        if self.cpus is not None and requests.cpus:
            cpus = take_cpus(self.cpus, requests.cpus, self.reusable_cpus, hint.mask)
            self.cpus = self.cpus._replace(shared=self.cpus.shared - cpus)
            if container.kind == "init":
                self.reusable_cpus |= cpus
            else:
                self.reusable_cpus -= cpus
        nodes: tuple[int, ...] = ()
        if self.memory is not None and requests.memory:
            nodes = self._pin(container, requests.memory, hint)
        self.placements.append(Placement(container.name, hint, shares, tuple(sorted(cpus)), nodes))

    def _take_devices(
        self, container: PodContainer, resource: str, count: int, hint: Hint
    ) -> Share:
        pool = self.pools[resource]
        reusable = self.reusable_devices.get(resource, set())
        taken = take(resource, pool, count, reusable, hint.mask)
        undecided = self.undecided[resource]
        eligible = _eligible(pool, undecided, count, reusable, hint.mask)
        self.pools[resource] = pool._replace(in_use=pool.in_use | taken)
        if eligible == taken:
            self.undecided[resource] = undecided._replace(in_use=undecided.in_use | taken)
        return Share(
            resource, count, tuple(in_natural_order(taken)), tuple(in_natural_order(eligible))
        )

    def _keep_for_reuse(self, container: PodContainer, share: Share) -> None:
        kept = self.reusable_devices.setdefault(share.resource, set())
        if container.kind == "init":
            kept.update(share.devices)
        else:
            kept.difference_update(share.devices)

    def _pin(
        self, container: PodContainer, request: Mapping[str, int], hint: Hint
    ) -> tuple[int, ...]:
        assert self.memory is not None
        nodes = memory.pin(self.memory, request, self.reusable_memory, hint)
        mask = mask_of(nodes)
        for kind, size in request.items():
            key = (mask, kind)
            had = self.reusable_memory.get(key, 0)
            self.memory = memory.pinned(self.memory, nodes, kind, max(size - had, 0))
            if container.kind == "init":
                self.reusable_memory[key] = max(size, had)
            else:
                self.reusable_memory[key] = max(had - size, 0)
        return nodes


class _Requests(NamedTuple):
    devices: Mapping[str, int]
    cpus: int
    memory: Mapping[str, int]


def _eligible(
    pool: Pool, undecided: Pool, count: int, reusable: Set[str], mask: int | None
) -> Set[str]:
    """What the choice is from: reused devices, then aligned ones as far as they go, then all."""
    if count <= 0:
        return frozenset()
    if len(reusable) >= count:
        return reusable
    found = split(undecided, undecided.available, mask)
    aligned = split(pool, pool.available, mask).aligned
    if len(aligned - reusable) >= count - len(reusable):
        return reusable | found.aligned
    return reusable | found.aligned | found.unaligned | found.without
