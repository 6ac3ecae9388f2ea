"""What a kubelet would make of one ListAndWatch message, and what is odd about it. Pure.

Source: kubelet-facts §3.3, §7, §12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpctl.inventory.by_hand_rows import DeviceListRow, ListedRow
from dpctl.inventory.targets import Target
from dpctl.model import ListedDevice, NumaTree
from dpctl.model.plugin_calls import RECEIVE_LIMIT, DeviceMessage
from dpctl.text import natural_key

HEALTHY = "Healthy"
_WORDS = (HEALTHY, "Unhealthy")
_LONG_ID = 1024
"""Bytes; IDs of real plugins have 70 at most, and 4 MiB are shared by all of them."""
_NEARLY = 0.75


def listed_rows(message: DeviceMessage, numa: NumaTree | None) -> tuple[ListedRow, ...]:
    """One row per ID, in natural order. `numa`: the host's NUMA nodes; None: not known, so nothing
    is said of nodes that it lacks."""
    entries: dict[str, list[ListedDevice]] = {}
    for device in message.devices:
        entries.setdefault(device.device_id, []).append(device)
    there = None if numa is None else frozenset(node.numa_node for node in numa.nodes)
    return tuple(
        ListedRow(
            device=device_id,
            health=found[-1].health,
            numa_nodes=found[-1].numa_nodes,
            entries=len(found),
            notes=tuple(_notes(device_id, found, there)),
        )
        for device_id, found in sorted(entries.items(), key=lambda item: natural_key(item[0]))
    )


def device_list(message: DeviceMessage, numa: NumaTree | None, target: Target) -> DeviceListRow:
    """The whole of it, with what is wrong with the message."""
    rows = listed_rows(message, numa)
    healthy = {d.device_id for d in message.devices if d.health == HEALTHY}
    ill = {d.device_id for d in message.devices if d.health != HEALTHY}
    words = {True: "Connected", False: "NotConnected", None: None}
    return DeviceListRow(
        socket=target.path,
        resource=target.resource,
        kubelet=words[target.connected],
        message_bytes=message.size,
        limit_bytes=RECEIVE_LIMIT,
        accepted=message.sound and message.size <= RECEIVE_LIMIT,
        capacity=len(healthy) + len(ill),  # an ID in both sets counts twice
        allocatable=len(healthy),
        findings=tuple(_findings(message, rows)),
        devices=rows,
    )


def _notes(
    device_id: str, found: Sequence[ListedDevice], there: frozenset[int] | None
) -> list[str]:
    notes = []
    if len(found) > 1:
        states = {device.health == HEALTHY for device in found}
        both = ", once healthy and once not: the kubelet counts it twice" if len(states) > 1 else ""
        notes.append(f"listed {len(found)} times{both}")
    if found[-1].health not in _WORDS:
        notes.append("its health word is neither Healthy nor Unhealthy: it counts as unhealthy")
    notes += _odd_id(device_id)
    notes += _odd_nodes(found[-1].numa_nodes, there)
    return notes


def _odd_id(device_id: str) -> list[str]:
    notes = []
    if not device_id:
        notes.append("the ID is empty")
    elif device_id != device_id.strip():
        notes.append("the ID begins or ends with a blank")
    if any("\udc80" <= c <= "\udcff" for c in device_id):
        notes.append("the ID is no UTF-8")
    elif device_id and not device_id.isprintable():
        notes.append("the ID has control or invisible characters")
    length = len(device_id.encode("utf-8", "surrogateescape"))
    if length > _LONG_ID:
        notes.append(f"the ID has {length} bytes")
    return notes


def _odd_nodes(nodes: tuple[int, ...] | None, there: frozenset[int] | None) -> list[str]:
    if nodes is None:
        return []
    if not nodes:
        return ["a topology without nodes: GetAllocatableResources leaves the device out"]
    notes = []
    if any(node < 0 for node in nodes):
        notes.append(
            "a NUMA node below 0 (as sysfs has it for none): leave the topology out instead"
        )
    lacking = sorted({n for n in nodes if n >= 0 and there is not None and n not in there})
    if lacking:
        notes.append(f"this machine has no NUMA node {', '.join(map(str, lacking))}")
    if len(set(nodes)) < len(nodes):
        notes.append("a NUMA node is given twice")
    return notes


def _findings(message: DeviceMessage, rows: Sequence[ListedRow]) -> list[str]:
    found = []
    if message.size > RECEIVE_LIMIT:
        found.append(
            f"the message is larger than the {RECEIVE_LIMIT >> 20} MiB a kubelet takes: it drops "
            "the stream and the resource stays without devices (shorter IDs, or fewer devices)"
        )
    elif message.size > _NEARLY * RECEIVE_LIMIT:
        found.append(
            f"the message is {100 * message.size // RECEIVE_LIMIT} % of what a kubelet takes: some "
            "more devices, and it drops the stream"
        )
    if not message.sound:
        found.append(
            "a text in it is no UTF-8: a kubelet cannot decode the message and drops the stream"
        )
    if not rows:
        found.append("the list is empty: the Node shows the resource as 0")
    counts: dict[str, int] = {}
    first: dict[str, str] = {}
    for row in rows:
        for note in row.notes:
            counts[note] = counts.get(note, 0) + 1
            first.setdefault(note, row.device)
    found += _summed(counts, first)
    return found


def _summed(counts: Mapping[str, int], first: Mapping[str, str]) -> list[str]:
    """One sentence per kind of oddity, however many devices have it."""
    found = []
    for note, number in counts.items():
        name = first[note] if len(first[note]) <= 80 else f"{first[note][:79]}…"
        more = f" and {number - 1} more" if number > 1 else ""
        found.append(f"{name or '(empty)'}{more}: {note}")
    return found


def summary(row: DeviceListRow) -> str:
    """The message in a sentence."""
    devices = "1 device" if len(row.devices) == 1 else f"{len(row.devices)} devices"
    share = 100 * row.message_bytes / row.limit_bytes
    part = "less than 1" if 0 < share < 1 else f"{share:.0f}"
    return (
        f"{devices}, a kubelet counts {row.capacity} of which {row.allocatable} are healthy; the "
        f"message has {row.message_bytes} bytes, {part} % of the {row.limit_bytes >> 20} MiB that "
        "a kubelet takes"
    )
