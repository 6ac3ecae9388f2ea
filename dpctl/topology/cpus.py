"""What the static CPU manager does for an admission: hints, SMT rule, exclusive CPUs. Pure.

Which CPUs are taken is `cpu_choice`. Source: kubelet-facts §5.4, §9.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from dpctl.topology.cpu_choice import CpuPlace, Layout, NotEnoughCpusError, choose
from dpctl.topology.hints import Hint, marked, mask_of, masks, nodes_of
from dpctl.topology.requests import RefusedError


class CpuOptions(NamedTuple):
    """cpuManagerPolicyOptions that bear on admission or on which CPUs are taken."""

    full_pcpus_only: bool = False
    distribute_across_numa: bool = False
    align_by_socket: bool = False
    distribute_across_cores: bool = False
    strict_reservation: bool = False


class CpuPool(NamedTuple):
    """CPUs under the static policy. With policy none there is no such pool."""

    layout: Layout
    reserved: Set[int]
    shared: Set[int]
    """The default set of the state file: what no container has alone (reserved ones too, unless
    strict-cpu-reservation keeps them out)."""
    options: CpuOptions = CpuOptions()

    @property
    def available(self) -> Set[int]:
        """What a container could get alone."""
        return self.shared - self.reserved


def cpu_hints(pool: CpuPool, request: int, reusable: Set[int]) -> tuple[Hint, ...]:
    """Hints for so many exclusive CPUs (above 0). Raises TooManyNodesError."""
    layout = pool.layout
    all_of = _per_node(layout.places, layout.places)
    free_of = _per_node(layout.places, pool.available)
    reused = [layout.places[cpu].numa_node for cpu in reusable if cpu in layout.places]
    needed_mask = mask_of(reused)
    width = len(layout.numa_nodes)
    possible: list[int] = []
    for mask in masks(layout.numa_nodes):
        nodes = nodes_of(mask)
        if sum(all_of[node] for node in nodes) >= request:
            width = min(width, len(nodes))
        if needed_mask & ~mask:
            continue
        if len(reused) + sum(free_of.get(node, 0) for node in nodes) >= request:
            possible.append(mask)
    hints = marked(possible, width)
    if not pool.options.align_by_socket:
        return hints
    return tuple(
        Hint(hint.mask, True) if _is_socket_aligned(layout, hint, width) else hint for hint in hints
    )


def _per_node(
    places: Mapping[int, CpuPlace], cpus: Mapping[int, object] | Set[int]
) -> dict[int, int]:
    counts: dict[int, int] = {}
    for cpu in cpus:
        if cpu in places:
            node = places[cpu].numa_node
            counts[node] = counts.get(node, 0) + 1
    return counts


def _is_socket_aligned(layout: Layout, hint: Hint, width: int) -> bool:
    per_socket = len(layout.numa_nodes) // max(len(layout.sockets), 1)
    if not per_socket or hint.mask is None:
        return False
    nodes = set(nodes_of(hint.mask))
    sockets = {place.socket for place in layout.places.values() if place.numa_node in nodes}
    return len(sockets) == -(-width // per_socket)


def take_cpus(pool: CpuPool, request: int, reusable: Set[int], mask: int | None) -> frozenset[int]:
    """The exclusive CPUs a container gets. Raises RefusedError."""
    _check_smt(pool, request)
    layout, options = pool.layout, pool.options
    allocatable = frozenset(pool.available | reusable)
    taken: frozenset[int] = frozenset()

    def take(candidates: frozenset[int], count: int) -> frozenset[int]:
        try:
            return choose(
                layout,
                candidates,
                count,
                spread=options.distribute_across_cores,
                distribute=options.distribute_across_numa,
                group=layout.per_core if options.full_pcpus_only else 1,
                by_socket=options.align_by_socket,
            )
        except NotEnoughCpusError as error:
            raise RefusedError.allocating(str(error)) from None

    if mask is not None:
        nodes = set(nodes_of(mask))
        places = layout.places
        if options.align_by_socket:
            sockets = {place.socket for place in places.values() if place.numa_node in nodes}
            aligned = frozenset(c for c in allocatable if places[c].socket in sockets)
        else:
            aligned = frozenset(c for c in allocatable if places[c].numa_node in nodes)
        taken = take(aligned, min(len(aligned), request))
    return taken | take(allocatable - taken, request - len(taken))


def _check_smt(pool: CpuPool, request: int) -> None:
    """full-pcpus-only: whole cores, and none that shares one with a reserved CPU."""
    if not pool.options.full_pcpus_only:
        return
    layout, per_core = pool.layout, pool.layout.per_core
    if request % per_core:
        raise RefusedError(
            "SMTAlignmentError",
            f"SMT Alignment Error: requested {request} cpus not multiple cpus per core = "
            f"{per_core}",
        )
    reserved_cores = {layout.places[c].core for c in pool.reserved if c in layout.places}
    free = sum(
        layout.places[cpu].core not in reserved_cores for cpu in pool.shared if cpu in layout.places
    )
    if request > free:
        raise RefusedError(
            "SMTAlignmentError",
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = "
            f"{free}, requested CPUs = {request}, CPUs per core = {per_core}",
        )
