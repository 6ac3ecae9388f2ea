"""The fit check at admission: kubelet-facts §6.1, §6.3."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpctl.lab.api_errors import Json
from dpctl.lab.fixture import Lab
from dpctl.lab.kubelet.predicates import Misfit, misfit
from dpctl.lab.scenario import pod
from tests.lab.parts import GPU, json_patch, key, plain

X = "hand.example/x"


def asking(count: int, resource: str = X) -> Json:
    given = pod("ml", "p", {"c": {resource: count}})
    limits = given["spec"]["containers"][0]["resources"]
    limits["requests"] = limits["limits"]
    return given


@pytest.mark.parametrize(
    ("count", "others", "allocatable", "allocated", "capacity"),
    [
        (2, [], {X: "2"}, {}, None),
        (2, [1], {X: "3"}, {}, None),
        (2, [1], {X: "2"}, {}, 2),
        (1, [], {X: "0"}, {}, 0),
        (1, [], {}, {}, None),  # nobody's: taken for one of the cluster
        (1, [], {X: "0"}, {X: 1}, None),  # what is held is allocatable
        (2, [], {X: "0"}, {X: 1}, 1),
        (1, [], {}, {X: 0}, 0),
        (1, [1, 1], {X: "1k"}, {}, None),
    ],
)
def test_misfit(
    count: int,
    others: list[int],
    allocatable: dict[str, str],
    allocated: dict[str, int],
    capacity: int | None,
) -> None:
    found = misfit(asking(count), map(asking, others), allocatable, allocated)
    if capacity is None:
        assert found is None
    else:
        assert found == Misfit(
            f"OutOf{X}",
            f"Node didn't have enough resource: {X}, requested: {count}, "
            f"used: {sum(others)}, capacity: {capacity}",
        )


def test_names_that_are_not_extended_are_not_looked_at() -> None:
    assert misfit(asking(5, "nodomain"), [], {"nodomain": "1"}, {}) is None
    assert misfit(asking(5, "cpu"), [], {"cpu": "1"}, {}) is None


def test_a_pod_that_does_not_fit_is_refused(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(scenario="empty")
    assert json_patch(lab, ("add", key(X), "3")) == 200
    lab.wait_settled()
    fits = lab.create_pod("ml", "first", {"c": {X: 2}}, node_name="lab-0")
    assert fits["status"]["phase"] == "Running"
    refused = lab.create_pod("ml", "second", {"c": {X: 2}}, node_name="lab-0")["status"]
    words = f"Node didn't have enough resource: {X}, requested: 2, used: 2, capacity: 3"
    assert refused["phase"] == "Failed"
    assert refused["reason"] == f"OutOf{X}"
    assert refused["message"] == f"Pod was rejected: {words}"
    events = lab.api("GET", "/api/v1/namespaces/ml/events")[1]["items"]
    assert [(e["reason"], e["message"]) for e in events] == [(f"OutOf{X}", words)]


def test_holders_outlive_a_restart_without_their_plugin(new_lab: Callable[..., Lab]) -> None:
    """The Node says 0 by then, and the checkpoint says that they hold what they hold."""
    lab = new_lab(scenario="empty", status_period=3600)
    plugin = lab.add_plugin(plain(2))
    lab.wait_settled()
    lab.create_pod("ml", "p", {"c": {GPU: 2}})
    plugin.kill()
    lab.wait_settled()
    assert lab.node()["status"]["allocatable"][GPU] == "0"
    lab.kubelet.restart()
    lab.wait_settled()
    assert lab.pods()["ml/p"]["status"]["phase"] == "Running"
