"""What a change of many Nodes comes to, as sums: to agree to, and to read at the end."""

from __future__ import annotations

from typing import NamedTuple


class FleetKind(NamedTuple):
    """Keys of one name that are the same case, and on how many Nodes."""

    resource: str
    state: str
    capacity: str | None
    allocatable: str | None
    verdict: str
    nodes: int
    reason: str


class FleetSum(NamedTuple):
    """How many came to the same end."""

    outcome: str
    nodes: int
    keys: int
