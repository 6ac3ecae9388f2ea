"""The kubelet's state files below its root directory: where they are, and bounded reads.

The formats belong to `statefiles`; the device checkpoint, which lies elsewhere, to `checkpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from dpctl.errors import BadDataError
from dpctl.model import Source
from dpctl.model.statefiles import (
    CpuManagerState,
    DraHealthState,
    DraManagerState,
    MemoryManagerState,
    PodResourcesState,
)
from dpctl.sources.files import Keep, file_error, read_entry

# 1000 pods of ten containers are some 2 MB, and up to five checksums are computed over each byte.
_LARGEST = 16 << 20
_MOST_PODS = 100_000

State = CpuManagerState | MemoryManagerState | DraManagerState | DraHealthState | PodResourcesState


def _cpu(data: bytes, modified: float | None) -> State:
    from dpctl.statefiles.cpu_manager import parse_cpu_manager_state

    return parse_cpu_manager_state(data, modified=modified)


def _memory(data: bytes, modified: float | None) -> State:
    from dpctl.statefiles.memory_manager import parse_memory_manager_state

    return parse_memory_manager_state(data, modified=modified)


def _dra(data: bytes, modified: float | None) -> State:
    from dpctl.statefiles.dra_manager import parse_dra_manager_state

    return parse_dra_manager_state(data, modified=modified)


def _health(data: bytes, modified: float | None) -> State:
    from dpctl.statefiles.dra_health import parse_dra_health_state

    return parse_dra_health_state(data, modified=modified)


def _pods(data: bytes, modified: float | None) -> State:
    from dpctl.statefiles.pod_resources_state import parse_pod_resources_state

    return parse_pod_resources_state(data, modified=modified)


class StateFile(NamedTuple):
    """One of the files; its name is that of its source."""

    field: str
    """Of the snapshot."""
    parse: Callable[[bytes, float | None], State]
    absent: State


STATE_FILES: Mapping[Source, StateFile] = {
    Source.CPU_STATE: StateFile("cpu_state", _cpu, CpuManagerState(None, absent=True)),
    Source.MEMORY_STATE: StateFile("memory_state", _memory, MemoryManagerState(None, absent=True)),
    Source.DRA_STATE: StateFile("dra_state", _dra, DraManagerState(None, absent=True)),
    Source.DRA_HEALTH: StateFile("dra_health", _health, DraHealthState(absent=True)),
    Source.ALLOCATED_PODS: StateFile("allocated_pods", _pods, PodResourcesState(absent=True)),
    Source.ACTUATED_PODS: StateFile("actuated_pods", _pods, PodResourcesState(absent=True)),
}


def state_path(kubelet_root: str, source: Source) -> str:
    return os.path.join(kubelet_root, source)


def read_state(kubelet_root: str, source: Source, *, keep: Keep | None = None) -> State:
    """That file, with its mtime; where the root directory is there without it, a state that says
    so (`absent`). What is in it never makes this fail (`fault`).

    Raises UnreachableError (no root directory), DeniedError, NoFileError (too large, no file).
    """
    file = STATE_FILES[source]
    path = state_path(kubelet_root, source)
    if not os.path.lexists(path) and os.path.isdir(kubelet_root):
        return file.absent
    data, found = read_entry(path, _LARGEST)
    if keep is not None:
        keep(data)
    return file.parse(data, found.st_mtime)


def read_pod_dirs(kubelet_root: str) -> tuple[str, ...]:
    """UIDs of the pods that the kubelet keeps a directory for (`pods/<uid>`), ascending: those it
    knows, and gone ones not cleaned up yet (kubelet-facts §5.8).

    Raises UnreachableError, DeniedError, BadDataError (too many).
    """
    folder = os.path.join(kubelet_root, "pods")
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (OSError, ValueError) as e:
        raise file_error(e, folder) from e
    if len(found) > _MOST_PODS:
        raise BadDataError(f"{folder} holds more than {_MOST_PODS} directories")
    return tuple(sorted(found))
