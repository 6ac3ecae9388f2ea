"""Whether what a container holds lies on one NUMA node (kubelet-facts §9.3), and if not, whether it
could. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from dpctl.topology.hints import TooManyNodesError, mask_of, masks, nodes_of


def is_aligned(
    device_nodes: Iterable[Collection[int] | None],
    cpu_nodes: Collection[int],
    memory_nodes: Iterable[Collection[int] | None],
) -> bool | None:
    """True: some node is in every device's set, is all that the CPUs use, and all of every block.

    None or empty sets are neutral (no topology, shared CPUs, memory not pinned). None when nothing
    has topology.
    """
    devices = [set(nodes) for nodes in device_nodes if nodes]
    exact = [set(cpu_nodes)] if cpu_nodes else []
    exact += [set(nodes) for nodes in memory_nodes if nodes]
    if not devices and not exact:
        return None
    candidates = set.intersection(*devices, *exact)
    return any(all(nodes == {node} for nodes in exact) for node in candidates)


class Alignment(StrEnum):
    """How what is held lies on the machine's NUMA nodes."""

    ALIGNED = "Aligned"
    """On one NUMA node."""
    TOO_BIG = "TooBig"
    """On several, and on no fewer than it needs: some resource does not fit one NUMA node even on
    an empty machine."""
    APART = "Apart"
    """Each resource fits one NUMA node, but no NUMA node has them all."""
    SPREAD = "Spread"
    """On more NUMA nodes than an empty machine would have needed."""


Nodes = tuple[int, ...] | None
"""NUMA nodes of one device; None: no topology."""


class Holding(NamedTuple):
    """What a container (or a pod) holds, by resource."""

    devices: Mapping[str, Sequence[Nodes]]
    cpus: Sequence[int] = ()
    """The NUMA node of each exclusive CPU."""
    memory: Sequence[tuple[str, int, Nodes]] = ()
    """Type, bytes and NUMA nodes of each block."""


class Room(NamedTuple):
    """What the machine has when nothing is held."""

    numa_nodes: tuple[int, ...]
    devices: Mapping[str, Sequence[Nodes]]
    cpus: Mapping[int, int]
    """NUMA node to CPUs."""
    memory: Mapping[int, Mapping[str, int]]
    """NUMA node to bytes by type."""


class Judgement(NamedTuple):
    alignment: Alignment | None
    """None: nothing has topology, or (too many NUMA nodes) it cannot be told."""
    numa_nodes: tuple[int, ...]
    """The fewest that hold all of it."""
    needed: int | None
    """As few NUMA nodes as an empty machine would do with; None: not even all of them."""
    too_big: tuple[str, ...]
    """Resources that do not fit one NUMA node."""


def judge(holding: Holding, room: Room) -> Judgement:
    """Where all of it lies, and whether an empty machine would have done better."""
    sets = [mask_of(n) for nodes in holding.devices.values() for n in nodes if n]
    exact = mask_of(holding.cpus)
    for _, _, nodes in holding.memory:
        exact |= mask_of(nodes or ())
    if not exact and not any(sets):
        return Judgement(None, (), None, ())
    try:
        combinations = masks(room.numa_nodes)
    except TooManyNodesError:
        return Judgement(None, nodes_of(exact | _union(sets)), None, ())
    used = next(
        (m for m in combinations if not exact & ~m and all(m & each for each in sets if each)),
        exact | _union(sets),
    )
    asked = _asked(holding)
    fits = {name: [m for m in combinations if _has(room, m, name, asked[name])] for name in asked}
    too_big = tuple(n for n, found in fits.items() if not any(m.bit_count() == 1 for m in found))
    together = [m for m in combinations if all(m in found for found in fits.values())]
    needed = min((m.bit_count() for m in together), default=None)
    width = used.bit_count()
    if width == 1:
        alignment = Alignment.ALIGNED
    elif needed is not None and needed < width:
        alignment = Alignment.SPREAD
    else:
        alignment = Alignment.TOO_BIG if too_big else Alignment.APART
    return Judgement(alignment, nodes_of(used), needed, too_big)


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def _asked(holding: Holding) -> dict[str, int]:
    """Resource to how much of it lies on NUMA nodes."""
    asked = {r: sum(1 for n in nodes if n) for r, nodes in holding.devices.items()}
    asked["cpu"] = len(holding.cpus)
    for kind, size, nodes in holding.memory:
        if nodes:
            asked[kind] = asked.get(kind, 0) + size
    return {name: amount for name, amount in asked.items() if amount}


def _has(room: Room, mask: int, name: str, amount: int) -> bool:
    nodes = nodes_of(mask)
    if name == "cpu":
        return sum(room.cpus.get(node, 0) for node in nodes) >= amount
    if name in room.devices:
        return sum(1 for n in room.devices[name] if n and mask_of(n) & mask) >= amount
    return sum(room.memory.get(node, {}).get(name, 0) for node in nodes) >= amount
