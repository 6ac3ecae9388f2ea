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


def _unmoved(snap: Snapshot) -> tuple[object, ...]:
    """All that devices and pods hang on: not when it was read, how long that took, or how much
    memory is free."""
    numa = None if snap.numa is None else snap.numa.node_of_cpu()
    return (numa, *snap._replace(collected_at=None, sources=(), numa=None))


class Reading(NamedTuple):
    """What one look at the node brought. Times are monotonic seconds."""

    snapshot: Snapshot
    began: float
    ended: float
    warnings: tuple[str, ...] = ()
    """Sources that were not read, a sentence each."""
    error: DpctlError | None = None
    """Nothing that a page could show was read."""


_LASTING = ("devices", "pods", "containers")
"""Rows that hang on no clock: of 10 000 devices they take half a second to make."""


class Facts:
    """Joins over one snapshot. Frozen but for the memory of what has been made."""

    def __init__(self, reading: Reading, before: Facts | None = None) -> None:
        """`before`: the facts of the last reading, whose joins go on to serve where nothing has
        changed, which on a quiet node is the rule."""
        self.reading = reading
        self.snapshot = reading.snapshot
        self._rows: dict[Hashable, Sequence[Any]] = {}
        if before is not None and _unmoved(before.snapshot) == _unmoved(self.snapshot):
            self._rows = {name: before._rows[name] for name in _LASTING if name in before._rows}
            if "joined" in vars(before):
                self.joined = before.joined

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
