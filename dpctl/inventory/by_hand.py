"""Allocate by hand: the answer against the host, and who has the devices. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dpctl.inventory.asked import Answers
from dpctl.inventory.by_hand_rows import AllocationRow
from dpctl.inventory.cdi import CdiDevices
from dpctl.inventory.devices import Devices
from dpctl.inventory.holders import is_active
from dpctl.inventory.rows import AskedCdi, PluginAnswer
from dpctl.inventory.targets import Target
from dpctl.model import CdiSpec, HostPath, Snapshot
from dpctl.model.plugin_calls import AllocateAnswer


def allocation_row(
    target: Target,
    devices: tuple[str, ...],
    given: AllocateAnswer,
    paths: Mapping[str, HostPath] | None,
    cdi: Iterable[CdiSpec] | None,
    *,
    pre_started: bool,
) -> AllocationRow:
    """The answer against what the host has."""
    name = target.resource or ""
    first = given.containers[0] if given.containers else None
    answer = None if first is None else Answers({name: first}, paths).of(name)
    asked: tuple[AskedCdi, ...] = ()
    if answer is not None:
        asked = CdiDevices(cdi, paths).asked(answer.cdi_devices, answer.annotations)
    return AllocationRow(
        socket=target.path,
        resource=target.resource,
        devices=devices,
        answer=answer,
        cdi=asked,
        pre_started=pre_started,
        refused=_refused(given),
        problems=tuple(_problems(answer, asked)),
    )


def _refused(given: AllocateAnswer) -> str | None:
    if not given.sound:
        return "a text in it is no UTF-8, so that it cannot be decoded"
    return None if given.containers else "no containers return in allocation response"


def _problems(answer: PluginAnswer | None, cdi: Iterable[AskedCdi]) -> Iterator[str]:
    if answer is not None:
        yield from (f"{d.host_path}: {d.problem}" for d in answer.device_nodes if d.problem)
        yield from (f"{m.host_path}: {m.problem}" for m in answer.mounts if m.problem)
        yield from (f"{c.what} {c.key}: {c.problem}" for c in answer.clashes)
    yield from (f"{c.name}: {c.problem}" for c in cdi if c.problem)


def cautions(snap: Snapshot, target: Target, devices: Iterable[str]) -> tuple[str, ...]:
    """What a person should know of these devices before the plugin is asked for them."""
    if target.resource is None:
        return ("what this plugin serves could not be told, so nor could who has its devices",)
    joined = Devices(snap)
    known = set(joined.ids(target.resource))
    said = []
    for device in dict.fromkeys(devices):
        holders = joined.holders.get((target.resource, device), ())
        active = [holder.label for holder in holders if is_active(holder)]
        if active:
            said.append(f"{device} is held by {', '.join(active)}")
        elif device not in known:
            said.append(f"{device} is no device that the kubelet knows of")
    return tuple(said)
