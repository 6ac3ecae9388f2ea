"""A large node to measure on: PodResources and API servers, a host's root with a checkpoint.

Run as `python -m bench.node DIRECTORY PODS DEVICES`: writes the root, serves
`DIRECTORY/var/lib/kubelet/pod-resources/kubelet.sock` until its standard input ends.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from bench import api
from dpctl.model import Allocation
from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from dpctl.pb.podresources.v1 import podresources_pb2_grpc
from dpctl.statefiles.device_checkpoint import encode_checkpoint

KUBELET = "var/lib/kubelet"
KUBECONFIG = "kubeconfig"
"""Of the node's API server; asked only where a case names it."""
RESOURCES = ("gpu.bench.example/whole", "gpu.bench.example/slice", "net.bench.example/vf")


class Node:
    """`devices` devices of three resources on two NUMA nodes; `pods` pods hold half of them."""

    def __init__(self, pods: int, devices: int) -> None:
        self.registered = {
            name: [f"{name[:3]}-{number:05}" for number in range(devices // len(RESOURCES) + 1)]
            for name in RESOURCES
        }
        every = [(name, device) for name, ids in self.registered.items() for device in ids]
        every = every[:devices]
        self.registered = {n: [d for name, d in every if name == n] for n in RESOURCES}
        each = max(devices // 2 // max(pods, 1), 1)
        self.held = {pod: every[pod * each * 2 : pod * each * 2 + each] for pod in range(pods)}
        self.every = every

    def checkpoint(self) -> bytes:
        allocations = [
            Allocation(f"uid-{pod}", "main", name, {_numa(device): (device,)}, None)
            for pod, held in self.held.items()
            for name, device in held
        ]
        return encode_checkpoint(allocations, self.registered)

    def list_answer(self) -> pb.ListPodResourcesResponse:
        return pb.ListPodResourcesResponse(
            pod_resources=[
                pb.PodResources(
                    name=f"pod-{pod}",
                    namespace="bench",
                    containers=[
                        pb.ContainerResources(name="main", devices=[_device(*d) for d in held])
                    ],
                )
                for pod, held in self.held.items()
            ]
        )

    def allocatable_answer(self) -> pb.AllocatableResourcesResponse:
        return pb.AllocatableResourcesResponse(devices=[_device(*each) for each in self.every])

    def pod_documents(self) -> list[dict[str, Any]]:
        found = []
        for pod, held in self.held.items():
            limits = {n: str(sum(name == n for name, _ in held)) for n in dict(held)}
            found.append(api.pod_document(pod, limits))
        return found

    def write(self, root: Path) -> Path:
        """The host's root; returns the path of the PodResources socket."""
        plugins = root / KUBELET / "device-plugins"
        plugins.mkdir(parents=True)
        (plugins / "kubelet_internal_checkpoint").write_bytes(self.checkpoint())
        for pod in self.held:
            (root / f"var/log/pods/bench_pod-{pod}_uid-{pod}").mkdir(parents=True)
        socket = root / KUBELET / "pod-resources/kubelet.sock"
        socket.parent.mkdir()
        return socket


def _numa(device: str) -> int:
    return int(device[-1]) % 2


def _device(name: str, device: str) -> pb.ContainerDevices:
    topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=_numa(device))])
    return pb.ContainerDevices(resource_name=name, device_ids=[device], topology=topology)


class Servicer(podresources_pb2_grpc.PodResourcesListerServicer):
    """Answers made once: what is measured is the client."""

    def __init__(self, node: Node) -> None:
        self.listed = node.list_answer()
        self.allocatable = node.allocatable_answer()

    def List(self, request: Any, context: Any) -> pb.ListPodResourcesResponse:
        return self.listed

    def GetAllocatableResources(
        self, request: Any, context: Any
    ) -> pb.AllocatableResourcesResponse:
        return self.allocatable


def main() -> None:
    root, pods, devices = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    node = Node(pods, devices)
    socket = node.write(root)
    server = grpc.server(ThreadPoolExecutor(4))
    podresources_pb2_grpc.add_PodResourcesListerServicer_to_server(  # type: ignore[no-untyped-call]
        Servicer(node), server
    )
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    counts = {name: len(ids) for name, ids in node.registered.items()}
    api.serve(api.node_document(counts), node.pod_documents(), root / KUBECONFIG)
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main()
