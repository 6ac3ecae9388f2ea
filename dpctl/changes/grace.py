"""How long the kubelet still keeps a key whose plugin is gone: an upper bound, and said to be one.

It counts five minutes from the moment it noticed, which only its log tells; and anew from
its start, for every name in its checkpoint (kubelet-facts §4.1, §4.5). Where neither is known
the last write of the Node's status must do: it wrote that when it noticed (allocatable 0).
"""

from __future__ import annotations

from dpctl.inventory.ages import status_period
from dpctl.inventory.sockets import KUBELET_SOCKET
from dpctl.model import Snapshot
from dpctl.quantity import count

GRACE = 300.0


def time_left(snap: Snapshot, resource: str) -> float | None:
    """Seconds at most; None where the Node does not say when its status was written."""
    node = snap.node
    if node is None or node.heartbeat is None or snap.collected_at is None:
        return None
    longest = GRACE + status_period(snap)
    begun = _begun(snap, resource)
    at = begun[0] if begun is not None else node.heartbeat
    # Clocks differ, and jump: never more than a whole grace, never less than nothing.
    return min(max(at + longest - snap.collected_at, 0.0), longest)


def told_by(snap: Snapshot, resource: str) -> str:
    """What the time left is known by."""
    begun = _begun(snap, resource)
    return begun[1] if begun is not None else "an upper bound"


def _begun(snap: Snapshot, resource: str) -> tuple[float, str] | None:
    """When the grace began, and what tells; None: not known, or so long ago that it is over."""
    found = _told(snap, resource)
    if found is None or snap.collected_at is None:
        return None
    passed = snap.collected_at - found[0]
    return found if -1.0 <= passed <= GRACE + status_period(snap) else None


def _told(snap: Snapshot, resource: str) -> tuple[float, str] | None:
    lost, start = snap.lost_at.get(resource), _kubelet_start(snap)
    if lost is not None and (start is None or lost >= start):
        return lost, "by its log"
    if start is None or not _away_since(snap, resource, start, lost):
        return None
    return start, "counted from its start"


def _kubelet_start(snap: Snapshot) -> float | None:
    """Its device manager makes the socket at once after it has read the checkpoint; the process may
    have waited long for its container runtime before."""
    entry = snap.directory.entry(KUBELET_SOCKET) if snap.directory is not None else None
    return entry.modified if entry is not None else None


def _away_since(snap: Snapshot, resource: str, start: float, lost: float | None) -> bool:
    """Whether the plugin has not been connected since the kubelet's start: no plugin has, or the
    log knows only of an end before it and the Node of no device since."""
    written = snap.checkpoint.modified if snap.checkpoint is not None else None
    if written is not None and written < start:
        return True
    capacity = snap.node.capacity.get(resource) if snap.node is not None else None
    return lost is not None and not count(capacity)


def words_left(left: float | None, by: str | None = None) -> str:
    """`by`: what it is known by."""
    if left is None:
        return "it lets go at most five minutes after the plugin was lost"
    if left == 0:
        return "it should have let go by now: is the kubelet running?"
    minutes, seconds = divmod(round(left), 60)
    amount = f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
    return f"at most {amount} are left" + (f" ({by})" if by else "")
