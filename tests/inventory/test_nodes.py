"""Rows of Nodes from the API server alone: the scheduler's arithmetic, and what cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dpctl.inventory.nodes import RequestTally, node_rows
from dpctl.inventory.rows import ResourceState
from dpctl.sources.node_json import node_from_json, pods_from_json

GPU = "vendor.example/gpu"


def node(capacity: Mapping[str, str], allocatable: Mapping[str, str], owner: str | None = None):
    fields: dict[str, Any] = {"f:status": {"f:capacity": {f"f:{name}": {} for name in capacity}}}
    managed = [{"manager": owner, "fieldsV1": fields}] if owner else []
    status = {"capacity": capacity, "allocatable": allocatable}
    return node_from_json(
        {"metadata": {"name": "worker-0", "managedFields": managed}, "status": status}
    )


def pod(name: str, amount: str, *, on: str | None = "worker-0", phase: str = "Running"):
    container = {"name": "c", "resources": {"requests": {GPU: amount, "cpu": "1"}}}
    return {
        "metadata": {"namespace": "ml", "name": name, "uid": name},
        "spec": {"nodeName": on, "containers": [container]},
        "status": {"phase": phase},
    }


def test_free_is_what_the_scheduler_may_give_away() -> None:
    tally = RequestTally()
    tally.add(pods_from_json([pod("a", "2"), pod("b", "1")]))
    tally.add(
        pods_from_json(
            [pod("c", "1", phase="Failed"), pod("d", "1", on=None), pod("e", "1", on="worker-1")]
        )
    )
    rows = node_rows(node({GPU: "1k", "cpu": "4"}, {GPU: "8", "cpu": "4"}), tally.of("worker-0"))
    (row,) = rows
    assert (row.capacity, row.allocatable, row.requested, row.free) == ("1k", "8", 3, 5)


def test_a_key_that_pods_request_and_the_node_lacks() -> None:
    (row,) = node_rows(node({}, {}), {GPU: 3})
    assert (row.capacity, row.allocatable, row.requested, row.free) == (None, None, 3, -3)


def test_without_pods_nothing_is_said_of_what_is_left() -> None:
    (row,) = node_rows(node({GPU: "4"}, {GPU: "4"}), None)
    assert (row.requested, row.free) == (None, None)


@pytest.mark.parametrize(
    ("name", "owner", "state"),
    [
        (GPU, "kubelet", None),
        (GPU, "dpctl-kubelet", None),
        (GPU, None, None),
        (GPU, "kubectl-patch", ResourceState.FOREIGN),
        ("nodomain", "kubelet", ResourceState.MALFORMED),
    ],
)
def test_states_that_the_node_alone_tells(
    name: str, owner: str | None, state: ResourceState | None
) -> None:
    (row,) = node_rows(node({name: "4"}, {name: "4"}, owner), {})
    assert row.state is state


def test_natural_order() -> None:
    names = [f"v.example/gpu-{number}" for number in (10, 2, 1)]
    rows = node_rows(node(dict.fromkeys(names, "1"), {}), {})
    assert [row.resource.rpartition("-")[2] for row in rows] == ["1", "2", "10"]
