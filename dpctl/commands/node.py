"""`dpctl node`: what Nodes offer, and the changes of it."""

from __future__ import annotations

from dpctl.commands._node_list import command

__all__ = ["command"]
