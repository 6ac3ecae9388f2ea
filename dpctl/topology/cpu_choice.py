"""Which CPUs the static CPU manager takes out of a set: whole sockets or NUMA nodes, whole cores,
then single CPUs; fewest free first. Pure.

Follows the kubelet's accumulator, since what one container takes decides where the next one fits.
prefer-align-cpus-by-uncorecache is not followed: it changes which CPUs of one NUMA node are taken,
and never how many of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import inf, sqrt
from typing import NamedTuple


class NotEnoughCpusError(Exception):
    """In the kubelet's words."""


class CpuPlace(NamedTuple):
    """Where a CPU (a thread) sits. `core` is unique on the machine."""

    core: int
    socket: int
    numa_node: int


class Layout:
    """The online CPUs of a machine."""

    def __init__(self, places: Mapping[int, CpuPlace]) -> None:
        self.places = places

    @cached_property
    def numa_nodes(self) -> tuple[int, ...]:
        """Those with CPUs."""
        return tuple(sorted({place.numa_node for place in self.places.values()}))

    @cached_property
    def sockets(self) -> tuple[int, ...]:
        return tuple(sorted({place.socket for place in self.places.values()}))

    @cached_property
    def per_core(self) -> int:
        """Threads of a core."""
        cores = {place.core for place in self.places.values()}
        return max(len(self.places) // max(len(cores), 1), 1)

    @cached_property
    def per_socket(self) -> int:
        return len(self.places) // max(len(self.sockets), 1)

    @cached_property
    def sizes(self) -> Mapping[str, Mapping[int, int]]:
        """Level to the number of CPUs of each of its members."""
        return {level: _counts(self, level, self.places) for level in ("core", "numa_node")}


def choose(
    layout: Layout,
    candidates: frozenset[int],
    count: int,
    *,
    spread: bool = False,
    distribute: bool = False,
    group: int = 1,
    by_socket: bool = False,
) -> frozenset[int]:
    """`count` of the candidates. `distribute`: evenly over NUMA nodes, in groups of `group`;
    `spread`: over cores. Raises NotEnoughCpusError."""
    if distribute and count % group == 0:
        return _distributed(layout, candidates, count, group, spread, by_socket)
    return _packed(layout, candidates, count, spread)


class _Accumulator:
    """Takes CPUs away from what is free until enough are taken."""

    def __init__(self, layout: Layout, free: Iterable[int], needed: int) -> None:
        self.layout = layout
        self.free = set(free)
        self.needed = needed
        self.taken: set[int] = set()

    def take(self, cpus: Iterable[int]) -> None:
        found = set(cpus)
        self.taken |= found
        self.free -= found
        self.needed -= len(found)

    def within(self, level: str, member: int) -> list[int]:
        return [c for c in self.free if getattr(self.layout.places[c], level) == member]

    def sorted_members(self, level: str, within: Iterable[int]) -> list[int]:
        """Members of a level, those with the fewest free CPUs first."""
        cpus = set(within)
        found = {getattr(self.layout.places[c], level) for c in cpus}
        counts = _counts(self.layout, level, self.free)
        return sorted(found, key=lambda member: (counts[member], member))

    # Sockets hold NUMA nodes, or the other way round; what is inside is ordered by what is outside.

    @property
    def outer(self) -> tuple[str, str]:
        if len(self.layout.sockets) >= len(self.layout.numa_nodes):
            return "numa_node", "socket"
        return "socket", "numa_node"

    def ordered(self, level: str) -> list[int]:
        first, second = self.outer
        if level == first:
            return self.sorted_members(first, self.free)
        if level == second:
            return [
                member
                for outer in self.sorted_members(first, self.free)
                for member in self.sorted_members(second, self.within(first, outer))
            ]
        return [
            core
            for member in self.ordered(second)
            for core in self.sorted_members("core", self.within(second, member))
        ]

    def take_full(self, level: str) -> None:
        """Every member that is wholly free, as long as that many are needed."""
        for member in dict.fromkeys(self.ordered(level)):
            cpus = self.within(level, member)
            if len(cpus) == self._size(level, member) and self.needed >= len(cpus) > 0:
                self.take(cpus)

    def _size(self, level: str, member: int) -> int:
        if level == "socket":
            return self.layout.per_socket
        if level == "core":
            return self.layout.per_core
        return self.layout.sizes[level][member]

    def singles(self, spread: bool) -> list[int]:
        level = "socket" if spread else "core"
        return [
            cpu
            for member in dict.fromkeys(self.ordered(level))
            for cpu in sorted(self.within(level, member))
        ]


def _counts(layout: Layout, level: str, cpus: Iterable[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for cpu in cpus:
        member = getattr(layout.places[cpu], level)
        counts[member] = counts.get(member, 0) + 1
    return counts


def _packed(layout: Layout, candidates: Iterable[int], count: int, spread: bool) -> frozenset[int]:
    found = _Accumulator(layout, candidates, count)
    if found.needed < 1:
        return frozenset()
    if count > len(found.free):
        raise NotEnoughCpusError(
            "not enough cpus available to satisfy request: "
            f"requested={count}, available={len(found.free)}"
        )
    for level in found.outer if spread else (*found.outer, "core"):
        found.take_full(level)
        if found.needed < 1:
            return frozenset(found.taken)
    found.take(found.singles(spread)[: found.needed])
    return frozenset(found.taken)


def _distributed(
    layout: Layout,
    candidates: frozenset[int],
    count: int,
    group: int,
    spread: bool,
    by_socket: bool,
) -> frozenset[int]:
    found = _Accumulator(layout, candidates, count)
    if count < 1:
        return frozenset()
    if count > len(found.free):
        raise NotEnoughCpusError(
            "not enough cpus available to satisfy request: "
            f"requested={count}, available={len(found.free)}"
        )
    numas = list(dict.fromkeys(found.ordered("numa_node")))
    free = _counts(layout, "numa_node", found.free)
    least, most = _width_range(layout, count, group, len(numas))
    for width in range(least, most + 1):
        plan = _best_plan(layout, numas, free, width, count, group, by_socket)
        if plan is not None:
            for node, number in plan.items():
                found.take(_packed(layout, found.within("numa_node", node), number, spread))
            return frozenset(found.taken)
    return _packed(layout, candidates, count, spread)


def _width_range(layout: Layout, count: int, group: int, available: int) -> tuple[int, int]:
    groups = (len(layout.places) - 1) // group + 1
    per_node = (groups - 1) // len(layout.numa_nodes) + 1
    needed = (count - 1) // group + 1
    return (needed - 1) // per_node + 1, min(needed, available)


def _best_plan(
    layout: Layout,
    numas: Sequence[int],
    free: Mapping[int, int],
    width: int,
    count: int,
    group: int,
    by_socket: bool,
) -> dict[int, int] | None:
    """CPUs per NUMA node for the most even rest over `width` of them; None: none will do."""
    best: tuple[float, dict[int, int]] | None = None
    best_in_socket = False
    for combo in combinations(numas, width):
        if best is not None and best[0] == 0 and (not by_socket or best_in_socket):
            break
        plan = _plan(combo, numas, free, count, group, by_socket)
        if plan is None:
            continue
        in_socket = by_socket and _share_socket(layout, combo)
        better = best is None or plan[0] < best[0]
        if by_socket and in_socket != best_in_socket:
            better = in_socket
        if better:
            best, best_in_socket = plan, in_socket
    return None if best is None else best[1]


def _plan(
    combo: Sequence[int],
    numas: Sequence[int],
    free: Mapping[int, int],
    count: int,
    group: int,
    by_socket: bool,
) -> tuple[float, dict[int, int]] | None:
    if sum(free[n] // group for n in combo) * group < count:
        return None
    each = count // len(combo) // group * group
    if by_socket:
        each = min([each, *(free[n] // group * group for n in combo)])
    if any(free[n] < each for n in combo):
        return None
    left = {n: free[n] - (each if n in combo else 0) for n in numas}
    rest = count - each * len(combo)
    plan = dict.fromkeys(combo, each)
    if not rest:
        return _deviation(left.values()), plan
    takers = [n for n in combo if left[n] >= group]
    best: tuple[float, dict[int, int]] | None = None
    for size in range(len(takers), 0, -1):
        for subset in combinations(takers, size):
            dealt = _dealt(subset, left, rest, group)
            if dealt is None:
                continue
            balance = _deviation(left[n] - dealt.get(n, 0) for n in numas)
            if best is None or balance < best[0]:
                best = balance, {n: each + dealt.get(n, 0) for n in combo}
    return best


def _dealt(
    subset: Sequence[int], left: Mapping[int, int], rest: int, group: int
) -> dict[int, int] | None:
    """The rest, a group at a time, round and round."""
    room = {n: left[n] for n in subset}
    if sum(n // group for n in room.values()) * group < rest:
        return None
    while rest > 0:
        for node in subset:
            if rest > 0 and room[node] >= group:
                room[node] -= group
                rest -= group
    return {n: left[n] - room[n] for n in subset}


def _share_socket(layout: Layout, combo: Sequence[int]) -> bool:
    return len({p.socket for p in layout.places.values() if p.numa_node in combo}) == 1


def _deviation(values: Iterable[int]) -> float:
    numbers = list(values)
    if not numbers:
        return inf
    mean = round(sum(numbers) / len(numbers), 3)
    return round(sqrt(sum((n - mean) ** 2 for n in numbers) / len(numbers)), 3)
