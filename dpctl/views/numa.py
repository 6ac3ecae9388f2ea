"""Columns of `dpctl topology`: NUMA nodes, alignment, and the answer to `--fit`."""

from __future__ import annotations

from dpctl import cpuset
from dpctl.columns import UNKNOWN, Column, Emphasis, View
from dpctl.inventory.topology_rows import AlignmentRow, FitRow, NumaRow, TopologyRow
from dpctl.text import natural_key
from dpctl.topology.alignment import Alignment
from dpctl.views import bytes_text


def _cpus(cpus: tuple[int, ...] | None) -> object:
    return UNKNOWN if cpus is None else cpuset.render(cpus) or None


def _exclusive(row: NumaRow) -> object:
    return tuple(f"{e.holder}={cpuset.render(e.cpus)}" for e in row.exclusive_cpus)


def _bytes(size: int | None) -> object:
    return UNKNOWN if size is None else bytes_text(size)


def _pinned(row: NumaRow) -> object:
    return tuple(
        f"{use.type}={bytes_text(use.allocatable - use.free)}"
        for use in row.memory
        if use.allocatable != use.free
    )


def _counts(row: NumaRow, *, free: bool) -> object:
    counts: dict[str, int] = {}
    for device in row.devices:
        counted = not free or device.free
        counts[device.resource] = counts.get(device.resource, 0) + counted
    return tuple(f"{resource}={count}" for resource, count in counts.items())


NUMA_NODES: View[NumaRow] = View(
    kind="NumaNode",
    row_type=NumaRow,
    name=lambda r: f"numa/{r.numa_node}",
    short=lambda r: str(r.numa_node),
    columns=(
        Column("NUMA", lambda r: r.numa_node, "numaNode", align="right"),
        Column("CPUS", lambda r: _cpus(r.cpus), "cpus"),
        Column("RESERVED", lambda r: _cpus(r.reserved_cpus), "reservedCpus"),
        Column("SHARED", lambda r: _cpus(r.shared_cpus), "sharedCpus"),
        Column("EXCLUSIVE", _exclusive, "exclusiveCpus"),
        Column("MEMORY", lambda r: _bytes(r.memory_total), "memoryTotal"),
        Column("PINNED", _pinned, "memory"),
        Column("DEVICES", lambda r: _counts(r, free=False), "devices"),
        Column("FREE", lambda r: _counts(r, free=True), "devices"),
        Column("HUGEPAGES", lambda r: r.hugepages, "hugepages", wide=True),
        Column("DISTANCES", lambda r: r.distances, "distances", wide=True),
    ),
)

_EMPHASIS: dict[Alignment, Emphasis] = {
    Alignment.ALIGNED: "good",
    Alignment.SPREAD: "bad",
    Alignment.APART: "warn",
    Alignment.TOO_BIG: "warn",
}


def _emphasis(row: AlignmentRow) -> Emphasis | None:
    return _EMPHASIS.get(row.alignment) if row.alignment else None


def _pod(row: AlignmentRow) -> str:
    return row.pod if row.pod is not None else f"uid:{row.uid}"


ALIGNMENT: View[AlignmentRow] = View(
    kind="Alignment",
    row_type=AlignmentRow,
    name=lambda r: f"pod/{_pod(r)}",
    short=_pod,
    key=lambda r: (r.namespace, r.pod, r.uid, r.container),
    order=lambda r: tuple(natural_key(t or "") for t in (r.namespace, _pod(r), r.container)),
    columns=(
        Column("NAMESPACE", lambda r: UNKNOWN if r.namespace is None else r.namespace, "namespace"),
        Column("POD", _pod, "pod"),
        Column("CONTAINER", lambda r: r.container, "container"),
        Column("NUMA", lambda r: r.numa_nodes, "numaNodes"),
        Column(
            "ALIGNMENT",
            lambda r: UNKNOWN if r.alignment is None else r.alignment,
            "alignment",
            emphasis=_emphasis,
        ),
        Column("NOTE", lambda r: r.note, "note"),
        Column("NEEDED", lambda r: r.needed, "needed", wide=True, align="right"),
        Column("UID", lambda r: r.uid, "uid", wide=True),
    ),
)

TOPOLOGY: View[TopologyRow] = View(
    kind="Topology",
    row_type=TopologyRow,
    name=lambda _: "topology/node",
    columns=(
        Column("NUMA NODES", lambda r: tuple(n.numa_node for n in r.numa_nodes), "numaNodes"),
        Column("POLICIES", lambda r: {p.name: p.value for p in r.policies}, "policies"),
        Column("OFFLINE", lambda r: _cpus(r.offline_cpus), "offlineCpus"),
    ),
)

FIT: View[FitRow] = View(
    kind="Fit",
    row_type=FitRow,
    name=lambda r: f"pod/{r.pod}",
    short=lambda r: r.pod,
    columns=(
        Column("POD", lambda r: r.pod, "pod"),
        Column(
            "ADMITTED",
            lambda r: r.admitted,
            "admitted",
            emphasis=lambda r: "good" if r.admitted else "bad",
        ),
        Column("POLICY", lambda r: r.policy, "policy"),
        Column("SCOPE", lambda r: r.scope, "scope"),
        Column("REASON", lambda r: r.reason, "reason"),
        Column("MESSAGE", lambda r: r.message, "message"),
        Column("CONTAINER", lambda r: r.container, "container"),
        Column("WHY", lambda r: "; ".join(r.why) or None, "why"),
        Column("WARNINGS", lambda r: "; ".join(r.warnings) or None, "warnings", wide=True),
    ),
)
