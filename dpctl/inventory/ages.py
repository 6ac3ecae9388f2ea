"""How old what was read is, against how often the kubelet writes its Node. Pure."""

from __future__ import annotations

import re

from dpctl.model import Snapshot

# The kubelet computes its status every 10 s, with up to 4 % of jitter (kubelet-facts §4.3).
STATUS_PERIOD = 10.4


def checkpoint_age(snap: Snapshot) -> float | None:
    """Seconds since the checkpoint was written; None: not known, or one of the two clocks is wrong
    (it is from the future)."""
    checkpoint = snap.checkpoint
    if checkpoint is None or checkpoint.modified is None or snap.collected_at is None:
        return None
    age = snap.collected_at - checkpoint.modified
    return None if age < -STATUS_PERIOD else age


def is_node_newer(snap: Snapshot) -> bool:
    """Whether the kubelet has counted for its Node since it wrote the checkpoint: the Node has a
    later heartbeat (every status that is sent has a new one), or two periods have passed, in which
    a number that had changed would have been sent."""
    node, checkpoint, age = snap.node, snap.checkpoint, checkpoint_age(snap)
    if node is None or checkpoint is None or checkpoint.modified is None:
        return False
    if node.heartbeat is not None and node.heartbeat > checkpoint.modified:
        return True
    return age is not None and age > 2 * status_period(snap)


def status_period(snap: Snapshot) -> float:
    """Seconds between two looks of the kubelet at its Node, jitter included."""
    text = (snap.kubelet_config or {}).get("nodeStatusUpdateFrequency")
    seconds = _go_seconds(text) if isinstance(text, str) else None
    return seconds * 1.04 if seconds else STATUS_PERIOD


def _go_seconds(text: str) -> float | None:
    """Go's duration text (`10s`, `1m30s`, `500ms`) in seconds; None for anything else."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|m|s)", text)
    if not parts or "".join(n + u for n, u in parts) != text:
        return None
    return sum(float(n) * {"h": 3600, "m": 60, "s": 1, "ms": 0.001}[u] for n, u in parts)
