"""What the machine has of what plugins ask the runtime for: paths, and CDI specifications."""

from __future__ import annotations

from typing import NamedTuple


class HostPath(NamedTuple):
    """A path of the host, after one look at it (never opened)."""

    kind: str | None
    """`character device`, `block device`, `file`, `directory`, `socket`, `FIFO`; None: nothing is
    there, or (`reason`) it could not be looked at."""
    mode: int | None = None
    """Permission bits."""
    number: str | None = None
    """Of a device, `195:0`."""
    linked: bool | None = None
    """Of a device: `/dev/char/195:0` (`/dev/block/…`) leads to it."""
    reason: str | None = None
    """Why it could not be looked at."""


class CdiDevice(NamedTuple):
    name: str
    """Without vendor and class."""
    device_nodes: tuple[str, ...]
    """Paths that must be on the host: those whose type and number the specification leaves out."""


class CdiSpec(NamedTuple):
    """One file of a CDI directory. One that a runtime does not load has an `error` and no more."""

    path: str
    """As the host calls it."""
    priority: int
    """Place of its directory; the higher one wins."""
    kind: str = ""
    """`vendor.example/class`."""
    version: str = ""
    devices: tuple[CdiDevice, ...] = ()
    device_nodes: tuple[str, ...] = ()
    """As a device's, for every device of the file."""
    error: str | None = None
