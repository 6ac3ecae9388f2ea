"""The scheduler's effective request, held against its own words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.inventory.requests import effective_request
from dpctl.model import Pod, PodContainer

GPU = "v.io/gpu"


def container(kind: str, amount: str | None, resource: str = GPU) -> PodContainer:
    requests = {} if amount is None else {resource: amount}
    return PodContainer("c", kind, requests, {}, None, None, ())


def pod(
    *containers: tuple[str, str | None],
    resource: str = GPU,
    pod_requests: Mapping[str, str] | None = None,
    overhead: Mapping[str, str] | None = None,
) -> Pod:
    return Pod(
        namespace="ns",
        name="p",
        uid="u",
        config_hash=None,
        node_name="n",
        phase="Running",
        reason=None,
        message=None,
        deleted=False,
        containers=tuple(container(kind, amount, resource) for kind, amount in containers),
        pod_requests=pod_requests or {},
        overhead=overhead or {},
        owner=None,
    )


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ((), 0),
        ((("app", None),), 0),
        ((("app", "2"), ("app", "3")), 5),
        ((("init", "4"), ("app", "3")), 4),
        ((("init", "2"), ("init", "4"), ("app", "3")), 4),  # init containers run one by one
        ((("sidecar", "1"), ("app", "3")), 4),
        ((("sidecar", "1"), ("init", "4"), ("app", "3")), 5),  # the sidecar runs beside it
        ((("init", "4"), ("sidecar", "1"), ("app", "3")), 4),  # it had not started yet
        ((("sidecar", "2"), ("sidecar", "2"), ("app", "0")), 4),
        ((("sidecar", "1"), ("init", "2"), ("sidecar", "5"), ("init", "3"), ("app", "1")), 9),
        ((("app", "1500m"), ("app", "1500m")), 4),  # rounded up per container
        ((("app", "1k"),), 1000),
    ],
)
def test_devices(containers: tuple[tuple[str, str | None], ...], expected: int) -> None:
    assert effective_request(pod(*containers), GPU) == expected


def test_native_resources_are_rounded_once() -> None:
    assert effective_request(pod(("app", "500m"), ("app", "500m"), resource="cpu"), "cpu") == 1
    assert effective_request(pod(("app", "1Gi"), resource="memory"), "memory") == 1 << 30


def test_a_pod_level_request_replaces_the_sum() -> None:
    two = (("app", "1"), ("app", "1"))
    level = {"cpu": "5", GPU: "9", "hugepages-2Mi": "4Mi"}
    assert effective_request(pod(*two, resource="cpu", pod_requests=level), "cpu") == 5
    assert effective_request(pod(*two, pod_requests=level), "hugepages-2Mi") == 4 << 20
    # The API has no extended resources there; the scheduler would not look at one.
    assert effective_request(pod(*two, pod_requests=level), GPU) == 2


def test_overhead_comes_on_top() -> None:
    more = {"cpu": "250m", GPU: "1"}
    assert effective_request(pod(("init", "4"), ("app", "3"), overhead=more), GPU) == 5
    one = pod(("app", "1"), resource="cpu", pod_requests={"cpu": "2"}, overhead=more)
    assert effective_request(one, "cpu") == 3


def test_nonsense_is_not_zero() -> None:
    with pytest.raises(ValueError):
        effective_request(pod(("app", "lots")), GPU)


def simulated(containers: list[tuple[str, int]]) -> int:
    """The most that runs at one time: start the init containers in order, then the app."""
    peak = running = 0
    for kind, amount in containers:
        if kind == "sidecar":
            running += amount
            peak = max(peak, running)
        elif kind == "init":
            peak = max(peak, running + amount)
    return max(peak, running + sum(amount for kind, amount in containers if kind == "app"))


@given(
    st.lists(st.tuples(st.sampled_from(["init", "sidecar"]), st.integers(0, 9)), max_size=6),
    st.lists(st.tuples(st.just("app"), st.integers(0, 9)), max_size=3),
)
def test_it_is_the_most_that_runs_at_one_time(
    first: list[tuple[str, int]], apps: list[tuple[str, int]]
) -> None:
    containers = [*first, *apps]
    asked = pod(*((kind, str(amount)) for kind, amount in containers))
    assert effective_request(asked, GPU) == simulated(containers)


@given(st.lists(st.fractions(0, 50, max_denominator=1000), max_size=4))
def test_never_less_than_the_exact_sum(amounts: list[Fraction]) -> None:
    texts = [f"{int(amount * 1000)}m" for amount in amounts]
    total = effective_request(pod(*(("app", text) for text in texts)), GPU)
    exact = Fraction(sum(int(amount * 1000) for amount in amounts), 1000)
    assert exact <= total < exact + len(amounts) + 1
