"""What a kubelet's PodResources socket answers, asked without dpctl's readers.

Nothing of dpctl is used here but the generated messages of the kubelet's API.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import grpc

from dpctl.pb.podresources.v1 import podresources_pb2, podresources_pb2_grpc

Holding = tuple[str, str, str, str]
"""Namespace, pod, container, resource."""


class Told(NamedTuple):
    """What the kubelet behind a socket says."""

    listed: dict[Holding, frozenset[str]]
    """Device IDs in the answer to List."""
    offered: dict[str, frozenset[str]]
    """Device IDs in the answer to GetAllocatableResources, by resource. Some kubelets leave devices
    without topology out."""
    numa: dict[tuple[str, str], frozenset[int]]
    """NUMA nodes by resource and device, from either."""


def pod_resources(path: Path) -> Told:
    """Ask the kubelet behind this socket."""
    with grpc.insecure_channel(f"unix:{path}") as channel:
        stub = podresources_pb2_grpc.PodResourcesListerStub(channel)  # type: ignore[no-untyped-call]
        pods = stub.List(podresources_pb2.ListPodResourcesRequest(), timeout=10).pod_resources
        request = podresources_pb2.AllocatableResourcesRequest()
        allocatable = stub.GetAllocatableResources(request, timeout=10).devices
    listed: dict[Holding, set[str]] = {}
    told = list(allocatable)
    for pod in pods:
        for container in pod.containers:
            told += container.devices
            for one in container.devices:
                key = (pod.namespace, pod.name, container.name, one.resource_name)
                listed.setdefault(key, set()).update(one.device_ids)
    offered: dict[str, set[str]] = {}
    for one in allocatable:
        offered.setdefault(one.resource_name, set()).update(one.device_ids)
    numa: dict[tuple[str, str], set[int]] = {}
    for one in told:
        for device in one.device_ids:
            nodes = numa.setdefault((one.resource_name, device), set())
            nodes.update(n.ID for n in one.topology.nodes if n.ID >= 0)  # -1: on none
    return Told(
        {key: frozenset(ids) for key, ids in listed.items()},
        {key: frozenset(ids) for key, ids in offered.items()},
        {key: frozenset(nodes) for key, nodes in numa.items()},
    )


def listed_pods(path: Path) -> set[tuple[str, str]]:
    """Namespace and name of every pod in the answer to List; none while nobody answers."""
    with grpc.insecure_channel(f"unix:{path}") as channel:
        stub = podresources_pb2_grpc.PodResourcesListerStub(channel)  # type: ignore[no-untyped-call]
        try:
            answer = stub.List(podresources_pb2.ListPodResourcesRequest(), timeout=10)
        except grpc.RpcError:
            return set()
        return {(pod.namespace, pod.name) for pod in answer.pod_resources}
