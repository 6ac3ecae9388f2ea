"""Whether a count may be advertised under a name: pure, over one snapshot (`set`)."""

from __future__ import annotations

from dpctl.model import Snapshot
from dpctl.model.changes import ChangePlan


def plan_set(snap: Snapshot, resource: str, count: int, *, manager: str = "dpctl") -> ChangePlan:
    """One row; refused for names that a plugin serves or the kubelet tracks. 0 on a Ghost is taken
    under `dpctl-kubelet`."""
    raise NotImplementedError
