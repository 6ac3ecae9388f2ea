"""Which keys of a Node may go: pure, over one snapshot (`remove`, `prune`)."""

from __future__ import annotations

from typing import NamedTuple

from dpctl.model import Snapshot
from dpctl.model.changes import Action, ChangePlan


class Removal(NamedTuple):
    """What a person asked for."""

    action: Action
    """REMOVE or PRUNE."""
    names: tuple[str, ...] = ()
    """REMOVE: keys in full."""
    match: tuple[str, ...] = ()
    """PRUNE: globs, none for all."""
    include: frozenset[str] = frozenset()
    """PRUNE: of `ghost`, `malformed`, `foreign`."""
    force_in_use: bool = False
    assume_gone: bool = False
    manager: str = "dpctl"


def plan_removal(snap: Snapshot, wanted: Removal) -> ChangePlan:
    """Every key with state, evidence, verdict and reason. For a fleet a Snapshot with `node` and
    `pods` alone will do: then there is no local evidence, and the plan says so.

    Raises BadDataError for a snapshot without a Node.
    """
    raise NotImplementedError
