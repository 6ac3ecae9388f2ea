"""Admission and who gets what: kubelet-facts §6.2, §6.3, §8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.sample_plugin import preferred
from dpctl.lab.spec import SampleDevice
from tests.lab.parts import GPU, checkpoint, plain

FUSE = "edge.example/fuse"


@pytest.fixture
def quiet() -> Iterator[Lab]:
    with Lab(scenario="empty", status_period=3600) as running:
        yield running


def held(lab: Lab, pod: dict[str, Any]) -> dict[str, set[str]]:
    """Container to device IDs, from the checkpoint."""
    return {
        one.container: {i for ids in one.devices.values() for i in ids}
        for one in checkpoint(lab).allocations
        if one.pod_uid == pod["metadata"]["uid"]
    }


def rejection(pod: dict[str, Any]) -> str:
    assert pod["status"]["phase"] == "Failed"
    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    before, after = "Pod was rejected: Allocate failed due to ", ", which is unexpected"
    message = pod["status"]["message"]
    assert message.startswith(before)
    assert message.endswith(after)
    return str(message[len(before) : -len(after)])


def test_init_devices_are_used_again_and_sidecars_keep_theirs(quiet: Lab) -> None:
    quiet.add_plugin(plain(6))
    quiet.wait_settled()
    pod = quiet.create_pod(
        "ml", "p", {"main": {GPU: 3}}, init={"warmup": {GPU: 2}}, sidecars={"proxy": {GPU: 1}}
    )
    got = held(quiet, pod)
    assert {name: len(ids) for name, ids in got.items()} == {"warmup": 2, "main": 3, "proxy": 1}
    assert got["warmup"] < got["main"]
    assert got["proxy"].isdisjoint(got["main"])
    # Four are taken, two left: the set is 4, not 6.
    rejected = quiet.create_pod("ml", "q", {"c": {GPU: 3}}, node_name="lab-0")
    assert rejection(rejected) == (
        f"requested number of devices unavailable for {GPU}. Requested: 3, Available: 2"
    )
    assert held(quiet, rejected) == {}


def test_quantities_are_rounded_up(quiet: Lab) -> None:
    quiet.add_plugin(plain(4))
    quiet.wait_settled()
    pod = quiet.create_pod("ml", "p", {"c": {GPU: "1500m"}})  # type: ignore[dict-item]
    assert len(held(quiet, pod)["c"]) == 2


def test_unknown_resource_is_skipped_silently(quiet: Lab) -> None:
    pod = quiet.create_pod("ml", "p", {"c": {"never.example/seen": 1}}, node_name="lab-0")
    assert pod["status"]["phase"] == "Running"


def test_errors(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(2))
    quiet.wait_settled()
    plugin.fail_allocate("no firmware")
    pod = quiet.create_pod("ml", "refused", {"c": {GPU: 1}}, node_name="lab-0")
    assert rejection(pod) == "rpc error: code = Unknown desc = no firmware"
    plugin.fail_allocate("")
    assert quiet.create_pod("ml", "again", {"c": {GPU: 2}})["status"]["phase"] == "Running"
    plugin.set_health("gpu-0", "Unhealthy")
    plugin.set_health("gpu-1", "weird")
    quiet.wait_settled()
    pod = quiet.create_pod("ml", "ill", {"c": {GPU: 1}}, node_name="lab-0")
    assert rejection(pod) == f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    plugin.kill()
    quiet.wait_settled()
    quiet.clock.advance(301)
    quiet.kubelet.sync()
    # The pod "again" still holds devices: the resource was allocated once, so it is known.
    pod = quiet.create_pod("ml", "gone", {"c": {GPU: 1}}, node_name="lab-0")
    assert rejection(pod) == f"cannot allocate unregistered device {GPU}"
    reasons = {e["reason"] for e in quiet.api("GET", "/api/v1/events")[1]["items"]}
    assert "UnexpectedAdmissionError" in reasons


def test_a_rejected_pod_gives_back_what_it_had_taken(quiet: Lab) -> None:
    quiet.add_plugin(plain(2))
    fuse = quiet.add_plugin(plain(1, name="fuse", resource=FUSE))
    quiet.wait_settled()
    fuse.fail_allocate("no")
    pod = quiet.create_pod("ml", "p", {"a": {GPU: 2}, "b": {FUSE: 1}}, node_name="lab-0")
    assert "desc = no" in rejection(pod)
    assert quiet.create_pod("ml", "q", {"a": {GPU: 2}})["status"]["phase"] == "Running"


def test_health_reaches_the_pods_status(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(1))
    quiet.wait_settled()
    pod = quiet.create_pod("ml", "p", {"c": {GPU: 1}})

    def health(pod: dict[str, Any]) -> Any:
        return pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"]

    assert health(pod) == [
        {"name": GPU, "resources": [{"resourceID": "gpu-0", "health": "Healthy"}]}
    ]
    plugin.set_health("gpu-0", "Unhealthy")
    quiet.wait_settled()
    quiet.create_pod("ml", "other", {"c": {}})  # handled after the refresh
    assert health(quiet.pods()["ml/p"])[0]["resources"][0]["health"] == "Unhealthy"
    plugin.kill()  # a dead plugin's devices keep their last word
    quiet.wait_settled()
    assert health(quiet.pods()["ml/p"])[0]["resources"][0]["health"] == "Unhealthy"


def test_scheduler(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(2))
    quiet.wait_settled()
    quiet.create_pod("ml", "first", {"c": {GPU: 1}})
    waiting = quiet.create_pod("ml", "second", {"c": {GPU: 2}})
    condition = waiting["status"]["conditions"][0]
    assert waiting["status"]["phase"] == "Pending"
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == (
        f"0/1 nodes are available: 1 Insufficient {GPU}. preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    plugin.set_devices([SampleDevice(f"gpu-{n}") for n in range(3)])
    quiet.wait_settled()
    quiet.create_pod("ml", "nudge", {"c": {}})
    assert quiet.pods()["ml/second"]["status"]["phase"] == "Running"


def test_preference_is_asked_for_and_kept(quiet: Lab) -> None:
    quiet.add_plugin(plain(8, preferred=True))
    quiet.wait_settled()
    pod = quiet.create_pod("ml", "p", {"c": {GPU: 2}}, init={"i": {GPU: 1}})
    assert held(quiet, pod) == {"i": {"gpu-0"}, "c": {"gpu-0", "gpu-2"}}


def test_preferred_packs() -> None:
    devices = tuple(SampleDevice(f"d{n}", (n % 2,)) for n in range(12))
    ids = [d.device_id for d in devices]
    assert preferred(devices, ids, [], 3) == ["d0", "d2", "d4"]
    assert preferred(devices, ids, ["d11"], 3) == ["d11", "d1", "d3"]
    assert preferred(devices, ["d0", "d1", "d3", "d10"], [], 2) == ["d0", "d10"]
    assert preferred(devices, ["d0"], [], 3) == ["d0"]
