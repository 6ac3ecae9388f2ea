"""Of which machine a bundle is: its Node, and the pods of that Node among others. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dpctl.errors import BadDataError, ExitCode
from dpctl.model import Pod, Snapshot, Source


def one_machine(snap: Snapshot) -> Snapshot:
    """A bundle whose Node is another machine's is held to the same rule as a live one."""
    node = snap.node
    if node is None:
        return snap
    names = {k.node_name for k in snap.kubelets or () if k.node_name}
    if node.boot_id and snap.boot_id and node.boot_id != snap.boot_id:
        why = f"its boot ID is {node.boot_id}, the bundle's {snap.boot_id}"
    elif len(names) == 1 and node.name not in names:
        why = f"the bundle's kubelet is {next(iter(names))}"
    else:
        return snap
    reason = f"Node {node.name} is another machine's: {why}"
    hint = "put the Node of the captured machine into the bundle"
    rows = tuple(
        row._replace(state="failed", reason=reason, hint=hint, code=int(ExitCode.BAD_DATA))
        if row.name in (Source.NODE, Source.PODS) and row.read
        else row
        for row in snap.sources
    )
    return snap._replace(node=None, pods=None, sources=rows)


def pods_of_node(pods: Iterable[Pod], name: str | None) -> tuple[Pod, ...]:
    """Those bound to the node of that name: `kubectl get pods -A` has every node's. Raises
    BadDataError where they are of several nodes and None is named."""
    bound = [pod for pod in pods if pod.node_name]
    nodes = {pod.node_name for pod in bound}
    if name is None and len(nodes) > 1:
        raise BadDataError(
            f"it holds pods of {len(nodes)} nodes, and nothing says which one is meant",
            "name it with --node, or nodeName in meta.json",
        )
    return tuple(pod for pod in bound if name in (None, pod.node_name))
