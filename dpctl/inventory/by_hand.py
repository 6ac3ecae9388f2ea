"""Rows of what a plugin answers when it is asked by hand; its answers checked. Pure."""

from __future__ import annotations

from typing import NamedTuple


class OptionsRow(NamedTuple):
    """What a plugin offers."""

    socket: str
    resource: str | None
    """Null: could not be told."""
    resource_inferred: bool
    pre_start: bool
    """The kubelet calls PreStartContainer before each start of a container."""
    preferred_allocation: bool
    """The kubelet asks it which devices fit together."""
