"""PodResources as a real kubelet answers: kubelet-facts §7."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import grpc
import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.kubelet.pod_resources_server import BURST
from dpctl.lab.spec import PluginSpec, SampleDevice
from dpctl.pb.podresources.v1alpha1 import podresources_pb2 as old_pb
from dpctl.pb.podresources.v1alpha1 import podresources_pb2_grpc as old_rpc
from tests.lab.parts import GPU, Resources, checkpoint, plain

NIC = "net.example/nic"


@pytest.fixture(scope="module")
def busy() -> Iterator[Lab]:
    with Lab(scenario="empty", status_period=3600) as running:
        running.add_plugin(plain(4))
        devices = (
            SampleDevice("bond", (0, 1)),
            SampleDevice("plain", None),
            SampleDevice("bare", ()),
            SampleDevice("minus", (-1,)),
            SampleDevice("ill", (0,), "Unhealthy"),
        )
        running.add_plugin(PluginSpec("nic", NIC, "nic.sock", devices))
        running.wait_settled()
        running.create_pod(
            "ml", "p", {"b": {NIC: 4}, "a": {}}, init={"i": {GPU: 1}}, sidecars={"s": {GPU: 1}}
        )
        running.create_pod("ml", "rejected", {"c": {NIC: 1}}, node_name="lab-0")
        running.create_pod("ml", "finished", {"c": {GPU: 1}})
        running.finish_pod("ml", "finished")
        yield running


def test_list(busy: Lab) -> None:
    with Resources(busy) as resources:
        found = resources.pods()
    assert set(found) == {"ml/p"}
    assert list(found["ml/p"]) == ["s", "b", "a"]  # sidecars first, ordinary init never
    assert found["ml/p"]["a"] == []
    assert found["ml/p"]["b"] == [
        (NIC, "bare", ()),
        (NIC, "bond", (0,)),
        (NIC, "bond", (1,)),
        (NIC, "minus", ()),
        (NIC, "plain", ()),
    ]


def test_allocatable(busy: Lab) -> None:
    """Healthy ones whether in use or not; `topology: {}` is left out, node -1 is shown."""
    with Resources(busy) as resources:
        found = resources.allocatable()
    assert [entry for entry in found if entry[0] == NIC] == [
        (NIC, "bond", (0,)),
        (NIC, "bond", (1,)),
        (NIC, "minus", (-1,)),
        (NIC, "plain", ()),
    ]
    assert len([entry for entry in found if entry[0] == GPU]) == 4


@pytest.mark.parametrize("name", ["nothing", "rejected", "finished"])
def test_get_of_what_is_not_there(busy: Lab, name: str) -> None:
    with Resources(busy) as resources, pytest.raises(grpc.RpcError) as raised:
        resources.get("ml", name)
    assert raised.value.code() == grpc.StatusCode.UNKNOWN
    assert raised.value.details() == f"pod {name} in namespace ml not found"


def test_get(busy: Lab) -> None:
    with Resources(busy) as resources:
        assert resources.get("ml", "p") == ["s", "b", "a"]


def test_v1alpha1_has_all_pods_and_app_containers_only(busy: Lab) -> None:
    with grpc.insecure_channel(f"unix:{busy.pod_resources_socket}") as channel:
        stub = old_rpc.PodResourcesListerStub(channel)  # type: ignore[no-untyped-call]
        answer = stub.List(old_pb.ListPodResourcesRequest(), timeout=5)
    pods = {pod.name: [c.name for c in pod.containers] for pod in answer.pod_resources}
    assert pods == {"p": ["b", "a"], "rejected": ["c"], "finished": ["c"]}
    (held,) = [c for pod in answer.pod_resources for c in pod.containers if c.name == "b"]
    assert {device.resource_name for device in held.devices} == {NIC}
    # One entry per device and NUMA node here, too, though the node is not said.
    listed = sorted(list(device.device_ids) for device in held.devices)
    assert listed == [["bare"], ["bond"], ["bond"], ["minus"], ["plain"]]


def test_order_changes_from_call_to_call(busy: Lab) -> None:
    with Resources(busy) as resources:
        orders = set()
        for _ in range(8):
            answer = resources.stub.GetAllocatableResources(resources_request(), timeout=5)
            orders.add(tuple(d.device_ids[0] for d in answer.devices))
            time.sleep(0.02)
    assert len(orders) > 1


def resources_request() -> object:
    from dpctl.pb.podresources.v1 import podresources_pb2

    return podresources_pb2.AllocatableResourcesRequest()


def test_rate_limit(busy: Lab) -> None:
    time.sleep(0.2)  # the bucket is full again
    with Resources(busy) as resources:
        calls = [resources.stub.Get.future(get_request(), timeout=5) for _ in range(10 * BURST)]
        errors = [call.exception() for call in calls]
    limited = [e for e in errors if e.code() == grpc.StatusCode.RESOURCE_EXHAUSTED]
    assert limited
    assert {e.details() for e in limited} == {"rejected by rate limit"}
    assert len(errors) - len(limited) >= BURST
    time.sleep(0.2)
    with Resources(busy) as resources:
        assert resources.pods()


def get_request() -> object:
    from dpctl.pb.podresources.v1 import podresources_pb2

    return podresources_pb2.GetPodResourcesRequest(pod_name="x", pod_namespace="y")


def test_checkpoint(busy: Lab) -> None:
    """Verifies; finished pods and init containers stay in it (§5.1); 0600; no temporary left."""
    found = checkpoint(busy)
    assert found.verified
    names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in busy.pods().values()}
    entries = sorted((names[one.pod_uid], one.container, one.resource) for one in found.allocations)
    assert entries == [
        ("finished", "c", GPU),
        ("p", "b", NIC),
        ("p", "i", GPU),
        ("p", "s", GPU),
    ]
    nic = next(one for one in found.allocations if one.resource == NIC)
    assert {node: set(ids) for node, ids in nic.devices.items()} == {
        0: {"bond"},
        1: {"bond"},
        -1: {"bare", "minus", "plain"},
    }
    assert set(found.registered[NIC]) == {"bond", "plain", "bare", "minus"}
    path = busy.device_plugins / "kubelet_internal_checkpoint"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in busy.device_plugins.iterdir() if p.name.startswith(".")] == []


def test_checkpoint_moments(busy: Lab) -> None:
    """Written by a message and by an allocation, not by a pod's end nor a plugin's."""
    path = busy.device_plugins / "kubelet_internal_checkpoint"

    def written() -> int:
        return path.stat().st_mtime_ns

    extra = busy.add_plugin(plain(2, name="extra", resource="a.example/extra"))
    busy.wait_settled()
    before = written()
    extra.set_health("extra-0", "Unhealthy")
    busy.wait_settled()
    assert written() > before
    before = written()
    busy.create_pod("ml", "brief", {"c": {"a.example/extra": 1}})
    assert written() > before
    before = written()
    busy.finish_pod("ml", "brief")
    busy.create_pod("ml", "none", {"c": {}})
    extra.kill()
    busy.wait_settled()
    assert written() == before


@pytest.mark.parametrize(("version", "known"), [("v1.34.4", True), ("v1.35.4", False)])
def test_get_of_a_finished_pod(new_lab: Callable[..., Lab], version: str, known: bool) -> None:
    lab = new_lab(scenario="empty", kubelet_version=version)
    lab.create_pod("ml", "p", {"c": {}})
    lab.finish_pod("ml", "p")
    with Resources(lab) as resources:
        assert resources.pods() == {}
        if known:
            assert resources.get("ml", "p") == ["c"]
        else:
            with pytest.raises(grpc.RpcError, match="pod p in namespace ml not found"):
                resources.get("ml", "p")
