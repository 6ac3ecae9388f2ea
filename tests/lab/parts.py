"""What the lab's own tests share: a plain plugin, and short ways to look."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec, SampleDevice
from dpctl.model import Checkpoint
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc
from dpctl.pb.podresources.v1 import podresources_pb2 as resources_pb
from dpctl.pb.podresources.v1 import podresources_pb2_grpc as resources_rpc
from dpctl.statefiles.device_checkpoint import parse_checkpoint

GPU = "vendor.example/gpu"
STATUS = "/api/v1/nodes/lab-0/status"
JSON_PATCH = "application/json-patch+json"


def plain(
    count: int = 4, *, name: str = "gpu", resource: str = GPU, endpoint: str = "", **more: Any
) -> PluginSpec:
    """`count` devices `gpu-0`, …; even ones on NUMA node 0, odd ones on node 1."""
    devices = tuple(SampleDevice(f"{name}-{n}", (n % 2,)) for n in range(count))
    return PluginSpec(name, resource, endpoint or f"{name}.sock", devices, **more)


def amounts(lab: Lab, key: str = GPU) -> tuple[str | None, str | None]:
    """Capacity and allocatable of a key on the Node."""
    status = lab.node()["status"]
    return status["capacity"].get(key), status["allocatable"].get(key)


def checkpoint(lab: Lab) -> Checkpoint:
    return parse_checkpoint((lab.device_plugins / "kubelet_internal_checkpoint").read_bytes())


def json_patch(lab: Lab, *operations: tuple[str, str, Any], path: str = STATUS) -> int:
    """Send operations (op, path, value) as the admin; the answer's code."""
    body = [{"op": op, "path": where, "value": value} for op, where, value in operations]
    return lab.api("PATCH", path, body, content_type=JSON_PATCH)[0]


def key(name: str, part: str = "capacity") -> str:
    return f"/status/{part}/" + name.replace("~", "~0").replace("/", "~1")


def register(lab: Lab, endpoint: str, resource: str, version: str = "v1beta1") -> str | None:
    """Call Register by hand: None or the error's `CODE text`."""
    request = pb.RegisterRequest(version=version, endpoint=endpoint, resource_name=resource)
    with grpc.insecure_channel(f"unix:{lab.device_plugins}/kubelet.sock") as channel:
        stub = rpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]
        try:
            stub.Register(request, timeout=20)
        except grpc.RpcError as error:
            return f"{error.code().name} {error.details()}"
    return None


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for it; a plugin's process takes its time to start on a busy machine."""
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


Entries = list[tuple[str, str, tuple[int, ...]]]
"""(resource, ID, NUMA nodes of the entry), sorted."""


class Resources:
    """PodResources of a lab; each call may raise grpc.RpcError."""

    def __init__(self, lab: Lab) -> None:
        self._channel = grpc.insecure_channel(f"unix:{lab.pod_resources_socket}")
        self.stub = resources_rpc.PodResourcesListerStub(self._channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Resources:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def pods(self) -> dict[str, dict[str, Entries]]:
        """`namespace/name` to container to its entries."""
        answer = self.stub.List(resources_pb.ListPodResourcesRequest(), timeout=5)
        return {
            f"{pod.namespace}/{pod.name}": {c.name: entries(c.devices) for c in pod.containers}
            for pod in answer.pod_resources
        }

    def allocatable(self) -> Entries:
        answer = self.stub.GetAllocatableResources(
            resources_pb.AllocatableResourcesRequest(), timeout=5
        )
        return entries(answer.devices)

    def get(self, namespace: str, name: str) -> list[str]:
        """Names of the containers."""
        request = resources_pb.GetPodResourcesRequest(pod_namespace=namespace, pod_name=name)
        return [c.name for c in self.stub.Get(request, timeout=5).pod_resources.containers]


def entries(devices: Any) -> Entries:
    return sorted(
        (d.resource_name, i, tuple(n.ID for n in d.topology.nodes))
        for d in devices
        for i in d.device_ids
    )
