"""Columns of what a plugin says when it is asked by hand."""

from __future__ import annotations

from dpctl.columns import UNKNOWN, Column, Emphasis, View, or_unknown
from dpctl.inventory.by_hand_rows import (
    AllocationRow,
    DeviceListRow,
    ListedRow,
    OptionsRow,
    PreferenceRow,
    WaitRow,
)
from dpctl.text import natural_key


def _listed_emphasis(row: ListedRow) -> Emphasis | None:
    return None if row.health == "Healthy" else "bad"


LISTED_DEVICES: View[ListedRow] = View(
    kind="ListedDevice",
    row_type=ListedRow,
    name=lambda r: f"device/{r.device}",
    short=lambda r: r.device,
    key=lambda r: r.device,
    order=lambda r: natural_key(r.device),
    columns=(
        Column("DEVICE", lambda r: r.device, "device"),
        Column("HEALTH", lambda r: r.health, "health", emphasis=_listed_emphasis),
        Column("NUMA", lambda r: r.numa_nodes, "numaNodes"),
        Column("ENTRIES", lambda r: r.entries, "entries", wide=True, align="right"),
        Column(
            "NOTE",
            lambda r: "; ".join(r.notes) or None,
            "notes",
            emphasis=lambda r: "warn" if r.notes else None,
        ),
    ),
)

DEVICE_LIST: View[DeviceListRow] = View(
    kind="PluginDevices",
    row_type=DeviceListRow,
    name=lambda r: f"socket/{r.socket}",
    columns=(
        Column("SOCKET", lambda r: r.socket, "socket"),
        Column("RESOURCE", lambda r: or_unknown(r.resource), "resource"),
        Column("CAPACITY", lambda r: r.capacity, "capacity", align="right"),
        Column("ALLOCATABLE", lambda r: r.allocatable, "allocatable", align="right"),
    ),
)


def _resource(row: OptionsRow) -> object:
    if row.resource is None:
        return UNKNOWN
    return f"~{row.resource}" if row.resource_inferred else row.resource


OPTIONS: View[OptionsRow] = View(
    kind="PluginOptions",
    row_type=OptionsRow,
    name=lambda r: f"socket/{r.socket}",
    short=lambda r: r.socket,
    columns=(
        Column("SOCKET", lambda r: r.socket, "socket"),
        Column("RESOURCE", _resource, "resource"),
        Column("PRESTART", lambda r: r.pre_start, "preStart"),
        Column("PREFERRED", lambda r: r.preferred_allocation, "preferredAllocation"),
    ),
)


PREFERENCE: View[PreferenceRow] = View(
    kind="PluginPreference",
    row_type=PreferenceRow,
    name=lambda r: f"socket/{r.socket}",
    short=lambda r: " ".join(r.answer or ()),
    columns=(
        Column("SOCKET", lambda r: r.socket, "socket"),
        Column("SIZE", lambda r: r.size, "size", align="right"),
        Column("ANSWER", lambda r: r.answer, "answer"),
        Column("GOOD", lambda r: r.good, "good", emphasis=lambda r: None if r.good else "bad"),
        Column("TAKES", lambda r: r.takes, "takes"),
    ),
)


WAITED: View[WaitRow] = View(
    kind="Wait",
    row_type=WaitRow,
    name=lambda r: f"resource/{r.resource}",
    short=lambda r: r.resource,
    columns=(
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("CONDITION", lambda r: r.condition, "condition"),
        Column("WANTED", lambda r: r.wanted, "wanted", align="right"),
        Column("SEEN", lambda r: or_unknown(r.seen), "seen", align="right"),
        Column("MET", lambda r: r.met, "met", emphasis=lambda r: "good" if r.met else "bad"),
        Column("WAITING FOR", lambda r: r.waiting_for, "waitingFor", wide=True),
    ),
)


def _bad_if_refused(row: AllocationRow) -> Emphasis | None:
    return None if row.refused is None else "bad"


ALLOCATION: View[AllocationRow] = View(
    kind="PluginAllocation",
    row_type=AllocationRow,
    name=lambda r: f"socket/{r.socket}",
    short=lambda r: " ".join(r.devices),
    columns=(
        Column("SOCKET", lambda r: r.socket, "socket"),
        Column("DEVICES", lambda r: r.devices, "devices"),
        Column("PRESTARTED", lambda r: r.pre_started, "preStarted"),
        Column("REFUSED", lambda r: r.refused, "refused", emphasis=_bad_if_refused),
        Column("PROBLEMS", lambda r: r.problems, "problems"),
    ),
)
