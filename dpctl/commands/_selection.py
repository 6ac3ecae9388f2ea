"""Which Nodes a command is about: options that several commands of `dpctl node` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpctl.errors import UnreachableError, UsageError

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.sources.apiserver import Selection

AllNodes = Annotated[bool, typer.Option("--all-nodes", help="Every Node of the cluster.")]
Labels = Annotated[
    str | None,
    typer.Option(
        "-l", "--selector", metavar="LABELS", help="Nodes with these labels: pool=gpu,zone!=a."
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(
        "--field-selector",
        metavar="FIELDS",
        help="Nodes with these fields: metadata.name!=worker-0, spec.unschedulable=true.",
    ),
]


def is_fleet(all_nodes: bool, labels: str | None, fields: str | None) -> bool:
    """Whether many Nodes are meant. Raises UsageError for a selector that selects nothing."""
    for flag, value in (("-l", labels), ("--field-selector", fields)):
        if value is not None and not value.strip():
            raise UsageError(f"{flag} is empty", "every Node is --all-nodes; one is --node NAME")
    return all_nodes or labels is not None or fields is not None


def selection(env: Env, all_nodes: bool, labels: str | None, fields: str | None) -> Selection:
    """One Node by its name, or many. Raises UsageError where both are meant."""
    from dpctl.sources.apiserver import Selection

    if not is_fleet(all_nodes, labels, fields):
        name, origin = _node_here(env)
        if name is None:
            raise UnreachableError(
                "the name of this Node is not known",
                "name it: --node NODE, or set NODE_NAME; every Node is --all-nodes",
            )
        return Selection(name, origin)
    if env.node_name.origin == "flag":
        raise UsageError(
            f"--node {env.node_name.value} is one Node, and many are meant as well",
            "leave out --node, or --all-nodes, -l and --field-selector",
        )
    return Selection(labels=labels, fields=fields)


def _node_here(env: Env) -> tuple[str | None, str]:
    """What a person named, else the Node of the kubelet behind kubelet.sock, else what the
    environment found; and where it came from."""
    place = env.node_name
    if not place.origin.startswith(("flag", "environment", "config")):
        from dpctl.collect import collect
        from dpctl.model import Source

        snap = collect(env, {Source.DIRECTORY, Source.SOCKETS})
        if snap.sockets is not None and snap.directory is not None:
            kubelets = {kubelet.pid: kubelet for kubelet in snap.kubelets or ()}
            pid = snap.sockets.kubelet_pid(snap.directory.entry("kubelet.sock"), list(kubelets))
            if pid in kubelets and kubelets[pid].node_name:
                return kubelets[pid].node_name, f"kubelet {pid}"
    return place.value, place.origin
