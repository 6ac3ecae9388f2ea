"""`state diff`: the state files against what the kubelet says now. Pure.

Live are PodResources `List` and the configuration. What List hides on purpose is no difference:
finished init containers, and pods that are gone while their entries wait for the next write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from dpctl import cpuset
from dpctl.inventory.pods import Pods
from dpctl.inventory.state.contents import bytes_text
from dpctl.inventory.state.rows import StateDifferenceRow
from dpctl.inventory.state.verify import file_name
from dpctl.model import Snapshot, Source

LEFTOVER, MISMATCH = "Leftover", "Mismatch"
_GONE = {
    Source.CHECKPOINT: "the pod is gone; the entry stays until the kubelet writes the file next",
    Source.CPU_STATE: "the pod is gone; the kubelet frees its CPUs within seconds if it runs",
    Source.MEMORY_STATE: "the pod is gone; the kubelet frees its memory within seconds if it runs",
    Source.DRA_STATE: "the pod is gone; the claim is undone when its driver answers",
}
_LOST = "the kubelet holds this in memory only: a restart would forget it"
_OTHER = "file and kubelet differ: the file was changed by hand, or is of another moment"


class _Key(NamedTuple):
    namespace: str | None
    pod: str | None
    uid: str | None
    container: str | None
    what: str
    gone: bool = False
    """Of a pod that is gone, which must not be taken for a later one of the same name."""


def difference_rows(snap: Snapshot, sources: Collection[Source]) -> list[StateDifferenceRow]:
    """Everything that is in one and not in the other, or differs. Needs PodResources."""
    if snap.pod_resources is None:
        return []
    pods = Pods(snap)
    found: list[StateDifferenceRow] = []
    makers = {
        Source.CHECKPOINT: (_devices_in_file, _devices_live),
        Source.CPU_STATE: (_cpus_in_file, _cpus_live),
        Source.MEMORY_STATE: (_memory_in_file, _memory_live),
        Source.DRA_STATE: (_claims_in_file, _claims_live),
    }
    for source, (in_file, live) in makers.items():
        row = snap.source(source)
        if source in sources and row is not None and row.read:
            found += _compared(source, pods, in_file(snap, pods), live(snap, pods))
    found += _policies(snap, sources)
    return found


def _compared(
    source: Source, pods: Pods, in_file: Mapping[_Key, str], live: Mapping[_Key, str]
) -> Iterator[StateDifferenceRow]:
    shown: dict[tuple[object, ...], str] = {_identity(key): value for key, value in live.items()}
    for key, value in in_file.items():
        now = shown.pop(_identity(key), None)
        if now == value:
            continue
        who = pods.by_uid(key.uid or "")
        if now is None:
            if (
                who.active is not False
                and pods.kind(who, key.container or "", listed=False) == "init"
            ):
                continue
            state, meaning = (
                (LEFTOVER, _GONE[source]) if who.active is False else (MISMATCH, _OTHER)
            )
        else:
            state, meaning = MISMATCH, _OTHER
        yield _row(source, key, value, now, state, meaning)
    for key, value in live.items():
        if _identity(key) in shown:
            yield _row(source, key, None, value, MISMATCH, _LOST)


def _identity(key: _Key) -> tuple[object, ...]:
    """List has no UIDs, so names tell which pod; a pod without a name is only itself."""
    pod = key.uid if key.gone or key.pod is None else (key.namespace, key.pod)
    return (pod, key.container, key.what)


def _row(
    source: Source, key: _Key, in_file: str | None, live: str | None, state: str, meaning: str
) -> StateDifferenceRow:
    return StateDifferenceRow(
        file=file_name(source),
        namespace=key.namespace,
        pod=key.pod,
        uid=key.uid,
        container=key.container,
        what=key.what,
        in_file=in_file,
        live=live,
        state=state,
        meaning=meaning,
    )


def _file_key(pods: Pods, uid: str, container: str | None, what: str) -> _Key:
    who = pods.by_uid(uid)
    return _Key(who.namespace, who.name, uid, container, what, who.active is False)


def _live_key(namespace: str, pod: str, container: str | None, what: str) -> _Key:
    return _Key(namespace, pod, None, container, what)


def _devices_in_file(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    found: dict[_Key, set[str]] = {}
    for allocation in snap.checkpoint.allocations if snap.checkpoint else ():
        key = _file_key(pods, allocation.pod_uid, allocation.container, allocation.resource)
        found.setdefault(key, set()).update(allocation.device_nodes())
    return {key: ",".join(sorted(ids)) for key, ids in found.items() if ids}


def _devices_live(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    found: dict[_Key, set[str]] = {}
    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        for container in pod.containers:
            for device in container.devices:
                key = _live_key(pod.namespace, pod.name, container.name, device.resource)
                found.setdefault(key, set()).add(device.device_id)
    return {key: ",".join(sorted(ids)) for key, ids in found.items()}


def _cpus_in_file(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    content = snap.cpu_state.content if snap.cpu_state else None
    if content is None:
        return {}
    return {
        _file_key(pods, uid, container, "CPUs"): cpuset.render(cpus)
        for uid, lists in content.containers.items()
        for container, cpus in lists.items()
        if cpus
    }


def _cpus_live(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    return {
        _live_key(pod.namespace, pod.name, container.name, "CPUs"): cpuset.render(container.cpus)
        for pod in (snap.pod_resources.pods if snap.pod_resources else ())
        for container in pod.containers
        if container.cpus
    }


def _memory_in_file(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    content = snap.memory_state.content if snap.memory_state else None
    if content is None:
        return {}
    # What an init container left to be used again stands there with size 0; List shows neither.
    return {
        _file_key(pods, uid, container, block.memory_type): _block_text(
            block.size, block.numa_nodes
        )
        for uid, containers in content.containers.items()
        for container, blocks in containers.items()
        for block in blocks
        if block.size
    }


def _memory_live(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    return {
        _live_key(pod.namespace, pod.name, container.name, block.memory_type): _block_text(
            block.size, block.numa_nodes
        )
        for pod in (snap.pod_resources.pods if snap.pod_resources else ())
        for container in pod.containers
        for block in container.memory
        if block.size
    }


def _block_text(size: int, numa_nodes: tuple[int, ...] | None) -> str:
    return f"{bytes_text(size)} ({size}) on {cpuset.render(numa_nodes or ()) or '-'}"


def _claims_in_file(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    """Per pod: the file does not tell the container."""
    return {
        _file_key(pods, uid, None, f"claim {claim.name}"): ",".join(
            sorted(
                f"{driver}/{device.pool}/{device.device}"
                for driver, held in claim.drivers.items()
                for device in held.devices
            )
        )
        for claim in (snap.dra_state.claims if snap.dra_state else ())
        for uid in claim.pod_uids
    }


def _claims_live(snap: Snapshot, pods: Pods) -> dict[_Key, str]:
    found: dict[_Key, set[str]] = {}
    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        for container in pod.containers:
            for claim in container.claims:
                key = _live_key(pod.namespace, pod.name, None, f"claim {claim.name}")
                found.setdefault(key, set()).update(
                    f"{device.driver}/{device.pool}/{device.device}" for device in claim.devices
                )
    return {key: ",".join(sorted(devices)) for key, devices in found.items()}


def _policies(snap: Snapshot, sources: Collection[Source]) -> Iterator[StateDifferenceRow]:
    """Recorded against configured: a kubelet that restarts would refuse."""
    if snap.kubelet_config is None:
        return
    for source, field, default, content in (
        (
            Source.CPU_STATE,
            "cpuManagerPolicy",
            "none",
            snap.cpu_state.content if snap.cpu_state else None,
        ),
        (
            Source.MEMORY_STATE,
            "memoryManagerPolicy",
            "None",
            snap.memory_state.content if snap.memory_state else None,
        ),
    ):
        configured = str(snap.kubelet_config.get(field) or default)
        if source in sources and content is not None and content.policy != configured:
            key = _Key(None, None, None, None, "policy")
            meaning = f"{field} was changed: a kubelet that restarts exits; `dpctl state verify`"
            yield _row(source, key, content.policy, configured, MISMATCH, meaning)
