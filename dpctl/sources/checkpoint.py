"""The device manager's checkpoint on disk: where it is, and a bounded read.

The format belongs to `statefiles.device_checkpoint`.
"""

from __future__ import annotations

import os

from dpctl.errors import DpctlError
from dpctl.model import Checkpoint
from dpctl.sources.files import Keep, read_entry
from dpctl.statefiles.device_checkpoint import parse_checkpoint

NAME = "kubelet_internal_checkpoint"
_KUBELET = "kubelet.sock"
# 1000 pods and 100 000 devices are some 15 MB.
_LARGEST = 64 << 20


def checkpoint_path(device_plugin_dir: str) -> str:
    return os.path.join(device_plugin_dir, NAME)


def read_checkpoint(device_plugin_dir: str, *, keep: Keep | None = None) -> Checkpoint:
    """`kubelet_internal_checkpoint` of that directory, with its mtime; an empty one (`absent`) when
    the kubelet's directory is there without it, as before the first plugin.

    Raises UnreachableError, DeniedError, BadDataError, each naming the path.
    """
    path = checkpoint_path(device_plugin_dir)
    if not os.path.lexists(path) and os.path.lexists(os.path.join(device_plugin_dir, _KUBELET)):
        return Checkpoint((), {}, 0, 0, absent=True)
    data, found = read_entry(path, _LARGEST)
    if keep is not None:
        keep(data)
    try:
        return parse_checkpoint(data, modified=found.st_mtime)
    except DpctlError as e:
        e.message = f"{path}: {e.message}"
        raise
