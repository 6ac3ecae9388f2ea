"""The API server's view: the Node, the pods bound to it, the DeviceClasses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Node(NamedTuple):
    name: str
    uid: str | None
    boot_id: str | None
    kubelet_version: str | None
    """`v1.37.2`; None where missing; `v0.0.0…` is no version (an unstamped build)."""
    capacity: Mapping[str, str]
    """Every key, native ones too, the quantity as the API has it."""
    allocatable: Mapping[str, str]
    owners: Mapping[str, tuple[str, ...]] | None
    """Managers of `f:status.f:capacity.f:KEY`; a key without an owner is absent. None: the Node
    came without managedFields, so owners are unknown."""
    kubelet_manager: str
    """The manager that owns the Ready condition, else `kubelet`."""
    ready: bool | None
    heartbeat: float | None
    """lastHeartbeatTime of the Ready condition."""


class HealthWord(NamedTuple):
    """One entry of `allocatedResourcesStatus`."""

    resource: str
    device_id: str
    health: str
    message: str | None


class PodContainer(NamedTuple):
    name: str
    kind: str
    """`init`, `sidecar` (restartable init) or `app`."""
    requests: Mapping[str, str]
    """Effective requests: the limit stands in where only a limit is given."""
    limits: Mapping[str, str]
    state: str | None
    """`waiting`, `running`, `terminated`; None where the status does not say."""
    reason: str | None
    """Of a waiting or terminated container."""
    health: tuple[HealthWord, ...]


class Pod(NamedTuple):
    namespace: str
    name: str
    uid: str
    config_hash: str | None
    """Annotation `kubernetes.io/config.hash`: for a static pod the UID that the kubelet uses."""
    node_name: str | None
    phase: str
    reason: str | None
    message: str | None
    deleted: bool
    """Has a deletionTimestamp."""
    containers: tuple[PodContainer, ...]
    """Init and sidecar containers first, each group in the order of the spec."""
    pod_requests: Mapping[str, str]
    """`spec.resources.requests` (pod level)."""
    overhead: Mapping[str, str]
    owner: str | None
    """`Kind/name` of the controller, if any."""

    @property
    def terminal(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


class DeviceClass(NamedTuple):
    name: str
    extended_resource_name: str | None
    """`spec.extendedResourceName`: DRA serves pods that request this name."""


def minor_version(version: str | None) -> int | None:
    """37 for `v1.37.2`; None where unknown: none, nonsense, `v0.0.0…` (an unstamped build)."""
    parts = (version or "").lstrip("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not parts[1].isdigit():
        return None
    return int(parts[1])
