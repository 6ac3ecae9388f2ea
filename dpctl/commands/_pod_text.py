"""One pod in full, as `kubectl describe` would: what it holds, and what its plugins asked for."""

from __future__ import annotations

from collections.abc import Sequence

from dpctl import cpuset
from dpctl.commands._answer_text import answer_entries
from dpctl.inventory.rows import ContainerRow
from dpctl.model import Pod, Snapshot
from dpctl.outputs.describe import Part, describe_text
from dpctl.views import memory_text


def pod_text(snap: Snapshot, rows: Sequence[ContainerRow]) -> str:
    """`rows`: of one pod (of several, when a name stands in several namespaces)."""
    pods = dict.fromkeys((row.namespace, row.pod, row.uid) for row in rows)
    return "\n".join(
        describe_text(_pod(snap, [r for r in rows if (r.namespace, r.pod, r.uid) == key]))
        for key in pods
    )


def _pod(snap: Snapshot, rows: Sequence[ContainerRow]) -> Part:
    first = rows[0]
    pod = _api_pod(snap, first)
    entries: list[tuple[str, object]] = [
        ("Name", first.pod),
        ("Namespace", first.namespace),
        ("UID", first.uid),
    ]
    if pod is not None:
        entries += [("Phase", pod.phase), ("Reason", pod.reason), ("Message", pod.message)]
        entries += [("Controlled by", pod.owner), ("Node", pod.node_name)]
        entries = [(key, value) for key, value in entries if value is not None]
    holding = _pod_level(snap, first)
    if holding:
        entries.append(("Pod-level resources", Part.of(holding)))
    containers = dict.fromkeys(row.container for row in rows)
    entries.append(
        (
            "Containers",
            Part.of(
                (name, _container([r for r in rows if r.container == name])) for name in containers
            ),
        )
    )
    return Part.of(entries)


def _pod_level(snap: Snapshot, row: ContainerRow) -> list[tuple[str, object]]:
    """Overlaps with the containers' own on purpose (1.37): shown beside them, never added."""
    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        if (pod.namespace, pod.name) == (row.namespace, row.pod) and (pod.cpus or pod.memory):
            memory = tuple(
                f"{m.memory_type}={m.size} on {_nodes(m.numa_nodes)}" for m in pod.memory
            )
            return [("CPUs", cpuset.render(pod.cpus) or None), ("Memory", memory)]
    return []


def _container(rows: Sequence[ContainerRow]) -> Part:
    first = rows[0]
    cpus = "?" if first.cpus is None else cpuset.render(first.cpus) or "shared pool"
    memory: object = "?"
    if first.memory is not None:
        memory = tuple(f"{memory_text(b)} on {_nodes(b.numa_nodes)}" for b in first.memory) or None
    entries: list[tuple[str, object]] = [
        ("Kind", first.kind or "?"),
        ("CPUs", cpus),
        ("Memory", memory),
        ("Aligned", first.aligned),
        ("Known from", ", ".join(first.sources)),
    ]
    for row in rows:
        if row.claim is not None:
            entries.append((f"Claim {row.claim}", _holding(row)))
        elif row.resource is not None:
            entries.append((row.resource, _holding(row)))
    return Part.of(entries)


def _holding(row: ContainerRow) -> Part:
    devices = tuple(f"{d.id} on {_nodes(d.numa_nodes)}" for d in row.devices)
    entries: list[tuple[str, object]] = [("Devices", devices or "none")]
    if row.requested is not None:
        entries.append(("Requested", row.requested))
    entries += answer_entries(row.answer, row.cdi)
    return Part.of(entries)


def _nodes(numa_nodes: tuple[int, ...] | None) -> str:
    if not numa_nodes:
        return "no NUMA node"
    return f"NUMA node {cpuset.render(numa_nodes)}"


def _api_pod(snap: Snapshot, row: ContainerRow) -> Pod | None:
    return next(
        (p for p in snap.pods or () if (p.namespace, p.name) == (row.namespace, row.pod)), None
    )
