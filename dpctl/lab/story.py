"""How the sample lab comes about, in the order in which a node would have lived it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpctl.lab import node_tree
from dpctl.lab.api_errors import Json
from dpctl.lab.api_handlers import complete_pod
from dpctl.lab.clock import timestamp
from dpctl.lab.kubelet.node_status import NATIVE
from dpctl.lab.settle import settle
from dpctl.statefiles.device_checkpoint import encode_checkpoint

if TYPE_CHECKING:
    from dpctl.lab.supervisor import Supervisor

_START_LIMIT = 30.0


def tell(supervisor: Supervisor) -> None:
    """From an empty API server to the scenario's end. Raises ChildError, UnsettledError."""
    scenario, store = supervisor.scenario, supervisor.store
    for name in ("default", "kube-system", "ml", "batch"):
        store.create("namespaces", {"metadata": {"name": name}}, "lab")
    for device_class in scenario.device_classes:
        store.create("deviceclasses", device_class, "lab")
    _nodes(supervisor)
    _earlier_life(supervisor)
    supervisor.order_kubelet()
    settle(supervisor, _START_LIMIT)  # with the Node: the scheduler goes by it
    for name in scenario.crashed:
        child = supervisor.plugins[name].child
        if child is not None:
            child.kill()
    for pod in scenario.pods:
        store.create("pods", complete_pod(pod), "kubectl-create")
        settle(supervisor, _START_LIMIT, status=False)
        metadata = pod["metadata"]
        if metadata["name"] in scenario.finished and supervisor.kubelet is not None:
            supervisor.kubelet.ask(
                "finish",
                namespace=metadata["namespace"],
                name=metadata["name"],
                phase="Succeeded",
            )
    settle(supervisor, _START_LIMIT)


def _earlier_life(supervisor: Supervisor) -> None:
    """Before the kubelet's last start: plugins that served then and will not notice, and the
    checkpoint that names them."""
    registered = {}
    for name in supervisor.scenario.missed:
        plugin = supervisor.plugins[name]
        plugin.serving.wait(_START_LIMIT)
        registered[plugin.spec.resource] = tuple(d.device_id for d in plugin.spec.devices)
    if registered:
        path = supervisor.root / node_tree.DEVICE_PLUGINS / "kubelet_internal_checkpoint"
        path.touch(mode=0o600)
        path.write_bytes(encode_checkpoint((), registered))


def _nodes(supervisor: Supervisor) -> None:
    scenario = supervisor.scenario
    name = supervisor.spec.node_name
    _node(supervisor, name, dict(scenario.kubelet_keys), unschedulable=False)
    if scenario.patched_keys:

        def patch(node: Json) -> Json:
            node["status"]["capacity"].update(scenario.patched_keys)
            return node

        supervisor.store.update("nodes", name, patch, manager="kubectl-patch", subresource="status")
    for other in scenario.other_nodes:
        _node(supervisor, other, dict(scenario.kubelet_keys), unschedulable=True)


def _node(supervisor: Supervisor, name: str, keys: dict[str, str], *, unschedulable: bool) -> None:
    """A Node that a kubelet has created and written to since."""
    spec: Json = {"unschedulable": True} if unschedulable else {}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "pool": "gpu"}
    node: Json = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    node["status"] = {"capacity": dict(NATIVE), "allocatable": dict(NATIVE)}
    supervisor.store.create("nodes", node, "kubelet")

    def write(old: Json) -> Json:
        status = old["status"]
        status["capacity"] = {**status["capacity"], **keys}
        status["allocatable"] = {**status["allocatable"], **keys}
        status["nodeInfo"] = {"kubeletVersion": supervisor.spec.kubelet_version}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        ready |= {"lastHeartbeatTime": timestamp(), "lastTransitionTime": timestamp()}
        status["conditions"] = [ready]
        return old

    supervisor.store.update("nodes", name, write, manager="kubelet", subresource="status")
