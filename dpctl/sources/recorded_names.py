"""Names in recorded protobuf answers, replaced: PodResources, and what plugins gave to containers.

Which name becomes what is the caller's; here is where names stand. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dpctl.sources.podresources_messages import decode


class Renaming(Protocol):
    def word(self, kind: str, text: str) -> str: ...
    def value(self, text: str) -> str: ...
    def text(self, text: str) -> str: ...
    def device(self, text: str) -> str: ...


def rename_list(data: bytes, names: Renaming) -> bytes:
    """A ListPodResourcesResponse. Raises BadDataError."""
    from dpctl.pb.podresources.v1 import podresources_pb2 as pb

    message = decode(pb.ListPodResourcesResponse, data, "List")
    for pod in message.pod_resources:
        pod.name = names.word("pod", pod.name)
        pod.namespace = names.word("namespace", pod.namespace)
        for container in pod.containers:
            container.name = names.text(container.name)
            _rename_devices(container, names.device)
            for claim in container.dynamic_resources:
                claim.claim_name = names.word("claim", claim.claim_name)
                claim.claim_namespace = names.word("namespace", claim.claim_namespace)
                for item in claim.claim_resources:
                    item.pool_name = names.text(item.pool_name)
                    item.device_name = names.device(item.device_name)
                    for cdi in item.cdi_devices:
                        cdi.name = names.text(cdi.name)
    return message.SerializeToString(deterministic=True)


def rename_allocatable(data: bytes, names: Renaming) -> bytes:
    """An AllocatableResourcesResponse. Raises BadDataError."""
    from dpctl.pb.podresources.v1 import podresources_pb2 as pb

    message = decode(pb.AllocatableResourcesResponse, data, "GetAllocatableResources")
    _rename_devices(message, names.device)
    return message.SerializeToString(deterministic=True)


def rename_allocation(data: bytes, names: Renaming) -> bytes:
    """A ContainerAllocateResponse (`AllocResp` of the checkpoint). Raises BadDataError."""
    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    message = decode(pb.ContainerAllocateResponse, data, "Allocate")
    for key in list(message.envs):
        message.envs[key] = names.value(message.envs[key])
    for key in list(message.annotations):
        message.annotations[key] = names.text(message.annotations[key])
    for mount in message.mounts:
        mount.container_path = names.text(mount.container_path)
        mount.host_path = names.text(mount.host_path)
    for device in message.devices:
        device.container_path = names.text(device.container_path)
        device.host_path = names.text(device.host_path)
    for cdi in message.cdi_devices:
        cdi.name = names.text(cdi.name)
    return message.SerializeToString(deterministic=True)


def _rename_devices(holder: object, rename: Callable[[str], str]) -> None:
    for entry in holder.devices:  # type: ignore[attr-defined]
        ids = [rename(device_id) for device_id in entry.device_ids]
        if ids != list(entry.device_ids):
            entry.device_ids[:] = ids
