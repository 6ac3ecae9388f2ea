from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.model.statefiles import CpuAssignments, checksum_of
from dpctl.statefiles.checksum import fnv1a_32
from dpctl.statefiles.cpu_lists import parse_cpu_list
from dpctl.statefiles.cpu_manager import (
    WHAT,
    _hashed,
    _raw,
    encode_cpu_manager_state,
    parse_cpu_manager_state,
)
from dpctl.statefiles.json_document import known, load

from .vectors import DATA, TEXTS, names, read, reindented, tampered_values

# Not written by a kubelet: somebody changed them, or hashed under the Go type's own name.
NOT_WRITTEN = {
    "cpu-v1-static-selfnamed",
    "cpu-v3-checksum-zero",
    "cpu-v4-data-emptied",
    "cpu-v4-datachecksum-zero",
    "cpu-v4-outer-tampered",
    "cpu-v4-tampered-data",
}


@pytest.mark.parametrize("name", names("cpu"))
def test_version_by_form(name):
    wanted = 2 if name == "cpu-v4-data-emptied" else int(name[5])
    assert parse_cpu_manager_state(read(name)).version == wanted


@pytest.mark.parametrize(
    "name", [n for n in names("cpu") if n not in NOT_WRITTEN and not n.startswith("cpu-v1")]
)
def test_encoding_is_the_kubelets_byte_for_byte(name):
    state = parse_cpu_manager_state(read(name))
    assert state.fault is None
    assert state.content is not None
    assert encode_cpu_manager_state(state.content, state.version or 0) == read(name)


def test_v1_is_written_byte_for_byte():
    content = CpuAssignments("none", ())
    assert encode_cpu_manager_state(content, 1) == read("cpu-v1-none")


@pytest.mark.parametrize("name", [n for n in names("cpu") if n not in NOT_WRITTEN])
def test_its_own_number_fits(name):
    state = parse_cpu_manager_state(read(name))
    number = checksum_of(state.checksums, f"v{state.version}")
    assert number is not None
    assert number.fits


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((n, "v1") for n in names("cpu-v1")),
        *((n, "v2") for n in ("cpu-v2-none", "cpu-v2-static")),
        *((n, "v3") for n in ("cpu-v3-none", "cpu-v3-static")),
        *((n, "v2") for n in names("cpu-v4") if n not in NOT_WRITTEN),
    ],
)
def test_the_hashed_text_byte_for_byte(name, form):
    keys, _ = known(
        WHAT,
        "the document",
        load(read(name), WHAT),
        ("policyName", "defaultCpuSet", "entries", "podEntries"),
    )
    text = _hashed(_raw(keys, WHAT), form)
    assert text is not None
    suffix = ".hashed-v2.txt" if name.startswith("cpu-v4") else ".hashed.txt"
    shown = (DATA / "vectors" / f"{name}{suffix}").read_bytes()
    for own in (b"CPUManagerCheckpointV1", b"CPUManagerCheckpointV2", b"CPUManagerCheckpointV3"):
        shown = shown.replace(own, b"CPUManagerCheckpoint")
    assert b"(*state.CPUManagerCheckpoint" + text == shown


def test_what_is_read():
    state = parse_cpu_manager_state(read("cpu-v4-static-podentries"), modified=12.5)
    assert state.modified == 12.5
    assert state.content == CpuAssignments(
        "static",
        (0, 1, 6, 7, 8, 9, 11, 12, 13, 14, 15),
        {"aaaa": {"c": (5,)}, "bbbb": {"aux": (4,), "main": (2, 3)}},
        {"bbbb": (2, 3, 4, 10)},
    )
    assert state.outer is not None
    assert state.outer.pods == {}
    state = parse_cpu_manager_state(read("cpu-v4-static-baselines"))
    assert state.content is not None
    assert state.content.baselines["bbbb"] == {"aux": (4,), "main": (2, 3)}
    state = parse_cpu_manager_state(read("cpu-v1-static-selfnamed"))
    assert state.container_ids == {"containerid1": (2, 3)}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("v2*", b"(*state.CPUManagerCheckpointV2"),
        ("v3*", b"(*state.CPUManagerCheckpointV3"),
    ],
)
def test_the_types_own_name(form, text):
    """1.36 and 1.37 with the gate off take a v2 that was hashed so; v3 in 1.37."""
    document = json.loads(read("cpu-v3-static"))
    keys, _ = known(WHAT, "", document, ("policyName", "defaultCpuSet", "entries", "podEntries"))
    rest = _hashed(_raw(keys, WHAT), form[:2])
    assert rest is not None
    document["checksum"] = fnv1a_32(text + rest)
    state = parse_cpu_manager_state(json.dumps(document).encode())
    assert [one.form for one in state.checksums if one.fits] == [form]


@pytest.mark.parametrize(
    "name", [n for n in names("cpu") if n not in NOT_WRITTEN and "static" in n]
)
def test_a_tampered_byte_anywhere_in_a_value_fails(name):
    whole = parse_cpu_manager_state(read(name))
    fits = {one.form for one in whole.checksums if one.fits and not one.form.endswith("*")}
    count = 0
    for data, inside in tampered_values(read(name)):
        state = parse_cpu_manager_state(data)
        count += 1
        if state.fault is not None or (state.data_fault is not None and inside):
            continue
        after = {one.form for one in state.checksums if one.fits}
        assert (fits - after) == ({"v4"} if inside else fits - {"v4"}), data
    assert count >= 30


@pytest.mark.parametrize("name", names("cpu"))
def test_a_file_indented_anew_is_the_same(name):
    data = read(name)
    assert parse_cpu_manager_state(reindented(data)) == parse_cpu_manager_state(data)


@pytest.mark.parametrize(
    ("text", "cpus", "error"),
    [
        ("", (), None),
        ("0-1,6", (0, 1, 6), None),
        ("+5", (5,), None),
        ("007", (7,), None),
        ("x", (), 'strconv.Atoi: parsing "x": invalid syntax'),
        (" 1", (), 'strconv.Atoi: parsing " 1": invalid syntax'),
        ("1,,2", (), 'strconv.Atoi: parsing "": invalid syntax'),
        ("-3", (), 'strconv.Atoi: parsing "": invalid syntax'),
        ("1-2-3", (), 'strconv.Atoi: parsing "2-3": invalid syntax'),
        ("5-3", (), 'invalid range "5-3" (5 > 3)'),
        ("9" * 19, (), f'strconv.Atoi: parsing "{"9" * 19}": value out of range'),
        ("9" * 5000, (), f'strconv.Atoi: parsing "{"9" * 5000}": value out of range'),
        ("0-99999999999", (), 'range "0-99999999999" is larger than any machine'),
        ("٣", (), 'strconv.Atoi: parsing "٣": invalid syntax'),
    ],
)
def test_cpu_lists_as_go_reads_them(text, cpus, error):
    assert parse_cpu_list(text) == (cpus, error)


FAULTS = [
    (b"", "is empty", "unexpected end of JSON input"),
    (b"\0" * 50, "zero bytes", "invalid character '\\x00' looking for beginning of value"),
    (b"hello", "is not JSON", "invalid character 'h' looking for beginning of value"),
    (b'{"policyName":"sta', "is not JSON", "unexpected end of JSON input"),
    (b'{"policyName":"static",', "is not JSON", "unexpected end of JSON input"),
    (b'{"policyName" "static"}', "is not JSON", None),
    (b'{"entries":[]}', "entries is a list", None),
    (b'{"entries":{"a":{"b":1}}}', "entries.a.b is a number", None),
    (b'{"entries":{"a":{"b":"1"},"c":"2"}}', "entries.a is an object", None),
    (b'{"checksum":-1}', "checksum is a number", None),
    (b'{"checksum":"1"}', "checksum is text", None),
    (b"[]", "the document is a list", None),
]


@pytest.mark.parametrize(("data", "words", "kubelet"), FAULTS)
def test_what_cannot_be_decoded_is_said(data, words, kubelet):
    state = parse_cpu_manager_state(data)
    assert state.version is None
    assert state.fault is not None
    assert words in state.fault.words
    assert state.fault.kubelet == kubelet
    assert state.fault.certain


@pytest.mark.parametrize(
    "data", [b'{"checksum":1,"checksum":1}', b'{"checksum":1,"CHECKSUM":1}', b"[" * 100_000]
)
def test_what_go_may_read_is_not_certain(data):
    fault = parse_cpu_manager_state(data).fault
    assert fault is not None
    assert not fault.certain


@pytest.mark.parametrize(
    ("text", "kubelet"),
    [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ('{"policyName":1}', None),
        (
            '{"podEntries":{"a":{"cpuSet":"q"}}}',
            'failed to parse cpuset: strconv.Atoi: parsing "q": invalid syntax',
        ),
    ],
)
def test_a_broken_inner_half(text, kubelet):
    document = json.loads(read("cpu-v4-static")) | {"data": text, "dataChecksum": 7}
    state = parse_cpu_manager_state(json.dumps(document).encode())
    assert (state.version, state.data) == (4, None)
    assert state.data_fault is not None
    assert state.data_fault.kubelet == kubelet
    # Older kubelets do not look at it.
    assert state.content == state.outer
    assert state.content is not None


def test_newer_formats_are_noticed_and_read_as_far_as_possible():
    document = json.loads(read("cpu-v4-static"))
    inner = json.loads(document["data"]) | {"quotas": {}}
    changed = document | {"data": json.dumps(inner), "more": 1}
    state = parse_cpu_manager_state(json.dumps(changed).encode())
    assert state.unknown_keys == ("more", "data.quotas")
    assert state.content == parse_cpu_manager_state(read("cpu-v4-static")).content


def test_the_case_of_keys_does_not_count():
    data = read("cpu-v2-static").replace(b"policyName", b"PolicyName")
    assert parse_cpu_manager_state(data) == parse_cpu_manager_state(read("cpu-v2-static"))


@pytest.mark.parametrize(
    ("name", "verified"),
    [
        ("cpu_manager_state-none", True),
        ("cpu_manager_state-static-idle", True),
        ("cpu_manager_state-static", True),
        ("cpu_manager_state-bad-checksum", False),
    ],
)
def test_published_inputs(name, verified):
    state = parse_cpu_manager_state((DATA / "inputs" / f"{name}.json").read_bytes())
    assert any(one.fits for one in state.checksums) is verified


@pytest.mark.parametrize("path", sorted((DATA / "captures").glob("*/kubelet/cpu_manager_state")))
def test_captured_files_verify(path: Path):
    state = parse_cpu_manager_state(path.read_bytes())
    assert [one.form for one in state.checksums if one.fits] == ["v2"]


CPUS = st.sets(st.integers(0, 300), max_size=6).map(lambda found: tuple(sorted(found)))
BY_CONTAINER = st.dictionaries(TEXTS, st.dictionaries(TEXTS, CPUS, max_size=3), max_size=3)
CONTENT = st.builds(
    CpuAssignments,
    policy=st.sampled_from(["none", "static"]) | TEXTS,
    default_cpus=CPUS,
    containers=BY_CONTAINER,
    pods=st.dictionaries(TEXTS, CPUS, max_size=3),
    baselines=BY_CONTAINER,
)


@settings(max_examples=200)
@given(CONTENT, st.sampled_from([2, 3, 4]))
def test_round_trip(content, version):
    data = encode_cpu_manager_state(content, version)
    state = parse_cpu_manager_state(data)
    assert state.fault is None
    number = checksum_of(state.checksums, f"v{version}")
    assert number is not None
    assert number.fits
    assert state.content is not None
    assert state.content.containers == content.containers
    assert state.content.default_cpus == content.default_cpus
    assert state.content.pods == (content.pods if version > 2 else {})
    assert state.content.baselines == (content.baselines if version > 3 else {})
    assert encode_cpu_manager_state(state.content, version) == data


@given(st.dictionaries(TEXTS, CPUS, min_size=1, max_size=3), CPUS)
def test_round_trip_of_v1(container_ids, default):
    data = encode_cpu_manager_state(
        CpuAssignments("static", default), 1, container_ids=container_ids
    )
    state = parse_cpu_manager_state(data)
    assert state.version == 1
    assert state.container_ids == container_ids
    assert [one.form for one in state.checksums if one.fits] == ["v1"]


@settings(max_examples=300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["policyName", "entries", "podEntries", "data", "dataChecksum", "cpuSet", "0"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(document):
    parse_cpu_manager_state(json.dumps(document).encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    parse_cpu_manager_state(data)
