"""What a kubelet finds and says when it starts anew: kubelet-facts §6.4, and seen on real ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpctl.lab.fixture import Lab
from tests.lab.parts import GPU, checkpoint, plain

NewLab = Callable[..., Lab]


@pytest.fixture
def quiet(new_lab: NewLab) -> Lab:
    return new_lab(scenario="empty", status_period=3600)


def owners(lab: Lab, part: str) -> list[str]:
    return [
        entry["manager"]
        for entry in lab.node()["metadata"]["managedFields"]
        if f"f:{GPU}" in entry["fieldsV1"].get("f:status", {}).get(f"f:{part}", {})
    ]


def test_nobodys_devices_are_released_while_pods_are_unknown(quiet: Lab) -> None:
    """The plugin's first message writes the checkpoint before all pods have been admitted."""
    quiet.add_plugin(plain(4))
    quiet.wait_settled()
    for name in ("a", "b", "c"):
        quiet.create_pod("ml", name, {"c": {GPU: 1}})
    before = {one.pod_uid for one in checkpoint(quiet).allocations}
    quiet.kubelet.restart()
    quiet.wait_settled()
    assert {one.pod_uid for one in checkpoint(quiet).allocations} == before
    assert len(before) == 3


def test_refused_pods_get_statuses_at_the_next_start(quiet: Lab) -> None:
    quiet.create_pod("ml", "p", {"c": {GPU: 1}}, node_name="lab-0")
    quiet.add_plugin(plain(1))
    quiet.wait_settled()
    status = quiet.create_pod("ml", "q", {"c": {GPU: 2}}, node_name="lab-0")["status"]
    assert status["phase"] == "Failed"
    assert "containerStatuses" not in status
    quiet.kubelet.restart()
    quiet.wait_settled()
    status = quiet.pods()["ml/q"]["status"]
    (container,) = status["containerStatuses"]
    assert container["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert container["ready"] is False
    ready = {c["type"]: (c["status"], c.get("reason")) for c in status["conditions"]}
    assert ready["Ready"] == ("False", "PodFailed")
    assert ready["PodReadyToStartContainers"] == ("False", None)
    assert "Requested: 2" in status["message"]


def test_a_pod_refused_while_it_runs_is_killed(quiet: Lab) -> None:
    quiet.add_plugin(plain(2))
    quiet.wait_settled()
    quiet.create_pod("ml", "p", {"c": {GPU: 1}}, init={"i": {GPU: 1}})
    quiet.kubelet.restart()
    quiet.wait_settled()
    status = quiet.pods()["ml/p"]["status"]
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert "running" not in status["containerStatuses"][0]["state"]
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(
    ("version", "told"),
    [("v1.35.4", None), ("v1.36.3", [{"resourceID": "gpu-0", "health": "Healthy"}])],
)
def test_device_health_is_told_from_1_36(new_lab: NewLab, version: str, told: object) -> None:
    lab = new_lab(scenario="empty", kubelet_version=version)
    lab.add_plugin(plain(1))
    lab.wait_settled()
    (container,) = lab.create_pod("ml", "p", {"c": {GPU: 1}})["status"]["containerStatuses"]
    found = container.get("allocatedResourcesStatus")
    assert (found and found[0]["resources"]) == told


def test_health_goes_with_the_memory_of_it(quiet: Lab) -> None:
    """A checkpoint that does not verify: the next status tells nothing any more."""
    quiet.add_plugin(plain(1))
    quiet.wait_settled()
    quiet.create_pod("ml", "p", {"c": {GPU: 1}})
    quiet.kubelet.stop()
    path = quiet.device_plugins / "kubelet_internal_checkpoint"
    path.write_bytes(path.read_bytes().replace(b'"gpu-0"', b'"gpu-x"'))
    quiet.kubelet.start()
    quiet.wait_settled()
    status = quiet.pods()["ml/p"]["status"]
    assert status["phase"] == "Running"
    assert not status["containerStatuses"][0].get("allocatedResourcesStatus")


def test_keys_of_a_node_made_anew_have_no_owner(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(2))
    quiet.wait_settled()
    assert owners(quiet, "capacity") == ["kubelet"]
    plugin.kill()
    quiet.kubelet.stop()
    assert quiet.api("DELETE", "/api/v1/nodes/lab-0")[0] == 200
    quiet.kubelet.start()
    quiet.wait_settled()
    status = quiet.node()["status"]
    assert (status["capacity"][GPU], status["allocatable"][GPU]) == ("0", "0")
    assert owners(quiet, "capacity") == owners(quiet, "allocatable") == []
    plugin.start()
    quiet.wait_settled()
    assert owners(quiet, "capacity") == owners(quiet, "allocatable") == ["kubelet"]
