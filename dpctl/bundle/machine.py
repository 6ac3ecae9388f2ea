"""Whether a bundle's Node is the machine that was captured. Pure."""

from __future__ import annotations

from dpctl.errors import ExitCode
from dpctl.model import Snapshot, Source


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
