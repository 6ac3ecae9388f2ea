"""How long the kubelet still keeps a key whose plugin is gone: an upper bound, and said to be one.

It counts five minutes from the moment it noticed, which it tells nobody. But it wrote the Node's
status when it did (allocatable 0), so the last write cannot be earlier (kubelet-facts §4.2, §4.5).
"""

from __future__ import annotations

from dpctl.inventory.resources import status_period
from dpctl.model import Snapshot

GRACE = 300.0


def time_left(snap: Snapshot, resource: str | None = None) -> float | None:
    """Seconds at most; None where the Node does not say when its status was written. From the
    kubelet's log where that tells of the resource."""
    node = snap.node
    if node is None or node.heartbeat is None or snap.collected_at is None:
        return None
    longest = GRACE + status_period(snap)
    lost = noticed_at(snap, resource)
    if lost is not None:
        return min(max(lost + longest - snap.collected_at, 0.0), longest)
    # Clocks differ, and jump: never more than a whole grace, never less than nothing.
    return min(max(node.heartbeat + longest - snap.collected_at, 0.0), longest)


def noticed_at(snap: Snapshot, resource: str | None) -> float | None:
    """By the log, if that can be: not in the future, and not so long ago that it is over."""
    found = snap.lost_at.get(resource) if resource is not None else None
    if found is None or snap.collected_at is None:
        return None
    passed = snap.collected_at - found
    return found if -1.0 <= passed <= GRACE + status_period(snap) else None


def words_left(left: float | None, *, exact: bool = False) -> str:
    if left is None:
        return "it lets go at most five minutes after the plugin was lost"
    if left == 0:
        return "it should have let go by now: is the kubelet running?"
    minutes, seconds = divmod(round(left), 60)
    amount = f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
    if exact:
        return f"{amount} are left (by its log)"
    return f"at most {amount} are left (an upper bound)"
