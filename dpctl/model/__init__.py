"""What a node said, as named tuples. No I/O, no behaviour beyond derived properties.

`kubelet`: PodResources answers and the device checkpoint. `node`: the API server's view.
`host`: files, sockets and processes of the machine. `asked`: what it has of what plugins ask
for. `snapshot`: all of it, at one moment.

Named tuples because a frozen dataclass costs four times as much to define (some eighty types load
with every command) and three times as much to make (10^5 devices).

Conventions: `None` means not known or not given (the field says which), an empty tuple means known
to be none. Texts are as the peer sent them, undecodable bytes as lone surrogates. Times are Unix
seconds (float) unless a field says RFC 3339. NUMA node 0 is a node.
"""

from __future__ import annotations

from dpctl.model.asked import CdiDevice, CdiSpec, HostPath
from dpctl.model.host import (
    CpuTree,
    DirectoryEntry,
    DirectoryListing,
    Kubelet,
    ListedDevice,
    NumaNode,
    NumaTree,
    PluginOptions,
    PluginSocket,
    PodName,
    Process,
    RegistrySocket,
    SocketState,
    SocketTable,
    UnixSocket,
)
from dpctl.model.kubelet import (
    Allocatable,
    Allocation,
    AllocResponse,
    Checkpoint,
    Claim,
    ClaimDevice,
    ContainerHolding,
    Device,
    DeviceSpec,
    MemoryBlock,
    Mount,
    PodHolding,
    PodResources,
)
from dpctl.model.node import DeviceClass, HealthWord, Node, Pod, PodContainer
from dpctl.model.rows import EnvRow, SourceRow
from dpctl.model.snapshot import Snapshot, Source

__all__ = [
    "AllocResponse",
    "Allocatable",
    "Allocation",
    "CdiDevice",
    "CdiSpec",
    "Checkpoint",
    "Claim",
    "ClaimDevice",
    "ContainerHolding",
    "CpuTree",
    "Device",
    "DeviceClass",
    "DeviceSpec",
    "DirectoryEntry",
    "DirectoryListing",
    "EnvRow",
    "HealthWord",
    "HostPath",
    "Kubelet",
    "ListedDevice",
    "MemoryBlock",
    "Mount",
    "Node",
    "NumaNode",
    "NumaTree",
    "PluginOptions",
    "PluginSocket",
    "Pod",
    "PodContainer",
    "PodHolding",
    "PodName",
    "PodResources",
    "Process",
    "RegistrySocket",
    "Snapshot",
    "SocketState",
    "SocketTable",
    "Source",
    "SourceRow",
    "UnixSocket",
]
