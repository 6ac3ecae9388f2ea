"""One reading: the snapshot, how it went, and the rows of it, each made once when it is shown."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from dpctl.errors import DpctlError
from dpctl.inventory.devices import Devices
from dpctl.inventory.topology_rows import TopologyRow
from dpctl.model import Snapshot

T = TypeVar("T")


class Reading(NamedTuple):
    """What one look at the node brought. Times are monotonic seconds."""

    snapshot: Snapshot
    began: float
    ended: float
    warnings: tuple[str, ...] = ()
    """Sources that were not read, a sentence each."""
    error: DpctlError | None = None
    """Nothing that a page could show was read."""


class Facts:
    """Joins over one snapshot. Frozen but for the memory of what has been made."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.snapshot = reading.snapshot
        self._rows: dict[Hashable, Sequence[Any]] = {}

    @cached_property
    def joined(self) -> Devices:
        return Devices(self.snapshot)

    @cached_property
    def topology(self) -> TopologyRow | str:
        """The NUMA picture's row, or why there is none."""
        from dpctl.inventory.numa import topology_row

        if self.snapshot.numa is None:
            return "the NUMA nodes of this machine were not read"
        try:
            return topology_row(self.snapshot)
        except ValueError as error:
            return str(error)

    def rows(self, name: Hashable, make: Callable[[Facts], Sequence[T]]) -> Sequence[T]:
        if name not in self._rows:
            self._rows[name] = make(self)
        return self._rows[name]
