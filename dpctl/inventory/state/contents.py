"""What the state files say, one row per entry, UIDs as pods. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from dpctl import cpuset
from dpctl.inventory.pods import Pods
from dpctl.inventory.state.rows import StateRow
from dpctl.inventory.state.verify import file_name, state_of, version_text
from dpctl.model import Checkpoint, MemoryBlock, Snapshot, Source
from dpctl.model.statefiles import (
    CpuManagerState,
    DraHealthState,
    DraManagerState,
    MemoryManagerState,
    PodResourcesState,
    RecordedResources,
    StateFault,
)
from dpctl.text import natural_key

_EMPTY = StateRow("", "", *([None] * (len(StateRow._fields) - 2)))


def state_rows(snap: Snapshot, sources: Collection[Source]) -> list[StateRow]:
    """The entries of these files, in the order of the files."""
    maker = _Maker(snap)
    return [row for source in Source if source in sources for row in maker.rows(source)]


class _Maker:
    """Makes rows of one snapshot."""

    def __init__(self, snap: Snapshot) -> None:
        self._snap = snap
        self._pods = Pods(snap)

    def rows(self, source: Source) -> Iterator[StateRow]:
        state: Any = state_of(self._snap, source)
        if state is None or getattr(state, "absent", False):
            return
        head = _EMPTY._replace(
            file=file_name(source), version=version_text(state), modified_at=state.modified
        )
        for name in ("fault", "data_fault"):
            fault: StateFault | None = getattr(state, name, None)
            if fault is not None:
                yield head._replace(entry="fault", value=fault.words)
        newer = getattr(state, "unknown_keys", ())
        if newer:
            words = f"format newer than known: {', '.join(newer)}"
            yield head._replace(entry="newer", value=words)
        if isinstance(state, Checkpoint):
            yield from self._checkpoint(head, state)
        elif isinstance(state, CpuManagerState):
            yield from self._cpu(head, state)
        elif isinstance(state, MemoryManagerState):
            yield from self._memory(head, state)
        elif isinstance(state, DraManagerState):
            yield from self._claims(head, state)
        elif isinstance(state, DraHealthState):
            yield from self._health(head, state)
        elif isinstance(state, PodResourcesState):
            yield from self._resources(head, state)

    def _of(self, head: StateRow, uid: str, container: str | None = None) -> StateRow:
        who = self._pods.by_uid(uid)
        return head._replace(
            namespace=who.namespace,
            pod=who.name,
            uid=uid,
            container=container,
            active=who.active,
        )

    def _checkpoint(self, head: StateRow, state: Checkpoint) -> Iterator[StateRow]:
        for resource, unordered in state.registered.items():
            ids = tuple(sorted(unordered, key=natural_key))  # the kubelet writes a set
            yield head._replace(
                entry="registered", resource=resource, devices=ids, value=_listed(ids)
            )
        for allocation in state.allocations:
            nodes = allocation.device_nodes()
            numa = sorted({n for found in nodes.values() for n in found or ()})
            yield self._of(head, allocation.pod_uid, allocation.container)._replace(
                entry="devices",
                resource=allocation.resource,
                devices=tuple(nodes),
                numa_nodes=tuple(numa) or None,
                value=_listed(nodes),
                alloc_resp=allocation.alloc_resp,
            )

    def _cpu(self, head: StateRow, state: CpuManagerState) -> Iterator[StateRow]:
        content = state.content
        if content is None:
            return
        yield head._replace(entry="policy", value=content.policy)
        shared = cpuset.render(content.default_cpus)
        yield head._replace(entry="shared CPUs", cpus=content.default_cpus, value=shared or None)
        for name, entries in (("CPUs", content.containers), ("baseline", content.baselines)):
            for uid, lists in entries.items():
                for container, cpus in lists.items():
                    row = self._of(head, uid, container)
                    yield row._replace(entry=name, cpus=cpus, value=cpuset.render(cpus) or None)
        for uid, cpus in content.pods.items():
            row = self._of(head, uid)
            yield row._replace(entry="pod CPUs", cpus=cpus, value=cpuset.render(cpus) or None)
        for container_id, cpus in state.container_ids.items():
            yield head._replace(
                entry="CPUs", container=container_id, cpus=cpus, value=cpuset.render(cpus) or None
            )
        for bad in content.unparsable:
            yield head._replace(entry="fault", value=f"{bad.text!r} is no CPU list: {bad.error}")

    def _memory(self, head: StateRow, state: MemoryManagerState) -> Iterator[StateRow]:
        content = state.content
        if content is None:
            return
        yield head._replace(entry="policy", value=content.policy)
        for number, node in content.nodes.items():
            for kind, table in sorted((node.tables if node else {}).items()):
                if node is None or table is None:
                    continue
                counters = {
                    "total": table.total,
                    "systemReserved": table.system_reserved,
                    "allocatable": table.allocatable,
                    "reserved": table.reserved,
                    "free": table.free,
                }
                joined = f", joined {cpuset.render(node.group)}" if len(node.group) > 1 else ""
                yield head._replace(
                    entry="NUMA node",
                    resource=kind,
                    numa_nodes=(number,),
                    size=table.total,
                    quantities={name: str(value) for name, value in counters.items()},
                    value=f"{number}: {bytes_text(table.free)} free of"
                    f" {bytes_text(table.allocatable)}{joined}",
                )
        for uid, containers in content.containers.items():
            for container, blocks in containers.items():
                yield from _block_rows(self._of(head, uid, container), "memory", blocks)
        for uid, blocks in content.pods.items():
            yield from _block_rows(self._of(head, uid), "pod memory", blocks)

    def _claims(self, head: StateRow, state: DraManagerState) -> Iterator[StateRow]:
        for claim in state.claims:
            for uid in claim.pod_uids or (None,):
                row = head if uid is None else self._of(head, uid)
                # The file itself tells the namespace.
                row = row._replace(namespace=row.namespace or claim.namespace)
                for driver, held in claim.drivers.items() or (("-", None),):
                    devices = held.devices if held is not None else ()
                    ids = tuple(f"{device.pool}/{device.device}" for device in devices)
                    yield row._replace(
                        entry="claim",
                        resource=None if held is None else driver,
                        devices=ids,
                        value=f"{claim.name}: {_listed(ids) or 'no device'}",
                    )

    def _health(self, head: StateRow, state: DraHealthState) -> Iterator[StateRow]:
        for device in state.devices:
            said = f" ({device.message})" if device.message else ""
            yield head._replace(
                entry="health",
                resource=device.driver,
                devices=(f"{device.pool}/{device.device}",),
                value=f"{device.pool}/{device.device}: {device.health}{said}",
            )

    def _resources(self, head: StateRow, state: PodResourcesState) -> Iterator[StateRow]:
        for pod in state.pods:
            for container, resources in pod.containers.items():
                row = self._of(head, pod.uid, container)
                yield row._replace(entry="resources", **_quantities(resources))
            if pod.pod_level is not None:
                row = self._of(head, pod.uid)
                yield row._replace(entry="pod resources", **_quantities(pod.pod_level))


def _block_rows(row: StateRow, entry: str, blocks: Iterable[MemoryBlock]) -> Iterator[StateRow]:
    for block in blocks:
        yield row._replace(
            entry=entry,
            resource=block.memory_type,
            numa_nodes=block.numa_nodes,
            size=block.size,
            value=f"{bytes_text(block.size)} on {cpuset.render(block.numa_nodes or ()) or '-'}",
        )


def _quantities(resources: RecordedResources) -> dict[str, Any]:
    limits = {f"limits.{name}": value for name, value in resources.limits.items()}
    shown = ",".join(f"{name}={value}" for name, value in resources.requests.items())
    return {"quantities": {**resources.requests, **limits}, "value": shown or None}


def _listed(names: Iterable[str] | Mapping[str, object]) -> str | None:
    return ",".join(names) or None


def bytes_text(size: int) -> str:
    """Bytes as a short binary quantity, rounded: `11.2Gi`. For reading; the number is beside it."""
    for power, suffix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size >= 1 << 10 * power:
            return f"{size / (1 << 10 * power):.4g}{suffix}"
    return str(size)
