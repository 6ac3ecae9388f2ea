"""Nodes and pods of the API server alone → one row per Node and extended resource; pure.

For many Nodes: one is looked at, its rows are made, the next one. What a machine itself would tell
(plugins, checkpoint, kernel) has no place here, and so most states cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpctl import names
from dpctl.inventory.connections import foreign_owners
from dpctl.inventory.requests import effective_request, requested_names
from dpctl.inventory.rows import NodeResourceRow, ResourceState
from dpctl.model import Node, Pod
from dpctl.quantity import count
from dpctl.text import natural_key


class RequestTally:
    """What pods request of extended resources, by Node: fed page by page, it keeps sums alone."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, int]] = {}

    def clear(self) -> None:
        self._sums.clear()

    def add(self, pods: Iterable[Pod]) -> None:
        """Of pods that are bound to a Node and have not ended; others request nothing there."""
        for pod in pods:
            if pod.terminal or pod.node_name is None:
                continue
            for name in requested_names(pod):
                sums = self._sums.setdefault(pod.node_name, {})
                sums[name] = sums.get(name, 0) + effective_request(pod, name)

    def of(self, node: str) -> Mapping[str, int]:
        return self._sums.get(node, {})


def node_rows(node: Node, requested: Mapping[str, int] | None) -> list[NodeResourceRow]:
    """One row per extended resource that the Node has or its pods request, in natural order.

    `requested`: the scheduler's effective requests there; None: the pods could not be read.
    """
    known = {*node.capacity, *node.allocatable, *(requested or ())}
    ordered = sorted((name for name in known if not names.is_native(name)), key=natural_key)
    return [_row(node, name, requested) for name in ordered]


def _row(node: Node, resource: str, requested: Mapping[str, int] | None) -> NodeResourceRow:
    asked = None if requested is None else requested.get(resource, 0)
    # To the scheduler a missing key and 0 are the same.
    offered = count(node.allocatable.get(resource, "0"))
    return NodeResourceRow(
        node=node.name,
        resource=resource,
        capacity=node.capacity.get(resource),
        allocatable=node.allocatable.get(resource),
        requested=asked,
        free=None if asked is None or offered is None else offered - asked,
        state=_state(node, resource),
        owners=None if node.owners is None else tuple(node.owners.get(resource, ())),
    )


def _state(node: Node, resource: str) -> ResourceState | None:
    """The two states that need the Node alone. None: the machine would have to be asked."""
    if resource not in node.capacity and resource not in node.allocatable:
        return None  # only a pod's request brought it here
    if not names.is_extended(resource):
        return ResourceState.MALFORMED
    return ResourceState.FOREIGN if foreign_owners(node, resource) else None
