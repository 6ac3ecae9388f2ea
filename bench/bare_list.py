"""The floor for `dpctl pods`: grpc, one stub, one List, nothing else."""

import sys

import grpc

from dpctl.pb.podresources.v1 import podresources_pb2, podresources_pb2_grpc

channel = grpc.insecure_channel(
    f"unix:{sys.argv[1]}", options=[("grpc.default_authority", "localhost")]
)
stub = podresources_pb2_grpc.PodResourcesListerStub(channel)  # type: ignore[no-untyped-call]
answer = stub.List(podresources_pb2.ListPodResourcesRequest(), timeout=5)
for pod in answer.pod_resources:
    print(pod.namespace, pod.name)
