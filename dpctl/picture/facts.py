"""What a NUMA node's part of the picture says, whatever draws it: labels and values as texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dpctl import cpuset
from dpctl.inventory.rows import DeviceState
from dpctl.inventory.topology_rows import MemoryUse, NumaDevice, NumaRow, PolicyRow, TopologyRow
from dpctl.quantity import size_text
from dpctl.text import escape, natural_key

MOST_DEVICES = 32
"""Device IDs written out for one holder; more are counted."""
FREE = "free"


class Line(NamedTuple):
    label: str
    value: str
    deeper: bool = False


def cpu_lines(row: NumaRow) -> Iterator[Line]:
    """All, reserved, the shared pool, and alone by holder."""
    yield Line("CPUs", _cpus(row.cpus))
    if row.reserved_cpus:
        yield Line("reserved", _cpus(row.reserved_cpus), True)
    if row.shared_cpus is None:
        yield Line("shared", "?", True)
    else:
        yield Line("shared", _cpus(row.shared_cpus), True)
    for exclusive in row.exclusive_cpus:
        yield Line("alone", f"{_cpus(exclusive.cpus)} {escape(exclusive.holder)}", True)


def _cpus(cpus: Iterable[int]) -> str:
    found = tuple(cpus)
    return f"{cpuset.render(found)} ({len(found)})" if found else "-"


def memory_lines(row: NumaRow) -> Iterator[Line]:
    yield Line("Memory", f"{_size(row.memory_total)}, {_size(row.memory_free)} free")
    for use in row.memory:
        if use.allocatable:
            yield from _pinned(use)
    for kind, pages in sorted(row.hugepages.items(), key=lambda item: natural_key(item[0])):
        if pages:
            yield Line("Hugepages", f"{pages} × {kind.removeprefix('hugepages-')}")


def _size(size: int | None) -> str:
    return "?" if size is None else size_text(size)


def _pinned(use: MemoryUse) -> Iterator[Line]:
    name = "" if use.type == "memory" else f"{use.type}: "
    pinned = use.allocatable - use.free
    what = f"{name}{size_text(pinned)} of {size_text(use.allocatable)}"
    yield Line("pinned", ", ".join((what, *map(escape, use.holders))), True)


def without_box(row: TopologyRow) -> Iterator[tuple[str, list[NumaDevice]]]:
    """Devices that no NUMA node's box has, and why: having none is not the same as unknown."""
    for title, known in (
        ("Devices without a NUMA node", True),
        ("Devices whose NUMA node is not known", False),
    ):
        devices = [device for device in row.devices_elsewhere if device.numa_known is known]
        if devices:
            yield title, devices


def device_lines(devices: Iterable[NumaDevice], *, most: int = MOST_DEVICES) -> Iterator[Line]:
    """Per resource how many, then its devices by who holds them, free ones last."""
    by_resource: dict[str, list[NumaDevice]] = {}
    for device in devices:
        by_resource.setdefault(device.resource, []).append(device)
    for resource, found in by_resource.items():
        free = sum(device.free for device in found)
        yield Line(escape(resource), f"{len(found)}, {free} free")
        by_holder: dict[str, list[NumaDevice]] = {}
        for device in found:
            by_holder.setdefault(holder_text(device), []).append(device)
        for holder in sorted(by_holder, key=lambda name: (name == FREE, natural_key(name))):
            shown = by_holder[holder]
            names = [escape(device.id) + _spans(device) for device in shown[:most]]
            if len(shown) > most:
                names.append(f"and {len(shown) - most} more")
            yield Line(holder, ", ".join(names), True)


def holder_text(device: NumaDevice) -> str:
    """Who has it, or `free`, or why nobody can."""
    if device.state is DeviceState.FREE:
        return FREE
    holders = ", ".join(escape(holder) for holder in device.holders)
    if device.state in (DeviceState.ALLOCATED, DeviceState.REUSABLE) and holders:
        return holders
    return f"{device.state.lower()}{f': {holders}' if holders else ''}"


def _spans(device: NumaDevice) -> str:
    """A device on several NUMA nodes stands in each."""
    nodes = device.numa_nodes or ()
    return f" (NUMA {'+'.join(map(str, nodes))})" if len(nodes) > 1 else ""


def distance_line(row: NumaRow, nodes: Iterable[int]) -> Line | None:
    pairs = [f"{node}:{far}" for node, far in zip(nodes, row.distances, strict=False)]
    return Line("Distances", " ".join(pairs)) if len(pairs) > 1 else None


def policy_texts(rows: Iterable[PolicyRow]) -> Iterator[tuple[str, str]]:
    """Name and value; where it was read, once for neighbours that share it."""
    previous = None
    for row in rows:
        value = "?" if row.value is None else escape(row.value)
        same = row.origin == previous
        previous = row.origin
        yield row.name, value if same else f"{value}   ({escape(row.origin)})"
