"""Whose Node this is: the one that a person named, the kubelet's, or a guess; and whether what was
read on this machine belongs to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpctl.collect.fields import LOCAL
from dpctl.env import Place
from dpctl.errors import PeerError
from dpctl.model import Kubelet, Node, Source

if TYPE_CHECKING:
    from dpctl.collect.live import Live


def place_of(place: Place, kubelet: Kubelet | None) -> Place:
    """The Node's name, and where that came from. `place`: what the environment found."""
    if _was_named(place):
        return place
    if kubelet is not None and kubelet.node_name:
        return Place(place.name, kubelet.node_name, f"kubelet {kubelet.pid}")
    if is_guessed(place):
        why = "no kubelet was found running that says its own"
        return place._replace(origin=f"{place.origin}, since {why}")
    return place


def _was_named(place: Place) -> bool:
    """By a person, not by what was found."""
    return place.origin.startswith(("flag", "environment", "config"))


def is_guessed(place: Place) -> bool:
    """The host's name, for want of a better one: there may be no Node of that name, or another."""
    return place.origin.startswith("host name")


def _another_machine(node: Node, boot_id: str | None) -> str | None:
    """Why this is not the Node of the machine with that boot ID; None: it may be."""
    if node.boot_id and boot_id and node.boot_id != boot_id:
        return (
            f"Node {node.name} is another machine (its boot ID is {node.boot_id}, here {boot_id})"
        )
    return None


def _another_kubelet(name: str, kubelet: Kubelet | None) -> str | None:
    """Why the Node of that name is not this kubelet's; None: it may be."""
    if kubelet is not None and kubelet.node_name not in (None, name):
        return f"Node {name} is not the Node of this kubelet, which is {kubelet.node_name}"
    return None


def check_node(live: Live) -> None:
    """Local evidence counts only for the Node it belongs to: a kubeconfig may name another
    cluster's Node of the same name, `--node` another machine, and one machine may have several
    kubelets. A machine without evidence of its own (a workstation) has nothing to mix up. A
    Node that a person named counts although nobody read it."""
    node: Node | None = live.fields.get("node")
    named = _was_named(live.env.node_name)
    name = node.name if node is not None else live.env.node_name.value if named else None
    if name is None:
        return
    why = None
    if node is not None:
        from dpctl.sources.proc import boot_id

        live.fields["boot_id"] = boot_id(live.env)
        why = _another_machine(node, live.fields["boot_id"])
    local = [s for s in LOCAL if LOCAL[s] in live.fields]
    if not local:
        return
    kubelet = live.look_for_kubelet()
    why = why or _another_kubelet(name, kubelet)
    if why is None:
        return
    if named:
        here = kubelet.node_name if kubelet is not None else None
        this = f"this one: --node {here}"
        if here in (None, name):
            this = "this machine's cluster: --kubeconfig, --context"
        hint = f"run dpctl on {name}, or name {this}"
        for source in local:
            del live.fields[LOCAL[source]]
            live.skip(source, live.rows[source].where, why, hint)
        return
    error = PeerError(why, "name this machine's cluster and node: --kubeconfig, --context, --node")
    for source, field in ((Source.NODE, "node"), (Source.PODS, "pods")):
        if live.fields.pop(field, None) is not None:
            live.fail(source, live.rows[source].where, error)
