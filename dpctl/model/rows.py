"""Rows that are not joins of the inventory: where paths came from, how sources fared."""

from __future__ import annotations

from typing import NamedTuple


class EnvRow(NamedTuple):
    """One setting of `dpctl env`."""

    name: str
    value: str | None
    origin: str
    """`flag`, `environment NAME`, `config FILE`, `kubelet PID`, `layout NAME`, `default`…"""
    exists: bool | None
    """None: not a path, or cannot be told."""
    tried: tuple[str, ...] = ()
    note: str | None = None


class SourceRow(NamedTuple):
    """How one source fared in this run."""

    name: str
    """Field of `Source`, e.g. `checkpoint`."""
    where: str
    """Path or address."""
    state: str
    """`read`, `damaged` (read, and not to be trusted), `failed`, `missing` (not there: no such
    file, no such record in a bundle) or `skipped` (deliberately not asked); `reason` says why."""
    reason: str | None = None
    hint: str | None = None
    code: int = 0
    """The exit code this failure stands for; 0 when read or skipped."""
    seconds: float | None = None

    @property
    def read(self) -> bool:
        return self.state in ("read", "damaged")
