"""State files that a kubelet starts with, and kinds that it does not, made out of its own ones."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dpctl.model import MemoryBlock
from dpctl.model.statefiles import (
    CpuAssignments,
    MemoryAssignments,
    NumaMemory,
    checksum_of,
)
from dpctl.statefiles.cpu_manager import encode_cpu_manager_state, parse_cpu_manager_state
from dpctl.statefiles.halves import text_checksum
from dpctl.statefiles.memory_manager import (
    encode_memory_manager_state,
    parse_memory_manager_state,
)

CPU, MEMORY = "cpu_manager_state", "memory_manager_state"
DRA, PODS, RUNTIME = "dra_manager_state", "allocated_pods_state", "actuated_pods_state"
GONE = "00000000-aaaa-bbbb-cccc-000000000001"
"""A pod that is not there: the kubelet forgets it soon after it has started."""


class Kind(NamedTuple):
    """A file, and what a kubelet does with it."""

    name: str
    file: str
    data: bytes


class Own(NamedTuple):
    """The files as the kubelet itself wrote them, without pods."""

    cpu: CpuAssignments
    memory: MemoryAssignments
    newest: bool
    """Of 1.37: v4 and v3."""
    checks_zero: bool
    """The memory manager takes a checksum of 0 for one (before 1.36), not for none."""

    def cpu_file(self, **changes: Any) -> bytes:
        content = self.cpu._replace(**changes)
        return encode_cpu_manager_state(content, 4 if self.newest else 2)

    def memory_file(self, **changes: Any) -> bytes:
        content = self.memory._replace(**changes)
        return encode_memory_manager_state(content, 3 if self.newest else 1)


def own_files(files: Mapping[str, bytes], minor: str) -> Own:
    cpu = parse_cpu_manager_state(files[CPU])
    memory = parse_memory_manager_state(files[MEMORY])
    assert cpu.content is not None
    assert memory.content is not None
    return Own(cpu.content, memory.content, cpu.version == 4, minor in ("1.34", "1.35"))


def good(own: Own) -> list[Kind]:
    """Older forms, pods that are gone, other layout: all of them start."""
    held = _without(own, 4, 5)
    by_hand = json.dumps(json.loads(own.cpu_file()), indent=2).encode()
    return [
        Kind("cpu: v2", CPU, encode_cpu_manager_state(own.cpu, 2)),
        Kind("cpu: v4", CPU, encode_cpu_manager_state(own.cpu, 4)),
        Kind("cpu: a pod that is gone", CPU, own.cpu_file(**held)),
        Kind("cpu: indented", CPU, by_hand),
        Kind("cpu: number 0", CPU, _with(encode_cpu_manager_state(own.cpu, 2), checksum=0)),
        Kind("memory: v1", MEMORY, encode_memory_manager_state(own.memory, 1)),
        Kind("memory: v3", MEMORY, encode_memory_manager_state(own.memory, 3)),
        Kind("memory: a pod that is gone", MEMORY, _held(own, (0,), 1 << 30)),
        Kind("memory: a pod on both", MEMORY, _held(own, (0, 1), 1 << 30)),
        *(() if own.checks_zero else (number_0(own),)),
    ]


def bad(own: Own) -> list[Kind]:
    """Each of them makes the kubelet exit (or, the device checkpoint apart, that is the claim)."""
    cpu, memory = own.cpu_file(), own.memory_file()
    overlap = {GONE: {"main": (4, 5)}}
    kinds = [
        Kind("cpu: tampered", CPU, cpu.replace(b"0-15", b"0-14")),
        Kind("cpu: empty", CPU, b""),
        Kind("cpu: cut off", CPU, cpu[:40]),
        Kind("cpu: zeros", CPU, b"\0" * 100),
        Kind("cpu: another policy", CPU, own.cpu_file(policy="none", default_cpus=())),
        Kind("cpu: no list", CPU, _with_list(own, "defaultCpuSet", "0-x")),
        Kind("cpu: a reversed list", CPU, _with_list(own, "defaultCpuSet", "5-3")),
        Kind("cpu: a container's list", CPU, _with_list(own, "entries", {GONE: {"main": "4,,5"}})),
        Kind("cpu: overlap", CPU, own.cpu_file(containers=overlap)),
        Kind("cpu: CPUs missing", CPU, own.cpu_file(default_cpus=own.cpu.default_cpus[:-1])),
        Kind("cpu: CPUs too many", CPU, own.cpu_file(default_cpus=(*own.cpu.default_cpus, 77))),
        Kind("cpu: reserved", CPU, own.cpu_file(**_without(own, 0))),
        Kind("cpu: no shared pool", CPU, own.cpu_file(default_cpus=(), containers=overlap)),
        Kind("cpu: v1", CPU, _v1()),
        Kind("memory: tampered", MEMORY, memory.replace(b"cells", b"cellz")),
        Kind("memory: empty", MEMORY, b""),
        Kind("memory: another policy", MEMORY, own.memory_file(policy="None", nodes={})),
        Kind("memory: total", MEMORY, _node(own, total=4096)),
        Kind("memory: reserved", MEMORY, _node(own, system_reserved=4096)),
        Kind("memory: joined", MEMORY, _changed(own, group=(0, 1))),
        Kind("memory: counted", MEMORY, _changed(own, assignments=3)),
        Kind("memory: no such NUMA node", MEMORY, _assigned(own, "memory", (7,))),
        Kind("memory: no such type", MEMORY, _assigned(own, "hugepages-64Ki", (0,))),
        Kind("memory: unaccounted", MEMORY, _assigned(own, "memory", (0,))),
        Kind("memory: no machine", MEMORY, _assigned(own, "memory", (0,), nodes={})),
        Kind("memory: a NUMA node less", MEMORY, own.memory_file(nodes={0: own.memory.nodes[0]})),
        Kind("dra: tampered", DRA, b'{"Data":"{}","Checksum":7}'),
        Kind("dra: cut off inside", DRA, _crc("{")),
        Kind("dra: old form", DRA, b'{"version":"v1","entries":[],"checksum":2866174}'),
        Kind("pods: tampered", PODS, b'{"data":"{}","checksum":7}'),
        Kind("pods: number 0", PODS, b'{"data":"{}","checksum":0}'),
        Kind("pods: cut off inside", PODS, _summed("{")),
        Kind("pods: empty", RUNTIME, b""),
    ]
    if own.newest:
        number = json.loads(cpu)["dataChecksum"]
        kinds += [
            Kind("cpu: dataChecksum 0", CPU, _with(cpu, dataChecksum=0)),
            Kind("cpu: data gone", CPU, _with(cpu, data="")),
            Kind("cpu: data is none", CPU, _with(cpu, data="nothing", dataChecksum=number)),
            Kind("memory: data cut off", MEMORY, _with(memory, data="{")),
        ]
    else:
        pods = {GONE: (4, 5)}
        v3 = encode_cpu_manager_state(own.cpu._replace(pods=pods), 3)
        v2 = encode_memory_manager_state(own.memory, 2)
        kinds += [
            Kind("cpu: v3", CPU, v3),
            Kind("memory: v2", MEMORY, v2),
        ]
    if own.checks_zero:
        kinds.append(number_0(own))
    return kinds


def number_0(own: Own) -> Kind:
    return Kind(
        "memory: number 0", MEMORY, _with(encode_memory_manager_state(own.memory, 1), checksum=0)
    )


def _with(data: bytes, /, **keys: object) -> bytes:
    return json.dumps({**json.loads(data), **keys}).encode()


def _without(own: Own, *cpus: int) -> dict[str, Any]:
    left = tuple(cpu for cpu in own.cpu.default_cpus if cpu not in cpus)
    return {"default_cpus": left, "containers": {GONE: {"main": cpus}}}


def _with_list(own: Own, key: str, value: object) -> bytes:
    """A list that no encoder writes, under numbers that fit."""
    document = json.loads(encode_cpu_manager_state(own.cpu, 2))
    document[key] = value
    number = checksum_of(parse_cpu_manager_state(json.dumps(document).encode()).checksums, "v2")
    assert number is not None
    document["checksum"] = number.computed
    if own.newest:
        inner = {k: v for k, v in document.items() if k != "checksum"}
        text = json.dumps(inner)
        document |= {"data": text, "dataChecksum": text_checksum(text)}
    return json.dumps(document).encode()


def _v1() -> bytes:
    content = CpuAssignments("static", tuple(range(16)))
    return encode_cpu_manager_state(content, 1, container_ids={"0123456789abcdef": (3,)})


def _change(own: Own, change: Callable[[NumaMemory], NumaMemory]) -> bytes:
    first = own.memory.nodes[0]
    assert first is not None
    return own.memory_file(nodes={**own.memory.nodes, 0: change(first)})


def _changed(own: Own, **fields: Any) -> bytes:
    return _change(own, lambda node: node._replace(**fields))


def _node(own: Own, **more: int) -> bytes:
    """Node 0 with more bytes in one column of its memory."""

    def change(node: NumaMemory) -> NumaMemory:
        table = node.tables["memory"]
        assert table is not None
        fields = {name: getattr(table, name) + by for name, by in more.items()}
        return node._replace(tables={**node.tables, "memory": table._replace(**fields)})

    return _change(own, change)


def _assigned(own: Own, kind: str, where: tuple[int, ...], **changes: Any) -> bytes:
    """A container's block that the machine's account does not know."""
    block = MemoryBlock(kind, 1 << 30, where)
    return own.memory_file(containers={GONE: {"main": (block,)}}, **changes)


def _held(own: Own, group: tuple[int, ...], size: int) -> bytes:
    """A container's block, accounted for as the kubelet does."""
    nodes = dict(own.memory.nodes)
    left = size
    for number in group:
        node = nodes[number]
        assert node is not None
        table = node.tables["memory"]
        assert table is not None
        taken = min(left, table.free)
        left -= taken
        table = table._replace(free=table.free - taken, reserved=table.reserved + taken)
        nodes[number] = NumaMemory(1, {**node.tables, "memory": table}, group)
    block = MemoryBlock("memory", size, group)
    return own.memory_file(nodes=nodes, containers={GONE: {"main": (block,)}})


def _crc(text: str) -> bytes:
    return json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())}).encode()


def _summed(text: str) -> bytes:
    return json.dumps({"data": text, "checksum": text_checksum(text)}).encode()
