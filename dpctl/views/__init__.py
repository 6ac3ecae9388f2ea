"""Columns, once per row type: table, wide, csv, custom-columns and the dashboard show them.

A column says where its value comes from and nothing of how it is written. Here are the views of one
node; `nodes` has those of Nodes as the API server sees them, `changes` and `leftovers` of changes,
`state` and `numa` of state files and NUMA nodes. `kinds` lists them all.
"""

from __future__ import annotations

from dpctl import cpuset
from dpctl.columns import UNKNOWN, Column, Emphasis, View, age_text, or_unknown
from dpctl.inventory.rows import (
    ContainerRow,
    DeviceRow,
    DeviceState,
    FailedPodRow,
    GroupRow,
    HeldMemory,
    PluginRow,
    ResourceRow,
    ResourceState,
    UserRow,
)
from dpctl.model import EnvRow
from dpctl.text import natural_key

_RESOURCE_EMPHASIS: dict[ResourceState, Emphasis] = {
    ResourceState.READY: "good",
    ResourceState.MALFORMED: "bad",
    ResourceState.MISMATCH: "bad",
    ResourceState.GHOST: "bad",
    ResourceState.UNREGISTERED: "bad",
    ResourceState.DEGRADED: "warn",
    ResourceState.GRACE: "warn",
    ResourceState.STALE: "warn",
    ResourceState.ABSENT: "warn",
    ResourceState.UNKNOWN: "warn",
}


def _on_node(row: ResourceRow, value: str | None) -> object:
    return value if row.node_read else UNKNOWN


def _healthy(row: ResourceRow) -> str:
    healthy = "?" if row.healthy is None else str(row.healthy)
    return f"{healthy}/{'?' if row.total is None else row.total}"


def _numa_counts(row: ResourceRow) -> object:
    if row.numa is None:
        return UNKNOWN
    return " ".join(f"{node}:{devices}" for node, devices in row.numa.items()) or None


def _plugin(row: ResourceRow) -> object:
    mark = "~" if row.endpoints_inferred else ""
    return tuple(mark + endpoint for endpoint in row.endpoints) or None


def _node_numbers(row: ResourceRow) -> object:
    if not row.node_read:
        return UNKNOWN
    if row.capacity is None and row.allocatable is None:
        return None
    return f"{row.capacity or '-'}/{row.allocatable or '-'}"


def _checkpoint(row: ResourceRow) -> object:
    if row.tracked is None:
        return UNKNOWN
    return row.registered


RESOURCES: View[ResourceRow] = View(
    kind="Resource",
    row_type=ResourceRow,
    name=lambda r: f"resource/{r.resource}",
    short=lambda r: r.resource,
    columns=(
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column(
            "STATE", lambda r: r.state, "state", emphasis=lambda r: _RESOURCE_EMPHASIS.get(r.state)
        ),
        Column("DEVICES", _healthy, "healthy", align="right"),
        Column("ALLOCATED", lambda r: or_unknown(r.allocated), "allocated", align="right"),
        Column("FREE", lambda r: or_unknown(r.free), "free", align="right"),
        Column("NUMA", _numa_counts, "numa"),
        Column("PLUGIN", _plugin, "endpoints"),
        Column("NODE", _node_numbers, "capacity"),
        Column("CHECKPOINT", _checkpoint, "registered", wide=True, align="right"),
        Column("KUBELET", lambda r: r.kubelet, "kubelet", wide=True, align="right"),
        Column(
            "REQUESTED", lambda r: or_unknown(r.requested), "requested", wide=True, align="right"
        ),
        Column(
            "OWNER",
            lambda r: UNKNOWN if r.owners is None else r.owners,
            "owners",
            wide=True,
        ),
        Column("NOTE", lambda r: "; ".join((*r.notes, *r.evidence)) or None, "evidence", wide=True),
    ),
)


_DEVICE_EMPHASIS: dict[DeviceState, Emphasis] = {
    DeviceState.UNHEALTHY: "bad",
    DeviceState.MISSING: "bad",
    DeviceState.ORPHANED: "warn",
    DeviceState.UNKNOWN: "warn",
    DeviceState.FREE: "good",
}


def _device(row: DeviceRow) -> object:
    if row.device is not None:
        return row.device
    return UNKNOWN if row.count == 1 else f"? (×{row.count})"


def _device_numa(row: DeviceRow) -> object:
    return row.numa_nodes if row.numa_known else UNKNOWN


def _health_emphasis(row: DeviceRow) -> Emphasis | None:
    return "bad" if row.health == "Unhealthy" else None


DEVICES: View[DeviceRow] = View(
    kind="Device",
    row_type=DeviceRow,
    name=lambda r: f"device/{r.resource}/{'?' if r.device is None else r.device}",
    short=lambda r: "?" if r.device is None else r.device,
    key=lambda r: (r.resource, r.device),
    order=lambda r: (natural_key(r.resource), r.device is None, natural_key(r.device or "")),
    columns=(
        Column("DEVICE", _device, "device"),
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("HEALTH", lambda r: or_unknown(r.health), "health", emphasis=_health_emphasis),
        Column("NUMA", _device_numa, "numaNodes"),
        Column(
            "STATE", lambda r: r.state, "state", emphasis=lambda r: _DEVICE_EMPHASIS.get(r.state)
        ),
        Column("HOLDER", lambda r: tuple(h.label for h in r.holders), "holders"),
        Column("BASE", lambda r: r.base, "base", wide=True),
        Column("ADDRESS", lambda r: r.address, "address", wide=True),
        Column("SOURCES", lambda r: r.sources, "sources", wide=True),
    ),
)

GROUPS: View[GroupRow] = View(
    kind="DeviceGroup",
    row_type=GroupRow,
    name=lambda r: f"group/{r.group}",
    short=lambda r: r.group,
    key=lambda r: (r.group, r.resource),
    order=lambda r: (natural_key(r.group), natural_key(r.resource)),
    columns=(
        Column("GROUP", lambda r: r.group, "group"),
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("DEVICES", lambda r: r.devices, "devices", align="right"),
        Column("HEALTHY", lambda r: r.healthy, "healthy", align="right"),
        Column("ALLOCATED", lambda r: r.allocated, "allocated", align="right"),
        Column("FREE", lambda r: r.free, "free", align="right"),
        Column("DEVICE IDS", lambda r: r.device_ids, "deviceIds", wide=True),
    ),
)


def bytes_text(size: int) -> str:
    """Bytes as the largest exact binary quantity: `1Gi`, `512Mi`, `1000`."""
    for power, suffix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size and size % (1 << 10 * power) == 0:
            return f"{size >> 10 * power}{suffix}"
    return str(size)


def _memory(row: ContainerRow) -> object:
    if row.memory is None:
        return UNKNOWN
    totals: dict[str, int] = {}
    for block in row.memory:
        totals[block.type] = totals.get(block.type, 0) + block.size
    return tuple(
        bytes_text(size) if kind == "memory" else f"{kind}={bytes_text(size)}"
        for kind, size in totals.items()
    )


def _cpus(row: ContainerRow) -> object:
    return UNKNOWN if row.cpus is None else cpuset.render(row.cpus) or None


def _what(row: ContainerRow) -> object:
    return f"claim:{row.claim}" if row.claim is not None else row.resource


def _pod_label(row: ContainerRow) -> str:
    return row.pod if row.pod is not None else f"uid:{row.uid}"


def _aligned_emphasis(row: ContainerRow) -> Emphasis | None:
    return "warn" if row.aligned is False else None


CONTAINERS: View[ContainerRow] = View(
    kind="Container",
    row_type=ContainerRow,
    name=lambda r: f"pod/{_pod_label(r)}",
    short=_pod_label,
    key=lambda r: (r.namespace, r.pod, r.uid, r.container, r.resource, r.claim),
    order=lambda r: tuple(
        natural_key(t or "") for t in (r.namespace, _pod_label(r), r.container, r.resource, r.claim)
    ),
    columns=(
        Column("NAMESPACE", lambda r: or_unknown(r.namespace), "namespace"),
        Column("POD", _pod_label, "pod"),
        Column("CONTAINER", lambda r: r.container, "container"),
        Column("RESOURCE", _what, "resource"),
        Column("DEVICES", lambda r: tuple(d.id for d in r.devices), "devices"),
        Column("NUMA", lambda r: r.numa_nodes, "numaNodes"),
        Column("CPUS", _cpus, "cpus"),
        Column("MEMORY", _memory, "memory"),
        Column("ALIGNED", lambda r: r.aligned, "aligned", emphasis=_aligned_emphasis),
        Column("KIND", lambda r: or_unknown(r.kind), "kind", wide=True),
        Column("REQUESTED", lambda r: r.requested, "requested", wide=True, align="right"),
        Column("CDI", lambda r: r.cdi_devices, "cdiDevices", wide=True),
        Column("SOURCES", lambda r: r.sources, "sources", wide=True),
    ),
)

FAILED_PODS: View[FailedPodRow] = View(
    kind="FailedPod",
    row_type=FailedPodRow,
    name=lambda r: f"pod/{r.pod}",
    short=lambda r: r.pod,
    key=lambda r: r.uid,
    order=lambda r: (natural_key(r.namespace), natural_key(r.pod)),
    columns=(
        Column("NAMESPACE", lambda r: r.namespace, "namespace"),
        Column("POD", lambda r: r.pod, "pod"),
        Column("REASON", lambda r: r.reason, "reason", emphasis=lambda _: "bad"),
        Column("REQUESTS", lambda r: r.requests, "requests"),
        Column("MESSAGE", lambda r: r.message, "message"),
        Column("OWNER", lambda r: r.owner, "owner", wide=True),
        Column("UID", lambda r: r.uid, "uid", wide=True),
    ),
)

_PLUGIN_EMPHASIS: dict[str, Emphasis] = {
    "Serving": "good",
    "Unlinked": "bad",
    "Dead": "bad",
    "Hung": "bad",
}


def _plugin_resource(row: PluginRow) -> object:
    if row.resource is None:
        return UNKNOWN if row.directory == "device-plugins" else None
    return f"~{row.resource}" if row.resource_inferred else row.resource


def _options(row: PluginRow) -> object:
    if row.options is None:
        return None
    return row.options or "none"


def _process(row: PluginRow) -> object:
    if row.pid is None:
        return None
    return f"{row.pid}/{row.command or '?'}"


def _plugin_pod(row: PluginRow) -> object:
    if row.pod is not None:
        return f"{row.namespace}/{row.pod}"
    return f"uid:{row.pod_uid}" if row.pod_uid else None


def _plugin_kubelet(row: PluginRow) -> object:
    if row.kubelet is None:
        return UNKNOWN if row.directory == "device-plugins" else None
    return row.kubelet


def _plugin_state(row: PluginRow) -> object:
    return UNKNOWN if row.state == "Unknown" else row.state


PLUGINS: View[PluginRow] = View(
    kind="Plugin",
    row_type=PluginRow,
    name=lambda r: f"plugin/{r.endpoint}",
    short=lambda r: r.endpoint,
    key=lambda r: (r.directory, r.endpoint, r.pid),
    order=lambda r: (r.directory, natural_key(r.endpoint), r.pid or 0, r.state),
    columns=(
        Column("ENDPOINT", lambda r: r.endpoint, "endpoint"),
        Column("RESOURCE", _plugin_resource, "resource"),
        Column("STATE", _plugin_state, "state", emphasis=lambda r: _PLUGIN_EMPHASIS.get(r.state)),
        Column("KUBELET", _plugin_kubelet, "kubelet"),
        Column("OPTIONS", _options, "options"),
        Column("PID/COMMAND", _process, "pid"),
        Column("POD", _plugin_pod, "pod"),
        Column("AGE", lambda r: age_text(r.age), "age"),
        Column("DIRECTORY", lambda r: r.directory, "directory", wide=True),
        Column("TYPE", lambda r: r.type, "type", wide=True),
        Column("VERSIONS", lambda r: r.versions, "versions", wide=True),
        Column("NOTE", lambda r: r.detail or r.resource_evidence, "detail", wide=True),
    ),
)

USERS: View[UserRow] = View(
    kind="User",
    row_type=UserRow,
    name=lambda r: f"{r.what}/{r.container if r.what == 'container' else r.pid}",
    key=lambda r: (r.what, r.device, r.resource, r.namespace, r.pod, r.container, r.pid),
    order=lambda r: (r.what, natural_key(r.device), natural_key(r.pod or ""), r.pid or 0),
    columns=(
        Column("DEVICE", lambda r: r.device, "device"),
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("WHAT", lambda r: r.what, "what"),
        Column("NAMESPACE", lambda r: r.namespace, "namespace"),
        Column("POD", lambda r: r.pod, "pod"),
        Column("CONTAINER", lambda r: r.container, "container"),
        Column("STATE", lambda r: or_unknown(r.state), "state"),
        Column("PID", lambda r: r.pid, "pid", align="right"),
        Column("COMMAND", lambda r: r.command, "command"),
        Column("SOURCES", lambda r: r.sources, "sources", wide=True),
    ),
)


def _exists(row: EnvRow) -> object:
    return row.exists


ENVIRONMENT: View[EnvRow] = View(
    kind="Setting",
    row_type=EnvRow,
    name=lambda r: f"setting/{r.name}",
    short=lambda r: r.name,
    columns=(
        Column("NAME", lambda r: r.name, "name"),
        Column("VALUE", lambda r: r.value, "value"),
        Column("ORIGIN", lambda r: r.origin, "origin"),
        Column("EXISTS", _exists, "exists", wide=True),
        Column("TRIED", lambda r: r.tried, "tried", wide=True),
        Column("NOTE", lambda r: r.note, "note", wide=True),
    ),
)


def memory_text(block: HeldMemory) -> str:
    return f"{block.type}={bytes_text(block.size)}"
