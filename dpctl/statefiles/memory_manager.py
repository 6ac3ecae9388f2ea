"""`memory_manager_state`, v1 to v3: what the memory manager remembers (kubelet-facts §5.5).

Bytes and model only: which of the halves and forms a kubelet reads, and what it makes of the
content, belongs to `inventory.state`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dpctl.errors import BadDataError
from dpctl.model.kubelet import MemoryBlock
from dpctl.model.statefiles import (
    MemoryAssignments,
    MemoryManagerState,
    MemoryTable,
    NumaMemory,
    StateChecksum,
)
from dpctl.statefiles import json_document as doc
from dpctl.statefiles.checksum import NIL, fnv1a_32, spew_map, spew_text
from dpctl.statefiles.go_json import go_json, go_string
from dpctl.statefiles.halves import (
    Data,
    data_half,
    fault_of,
    inner_checksums,
    inner_half,
    struct_checksums,
    text_checksum,
)

WHAT = "the memory manager's state"
_NAME = b"MemoryManagerCheckpoint"
_OUTER = ("policyName", "machineState", "entries", "podEntries")
_KEYS = (*_OUTER, "checksum", "data", "dataChecksum")
_NODE = ("numberOfAssignments", "memoryMap", "cells")
_TABLE = ("total", "systemReserved", "allocatable", "reserved", "free")
_BLOCK = ("numaAffinity", "type", "size")
_NUMA_KEY = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)

_Blocks = tuple[MemoryBlock, ...]


class _Node(NamedTuple):
    assignments: int
    tables: Mapping[str, MemoryTable | None] | None
    cells: tuple[int, ...] | None


class _Raw(NamedTuple):
    """The keys of one half, nil apart from empty: the checksum sees the difference."""

    policy: str
    nodes: Mapping[int, _Node | None] | None
    entries: Mapping[str, Mapping[str, _Blocks | None] | None] | None
    pods: Mapping[str, _Blocks | None] | None


def parse_memory_manager_state(data: bytes, *, modified: float | None = None) -> MemoryManagerState:
    """The file's contents, whether its numbers fit or not. Never raises: `fault` says why a file
    cannot be decoded. `modified`: mtime of the file, Unix seconds."""
    try:
        return _parse(data)._replace(modified=modified)
    except BadDataError as e:
        return MemoryManagerState(None, fault=fault_of(e, data), modified=modified)


def _parse(data: bytes) -> MemoryManagerState:
    document = doc.members(WHAT, "the document", doc.load(data, WHAT))
    keys, unknown = doc.known(WHAT, "the document", document, _KEYS)
    outer = _raw(keys, WHAT)
    stored = doc.whole(WHAT, "checksum", keys.get("checksum"))
    inner = inner_half(WHAT, keys)
    checksums = _checksums(outer, stored, inner)
    state = MemoryManagerState(
        version=_version(inner, checksums, with_pods="podEntries" in keys),
        outer=_assignments(outer),
        checksums=checksums,
        unknown_keys=unknown,
    )
    if not inner.counts:
        return state
    found, fault = data_half(f"{WHAT}: data", inner.text, _data)
    if found is None:
        return state._replace(data_fault=fault)
    content, others = found
    newer = (*unknown, *(f"data.{key}" for key in others))
    return state._replace(data=content, unknown_keys=newer)


def _version(inner: Data, checksums: tuple[StateChecksum, ...], *, with_pods: bool) -> int:
    if inner.counts:
        return 3
    # Without pod entries v1 and v2 look alike; the number tells.
    fitting = [int(one.form[1]) for one in checksums if one.fits]
    return 2 if with_pods else next(iter(fitting), 1)


def _data(value: object) -> tuple[MemoryAssignments, tuple[str, ...]]:
    what = f"{WHAT}: data"
    keys, others = doc.known(what, "the text", value, _OUTER)
    return _assignments(_raw(keys, what)), others


# --- reading ---


def _raw(keys: Mapping[str, object], what: str) -> _Raw:
    return _Raw(
        policy=doc.text(what, "policyName", keys.get("policyName")),
        nodes=_nodes(what, keys.get("machineState", {})),
        entries=_entries(what, keys.get("entries", {})),
        pods=_pods(what, keys.get("podEntries", {})),
    )


def _nodes(what: str, value: object) -> dict[int, _Node | None] | None:
    if value is None:
        return None
    found: dict[int, _Node | None] = {}
    for key, item in doc.members(what, "machineState", value).items():
        number = int(key) if _NUMA_KEY.fullmatch(key) else None
        if number is None or not -(2**63) <= number < 2**63:
            raise doc.damaged(what, f"machineState has {doc.kind(key)} where a NUMA node is wanted")
        if number in found:
            raise doc.UnreadError(f"{what}: machineState has NUMA node {number} twice")
        found[number] = None if item is None else _node(what, f"machineState.{key}", item)
    return found


def _node(what: str, path: str, value: object) -> _Node:
    fields, _ = doc.known(what, path, value, _NODE)
    tables = fields.get("memoryMap")
    return _Node(
        doc.whole(
            what, f"{path}.numberOfAssignments", fields.get("numberOfAssignments"), signed=True
        ),
        None
        if tables is None
        else {
            name: None if item is None else _table(what, f"{path}.memoryMap.{name}", item)
            for name, item in doc.members(what, f"{path}.memoryMap", tables).items()
        },
        _numbers(what, f"{path}.cells", fields.get("cells")),
    )


def _table(what: str, path: str, value: object) -> MemoryTable:
    fields, _ = doc.known(what, path, value, _TABLE)
    return MemoryTable(*(doc.whole(what, f"{path}.{name}", fields.get(name)) for name in _TABLE))


def _numbers(what: str, path: str, value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise doc.wrong(what, path, value, "a list")
    return tuple(doc.whole(what, path, item, signed=True) for item in value)


def _entries(what: str, value: object) -> dict[str, Mapping[str, _Blocks | None] | None] | None:
    if value is None:
        return None
    return {
        pod: None
        if item is None
        else {
            name: _blocks(what, f"entries.{pod}.{name}", blocks)
            for name, blocks in doc.members(what, f"entries.{pod}", item).items()
        }
        for pod, item in doc.members(what, "entries", value).items()
    }


def _pods(what: str, value: object) -> dict[str, _Blocks | None] | None:
    if value is None:
        return None
    found: dict[str, _Blocks | None] = {}
    for pod, item in doc.members(what, "podEntries", value).items():
        fields, _ = doc.known(what, f"podEntries.{pod}", item, ("memoryBlocks",))
        found[pod] = _blocks(what, f"podEntries.{pod}.memoryBlocks", fields.get("memoryBlocks"))
    return found


def _blocks(what: str, path: str, value: object) -> _Blocks | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise doc.wrong(what, path, value, "a list")
    return tuple(_block(what, f"{path}[{index}]", item) for index, item in enumerate(value))


def _block(what: str, path: str, value: object) -> MemoryBlock:
    fields, _ = doc.known(what, path, value, _BLOCK)
    return MemoryBlock(
        doc.text(what, f"{path}.type", fields.get("type")),
        doc.whole(what, f"{path}.size", fields.get("size")),
        _numbers(what, f"{path}.numaAffinity", fields.get("numaAffinity")),
    )


def _assignments(raw: _Raw) -> MemoryAssignments:
    return MemoryAssignments(
        policy=raw.policy,
        nodes={
            number: None
            if node is None
            else NumaMemory(node.assignments, node.tables or {}, node.cells or ())
            for number, node in sorted((raw.nodes or {}).items())
        },
        containers={
            pod: {name: blocks or () for name, blocks in (items or {}).items()}
            for pod, items in (raw.entries or {}).items()
        },
        pods={pod: blocks or () for pod, blocks in (raw.pods or {}).items()},
    )


# --- checksums ---


def _checksums(raw: _Raw, stored: int, inner: Data) -> tuple[StateChecksum, ...]:
    found = inner_checksums("v3", inner)
    for form in ("v1", "v2"):
        found += struct_checksums(form, _NAME, _hashed(raw, form), stored)
    return tuple(found)


def _hashed(raw: _Raw, form: str) -> bytes:
    """The Go value as go-spew shows it, behind the type's name."""
    nodes, null_last = _spew_nodes(raw.nodes)
    parts = [
        b"){PolicyName:(string)" + spew_text(raw.policy),
        b" MachineState:(state.NUMANodeMap)" + nodes,
        # A null pointer at the end of a map takes the type away from what is shown next.
        b" Entries:" + (b"" if null_last else b"(state.ContainerMemoryAssignments)"),
        _spew_entries(raw.entries),
    ]
    if form == "v2":
        parts.append(b" PodEntries:(state.PodMemoryAssignments)" + _spew_pods(raw.pods))
    return b"".join((*parts, b" Checksum:(checksum.Checksum)0}"))


def _spew_nodes(nodes: Mapping[int, _Node | None] | None) -> tuple[bytes, bool]:
    if nodes is None:
        return NIL, False
    ordered = [(b"%d" % number, nodes[number]) for number in sorted(nodes)]
    shown = spew_map((key, NIL if node is None else _spew_node(node)) for key, node in ordered)
    return shown, bool(ordered) and ordered[-1][1] is None


def _spew_node(node: _Node) -> bytes:
    tables, null_last = NIL, False
    if node.tables is not None:
        ordered = sorted((spew_text(name), table) for name, table in node.tables.items())
        tables = spew_map((name, _spew_table(table)) for name, table in ordered)
        null_last = bool(ordered) and ordered[-1][1] is None
    return b"".join(
        (
            b"<*>{NumberOfAssignments:(int)%d" % node.assignments,
            b" MemoryMap:(map[v1.ResourceName]*state.MemoryTable)" + tables,
            b" Cells:" + (b"" if null_last else b"([]int)"),
            _spew_numbers(node.cells) + b"}",
        )
    )


def _spew_table(table: MemoryTable | None) -> bytes:
    if table is None:
        return NIL
    return (
        b"<*>{TotalMemSize:(uint64)%d SystemReserved:(uint64)%d Allocatable:(uint64)%d"
        b" Reserved:(uint64)%d Free:(uint64)%d}" % table
    )


def _spew_entries(entries: Mapping[str, Mapping[str, _Blocks | None] | None] | None) -> bytes:
    if entries is None:
        return NIL
    return spew_map(
        sorted(
            (
                spew_text(pod),
                NIL
                if items is None
                else spew_map(
                    sorted((spew_text(n), _spew_blocks(blocks)) for n, blocks in items.items())
                ),
            )
            for pod, items in entries.items()
        )
    )


def _spew_pods(pods: Mapping[str, _Blocks | None] | None) -> bytes:
    if pods is None:
        return NIL
    return spew_map(
        sorted(
            (spew_text(pod), b"{MemoryBlocks:([]state.Block)" + _spew_blocks(blocks) + b"}")
            for pod, blocks in pods.items()
        )
    )


def _spew_blocks(blocks: _Blocks | None) -> bytes:
    if blocks is None:
        return NIL
    shown = (
        b"{NUMAAffinity:([]int)%s Type:(v1.ResourceName)%s Size:(uint64)%d}"
        % (_spew_numbers(block.numa_nodes), spew_text(block.memory_type), block.size)
        for block in blocks
    )
    return b"[" + b" ".join(shown) + b"]"


def _spew_numbers(numbers: Iterable[int] | None) -> bytes:
    return NIL if numbers is None else b"[" + b" ".join(b"%d" % n for n in numbers) + b"]"


# --- writing ---


def encode_memory_manager_state(content: MemoryAssignments, version: int = 3) -> bytes:
    """The file as a kubelet writes it: v1 (to 1.35), v2 (1.36 with PodLevelResourceManagers), v3
    (1.37). What a version does not hold is left out, as a kubelet of that version does."""
    rendered = _render(content)
    raw = _raw(rendered, WHAT)
    outer = {key: rendered[key] for key in _OUTER[:3] if key in rendered}
    if version == 2 and "podEntries" in rendered:
        outer["podEntries"] = rendered["podEntries"]
    form = "v2" if version == 2 else "v1"
    outer["checksum"] = fnv1a_32(b"(*state." + _NAME + _hashed(raw, form))
    if version < 3:
        return go_json(outer)
    text = go_json(rendered).decode()
    return go_json({**outer, "data": text, "dataChecksum": text_checksum(text)})


def _render(content: MemoryAssignments) -> dict[str, object]:
    """The keys of v3's text, in its order; empty entries are left out, an empty machine is not."""
    nodes = {
        str(number): None
        if node is None
        else {
            "numberOfAssignments": node.assignments,
            "memoryMap": {
                go_string(name): None if table is None else dict(zip(_TABLE, table, strict=True))
                for name, table in sorted(node.tables.items())
            },
            "cells": list(node.group),
        }
        for number, node in content.nodes.items()
    }
    found: dict[str, object] = {
        "policyName": go_string(content.policy),
        "machineState": dict(sorted(nodes.items())),
    }
    entries = {
        go_string(pod): {
            go_string(name): _block_list(blocks) for name, blocks in sorted(items.items())
        }
        for pod, items in content.containers.items()
    }
    pods = {
        go_string(pod): {"memoryBlocks": _block_list(blocks)} if blocks else {}
        for pod, blocks in content.pods.items()
    }
    for key, value in (("entries", entries), ("podEntries", pods)):
        if value:
            found[key] = dict(sorted(value.items()))
    return found


def _block_list(blocks: _Blocks) -> list[dict[str, object]]:
    return [
        {
            "numaAffinity": None if block.numa_nodes is None else list(block.numa_nodes),
            "type": go_string(block.memory_type),
            "size": block.size,
        }
        for block in blocks
    ]
