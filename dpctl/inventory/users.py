"""Snapshot and a device → who holds it: containers by the kubelet's word, processes by /proc."""

from __future__ import annotations

from dpctl.inventory.devices import base_device
from dpctl.inventory.holders import holders
from dpctl.inventory.pods import PodIdentity, Pods
from dpctl.inventory.registered import offered, registered
from dpctl.inventory.rows import UserRow
from dpctl.model import Snapshot, Source
from dpctl.text import matches_any


def user_rows(snap: Snapshot, device: str) -> tuple[UserRow, ...]:
    """`device`: a device ID (or a glob), or a path of the host below /dev."""
    pods = Pods(snap)
    rows = [
        UserRow(
            what="container",
            device=device_id,
            resource=resource,
            namespace=holder.namespace,
            pod=holder.pod or f"uid:{holder.uid}",
            container=holder.container,
            state=_activity(holder.active),
            pid=None,
            command=None,
            sources=holder.sources,
        )
        for (resource, device_id), found in holders(snap, pods).items()
        if device_id == device
        or matches_any(device_id, [device])
        or base_device(device_id) == device
        for holder in found
    ]
    if device.startswith("/"):
        known = {(r.resource, r.namespace, r.pod, r.container) for r in rows}
        rows += [r for r in _given(snap, pods, device) if _place(r) not in known]
        rows += _openers(snap, pods, device)
    return tuple(rows)


def _given(snap: Snapshot, pods: Pods, path: str) -> list[UserRow]:
    """Containers whose plugin asked the runtime for this device node."""
    rows = []
    for allocation in snap.checkpoint.allocations if snap.checkpoint else ():
        answer = allocation.answer
        if answer is None or all(d.host_path != path for d in answer.device_specs):
            continue
        who = pods.by_uid(allocation.pod_uid)
        rows.append(
            UserRow(
                what="container",
                device=path,
                resource=allocation.resource,
                namespace=who.namespace,
                pod=who.name or f"uid:{allocation.pod_uid}",
                container=allocation.container,
                state=_activity(who.active),
                pid=None,
                command=None,
                sources=(str(Source.CHECKPOINT),),
            )
        )
    return rows


def _openers(snap: Snapshot, pods: Pods, path: str) -> list[UserRow]:
    rows = []
    for process in snap.openers or ():
        who = PodIdentity(None, None, None, None)
        if process.pod_uid is not None:
            who = pods.by_uid(process.pod_uid)
        rows.append(
            UserRow(
                what="process",
                device=path,
                resource=None,
                namespace=who.namespace,
                pod=who.name or (f"uid:{process.pod_uid}" if process.pod_uid else None),
                container=None,
                state="open",
                pid=process.pid,
                command=process.command,
                sources=("proc",),
            )
        )
    return rows


def _place(row: UserRow) -> tuple[str | None, str | None, str | None, str | None]:
    return (row.resource, row.namespace, row.pod, row.container)


def _activity(active: bool | None) -> str | None:
    return {True: "active", False: "gone", None: None}[active]


def resources_of(snap: Snapshot, device: str) -> tuple[str, ...]:
    """Resources whose plugin listed this device ID as healthy, held or not."""
    return tuple(
        resource for resource, ids in registered(snap, offered(snap)).items() if device in ids
    )
