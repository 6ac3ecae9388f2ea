"""Whether what plugins asked the runtime for is there: device nodes and mounts of the host.

Only looks (`stat`), never opens: a path comes from a plugin and may be a device whose opening does
something. Links resolve inside the host's root.
"""

from __future__ import annotations

import os

from dpctl.env import resolve_inside
from dpctl.model import Checkpoint

# A checkpoint may name 10^5 paths; the same few thousand are what a real node has.
_MOST = 20_000


def read_host_paths(host_root: str, checkpoint: Checkpoint) -> dict[str, bool]:
    """Host path to whether it exists, for every absolute path of every answer (20 000 at most)."""
    found: dict[str, bool] = {}
    for allocation in checkpoint.allocations:
        answer = allocation.answer
        if answer is None:
            continue
        paths = (*(m.host_path for m in answer.mounts), *(d.host_path for d in answer.device_specs))
        for path in paths:
            if path not in found and len(found) < _MOST and path.startswith("/"):
                found[path] = _exists(host_root, path)
    return found


def _exists(host_root: str, path: str) -> bool:
    if "\0" in path or len(path) > 4096:
        return False
    try:
        return os.path.lexists(resolve_inside(host_root, path))
    except (OSError, ValueError):
        return False
