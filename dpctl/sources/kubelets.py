"""Kubelets of this machine, and the machine's boot ID. Which one is *this* kubelet: the joins."""

from __future__ import annotations

from dpctl.env import Env
from dpctl.env.kubelets import (
    KubeletProcess,
    find_kubelet_processes,
    kubelet_process,
    node_name_of,
    root_of,
)
from dpctl.env.reading import read_limited
from dpctl.model import Kubelet
from dpctl.sources.processes import started

_LONGEST_BOOT_ID = 64


def find_kubelets(env: Env) -> tuple[Kubelet, ...]:
    """Those that can be told by their command line, those with our mounts first. None: a bundle."""
    if not env.live or env.proc.value is None:
        return ()
    processes = find_kubelet_processes(env.proc.value, env.host_root.value or "/")
    return tuple(_kubelet(process) for process in processes)


def kubelet_from_pid(env: Env, pid: int) -> Kubelet | None:
    """The process that holds the listener of kubelet.sock, whatever its name; None: gone."""
    if not env.live or env.proc.value is None:
        return None
    process = kubelet_process(env.proc.value, pid, env.host_root.value or "/")
    return _kubelet(process) if process is not None else None


def _kubelet(process: KubeletProcess) -> Kubelet:
    name, _ = node_name_of(process)
    config = process.flags.get("config")
    return Kubelet(
        pid=process.pid,
        arguments=process.arguments,
        node_name=name,
        started=started(process.proc, process.pid),
        config_path=_open_path(process, config) if config else None,
        root_dir=root_of(process),
    )


def _open_path(process: KubeletProcess, path: str) -> str | None:
    try:
        return process.open_path(path)
    except OSError:
        return None  # a loop of links below its root


def boot_id(env: Env) -> str | None:
    """`status.nodeInfo.bootID` of this machine (kubelet-facts §15); None: a bundle, or not told."""
    if not env.live or env.proc.value is None:
        return None
    try:
        data = read_limited(f"{env.proc.value}/sys/kernel/random/boot_id", _LONGEST_BOOT_ID)
    except OSError:
        return None
    return data.decode("ascii", "replace").strip() or None
