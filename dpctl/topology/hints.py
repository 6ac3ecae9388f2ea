"""A topology hint, and sets of NUMA nodes as bit masks (bit 0 is NUMA node 0). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

MOST_NODES = 12
"""Hints are made for every combination of NUMA nodes: beyond this many nobody waits for them (a
kubelet refuses more than 8, unless an option raises that)."""
_BITS = 64


class TooManyNodesError(ValueError):
    """More NUMA nodes than hints can be computed for."""


class Hint(NamedTuple):
    """One way to place a request."""

    mask: int | None
    """None: anywhere."""
    preferred: bool
    """As few NUMA nodes as the request needs on an empty machine."""


Hints = Mapping[str, Sequence[Hint] | None]
"""What one provider answers: resource to hints. None: no preference; empty: nowhere."""


def mask_of(nodes: Iterable[int]) -> int:
    """The mask of these NUMA nodes; what is below 0 or above 63 is in no mask."""
    mask = 0
    for node in nodes:
        if 0 <= node < _BITS:
            mask |= 1 << node
    return mask


def nodes_of(mask: int) -> tuple[int, ...]:
    """NUMA nodes of a mask, ascending."""
    return tuple(node for node in range(mask.bit_length()) if mask >> node & 1)


def masks(nodes: Iterable[int]) -> list[int]:
    """Every combination of these NUMA nodes, small ones first. Raises TooManyNodesError."""
    found = sorted({node for node in nodes if 0 <= node < _BITS})
    if len(found) > MOST_NODES:
        raise TooManyNodesError(f"{len(found)} NUMA nodes are too many to combine")
    return [
        mask_of(combination)
        for size in range(1, len(found) + 1)
        for combination in combinations(found, size)
    ]


def marked(possible: Iterable[int], width: int) -> tuple[Hint, ...]:
    """Masks as hints: those of the smallest width that could ever do are preferred."""
    return tuple(Hint(mask, mask.bit_count() == width) for mask in possible)
