"""The kubelet's state files beside the device checkpoint, decoded (kubelet-facts §5.4 to §5.7).

A file that no kubelet can use is kept all the same: `fault` says what is wrong with it, the
checksums whether its numbers fit. Judging is not done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dpctl.model.kubelet import MemoryBlock

NOTHING: Mapping[str, Any] = MappingProxyType({})


class StateFault(NamedTuple):
    """Why a file, or the text inside of it, cannot be decoded."""

    words: str
    """A sentence about the file."""
    kubelet: str | None = None
    """What Go's decoder says to it, where that is known to the letter."""
    certain: bool = True
    """Whether a kubelet refuses it, too: Go takes a key that stands twice, which dpctl does not."""


class ReadFailure(NamedTuple):
    """How a kubelet's own read of a file fails: `CALL PATH: WORDS`."""

    call: str
    words: str


class StateChecksum(NamedTuple):
    """One number of a file, and what a kubelet computes that reads the file in this form."""

    form: str
    """`v1` to `v4`; a `*` behind it: hashed under the Go type's own name, which some kubelets
    accept besides; empty where a format has one form only."""
    key: str
    """Of the file: `checksum`, `dataChecksum`, `Checksum`."""
    stored: int
    computed: int

    @property
    def fits(self) -> bool:
        return self.stored == self.computed


def checksum_of(checksums: tuple[StateChecksum, ...], form: str) -> StateChecksum | None:
    return next((one for one in checksums if one.form == form), None)


class BadCpuList(NamedTuple):
    """A CPU list that no kubelet can parse."""

    where: str
    """`default`, `container`, `pod` or `baseline`."""
    text: str
    error: str
    """In Go's words."""
    pod_uid: str | None = None
    container: str | None = None


class CpuAssignments(NamedTuple):
    """What the CPU manager remembers, as one half of its file says it. CPUs are ascending."""

    policy: str
    """`none` or `static`."""
    default_cpus: tuple[int, ...]
    """The shared pool, reserved CPUs among them; empty with policy none."""
    containers: Mapping[str, Mapping[str, tuple[int, ...]]] = NOTHING
    """Pod UID to container to its CPUs: exclusive ones, with pod-level resources shared sets too,
    so that the containers of one pod may overlap."""
    pods: Mapping[str, tuple[int, ...]] = NOTHING
    """Pod UID to the CPUs of the whole pod (PodLevelResourceManagers)."""
    baselines: Mapping[str, Mapping[str, tuple[int, ...]]] = NOTHING
    """As `containers`: the CPUs at admission (InPlacePodVerticalScalingExclusiveCPUs)."""
    unparsable: tuple[BadCpuList, ...] = ()
    """Lists that are left out above."""


class CpuManagerState(NamedTuple):
    """`cpu_manager_state`."""

    version: int | None
    """1 to 4, by its form; None: it cannot be decoded, or there is none."""
    outer: CpuAssignments | None = None
    """The keys that kubelets up to 1.36 read, and 1.37 where there is no `data`."""
    data: CpuAssignments | None = None
    """The text in `data`, which alone counts for 1.37; None: no text, or it cannot be decoded."""
    container_ids: Mapping[str, tuple[int, ...]] = NOTHING
    """v1: container ID, not pod and container, to its CPUs."""
    checksums: tuple[StateChecksum, ...] = ()
    fault: StateFault | None = None
    data_fault: StateFault | None = None
    unknown_keys: tuple[str, ...] = ()
    """Keys of no known version (`data.` in front for the inner half): newer than dpctl."""
    modified: float | None = None
    absent: bool = False
    """There is no file; a kubelet that starts makes one."""

    @property
    def content(self) -> CpuAssignments | None:
        """What the newest reader goes by."""
        return self.data or self.outer


class MemoryTable(NamedTuple):
    """One memory type of one NUMA node, in bytes."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    """Held by containers."""
    free: int


class NumaMemory(NamedTuple):
    """One NUMA node as the memory manager accounts for it."""

    assignments: int
    tables: Mapping[str, MemoryTable | None]
    """`memory` or `hugepages-<size>`; None: the file says null, which no kubelet writes."""
    group: tuple[int, ...]
    """NUMA nodes that it is joined with, itself among them (`cells`)."""


class MemoryAssignments(NamedTuple):
    """What the memory manager remembers, as one half of its file says it."""

    policy: str
    """`None`, `Static` (Windows: `BestEffort`)."""
    nodes: Mapping[int, NumaMemory | None]
    """NUMA node to its account; empty with policy None."""
    containers: Mapping[str, Mapping[str, tuple[MemoryBlock, ...]]] = NOTHING
    """Pod UID to container to its blocks."""
    pods: Mapping[str, tuple[MemoryBlock, ...]] = NOTHING
    """Pod UID to the blocks of the whole pod (PodLevelResourceManagers)."""


class MemoryManagerState(NamedTuple):
    """`memory_manager_state`."""

    version: int | None
    """1 to 3, by its form; None as in `CpuManagerState`."""
    outer: MemoryAssignments | None = None
    data: MemoryAssignments | None = None
    checksums: tuple[StateChecksum, ...] = ()
    fault: StateFault | None = None
    data_fault: StateFault | None = None
    unknown_keys: tuple[str, ...] = ()
    modified: float | None = None
    absent: bool = False

    @property
    def content(self) -> MemoryAssignments | None:
        """What the newest reader goes by."""
        return self.data or self.outer


class PreparedDevice(NamedTuple):
    """A device that a DRA driver prepared for a claim."""

    pool: str
    device: str
    share_id: str | None
    requests: tuple[str, ...]
    cdi_devices: tuple[str, ...]


class PreparedDriver(NamedTuple):
    devices: tuple[PreparedDevice, ...]
    skip_node_operations: tuple[str, ...] = ()
    """Calls that the kubelet does not make for this claim (1.37; `*`: none of them)."""


class PreparedClaim(NamedTuple):
    uid: str
    name: str
    namespace: str
    pod_uids: tuple[str, ...]
    """Ascending."""
    drivers: Mapping[str, PreparedDriver]


class DraManagerState(NamedTuple):
    """`dra_manager_state`: the claims that are prepared on this node."""

    version: str | None
    """`apiVersion` of the text inside; None: it cannot be decoded, or there is none."""
    claims: tuple[PreparedClaim, ...] = ()
    checksums: tuple[StateChecksum, ...] = ()
    fault: StateFault | None = None
    data_fault: StateFault | None = None
    unknown_keys: tuple[str, ...] = ()
    modified: float | None = None
    absent: bool = False


class DraDeviceHealth(NamedTuple):
    driver: str
    pool: str
    device: str
    health: str
    """`Healthy`, `Unhealthy`, `Unknown`."""
    updated: str | None
    """As the file has it, RFC 3339."""
    timeout: float | None
    """Seconds after `updated` for which it counts; None: not set, the kubelet's 30."""
    message: str | None


class DraHealthState(NamedTuple):
    """`dra_health_state`: has no checksum, and a bad one is only logged."""

    devices: tuple[DraDeviceHealth, ...] = ()
    fault: StateFault | None = None
    unknown_keys: tuple[str, ...] = ()
    modified: float | None = None
    absent: bool = False


class RecordedResources(NamedTuple):
    """Requests and limits as the kubelet granted them; quantities as the API has them."""

    requests: Mapping[str, str] = NOTHING
    limits: Mapping[str, str] = NOTHING


class RecordedPod(NamedTuple):
    uid: str
    containers: Mapping[str, RecordedResources]
    pod_level: RecordedResources | None = None
    empty_dirs: Mapping[str, str | None] | None = None
    """Volume to its limit (1.37); None: not said."""


class PodResourcesState(NamedTuple):
    """`allocated_pods_state` (what was granted) or `actuated_pods_state` (what the runtime has)."""

    pods: tuple[RecordedPod, ...] = ()
    checksums: tuple[StateChecksum, ...] = ()
    fault: StateFault | None = None
    data_fault: StateFault | None = None
    unknown_keys: tuple[str, ...] = ()
    modified: float | None = None
    absent: bool = False


class KubeletPod(NamedTuple):
    """A pod as the kubelet itself has it (Pods API, kubelet-facts §2.8)."""

    uid: str
    """A static pod's is the kubelet's, not the mirror pod's."""
    namespace: str
    name: str
    phase: str | None = None

    @property
    def terminal(self) -> bool:
        return self.phase in ("Succeeded", "Failed")
