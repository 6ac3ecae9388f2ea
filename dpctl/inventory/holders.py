"""Who holds which device: PodResources `List` and the checkpoint, merged per container.

`List` hides ordinary init containers, the checkpoint keeps pods that are gone: each fills what the
other lacks (kubelet-facts §5.1, §7).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpctl.inventory.pods import PodIdentity, Pods
from dpctl.inventory.rows import Holder
from dpctl.model import Snapshot, Source


@dataclass(slots=True)
class _Held:
    who: PodIdentity
    container: str
    sources: set[str] = field(default_factory=set)
    listed: bool = False


Key = tuple[str, str]
"""(resource, device ID)"""


def holders(snap: Snapshot, pods: Pods) -> dict[Key, tuple[Holder, ...]]:
    """Every held device with its holders: active ones first, app and sidecar before init."""
    found: dict[Key, dict[tuple[str, str, str], _Held]] = {}

    def note(key: Key, who: PodIdentity, container: str, source: Source) -> None:
        pod = f"{who.namespace}/{who.name}" if who.name else f"uid:{who.uid}"
        # Two pods of one name at different times are two holders; List has no UID to tell them.
        identity = (pod, "" if who.active is not False else who.uid or "", container)
        held = found.setdefault(key, {}).setdefault(identity, _Held(who, container))
        held.sources.add(source)
        held.listed = held.listed or source is Source.POD_RESOURCES

    if snap.pod_resources is not None:
        for pod in snap.pod_resources.pods:
            who = pods.by_name(pod.namespace, pod.name)
            for container in pod.containers:
                for device in container.devices:
                    key = (device.resource, device.device_id)
                    note(key, who, container.name, Source.POD_RESOURCES)
    if snap.checkpoint is not None:
        for allocation in snap.checkpoint.allocations:
            who = pods.by_uid(allocation.pod_uid)
            for device_id in allocation.device_nodes():
                key = (allocation.resource, device_id)
                note(key, who, allocation.container, Source.CHECKPOINT)

    result: dict[Key, tuple[Holder, ...]] = {}
    for key, by_container in found.items():
        result[key] = tuple(
            sorted((_holder(held, pods) for held in by_container.values()), key=_order)
        )
    return result


def _holder(held: _Held, pods: Pods) -> Holder:
    return Holder(
        namespace=held.who.namespace,
        pod=held.who.name,
        uid=held.who.uid,
        container=held.container,
        kind=pods.kind(held.who, held.container, listed=held.listed),
        active=held.who.active,
        sources=tuple(sorted(held.sources)),
    )


def _order(holder: Holder) -> tuple[int, int, str]:
    activity = {True: 0, None: 1, False: 2}[holder.active]
    return (activity, 1 if holder.kind == "init" else 0, holder.label)


def is_active(holder: Holder) -> bool:
    """Counts as holding: what cannot be told counts, since a wrong "free" is the worse answer."""
    return holder.active is not False
