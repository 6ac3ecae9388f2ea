from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.model import MemoryBlock
from dpctl.model.statefiles import MemoryAssignments, MemoryTable, NumaMemory, checksum_of
from dpctl.statefiles.memory_manager import (
    _KEYS,
    WHAT,
    _hashed,
    _raw,
    encode_memory_manager_state,
    parse_memory_manager_state,
)

from .vectors import DATA, TEXTS, names, read, reindented, tampered_values

# Not written by a kubelet: somebody changed them, or `machineState` is null, which reads like {}.
NOT_WRITTEN = {
    "mem-v1-none-nullstate",
    "mem-v2-checksum-zero",
    "mem-v3-data-emptied",
    "mem-v3-outer-tampered",
    "mem-v3-tampered-data",
}
TAMPERED = NOT_WRITTEN - {"mem-v1-none-nullstate"}


@pytest.mark.parametrize("name", names("mem"))
def test_version_by_form(name):
    wanted = 1 if name == "mem-v3-data-emptied" else int(name[5])
    assert parse_memory_manager_state(read(name)).version == wanted


@pytest.mark.parametrize("name", [n for n in names("mem") if n not in NOT_WRITTEN])
def test_encoding_is_the_kubelets_byte_for_byte(name):
    state = parse_memory_manager_state(read(name))
    assert state.fault is None
    assert state.content is not None
    assert encode_memory_manager_state(state.content, state.version or 0) == read(name)


@pytest.mark.parametrize("name", [n for n in names("mem") if n not in TAMPERED])
def test_its_own_number_fits(name):
    state = parse_memory_manager_state(read(name))
    number = checksum_of(state.checksums, f"v{state.version}")
    assert number is not None
    assert number.fits


@pytest.mark.parametrize("name", [n for n in names("mem") if n not in TAMPERED])
def test_the_hashed_text_byte_for_byte(name):
    keys = json.loads(read(name))
    assert set(keys) <= set(_KEYS)
    form, suffix = ("v1", ".hashed-v1.txt") if name[5] == "3" else (name[4:6], ".hashed.txt")
    shown = (DATA / "vectors" / f"{name}{suffix}").read_bytes()
    for own in (b"MemoryManagerCheckpointV1", b"MemoryManagerCheckpointV2"):
        shown = shown.replace(own, b"MemoryManagerCheckpoint")
    assert b"(*state.MemoryManagerCheckpoint" + _hashed(_raw(keys, WHAT), form) == shown


def test_what_is_read():
    state = parse_memory_manager_state(read("mem-v3-static-podentries"), modified=12.5)
    assert state.modified == 12.5
    content = state.content
    assert content is not None
    assert content.policy == "Static"
    first = content.nodes[0]
    assert first is not None
    assert (first.assignments, first.group) == (2, (0,))
    assert first.tables["memory"] == MemoryTable(
        67108864000, 1073741824, 66035122176, 2147483648, 63887638528
    )
    assert content.containers["podb"]["main"] == (
        MemoryBlock("memory", 2147483648, (0,)),
        MemoryBlock("hugepages-2Mi", 4194304, (0, 1)),
    )
    assert content.pods == {"podc": (MemoryBlock("memory", 7, (1,)),), "podd": ()}
    assert state.outer is not None
    assert state.outer.pods == {}


def test_a_null_at_the_end_of_a_map_hides_the_next_type():
    """go-spew's quirk (kubelet-facts §5.5)."""
    table = {"total": 1, "systemReserved": 0, "allocatable": 0, "reserved": 0, "free": 0}
    node = {"numberOfAssignments": 0, "memoryMap": {"a": table, "b": None}, "cells": [0]}
    raw = _raw({"policyName": "Static", "machineState": {"0": node, "1": None}}, WHAT)
    text = _hashed(raw, "v1")
    assert b"b:<nil>] Cells:[0]}" in text
    assert b"1:<nil>] Entries:map[]" in text
    node["memoryMap"] = {"a": None, "b": table}
    raw = _raw({"machineState": {"0": None, "1": node}}, WHAT)
    assert b"Cells:([]int)[0]}] Entries:(state.ContainerMemoryAssignments)map[]" in _hashed(
        raw, "v1"
    )


@pytest.mark.parametrize(
    "name", [n for n in names("mem") if n not in NOT_WRITTEN and "static" in n]
)
def test_a_tampered_byte_anywhere_in_a_value_fails(name):
    whole = parse_memory_manager_state(read(name))
    fits = {one.form for one in whole.checksums if one.fits and not one.form.endswith("*")}
    count = 0
    for data, inside in tampered_values(read(name)):
        state = parse_memory_manager_state(data)
        count += 1
        if state.fault is not None or (state.data_fault is not None and inside):
            continue
        after = {one.form for one in state.checksums if one.fits}
        assert (fits - after) == ({"v3"} if inside else fits - {"v3"}), data
    assert count > 100


@pytest.mark.parametrize("name", names("mem"))
def test_a_file_indented_anew_is_the_same(name):
    data = read(name)
    assert parse_memory_manager_state(reindented(data)) == parse_memory_manager_state(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\0\0", "zero bytes"),
        (b"[]", "the document is a list"),
        (b'{"machineState":[]}', "machineState is a list"),
        (b'{"machineState":{"x":null}}', "where a NUMA node is wanted"),
        (b'{"machineState":{"0":1}}', "machineState.0 is a number"),
        (b'{"machineState":{"0":{"cells":{}}}}', "cells is an object"),
        (b'{"machineState":{"0":{"cells":["a"]}}}', "cells is text"),
        (b'{"machineState":{"0":{"memoryMap":{"memory":{"total":-1}}}}}', "total is a number"),
        (b'{"entries":{"a":{"b":{}}}}', "entries.a.b is an object"),
        (b'{"entries":{"a":{"b":[{"size":"1"}]}}}', "size is text"),
        (b'{"podEntries":{"a":[]}}', "podEntries.a is a list"),
    ],
)
def test_what_cannot_be_decoded_is_said(data, words):
    state = parse_memory_manager_state(data)
    assert state.version is None
    assert state.fault is not None
    assert words in state.fault.words
    assert state.fault.certain


def test_one_numa_node_spelled_twice_is_not_certain():
    fault = parse_memory_manager_state(b'{"machineState":{"1":null,"01":null}}').fault
    assert fault is not None
    assert not fault.certain


def test_newer_formats_are_noticed_and_read_as_far_as_possible():
    document = json.loads(read("mem-v3-static"))
    inner = json.loads(document["data"]) | {"swap": {}}
    changed = document | {"data": json.dumps(inner), "more": 1}
    state = parse_memory_manager_state(json.dumps(changed).encode())
    assert state.unknown_keys == ("more", "data.swap")
    assert state.content == parse_memory_manager_state(read("mem-v3-static")).content


def test_a_broken_inner_half():
    document = json.loads(read("mem-v3-static")) | {"data": "{"}
    state = parse_memory_manager_state(json.dumps(document).encode())
    assert (state.version, state.data) == (3, None)
    assert state.data_fault is not None
    assert state.data_fault.kubelet == "unexpected end of JSON input"
    assert state.content == state.outer


@pytest.mark.parametrize("name", ["memory_manager_state-idle", "memory_manager_state-pods"])
def test_published_inputs(name):
    state = parse_memory_manager_state((DATA / "inputs" / f"{name}.json").read_bytes())
    assert [one.form for one in state.checksums if one.fits] == ["v1"]


@pytest.mark.parametrize("path", sorted((DATA / "captures").glob("*/kubelet/memory_manager_state")))
def test_captured_files_verify(path: Path):
    state = parse_memory_manager_state(path.read_bytes())
    assert [one.form for one in state.checksums if one.fits] == ["v1"]


SIZES = st.integers(0, 2**64 - 1)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9), max_size=3).map(tuple)
BLOCKS = st.lists(
    st.builds(MemoryBlock, memory_type=TEXTS, size=SIZES, numa_nodes=st.none() | NUMBERS),
    max_size=3,
).map(tuple)
NODES = st.builds(
    NumaMemory,
    assignments=st.integers(-(2**63), 2**63 - 1),
    tables=st.dictionaries(
        TEXTS, st.none() | st.builds(MemoryTable, SIZES, SIZES, SIZES, SIZES, SIZES), max_size=3
    ),
    group=NUMBERS,
)
CONTENT = st.builds(
    MemoryAssignments,
    policy=st.sampled_from(["None", "Static"]) | TEXTS,
    nodes=st.dictionaries(
        st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 20), st.none() | NODES, max_size=3
    ),
    containers=st.dictionaries(TEXTS, st.dictionaries(TEXTS, BLOCKS, max_size=3), max_size=3),
    pods=st.dictionaries(TEXTS, BLOCKS, max_size=3),
)


@settings(max_examples=200)
@given(CONTENT, st.sampled_from([1, 2, 3]))
def test_round_trip(content, version):
    data = encode_memory_manager_state(content, version)
    state = parse_memory_manager_state(data)
    assert state.fault is None
    number = checksum_of(state.checksums, f"v{version}")
    assert number is not None
    assert number.fits
    assert state.content is not None
    assert state.content.nodes == content.nodes
    assert state.content.containers == content.containers
    assert state.content.pods == (content.pods if version > 1 else {})
    assert encode_memory_manager_state(state.content, version) == data


@settings(max_examples=300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*_KEYS, "memoryMap", "cells", "0"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(document):
    parse_memory_manager_state(json.dumps(document).encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    parse_memory_manager_state(data)
