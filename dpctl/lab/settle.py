"""When a lab has come to rest: every pod decided, every plugin's word with the kubelet, the Node
written. Asks, changes nothing but the status that is due anyway."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dpctl.lab import node_tree, sockets
from dpctl.lab.child import ChildError

if TYPE_CHECKING:
    from dpctl.lab.supervisor import Plugin, Supervisor

_LOOK = 0.01
"""Seconds between two looks."""


class UnsettledError(Exception):
    """What is still open when the patience is over."""


def settle(supervisor: Supervisor, timeout: float = 15.0, *, status: bool = True) -> None:
    """Wait until nothing is open, then have the kubelet write the Node's status once.

    Raises UnsettledError naming what is open, ChildError.
    """
    until = time.monotonic() + timeout
    while (still := open_matter(supervisor)) is not None:
        if time.monotonic() > until:
            raise UnsettledError(f"not settled after {timeout:g} s: {still}")
        time.sleep(_LOOK)
    if status and supervisor.kubelet is not None and supervisor.kubelet.running():
        supervisor.kubelet.ask("sync")


def open_matter(supervisor: Supervisor) -> str | None:
    """The first thing that has not come to rest; None: all have."""
    kubelet = supervisor.kubelet
    if kubelet is None or not kubelet.running():
        return None
    return _open_plugin(supervisor) or _open_pod(supervisor)


def _open_pod(supervisor: Supervisor) -> str | None:
    pods, _ = supervisor.store.list("pods")
    for pod in pods:
        metadata, phase = pod["metadata"], pod["status"].get("phase")
        name = f"pod {metadata['namespace']}/{metadata['name']}"
        node = pod["spec"].get("nodeName")
        conditions = pod["status"].get("conditions", [])
        if node is None and phase == "Pending":
            if not any(c.get("reason") == "Unschedulable" for c in conditions):
                return f"{name} waits for the scheduler"
        elif node == supervisor.spec.node_name:
            if metadata.get("deletionTimestamp"):
                return f"{name} is being deleted"
            if phase == "Pending":
                return f"{name} waits for admission"
    return None


def _open_plugin(supervisor: Supervisor) -> str | None:
    assert supervisor.kubelet is not None
    known = supervisor.kubelet.ask("state")
    running = [p for p in supervisor.plugins.values() if p.running() and not p.paused]
    resources = [p.spec.resource for p in running]
    for plugin in supervisor.plugins.values():
        resource = plugin.spec.resource
        if resources.count(resource) > 1 or plugin.paused:
            continue  # two for one resource: whose devices count is what somebody tries out
        if plugin in running:
            problem = _open_running(supervisor, plugin, known.get(resource))
        elif known.get(resource, {}).get("socket") and plugin.child is not None:
            problem = "is gone, the kubelet has not noticed"
        else:
            problem = None
        if problem is not None and not (plugin not in running and resource in resources):
            return f"plugin {plugin.spec.name} {problem}"
    return None


def _open_running(
    supervisor: Supervisor, plugin: Plugin, known: dict[str, object] | None
) -> str | None:
    if not plugin.registers:
        return None if plugin.serving.is_set() else "does not serve yet"
    if plugin.child is None:
        return None
    try:
        state = plugin.child.ask("state", timeout=5)
    except ChildError:
        return "does not answer"
    socket = supervisor.root / node_tree.DEVICE_PLUGINS / "kubelet.sock"
    if state["refused_by"] == sockets.identity(socket):
        return None  # that is how it stays
    if state["registered_with"] is None:
        return "has not registered"
    if state["registered_with"] != sockets.identity(socket):
        return "has not registered again" if plugin.spec.watch_kubelet else None
    if known is None or not known["messages"] or not known["running"]:
        return "has told the kubelet nothing yet"
    devices: dict[str, str] = state["devices"]
    healthy = sorted(d for d, word in devices.items() if word == "Healthy")
    unhealthy = sorted(d for d, word in devices.items() if word != "Healthy")
    if known["healthy"] != healthy or known["unhealthy"] != unhealthy:
        return "has news that the kubelet does not know yet"
    return None
