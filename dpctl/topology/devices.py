"""What the device manager does for an admission: its hints, and which devices it would take. Pure.

Source: kubelet-facts §6.2, §9.2; the lab's kubelet allocates by this too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import NamedTuple

from dpctl.text import natural_key
from dpctl.topology.hints import Hint, marked, mask_of, masks
from dpctl.topology.requests import RefusedError

DEVICE_NODES_SINCE = 36
"""Minor from which hints are made of NUMA nodes with a device of the resource only."""


class Pool(NamedTuple):
    """The devices of one resource, as the kubelet has them in memory."""

    nodes: Mapping[str, tuple[int, ...] | None]
    """Every device that was listed, healthy or not, to its NUMA nodes as sent (-1 too); None: no
    topology; empty: a topology without nodes."""
    healthy: Set[str] | None
    """None: no plugin is registered."""
    in_use: Set[str] = frozenset()

    @property
    def has_topology(self) -> bool:
        """Whether any device has NUMA nodes: then the kubelet takes them all to care."""
        return any(self.nodes.values())

    @property
    def available(self) -> Set[str]:
        return (self.healthy or frozenset()) - self.in_use

    def mask(self, device_id: str) -> int:
        return mask_of(self.nodes.get(device_id) or ())


class Split(NamedTuple):
    """Devices by the topology manager's affinity, in the order they are taken."""

    aligned: Set[str]
    unaligned: Set[str]
    without: Set[str]


def device_hints(
    pool: Pool,
    request: int,
    reusable: Set[str],
    machine: Collection[int],
    minor: int | None = None,
) -> tuple[Hint, ...] | None:
    """Hints for one resource of one container (or pod). None: no device has topology, so the
    resource does not matter; empty: no combination of NUMA nodes would do.

    `machine`: its NUMA nodes; `minor`: of the kubelet, None for a new one.
    Raises TooManyNodesError.
    """
    if not pool.has_topology:
        return None
    if len(pool.available | reusable) < request:
        return ()
    device_masks = {device_id: pool.mask(device_id) for device_id in pool.nodes}
    nodes = set(machine)
    if minor is None or minor >= DEVICE_NODES_SINCE:
        bearing = mask_of(n for found in pool.nodes.values() for n in found or ())
        nodes = {node for node in nodes if bearing >> node & 1} or nodes
    width = len(nodes)
    possible: list[int] = []
    available = _counted(device_masks.get(i, 0) for i in pool.available)
    listed = _counted(device_masks.values())
    # A reused device without any topology is left out, one with an empty one fits no mask.
    reused = [device_masks.get(i, 0) for i in reusable if pool.nodes.get(i) is not None]
    for mask in masks(nodes):
        if _within(listed, mask) >= request:
            width = min(width, mask.bit_count())
        if not all(mask & device for device in reused):
            continue
        if len(reused) + _within(available, mask) >= request:
            possible.append(mask)
    return marked(possible, width)


def _counted(device_masks: Iterable[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for mask in device_masks:
        counts[mask] = counts.get(mask, 0) + 1
    return counts


def _within(counts: Mapping[int, int], mask: int) -> int:
    """How many devices have one of the mask's NUMA nodes."""
    return sum(count for device, count in counts.items() if device & mask)


def split(pool: Pool, available: Set[str], mask: int | None) -> Split:
    """Available devices by affinity; without one, or without topology, all are in the last set."""
    if mask is None or not pool.has_topology:
        return Split(frozenset(), frozenset(), available)
    aligned, unaligned, without = set(), set(), set()
    for device_id in available:
        nodes = [node for node in pool.nodes.get(device_id) or () if node != -1]
        if mask_of(nodes) & mask:
            aligned.add(device_id)
        elif nodes:
            unaligned.add(device_id)
        else:
            without.add(device_id)
    return Split(aligned, unaligned, without)


def in_natural_order(ids: Set[str]) -> list[str]:
    return sorted(ids, key=natural_key)


def no_preference(_available: Set[str], _must: Set[str], _size: int) -> Set[str]:
    """Of a plugin that does not offer GetPreferredAllocation."""
    return frozenset()


def take(
    resource: str,
    pool: Pool,
    required: int,
    reusable: Set[str],
    mask: int | None,
    *,
    order: Callable[[Set[str]], list[str]] = in_natural_order,
    preferred: Callable[[Set[str], Set[str], int], Set[str]] = no_preference,
) -> set[str]:
    """The devices that a container gets (kubelet-facts §6.2, steps 5 to 8).

    `order` stands for Go's map order, `preferred` for the plugin's GetPreferredAllocation.
    Raises RefusedError in the kubelet's words.
    """
    if pool.healthy is None:
        raise RefusedError.allocating(f"cannot allocate unregistered device {resource}")
    if not pool.healthy:
        raise RefusedError.allocating(
            f"no healthy devices present; cannot allocate unhealthy devices {resource}"
        )
    taken: set[str] = set()

    def enough(candidates: Set[str]) -> bool:
        for device_id in order(candidates - taken):
            if len(taken) == required:
                break
            taken.add(device_id)
        return len(taken) == required

    if required <= 0 or enough(reusable):
        return taken
    available = pool.available - taken
    missing = required - len(taken)
    if len(available) < missing:
        raise RefusedError.allocating(
            f"requested number of devices unavailable for {resource}. "
            f"Requested: {missing}, Available: {len(available)}"
        )
    found = split(pool, available, mask)
    if missing < len(found.aligned):
        wanted = preferred(found.aligned | taken, frozenset(taken), required)
        if enough(wanted & found.aligned) or enough(found.aligned):
            return taken
    elif enough(found.aligned):
        return taken
    else:
        wanted = preferred(available | taken, frozenset(taken), required)
        if enough(wanted & available) or enough(found.unaligned) or enough(found.without):
            return taken
    raise RefusedError.allocating(
        "unexpectedly allocated less resources than required. "
        f"Requested: {required}, Got: {len(taken)}"
    )
