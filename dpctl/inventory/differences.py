"""Two snapshots of a node → what changed between them, as rows. Pure.

Compared is what the reading commands show, not how it was found: no ages, no evidence, no process
IDs of a plugin that is the same otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from dpctl import cpuset
from dpctl.inventory.containers import container_rows
from dpctl.inventory.devices import Devices
from dpctl.inventory.plugins import plugin_rows
from dpctl.inventory.resources import resource_rows
from dpctl.inventory.rows import ContainerRow
from dpctl.model import Snapshot, Source
from dpctl.text import natural_key

WHATS = ("source", "node", "resource", "device", "container", "plugin", "state")
"""In the order in which rows are shown."""

Facts = Mapping[str, Mapping[str, str | None]]
"""Name to field to value as text; of a thing that came or went the first field is shown alone."""


class DifferenceRow(NamedTuple):
    """One field of one thing that is not what it was."""

    what: str
    """`source`, `node` (a key, or the Node itself), `resource`, `device`, `container`, `plugin`,
    `state` (a state file)."""
    name: str
    field: str
    a: str | None
    """In the first snapshot; null: not there."""
    b: str | None


def snapshot_differences(a: Snapshot, b: Snapshot) -> list[DifferenceRow]:
    """What was read in one snapshot alone is one row of its source, not a row for each thing that
    it would have told."""
    rows = _compared("source", _sources(a), _sources(b))
    for what, needs, facts in _SECTIONS:
        if _known(a, needs) and _known(b, needs):
            rows += _compared(what, facts(a), facts(b))
    return rows


def _known(snap: Snapshot, needs: Iterable[str]) -> bool:
    return any(getattr(snap, field) is not None for field in needs)


def _compared(what: str, a: Facts, b: Facts) -> list[DifferenceRow]:
    rows: list[DifferenceRow] = []
    for name in sorted({*a, *b}, key=natural_key):
        old, new = a.get(name), b.get(name)
        if old is None or new is None:
            field = next(iter(old or new or {}), "")
            before = old.get(field) if old is not None else None
            after = new.get(field) if new is not None else None
            rows.append(DifferenceRow(what, name, field, before, after))
            continue
        rows += [
            DifferenceRow(what, name, field, old.get(field), new.get(field))
            for field in dict.fromkeys((*old, *new))
            if old.get(field) != new.get(field)
        ]
    return rows


# --- what there is to compare ---


def _sources(snap: Snapshot) -> dict[str, dict[str, str | None]]:
    """Only how they fared; one that was not looked for at all is not there."""
    words = {"read": "read", "damaged": "damaged"}
    return {
        row.name: {"state": words.get(row.state, f"{row.state}: {row.reason or 'not there'}")}
        for row in snap.sources
        if row.name in set(Source)
    }


def _node(snap: Snapshot) -> dict[str, dict[str, str | None]]:
    node = snap.node
    if node is None:
        return {}
    found: dict[str, dict[str, str | None]] = {
        f"node/{node.name}": {
            "uid": node.uid,
            "ready": _text(node.ready),
            "bootID": node.boot_id,
            "kubeletVersion": node.kubelet_version,
        }
    }
    for key in {*node.capacity, *node.allocatable}:
        owners = (node.owners or {}).get(key, ())
        found[key] = {
            "capacity": node.capacity.get(key),
            "allocatable": node.allocatable.get(key),
            "owners": ", ".join(owners) or None,
        }
    return found


def _resources(snap: Snapshot) -> dict[str, dict[str, str | None]]:
    """Without the Node's numbers, which are `node`'s."""
    return {
        row.resource: {
            "state": str(row.state.value),
            "healthy": _text(row.healthy),
            "total": _text(row.total),
            "allocated": _text(row.allocated),
            "free": _text(row.free),
            "requested": _text(row.requested),
            "connected": _text(row.connected),
            "plugin": ", ".join(row.endpoints) or None,
        }
        for row in resource_rows(snap)
    }


def _devices(snap: Snapshot) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for row in Devices(snap).rows():
        name = f"{row.resource}/{'?' if row.device is None else row.device}"
        found[name] = {
            "state": str(row.state.value),
            "health": row.health,
            "holders": ", ".join(holder.label for holder in row.holders) or None,
            "numaNodes": None if row.numa_nodes is None else cpuset.render(row.numa_nodes),
        }
        if row.device is None:
            found[name]["count"] = str(row.count)
    return found


def _containers(snap: Snapshot) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for row in container_rows(snap):
        pod = row.pod or f"uid:{row.uid}"
        name = f"{row.namespace or '?'}/{pod}/{row.container}"
        held = row.resource or (f"claim {row.claim}" if row.claim else None)
        if held is not None:
            found[f"{name} {held}"] = {
                "devices": ", ".join(d.id for d in row.devices) or "none",
                "requested": _text(row.requested),
            }
        # CPUs and memory are the container's, whatever row they stand in.
        found[name] = {
            "uid": row.uid,
            "active": _text(row.active),
            "cpus": None if row.cpus is None else cpuset.render(row.cpus) or "shared pool",
            "memory": _memory(row),
        }
    return found


def _memory(row: ContainerRow) -> str | None:
    if row.memory is None:
        return None
    blocks = (
        f"{block.type}={block.size} on {cpuset.render(block.numa_nodes or ()) or '-'}"
        for block in row.memory
    )
    return ", ".join(blocks) or "none"


def _plugins(snap: Snapshot) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for row in plugin_rows(snap):
        if not row.certain:
            continue  # some listener, somewhere: `dpctl plugins` leaves it to --all, too
        name = f"{row.directory}/{row.endpoint}"
        if name in found:
            name = f"{name} (pid {row.pid})"
        found[name] = {
            "state": row.state,
            "resource": row.resource,
            "kubelet": row.kubelet,
            "options": None if row.options is None else ", ".join(row.options) or "none",
            "pod": f"{row.namespace}/{row.pod}" if row.pod else None,
            "pid": _text(row.pid),
        }
    return found


def _state_files(snap: Snapshot) -> dict[str, dict[str, str | None]]:
    from dpctl.inventory.state.reader import reader_for
    from dpctl.inventory.state.verify import FILES, check_rows

    version = snap.kubelet_version or (snap.node.kubelet_version if snap.node else None)
    reader = reader_for(version, snap.kubelet_config) if version else None
    if reader is None:
        return {}
    sources = [source for sources in FILES.values() for source in sources]
    return {
        row.file: {
            "verdict": str(row.verdict.value),
            "format": row.version,
            "why": row.reason,
        }
        for row in check_rows(snap, reader, sources)
    }


def _text(value: bool | int | None) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else str(value)


_STATE_FIELDS = ("cpu_state", "memory_state", "dra_state", "allocated_pods", "checkpoint")
_SECTIONS: tuple[tuple[str, tuple[str, ...], Callable[[Snapshot], Facts]], ...] = (
    ("node", ("node",), _node),
    ("resource", ("node", "checkpoint", "pod_resources"), _resources),
    ("device", ("checkpoint", "pod_resources"), _devices),
    ("container", ("checkpoint", "pod_resources"), _containers),
    ("plugin", ("directory",), _plugins),
    ("state", _STATE_FIELDS, _state_files),
)
