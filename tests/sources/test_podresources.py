from __future__ import annotations

import time
from typing import Any

import pytest

from dpctl.errors import BadDataError, PeerError, UnreachableError
from dpctl.model import Device
from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from dpctl.pb.podresources.v1alpha1 import podresources_pb2 as alpha
from dpctl.sources.podresources import (
    fetch_list,
    get_allocatable,
    get_pod,
    list_pod_resources,
)
from tests.fakes.grpc_sockets import (
    ALLOCATABLE,
    GET,
    INFO,
    LIST,
    LIST_ALPHA,
    OPTIONS,
    Answer,
    fail,
    listening,
    serving,
    short_directory,
    slow,
)

MIB = 1 << 20
LIMITS: Any = {"timeout": 5.0, "max_message_size": 64 * MIB}
FORBIDDEN = ("ListAndWatch", "/Allocate", "PreStart", "Register", "Notify")


@pytest.fixture
def top():
    with short_directory() as path:
        yield path


def devices(resource: str, *ids: str, nodes: tuple[int, ...] | None = None) -> pb.ContainerDevices:
    topology = None
    if nodes is not None:
        topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=n) for n in nodes])
    return pb.ContainerDevices(resource_name=resource, device_ids=ids, topology=topology)


def answer(*pods: pb.PodResources) -> bytes:
    return pb.ListPodResourcesResponse(pod_resources=pods).SerializeToString()


def pod(name: str, namespace: str = "ns", *found: pb.ContainerDevices) -> pb.PodResources:
    containers = [pb.ContainerResources(name="main", devices=found)]
    return pb.PodResources(name=name, namespace=namespace, containers=containers)


def test_list_by_v1(top):
    data = answer(pod("a", "ns", devices("v.example/gpu", "g1", nodes=(0,))))
    with serving(top / "k.sock", {LIST: data, LIST_ALPHA: b""}) as recorder:
        found = list_pod_resources(str(top / "k.sock"), **LIMITS)
        assert fetch_list(str(top / "k.sock"), **LIMITS) == ("v1", data)
    assert found.version == "v1"
    assert found.pods[0].containers[0].devices == (Device("v.example/gpu", "g1", (0,)),)
    assert recorder.methods == [LIST, LIST]
    assert recorder.authorities == {b"localhost"}


def test_list_by_v1alpha1_where_v1_is_not_served(top):
    data = alpha.ListPodResourcesResponse(
        pod_resources=[
            alpha.PodResources(
                name="a",
                namespace="ns",
                containers=[
                    alpha.ContainerResources(
                        name="c",
                        devices=[alpha.ContainerDevices(resource_name="r/x", device_ids=["1"])],
                    )
                ],
            )
        ]
    ).SerializeToString()
    with serving(top / "k.sock", {LIST_ALPHA: data}):
        found = list_pod_resources(str(top / "k.sock"), **LIMITS)
        assert get_pod(str(top / "k.sock"), "ns", "a", **LIMITS) == found.pods[0]
    assert found.version == "v1alpha1"
    assert found.pods[0].containers[0].devices == (Device("r/x", "1", None),)


def test_no_pods(top):
    with serving(top / "k.sock", {LIST: b""}):
        assert list_pod_resources(str(top / "k.sock"), **LIMITS).pods == ()


def test_an_error_of_list_is_not_retried_by_the_older_version(top):
    with (
        serving(top / "k.sock", {LIST: fail("INTERNAL", "boom"), LIST_ALPHA: b""}) as recorder,
        pytest.raises(PeerError, match="answered List with INTERNAL: boom"),
    ):
        list_pod_resources(str(top / "k.sock"), **LIMITS)
    assert recorder.methods == [LIST]


@pytest.mark.parametrize(
    "refusal",
    [
        fail("UNIMPLEMENTED", "unknown method Get"),
        fail("UNKNOWN", "PodResources API Get method disabled"),
        fail("UNKNOWN", "pod b in namespace ns not found"),
        fail("INTERNAL", "nil pointer"),
        fail("UNAVAILABLE", "said by the server itself"),
        slow(30),
    ],
    ids=["unimplemented", "disabled", "not found", "internal", "unavailable", "silent"],
)
def test_get_falls_back_to_list_on_any_error(top, refusal: Answer):
    with serving(
        top / "k.sock", {GET: refusal, LIST: answer(pod("a"), pod("b", "other"), pod("b"))}
    ) as recorder:
        found = get_pod(str(top / "k.sock"), "ns", "b", timeout=1.0, max_message_size=MIB)
    assert (found.namespace, found.name) == ("ns", "b")
    assert recorder.methods == [GET, LIST]


def test_get(top):
    def get(request, context):
        asked = pb.GetPodResourcesRequest.FromString(request)
        found = pod(asked.pod_name, asked.pod_namespace)
        return pb.GetPodResourcesResponse(pod_resources=found).SerializeToString()

    with serving(top / "k.sock", {GET: get}) as recorder:
        found = get_pod(str(top / "k.sock"), "team", "p", **LIMITS)
    assert (found.namespace, found.name) == ("team", "p")
    assert recorder.methods == [GET]


def test_a_pod_that_is_not_there(top):
    with (
        serving(top / "k.sock", {GET: fail("UNKNOWN", "not found"), LIST: answer(pod("a"))}),
        pytest.raises(PeerError, match="the kubelet has no pod ns/b"),
    ):
        get_pod(str(top / "k.sock"), "ns", "b", **LIMITS)


def test_get_does_not_ask_twice_where_nobody_listens(top):
    from tests.fakes.grpc_sockets import dead

    dead(top / "k.sock")
    with pytest.raises(UnreachableError, match="nobody listens"):
        get_pod(str(top / "k.sock"), "ns", "b", **LIMITS)


def test_rate_limit_over_ten_calls(top):
    """A token bucket as the kubelet's: 10 at once, then refused until it fills again."""
    tokens, last = 10.0, time.monotonic()

    def limited(request, context):
        nonlocal tokens, last
        now = time.monotonic()
        tokens, last = min(10.0, tokens + (now - last) * 5), now
        if tokens < 1:
            return fail("RESOURCE_EXHAUSTED", "rejected by rate limit")(request, context)
        tokens -= 1
        return pb.GetPodResourcesResponse(pod_resources=pod("a")).SerializeToString()

    with serving(top / "k.sock", {GET: limited}) as recorder:
        for _ in range(15):
            assert get_pod(str(top / "k.sock"), "ns", "a", **LIMITS).name == "a"
    assert len(recorder.methods) > 15
    assert LIST not in recorder.methods


def test_allocatable(top):
    data = pb.AllocatableResourcesResponse(
        devices=[devices("r/x", "1", nodes=(1,)), devices("r/x", "1", nodes=(0,))],
        cpu_ids=[3, 1, 1],
        memory=[
            pb.ContainerMemory(
                memory_type="memory",
                size=2**40,
                topology=pb.TopologyInfo(nodes=[pb.NUMANode(ID=0)]),
            )
        ],
    ).SerializeToString()
    with serving(top / "k.sock", {ALLOCATABLE: data}) as recorder:
        found = get_allocatable(str(top / "k.sock"), **LIMITS)
    assert found.devices == (Device("r/x", "1", (0, 1)),)
    assert found.cpus == (1, 3)
    assert (found.memory[0].size, found.memory[0].numa_nodes) == (2**40, (0,))
    assert recorder.methods == [ALLOCATABLE]


def test_allocatable_that_an_old_kubelet_has_not(top):
    with (
        serving(top / "k.sock", {LIST: b""}),
        pytest.raises(PeerError, match="has no GetAllocatableResources") as caught,
    ):
        get_allocatable(str(top / "k.sock"), **LIMITS)
    assert "--no-allocatable" in (caught.value.hint or "")
    words = "Pod Resources API GetAllocatableResources disabled"
    with (
        serving(top / "k2.sock", {ALLOCATABLE: fail("UNKNOWN", words), LIST: b""}),
        pytest.raises(PeerError, match="disabled") as caught,
    ):
        get_allocatable(str(top / "k2.sock"), **LIMITS)
    assert "KubeletPodResourcesGetAllocatable" in (caught.value.hint or "")


@pytest.mark.parametrize("call", [list_pod_resources, get_allocatable])
def test_the_registration_socket_is_recognised_and_the_right_one_named(top, call):
    (top / "device-plugins").mkdir()
    path = top / "device-plugins" / "kubelet.sock"
    with (
        serving(path, {"/v1beta1.Registration/Register": b""}) as recorder,
        pytest.raises(PeerError, match="registration socket of device plugins") as caught,
    ):
        call(str(path), **LIMITS)
    assert f"{top}/pod-resources/kubelet.sock" in (caught.value.hint or "")
    assert "--pod-resources-socket" in (caught.value.hint or "")
    assert not any(word in method for method in recorder.methods for word in FORBIDDEN)


@pytest.mark.parametrize(
    ("serves", "words"),
    [
        (OPTIONS, "a device plugin's own socket"),
        (INFO, "a plugin's registration socket"),
        ("/x.Y/Z", "does not serve PodResources"),
    ],
)
def test_other_sockets(top, serves, words):
    with (
        serving(top / "p.sock", {serves: b""}) as recorder,
        pytest.raises(PeerError, match=words),
    ):
        list_pod_resources(str(top / "p.sock"), **LIMITS)
    assert not any(word in method for method in recorder.methods for word in FORBIDDEN)


def big_answer() -> bytes:
    """1000 pods that hold 100 000 devices with 70-byte IDs."""
    pods = []
    for number in range(1000):
        found = [
            devices("v.example/gpu", f"{number:05}-{index:03}-{'x' * 60}", nodes=(index % 2,))
            for index in range(100)
        ]
        pods.append(pod(f"pod-{number}", "ns", *found))
    return answer(*pods)


def test_an_answer_of_many_megabytes(top):
    data = big_answer()
    assert len(data) > 8 * MIB
    with serving(top / "k.sock", {LIST: data}):
        found = list_pod_resources(str(top / "k.sock"), timeout=30, max_message_size=64 * MIB)
        assert len(found.pods) == 1000
        assert sum(len(p.containers[0].devices) for p in found.pods) == 100_000
        with pytest.raises(PeerError, match="dpctl takes 4 MiB") as caught:
            list_pod_resources(str(top / "k.sock"), timeout=30, max_message_size=4 * MIB)
    assert "--max-message-size" in (caught.value.hint or "")


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x0a\x05ab", b"\x0a\x04\x0a\x02\xff\xfe"])
def test_answers_that_are_no_answer(top, data, capfd):
    with serving(top / "k.sock", {LIST: data, ALLOCATABLE: data, GET: data}):
        with pytest.raises(BadDataError, match="the answer to List cannot be decoded"):
            list_pod_resources(str(top / "k.sock"), **LIMITS)
        with pytest.raises(BadDataError, match="the answer to GetAllocatableResources"):
            get_allocatable(str(top / "k.sock"), **LIMITS)
        with pytest.raises(BadDataError, match="the answer to Get cannot"):
            get_pod(str(top / "k.sock"), "ns", "a", **LIMITS)
    assert capfd.readouterr().err == ""


def test_a_kubelet_that_dies_during_the_call(top):
    def die(connection):
        connection.recv(100)
        connection.sendall(b"\0\0\0\4\0\0\0\0\0")
        time.sleep(0.2)
        connection.close()

    with (
        listening(top / "k.sock", die),
        pytest.raises(UnreachableError, match="broke off"),
    ):
        list_pod_resources(str(top / "k.sock"), timeout=3, max_message_size=MIB)
