"""Snapshot → one row per container and resource: what each container holds, and whether it lies on
one NUMA node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dpctl import names
from dpctl.inventory.asked import Answers
from dpctl.inventory.cdi import CdiDevices
from dpctl.inventory.devices import Devices
from dpctl.inventory.pods import PodIdentity
from dpctl.inventory.rows import ContainerRow, FailedPodRow, HeldDevice, HeldMemory
from dpctl.model import AllocResponse, Claim, Pod, Snapshot, Source
from dpctl.quantity import count
from dpctl.text import natural_key
from dpctl.topology.alignment import is_aligned


@dataclass(slots=True)
class _Container:
    who: PodIdentity
    name: str
    listed: bool = False
    devices: dict[str, dict[str, tuple[int, ...] | None]] = field(default_factory=dict)
    answers: dict[str, AllocResponse] = field(default_factory=dict)
    cpus: tuple[int, ...] | None = None
    memory: tuple[HeldMemory, ...] | None = None
    claims: tuple[Claim, ...] = ()
    sources: set[str] = field(default_factory=set)


def container_rows(snap: Snapshot, joined: Devices | None = None) -> tuple[ContainerRow, ...]:
    """Every container of active pods; one row per resource and claim it holds, one row with neither
    for a container that holds nothing but CPUs and memory (or nothing at all)."""
    joined = joined or Devices(snap)
    containers = _gather(snap, joined)
    cpu_nodes = snap.numa.node_of_cpu() if snap.numa else {}
    known = CdiDevices(snap.cdi, snap.host_paths)
    rows = [row for c in containers for row in _rows(snap, joined, c, cpu_nodes, known)]
    return tuple(sorted(rows, key=_order))


def _gather(snap: Snapshot, joined: Devices) -> Iterable[_Container]:
    found: dict[tuple[str, str], _Container] = {}

    def container(who: PodIdentity, name: str) -> _Container:
        pod = f"{who.namespace}/{who.name}" if who.name else f"uid:{who.uid}"
        return found.setdefault((pod, name), _Container(who, name))

    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        who = joined.pods.by_name(pod.namespace, pod.name)
        if who.active is False:
            continue  # List of kubelets before 1.34 shows terminated pods as well
        for listed in pod.containers:
            entry = container(who, listed.name)
            entry.listed = True
            entry.sources.add(Source.POD_RESOURCES)
            if snap.pod_resources is not None and snap.pod_resources.version == "v1":
                entry.cpus = listed.cpus
                entry.memory = tuple(
                    HeldMemory(m.memory_type, m.size, m.numa_nodes) for m in listed.memory
                )
            entry.claims = listed.claims
            for device in listed.devices:
                held = entry.devices.setdefault(device.resource, {})
                held[device.device_id] = device.numa_nodes
    for allocation in snap.checkpoint.allocations if snap.checkpoint else ():
        who = joined.pods.by_uid(allocation.pod_uid)
        if who.active is False:
            continue  # lingers until the kubelet's next write (kubelet-facts §5.1)
        entry = container(who, allocation.container)
        entry.sources.add(Source.CHECKPOINT)
        held = entry.devices.setdefault(allocation.resource, {})
        for device_id, nodes in allocation.device_nodes().items():
            held.setdefault(device_id, nodes)
        if allocation.answer is not None:
            entry.answers[allocation.resource] = allocation.answer
    return found.values()


def _rows(
    snap: Snapshot,
    joined: Devices,
    entry: _Container,
    cpu_nodes: dict[int, int],
    known: CdiDevices,
) -> Iterable[ContainerRow]:
    pod = joined.pods.pod(entry.who.namespace, entry.who.name)
    aligned = _aligned(entry, cpu_nodes)
    answers = Answers(entry.answers, snap.host_paths)
    kind = joined.pods.kind(entry.who, entry.name, listed=entry.listed)

    def row(
        resource: str | None,
        claim: str | None,
        devices: tuple[HeldDevice, ...],
        cdi: tuple[str, ...] = (),
    ) -> ContainerRow:
        nodes = {n for device in devices for n in device.numa_nodes or ()}
        answer = None if resource is None else answers.of(resource)
        cdi_devices = cdi if answer is None else answer.cdi_devices
        return ContainerRow(
            namespace=entry.who.namespace,
            pod=entry.who.name,
            uid=entry.who.uid,
            container=entry.name,
            kind=kind,
            resource=resource,
            claim=claim,
            devices=devices,
            numa_nodes=tuple(sorted(nodes)) or None,
            cpus=entry.cpus,
            memory=entry.memory,
            aligned=aligned,
            cdi_devices=cdi_devices,
            cdi=known.asked(cdi_devices, answer.annotations if answer else None),
            answer=answer,
            requested=_requested(pod, entry.name, resource),
            active=entry.who.active,
            sources=tuple(sorted(entry.sources)),
        )

    for resource, held in entry.devices.items():
        ids = tuple(HeldDevice(i, held[i]) for i in sorted(held, key=natural_key))
        yield row(resource, None, ids)
    for claim in entry.claims:
        ids = tuple(HeldDevice(f"{d.driver}/{d.pool}/{d.device}", None) for d in claim.devices)
        cdi = dict.fromkeys(name for d in claim.devices for name in d.cdi_devices)
        yield row(None, f"{claim.namespace}/{claim.name}", ids, tuple(cdi))
    asked = [n for n in _requested_names(pod, entry.name) if n not in entry.devices]
    for resource in asked:
        yield row(resource, None, ())  # requested, and the kubelet gave nothing: show it
    if not entry.devices and not entry.claims and not asked:
        yield row(None, None, ())


def _aligned(entry: _Container, cpu_nodes: dict[int, int]) -> bool | None:
    if entry.cpus and not all(cpu in cpu_nodes for cpu in entry.cpus):
        return None  # without the NUMA tree no verdict can be given
    return is_aligned(
        [nodes for held in entry.devices.values() for nodes in held.values()],
        {cpu_nodes[cpu] for cpu in entry.cpus or ()},
        [block.numa_nodes for block in entry.memory or ()],
    )


def _requested(pod: Pod | None, container: str, resource: str | None) -> int | None:
    if pod is None or resource is None:
        return None
    for candidate in pod.containers:
        if candidate.name == container:
            return count(candidate.requests.get(resource)) or 0
    return None


def _requested_names(pod: Pod | None, container: str) -> list[str]:
    if pod is None:
        return []
    for candidate in pod.containers:
        if candidate.name == container and candidate.kind != "init":
            return [
                name
                for name in candidate.requests
                if names.is_extended(name) and count(candidate.requests[name])
            ]
    return []


def _order(row: ContainerRow) -> tuple[object, ...]:
    return tuple(
        natural_key(text or "")
        for text in (row.namespace, row.pod or row.uid, row.container, row.resource, row.claim)
    )


def holds_something(row: ContainerRow) -> bool:
    return bool(row.devices or row.claim or row.cpus or row.memory or row.requested)


# Reasons that the kubelet gives a pod it refuses (kubelet-facts §6.3); OutOf<resource> besides.
_REJECTIONS = frozenset(
    {
        "UnexpectedAdmissionError",
        "TopologyAffinityError",
        "SMTAlignmentError",
        "EmptyPodSharedPoolError",
        "AdmissionFailed",
    }
)


def failed_pod_rows(snap: Snapshot) -> tuple[FailedPodRow, ...]:
    """Pods that the kubelet rejected at admission: Failed, with a reason of its own."""
    rows = [
        FailedPodRow(
            namespace=pod.namespace,
            pod=pod.name,
            uid=pod.uid,
            reason=pod.reason or "",
            message=pod.message,
            owner=pod.owner,
            requests=_extended_requests(pod),
        )
        for pod in snap.pods or ()
        if pod.phase == "Failed" and is_rejection(pod.reason)
    ]
    return tuple(sorted(rows, key=lambda r: (natural_key(r.namespace), natural_key(r.pod))))


def is_rejection(reason: str | None) -> bool:
    return reason is not None and (reason in _REJECTIONS or reason.startswith("OutOf"))


def _extended_requests(pod: Pod) -> dict[str, str]:
    asked: dict[str, int] = {}
    for container in pod.containers:
        for name, text in container.requests.items():
            if names.is_extended(name):
                asked[name] = asked.get(name, 0) + (count(text) or 0)
    return {name: str(total) for name, total in sorted(asked.items())}
