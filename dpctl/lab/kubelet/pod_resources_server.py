"""PodResourcesLister v1 and v1alpha1 on pod-resources/kubelet.sock (kubelet-facts §7)."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterable
from concurrent import futures
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import grpc

from dpctl.lab.api_errors import Json
from dpctl.lab.kubelet.device_manager import DeviceManager
from dpctl.lab.kubelet.go_text import Unknown
from dpctl.lab.kubelet.pods import Pods
from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from dpctl.pb.podresources.v1 import podresources_pb2_grpc as rpc
from dpctl.pb.podresources.v1alpha1 import podresources_pb2 as old_pb
from dpctl.pb.podresources.v1alpha1 import podresources_pb2_grpc as old_rpc

T = TypeVar("T")

RATE = 100.0
BURST = 10


class TokenBucket:
    """100 calls a second, ten at once, for all clients and both versions together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = float(BURST)
        self._filled = time.monotonic()

    def take(self) -> bool:
        with self._lock:
            now = time.monotonic()
            self._tokens = min(BURST, self._tokens + (now - self._filled) * RATE)
            self._filled = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


class _Limited:
    def __init__(self, limit: TokenBucket, pods: Pods, manager: DeviceManager) -> None:
        self._limit = limit
        self._pods = pods
        self._manager = manager
        self._order = random.Random()

    def _admit(self, context: Any) -> None:
        if not self._limit.take():
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")

    def _shuffled(self, items: Iterable[T]) -> list[T]:
        listed = list(items)
        self._order.shuffle(listed)
        return listed


class Lister(_Limited, rpc.PodResourcesListerServicer):
    def List(self, request: Any, context: Any) -> pb.ListPodResourcesResponse:
        self._admit(context)
        self._manager.update_allocated()
        pods = self._shuffled(self._pods.active_pods())
        return pb.ListPodResourcesResponse(pod_resources=[self._pod(pod) for pod in pods])

    def Get(self, request: pb.GetPodResourcesRequest, context: Any) -> pb.GetPodResourcesResponse:
        self._admit(context)
        everybody = self._pods.behaviour.get_shows_ended
        for pod in list(self._pods.known.values()) if everybody else self._pods.active_pods():
            metadata = pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == (
                request.pod_namespace,
                request.pod_name,
            ):
                return pb.GetPodResourcesResponse(pod_resources=self._pod(pod))
        context.abort(
            grpc.StatusCode.UNKNOWN,
            f"pod {request.pod_name} in namespace {request.pod_namespace} not found",
        )
        raise AssertionError  # abort raises

    def GetAllocatableResources(
        self, request: Any, context: Any
    ) -> pb.AllocatableResourcesResponse:
        """Healthy right now, in use or not; `topology: {}` makes a device vanish here."""
        self._admit(context)
        manager = self._manager
        found: list[pb.ContainerDevices] = []
        with manager.lock:
            for resource, ids in manager.healthy.items():
                for device_id in ids:
                    device = manager.all_devices.get(resource, {}).get(device_id)
                    if device is None:
                        continue
                    nodes = [node.ID for node in device.topology.nodes]
                    if device.HasField("topology"):
                        found.extend(_entry(resource, device_id, node) for node in nodes)
                    else:
                        found.append(_entry(resource, device_id, None))
        return pb.AllocatableResourcesResponse(devices=self._shuffled(found))

    def _pod(self, pod: Json) -> pb.PodResources:
        return pb.PodResources(
            name=pod["metadata"]["name"],
            namespace=pod["metadata"]["namespace"],
            containers=[
                pb.ContainerResources(name=name, devices=self._devices(pod, name))
                for name in _listed(pod)
            ],
        )

    def _devices(self, pod: Json, container: str) -> list[pb.ContainerDevices]:
        found: list[pb.ContainerDevices] = []
        with self._manager.lock:
            held = self._manager.pod_devices.container(pod["metadata"]["uid"], container)
            for resource, one in held.items():
                for device_id in one.ids():
                    nodes = one.nodes_of(device_id)
                    found.extend(_entry(resource, device_id, node) for node in nodes or (None,))
        return self._shuffled(found)


class OldLister(_Limited, old_rpc.PodResourcesListerServicer):
    """v1alpha1: all pods, app containers only; an entry per device and NUMA node as in v1, but
    the node is not said (§2.4)."""

    def List(self, request: Any, context: Any) -> old_pb.ListPodResourcesResponse:
        self._admit(context)
        self._manager.update_allocated()
        return old_pb.ListPodResourcesResponse(
            pod_resources=[
                old_pb.PodResources(
                    name=pod["metadata"]["name"],
                    namespace=pod["metadata"]["namespace"],
                    containers=[self._container(pod, c) for c in pod["spec"]["containers"]],
                )
                for pod in self._shuffled(list(self._pods.known.values()))
            ]
        )

    def _container(self, pod: Json, container: Json) -> old_pb.ContainerResources:
        with self._manager.lock:
            uid, name = pod["metadata"]["uid"], container["name"]
            held = self._manager.pod_devices.container(uid, name)
            devices = [
                old_pb.ContainerDevices(resource_name=resource, device_ids=[device_id])
                for resource, one in held.items()
                for device_id in one.ids()
                for _ in one.nodes_of(device_id) or (None,)
            ]
        return old_pb.ContainerResources(name=name, devices=self._shuffled(devices))


def _listed(pod: Json) -> list[str]:
    """Containers of List: sidecars first, ordinary init containers never."""
    sidecars = [
        c["name"]
        for c in pod["spec"].get("initContainers") or []
        if c.get("restartPolicy") == "Always"
    ]
    return sidecars + [c["name"] for c in pod["spec"]["containers"]]


def _entry(resource: str, device_id: str, node: int | None) -> pb.ContainerDevices:
    entry = pb.ContainerDevices(resource_name=resource, device_ids=[device_id])
    if node is not None:
        entry.topology.nodes.add(ID=node)
    return entry


def serve(directory: Path, pods: Pods, manager: DeviceManager) -> grpc.Server:
    """Bound under a temporary name and renamed over the old socket, as the kubelet does."""
    directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    socket = directory / "kubelet.sock"
    socket.unlink(missing_ok=True)
    server = grpc.server(futures.ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
    limit = TokenBucket()
    lister, old = Lister(limit, pods, manager), OldLister(limit, pods, manager)
    rpc.add_PodResourcesListerServicer_to_server(lister, server)  # type: ignore[no-untyped-call]
    old_rpc.add_PodResourcesListerServicer_to_server(old, server)  # type: ignore[no-untyped-call]
    services = ["v1.PodResourcesLister", "v1alpha1.PodResourcesLister"]
    server.add_generic_rpc_handlers((Unknown(services),))
    temporary = directory / f".{os.getpid()}.sock"
    server.add_insecure_port(f"unix:{quote(str(temporary))}")
    server.start()
    os.rename(temporary, socket)
    return server
