"""How long the kubelet still keeps a key whose plugin is gone: an upper bound, and said to be one.

It counts five minutes from the moment it noticed, which it tells nobody. But it wrote the Node's
status when it did (allocatable 0), so the last write cannot be earlier (kubelet-facts §4.2, §4.5).
"""

from __future__ import annotations

from dpctl.inventory.resources import status_period
from dpctl.model import Snapshot

GRACE = 300.0


def time_left(snap: Snapshot) -> float | None:
    """Seconds at most; None where the Node does not say when its status was written."""
    node = snap.node
    if node is None or node.heartbeat is None or snap.collected_at is None:
        return None
    longest = GRACE + status_period(snap)
    # Clocks differ, and jump: never more than a whole grace, never less than nothing.
    return min(max(node.heartbeat + longest - snap.collected_at, 0.0), longest)


def words_left(left: float | None) -> str:
    if left is None:
        return "it lets go at most five minutes after the plugin was lost"
    if left == 0:
        return "it should have let go by now: is the kubelet running?"
    minutes, seconds = divmod(round(left), 60)
    amount = f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
    return f"at most {amount} are left (an upper bound)"
