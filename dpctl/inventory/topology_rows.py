"""The rows of `dpctl topology`: NUMA nodes, policies, alignment, and the answer to `--fit`.

Conventions as in `rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dpctl.inventory.rows import DeviceState
from dpctl.topology.alignment import Alignment


class NumaDevice(NamedTuple):
    """A device as its NUMA node shows it; one with several NUMA nodes is shown by each."""

    id: str
    resource: str
    state: DeviceState
    free: bool
    """A pod could get it: an orphaned one, too."""
    numa_nodes: tuple[int, ...] | None
    """Null: no topology, or (`numaKnown` false) unknown."""
    numa_known: bool
    holders: tuple[str, ...]
    """`namespace/pod/container`, those that are active."""


class ExclusiveCpus(NamedTuple):
    """CPUs of one NUMA node that one container has alone."""

    holder: str
    cpus: tuple[int, ...]


class MemoryUse(NamedTuple):
    """Bytes of one type on one NUMA node, as the static memory manager accounts for them."""

    type: str
    """`memory` or `hugepages-<size>`."""
    allocatable: int
    free: int
    """Not pinned by any container; processes may use it all the same."""
    holders: tuple[str, ...]


class NumaRow(NamedTuple):
    """One NUMA node: what it has, and who has it."""

    numa_node: int
    cpus: tuple[int, ...]
    """Online ones."""
    reserved_cpus: tuple[int, ...] | None
    """No container gets them alone; null: unknown, or the CPU manager's policy is none."""
    shared_cpus: tuple[int, ...] | None
    """Those of the shared pool that are not reserved: what a container could get alone; null:
    unknown."""
    exclusive_cpus: tuple[ExclusiveCpus, ...]
    memory_total: int | None
    """Bytes."""
    memory_free: int | None
    """As the kernel counts, whatever is pinned."""
    memory: tuple[MemoryUse, ...]
    """Empty with memory manager policy None."""
    hugepages: Mapping[str, int]
    """`hugepages-2Mi` to number of pages."""
    devices: tuple[NumaDevice, ...]
    distances: tuple[int, ...]
    """To each NUMA node, in their order."""


class PolicyRow(NamedTuple):
    """One setting that decides about NUMA nodes."""

    name: str
    """Field of KubeletConfiguration."""
    value: str | None
    """Null: unknown."""
    origin: str
    """Where that was read; `default` where the configuration does not say."""


class AlignmentRow(NamedTuple):
    """How what a container (or, under scope pod, a pod) holds lies on the NUMA nodes."""

    namespace: str | None
    pod: str | None
    uid: str | None
    container: str | None
    """Null: the whole pod."""
    alignment: Alignment | None
    """Null: nothing has topology, or it cannot be told."""
    numa_nodes: tuple[int, ...]
    """The fewest that hold all of it."""
    needed: int | None
    """NUMA nodes that it would need on an empty machine; null: unknown."""
    too_big: tuple[str, ...]
    """Resources of which it has more than any one NUMA node has."""
    note: str


class TopologyRow(NamedTuple):
    """The NUMA picture of the node."""

    numa_nodes: tuple[NumaRow, ...]
    policies: tuple[PolicyRow, ...]
    containers: tuple[AlignmentRow, ...]
    offline_cpus: tuple[int, ...] | None
    """Null: not read."""
    devices_elsewhere: tuple[NumaDevice, ...]
    """Devices without a NUMA node, or whose NUMA nodes are unknown."""
    notes: tuple[str, ...]


class FitChoice(NamedTuple):
    """One resource of one question to the topology manager."""

    resource: str
    requested: int
    available: int | None
    preferred: tuple[tuple[int, ...], ...]
    """Sets of NUMA nodes, as small as the request needs on an empty machine."""
    possible: tuple[tuple[int, ...], ...]
    """Larger sets that would do as well."""
    any: bool
    """It does not care: no device of the resource has topology."""


class FitQuestion(NamedTuple):
    """What the topology manager decided for one container, or (`container` null) for the pod."""

    container: str | None
    choices: tuple[FitChoice, ...]
    numa_nodes: tuple[int, ...] | None
    """Null: anywhere."""
    preferred: bool
    admitted: bool


class FitShare(NamedTuple):
    resource: str
    requested: int
    devices: tuple[str, ...]
    """One choice; among equal devices the kubelet picks at random, or the plugin does."""
    eligible: tuple[str, ...]
    """All that the choice is from."""


class FitContainer(NamedTuple):
    """What one container would get."""

    container: str
    devices: tuple[FitShare, ...]
    cpus: tuple[int, ...]
    """Exclusive ones; empty: the shared pool."""
    memory_numa_nodes: tuple[int, ...]
    """Empty: not pinned."""


class FitRow(NamedTuple):
    """Whether the kubelet would admit a pod now, by its managers and by what the Node has left."""

    pod: str
    admitted: bool
    reason: str | None
    """As the pod's status would have it; null when admitted."""
    message: str | None
    container: str | None
    """The one that is refused; null: the pod as a whole, or none."""
    why: tuple[str, ...]
    """In plain words."""
    policy: str
    scope: str
    policy_origin: str
    guaranteed: bool
    """Quality of service: only then are CPUs exclusive and memory pinned."""
    questions: tuple[FitQuestion, ...]
    containers: tuple[FitContainer, ...]
    unserved: tuple[str, ...]
    """Resources that the kubelet knows no plugin for: it admits the pod, and gives none of them."""
    warnings: tuple[str, ...]
    """What makes the answer less than certain, or less than it seems."""
