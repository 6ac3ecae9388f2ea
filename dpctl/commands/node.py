"""`dpctl node`: what Nodes offer, and the changes of it."""

from __future__ import annotations

from dpctl.commands._node_list import command
from dpctl.commands._node_removal import prune, remove
from dpctl.commands._node_set import set_count
from dpctl.commands._node_undo import undo

__all__ = ["SUBCOMMANDS", "command"]

SUBCOMMANDS = {"set": set_count, "remove": remove, "prune": prune, "undo": undo}
