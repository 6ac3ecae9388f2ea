"""The device manager's checkpoint on disk: where it is, and a bounded read.

The format belongs to `statefiles.device_checkpoint`.
"""

from __future__ import annotations

import os

from dpctl.errors import DpctlError, UnreachableError
from dpctl.model import Checkpoint
from dpctl.sources.files import read_with_stat
from dpctl.statefiles.device_checkpoint import parse_checkpoint

NAME = "kubelet_internal_checkpoint"
# 1000 pods and 100 000 devices are some 15 MB.
_LARGEST = 64 << 20


def checkpoint_path(device_plugin_dir: str) -> str:
    return os.path.join(device_plugin_dir, NAME)


def read_checkpoint(device_plugin_dir: str) -> Checkpoint:
    """`kubelet_internal_checkpoint` of that directory, with its mtime.

    Raises UnreachableError, DeniedError, BadDataError, each naming the path.
    """
    path = checkpoint_path(device_plugin_dir)
    try:
        data, found = read_with_stat(path, _LARGEST)
    except UnreachableError as e:
        if os.path.isdir(device_plugin_dir):
            raise UnreachableError(
                e.message,
                "the kubelet writes it when the first device plugin lists its devices; "
                f"`ls -la {device_plugin_dir}`",
            ) from e
        raise
    try:
        return parse_checkpoint(data, modified=found.st_mtime)
    except DpctlError as e:
        e.message = f"{path}: {e.message}"
        raise
