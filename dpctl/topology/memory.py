"""What the static memory manager does for an admission: hints, pinning, release. Pure.

A NUMA node is used either for containers on it alone or for one group of NUMA nodes (`cells`),
never both. Source: kubelet-facts §5.5, §9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dpctl.topology.hints import Hint, marked, masks, nodes_of
from dpctl.topology.requests import RefusedError


class MemoryTable(NamedTuple):
    """Bytes of one type on one NUMA node."""

    allocatable: int
    free: int


class MemoryNode(NamedTuple):
    """One NUMA node of the memory manager's machine state."""

    tables: Mapping[str, MemoryTable]
    """By `memory` or `hugepages-<size>`."""
    cells: tuple[int, ...]
    """The group it is used with, itself included; itself alone when unused."""
    assignments: int = 0


Machine = Mapping[int, MemoryNode]
"""By NUMA node."""
Reusable = Mapping[tuple[int, str], int]
"""Bytes that init containers of the pod have had, by (mask, type)."""
_NONE = MemoryTable(0, 0)


def memory_hints(
    machine: Machine, request: Mapping[str, int], reusable: Reusable
) -> dict[str, tuple[Hint, ...]]:
    """The same hints for each type. Empty: no NUMA nodes would do, which the topology manager takes
    for no preference: the refusal comes from `pin`. Raises TooManyNodesError."""
    hints = _hints(machine, request, reusable)
    return dict.fromkeys(request, hints) if hints else {}


def _hints(machine: Machine, request: Mapping[str, int], reusable: Reusable) -> tuple[Hint, ...]:
    width = len(machine)
    possible: list[int] = []
    for mask in masks(machine):
        nodes = nodes_of(mask)
        if any(_total(machine, nodes, kind).allocatable < size for kind, size in request.items()):
            continue
        width = min(width, len(nodes))
        if _is_barred(machine, nodes):
            continue
        if all(
            _total(machine, nodes, kind).free + reusable.get((mask, kind), 0) >= size
            for kind, size in request.items()
        ):
            possible.append(mask)
    return marked(possible, width)


def _total(machine: Machine, nodes: Iterable[int], kind: str) -> MemoryTable:
    tables = [machine[node].tables.get(kind, _NONE) for node in nodes]
    return MemoryTable(sum(t.allocatable for t in tables), sum(t.free for t in tables))


def _is_barred(machine: Machine, nodes: tuple[int, ...]) -> bool:
    if len(nodes) == 1:
        return len(machine[nodes[0]].cells) > 1
    return any(
        machine[n].assignments > 0 and tuple(sorted(machine[n].cells)) != nodes for n in nodes
    )


def pin(
    machine: Machine, request: Mapping[str, int], reusable: Reusable, hint: Hint
) -> tuple[int, ...]:
    """The NUMA nodes that a container's memory is pinned to. Raises RefusedError."""
    best = hint
    if best.mask is None:
        best = _default(machine, request, reusable)
        if hint.preferred and not best.preferred:
            raise _error("failed to find the default preferred hint")
    assert best.mask is not None
    if not _satisfies(machine, best.mask, request):
        before = best
        best = _extended(machine, request, reusable, best.mask)
        if before.preferred and not best.preferred:
            raise _error("failed to find the extended preferred hint")
    assert best.mask is not None
    nodes = nodes_of(best.mask)
    if len(nodes) > 1 and _is_barred(machine, nodes):
        raise _error("preferred hint violates NUMA node allocation")
    return nodes


def _default(machine: Machine, request: Mapping[str, int], reusable: Reusable) -> Hint:
    hints = _hints(machine, request, reusable)
    if not hints:
        raise _error(
            "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"
        )
    return _narrowest(hints)


def _extended(machine: Machine, request: Mapping[str, int], reusable: Reusable, mask: int) -> Hint:
    """The request's own hints that hold the topology manager's, which alone is too small."""
    hints = [h for h in _hints(machine, request, reusable) if h.mask and not mask & ~h.mask]
    if not hints:
        raise _error("failed to find NUMA nodes to extend the current topology hint")
    return _narrowest(hints)


def _narrowest(hints: Iterable[Hint]) -> Hint:
    return min(hints, key=lambda h: (not h.preferred, (h.mask or 0).bit_count(), h.mask or 0))


def _satisfies(machine: Machine, mask: int, request: Mapping[str, int]) -> bool:
    nodes = [node for node in nodes_of(mask) if node in machine]
    return all(_total(machine, nodes, kind).free >= size for kind, size in request.items())


def _error(text: str) -> RefusedError:
    return RefusedError.allocating(f"[memorymanager] {text}")


def pinned(machine: Machine, nodes: Sequence[int], kind: str, size: int) -> dict[int, MemoryNode]:
    """The machine after `size` bytes were taken from these NUMA nodes, in their order."""
    found = dict(machine)
    for number in nodes:
        node = found[number]
        table = node.tables.get(kind, _NONE)
        part = min(table.free, size)
        size -= part
        found[number] = MemoryNode(
            {**node.tables, kind: table._replace(free=table.free - part)},
            tuple(nodes),
            node.assignments + 1,
        )
    return found


def released(machine: Machine, nodes: Sequence[int], kind: str, size: int) -> dict[int, MemoryNode]:
    """The machine after a block was given back: what `pinned` did, undone."""
    found = dict(machine)
    for number in nodes:
        node = found.get(number)
        if node is None:
            continue
        table = node.tables.get(kind, _NONE)
        part = min(table.allocatable - table.free, size)
        size -= part
        left = node.assignments - 1
        found[number] = MemoryNode(
            {**node.tables, kind: table._replace(free=table.free + part)},
            node.cells if left > 0 else (number,),
            max(left, 0),
        )
    return found
