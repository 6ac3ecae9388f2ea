"""Who is Guaranteed, and what counts for a container and for the whole pod."""

from __future__ import annotations

import pytest

from dpctl.topology.requests import (
    exclusive_cpus,
    is_guaranteed,
    pinned_memory,
    pod_cpus,
    pod_devices,
    pod_memory,
)
from tests.topology.pods import container, exact, pod

GPU = "v.example/gpu"


@pytest.mark.parametrize(
    ("found", "guaranteed"),
    [
        (pod(exact(1)), True),
        (pod(exact(1), {"cpu": "100m", "memory": "1Mi"}), True),
        (pod({"cpu": "1"}), False),
        (pod(exact(1), {}), False),
        (pod(container("c", exact(2), requests={"cpu": "1"})), False),
        (pod(container("i", {}, "init"), exact(1)), False),
        (pod({"cpu": "0", "memory": "1Gi"}), False),
        (pod({GPU: "1"}), False),
        (pod(), False),
    ],
)
def test_guaranteed(found, guaranteed):
    assert is_guaranteed(found) is guaranteed


@pytest.mark.parametrize(
    ("cpu", "expected"), [("2", 2), ("2000m", 2), ("1500m", 0), ("500m", 0), ("1e1", 10)]
)
def test_whole_cpus_only(cpu, expected):
    found = pod({"cpu": cpu, "memory": "1Gi"})
    assert exclusive_cpus(found, found.containers[0]) == expected


def test_nothing_is_pinned_beside_pod_level_resources():
    found = pod(exact(2), pod_requests={"cpu": "2"})
    assert exclusive_cpus(found, found.containers[0]) == 0
    assert pinned_memory(found, found.containers[0]) == {}


def test_the_whole_pod():
    """Sidecars count from where they stand; init containers beside those before them."""
    found = pod(
        container("first", exact(6, "1Gi", gpu="6"), "init"),
        container("proxy", exact(1, "2Gi", gpu="1"), "sidecar"),
        container("last", exact(6, "1Gi", gpu="6"), "init"),
        exact(2, "1Gi", gpu="2"),
        exact(3, "1Gi", gpu="3"),
    )
    assert pod_cpus(found) == 7
    assert pod_devices(found, GPU) == 7
    assert pod_memory(found) == {"memory": 4 << 30}


def test_memory_that_only_init_containers_ask_for_is_forgotten():
    huge = {**exact(1), "hugepages-2Mi": "2Mi"}
    assert pod_memory(pod(container("i", huge, "init"), exact(1))) == {"memory": 1 << 30}
