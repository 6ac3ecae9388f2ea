"""PodResources answers, protobuf or JSON, to the model; pure.

The wire has one entry per (device, NUMA node): here they become one `Device`. NUMA node -1, which
some plugins pass through from sysfs, is no topology (kubelet-facts §7). JSON is what kubectl,
grpcurl and knit print: names in both cases, numbers as text, `{}` for NUMA node 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dpctl.errors import BadDataError
from dpctl.model import (
    Allocatable,
    Claim,
    ClaimDevice,
    ContainerHolding,
    Device,
    MemoryBlock,
    PodHolding,
    PodResources,
)
from dpctl.sources.json_fields import Field, parse_json
from dpctl.text import shorten

if TYPE_CHECKING:
    from dpctl.pb.podresources.v1 import podresources_pb2 as pb

_Message = TypeVar("_Message")
_LIST, _ALLOCATABLE, _GET = "List", "GetAllocatableResources", "Get"
# (resource, device IDs, NUMA nodes or None): one entry of the wire.
_Entry = tuple[str, Iterable[str], Sequence[int] | None]


def parse_list_binpb(data: bytes, *, version: str = "v1") -> PodResources:
    """A ListPodResourcesResponse; v1alpha1 is the same with fewer fields. Raises BadDataError."""
    from dpctl.pb.podresources.v1 import podresources_pb2 as pb

    message = decode(pb.ListPodResourcesResponse, data, _LIST)
    return PodResources(version, tuple(_pod(pod) for pod in message.pod_resources))


def parse_get_binpb(data: bytes) -> PodHolding:
    """A GetPodResourcesResponse. Raises BadDataError."""
    from dpctl.pb.podresources.v1 import podresources_pb2 as pb

    return _pod(decode(pb.GetPodResourcesResponse, data, _GET).pod_resources)


def parse_allocatable_binpb(data: bytes) -> Allocatable:
    """An AllocatableResourcesResponse. Raises BadDataError."""
    from dpctl.pb.podresources.v1 import podresources_pb2 as pb

    message = decode(pb.AllocatableResourcesResponse, data, _ALLOCATABLE)
    return Allocatable(
        devices=merge_devices(_entries(message.devices)),
        cpus=tuple(sorted(set(message.cpu_ids))),
        memory=_memory(message.memory),
    )


def decode(message: type[_Message], data: bytes, what: str) -> _Message:
    """`data` as that message. Raises BadDataError naming `what`, also for texts that are no
    UTF-8."""
    from google.protobuf.message import DecodeError

    made: Any = message
    try:
        found: _Message = made.FromString(data)
    except DecodeError as e:
        raise BadDataError(
            f"the answer to {what} cannot be decoded: {shorten(str(e), 200)}",
            f"{len(data)} bytes that are no {made.DESCRIPTOR.full_name}: cut short, another"
            " message, or text that is no UTF-8",
        ) from e
    return found


def merge_devices(entries: Iterable[_Entry]) -> tuple[Device, ...]:
    """One device per (resource, ID), in order of first appearance, with all its NUMA nodes."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    below_zero: set[tuple[str, str]] = set()
    for resource, ids, nodes in entries:
        known = tuple(node for node in nodes if node >= 0) if nodes else ()
        if nodes and len(known) < len(nodes):
            below_zero.update((resource, device_id) for device_id in ids)
        for device_id in ids:
            key = resource, device_id
            # Nearly every device comes once: no set, no sorting (100 000 devices cost a second).
            found[key] = found[key] + known if key in found else known
    return tuple(
        Device(
            key[0],
            key[1],
            tuple(sorted(set(nodes))) if len(nodes) > 1 else nodes or None,
            key in below_zero,
        )
        for key, nodes in found.items()
    )


# -- protobuf --------------------------------------------------------------------------------------


def _pod(pod: pb.PodResources) -> PodHolding:
    return PodHolding(
        namespace=pod.namespace,
        name=pod.name,
        containers=tuple(_container(container) for container in pod.containers),
        cpus=tuple(sorted(set(pod.cpu_ids))),
        memory=_memory(pod.memory),
    )


def _container(container: pb.ContainerResources) -> ContainerHolding:
    return ContainerHolding(
        name=container.name,
        devices=merge_devices(_entries(container.devices)),
        cpus=tuple(sorted(set(container.cpu_ids))),
        memory=_memory(container.memory),
        claims=tuple(_claim(claim) for claim in container.dynamic_resources),
    )


def _entries(devices: Iterable[pb.ContainerDevices]) -> Iterator[_Entry]:
    for entry in devices:
        nodes = [n.ID for n in entry.topology.nodes] if entry.HasField("topology") else None
        yield entry.resource_name, entry.device_ids, nodes


def _memory(blocks: Iterable[pb.ContainerMemory]) -> tuple[MemoryBlock, ...]:
    return tuple(
        MemoryBlock(
            block.memory_type,
            block.size,
            tuple(sorted({n.ID for n in block.topology.nodes}))
            if block.HasField("topology")
            else None,
        )
        for block in blocks
    )


def _claim(claim: pb.DynamicResource) -> Claim:
    return Claim(
        namespace=claim.claim_namespace,
        name=claim.claim_name,
        class_name=claim.class_name or None,
        devices=tuple(
            ClaimDevice(
                driver=item.driver_name,
                pool=item.pool_name,
                device=item.device_name,
                share_id=item.share_id if item.HasField("share_id") else None,
                cdi_devices=tuple(cdi.name for cdi in item.cdi_devices),
            )
            for item in claim.claim_resources
        ),
    )


# -- JSON ------------------------------------------------------------------------------------------


def parse_list_json(data: bytes, *, version: str = "v1") -> PodResources:
    """A recorded answer to List. Raises BadDataError for anything else."""
    top = _document(data, "the PodResources list", "pod_resources")
    pods = _two(top, "pod_resources")
    return PodResources(version, tuple(_pod_json(pod) for pod in pods.items()))


def parse_allocatable_json(data: bytes) -> Allocatable:
    """A recorded answer to GetAllocatableResources. Raises BadDataError for anything else."""
    top = _document(data, "the allocatable resources", "devices", "cpu_ids", "memory")
    return Allocatable(
        devices=merge_devices(_entries_json(top)),
        cpus=_numbers(_two(top, "cpu_ids")),
        memory=_memory_json(top),
    )


def _document(data: bytes, what: str, *known: str) -> Field:
    """The object; `{}` is an empty answer, one with foreign keys only is another document."""
    top = Field(parse_json(data, what), "")
    if top.value is None or not isinstance(top.value, dict):
        raise BadDataError(f"{what}: the document is not an object")
    if top.value and not {*known, *map(_camel, known)} & top.value.keys():
        raise BadDataError(f"{what}: the document has no {' or '.join(known)}")
    return top


def _pod_json(pod: Field) -> PodHolding:
    return PodHolding(
        namespace=pod.at("namespace").text() or "",
        name=pod.at("name").text() or "",
        containers=tuple(_container_json(container) for container in pod.at("containers").items()),
        cpus=_numbers(_two(pod, "cpu_ids")),
        memory=_memory_json(pod),
    )


def _container_json(container: Field) -> ContainerHolding:
    return ContainerHolding(
        name=container.at("name").text() or "",
        devices=merge_devices(_entries_json(container)),
        cpus=_numbers(_two(container, "cpu_ids")),
        memory=_memory_json(container),
        claims=tuple(_claim_json(c) for c in _two(container, "dynamic_resources").items()),
    )


def _entries_json(holder: Field) -> Iterator[_Entry]:
    for entry in holder.at("devices").items():
        resource = _two(entry, "resource_name").text() or ""
        yield resource, _two(entry, "device_ids").texts(), topology_json(entry)


def topology_json(holder: Field) -> tuple[int, ...] | None:
    """NUMA nodes of a message's `topology`, ascending; None: it has none. `{}` is node 0."""
    topology = holder.at("topology")
    if topology.value is None:
        return None
    nodes = []
    for node in topology.at("nodes").items():
        number = node.at("ID")
        nodes.append(_number(number if number.value is not None else node.at("id")))
    return tuple(sorted(set(nodes)))


def _memory_json(holder: Field) -> tuple[MemoryBlock, ...]:
    return tuple(
        MemoryBlock(
            _two(block, "memory_type").text() or "", _number(block.at("size")), topology_json(block)
        )
        for block in holder.at("memory").items()
    )


def _claim_json(claim: Field) -> Claim:
    return Claim(
        namespace=_two(claim, "claim_namespace").text() or "",
        name=_two(claim, "claim_name").text() or "",
        class_name=_two(claim, "class_name").text() or None,
        devices=tuple(
            ClaimDevice(
                driver=_two(item, "driver_name").text() or "",
                pool=_two(item, "pool_name").text() or "",
                device=_two(item, "device_name").text() or "",
                share_id=_two(item, "share_id").text(),
                cdi_devices=tuple(
                    cdi.at("name").text() or "" for cdi in _two(item, "cdi_devices").items()
                ),
            )
            for item in _two(claim, "claim_resources").items()
        ),
    )


def _two(holder: Field, name: str) -> Field:
    """A field under its name in the schema, or as JSON writes it by default (camel case)."""
    found = holder.at(name)
    return found if found.value is not None else holder.at(_camel(name))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _number(field: Field) -> int:
    """A 64-bit number, as such or as text; a missing one is 0: protobuf's JSON leaves zeros out."""
    value = field.value
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 20:
            value = int(value)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**64:
        return value
    raise field.wrong("a whole number")


def _numbers(field: Field) -> tuple[int, ...]:
    return tuple(sorted({_number(item) for item in field.items()}))
