from __future__ import annotations

import base64
import json
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.errors import BadDataError, ExitCode
from dpctl.model import Allocation, AllocResponse
from dpctl.statefiles import device_checkpoint as codec
from dpctl.statefiles.device_checkpoint import (
    encode_checkpoint,
    parse_checkpoint,
    registered_resources,
)

DATA = Path(__file__).parent.parent / "data"
VECTORS = sorted((DATA / "vectors").glob("dev-*.json"))
WRONG = {"dev-tampered", "dev-invalid-utf8"}
FLAT = {"dev-old-pre120"}
# null lists are read, never written; the file with bad UTF-8 was hashed before it was spoilt
NOT_WRITTEN = {"dev-nil-fields", *WRONG, *FLAT}


def hashed(path: Path) -> Path:
    """Where the text that the kubelet hashed stands, for the vectors that come with it."""
    return path.with_name(f"{path.stem}.hashed.txt")


@pytest.mark.parametrize("path", VECTORS, ids=lambda p: p.stem)
def test_vectors_get_the_verdict_of_a_kubelet(path):
    checkpoint = parse_checkpoint(path.read_bytes())
    assert checkpoint.verified == (path.stem not in WRONG)
    assert any(a.flat for a in checkpoint.allocations) == (path.stem in FLAT)


@pytest.mark.parametrize(
    "path",
    [p for p in VECTORS if p.stem != "dev-invalid-utf8" and hashed(p).exists()],
    ids=lambda p: p.stem,
)
def test_the_hashed_text_byte_for_byte(path):
    content = json.loads(path.read_bytes())["Data"]
    text = codec.hashed_text(codec._entries(content), codec._registered(content))
    assert text == hashed(path).read_bytes()


@pytest.mark.parametrize(
    "path", [p for p in VECTORS if p.stem not in NOT_WRITTEN], ids=lambda p: p.stem
)
def test_encoding_is_the_kubelets_byte_for_byte(path):
    checkpoint = parse_checkpoint(path.read_bytes())
    assert encode_checkpoint(checkpoint.allocations, checkpoint.registered) == path.read_bytes()


@pytest.mark.parametrize(
    "moment", ["1-healthy", "2-plugin-dead-in-grace", "3-after-kubelet-restart"]
)
def test_captured_files_verify(moment):
    path = DATA / "captures" / moment / "device-plugins" / "kubelet_internal_checkpoint"
    assert parse_checkpoint(path.read_bytes()).verified


@pytest.mark.parametrize(
    ("name", "verified"),
    [
        ("checkpoint-v2-numa", True),
        ("checkpoint-null-entries", True),
        ("checkpoint-v1-array", True),
        ("checkpoint-cdi", True),
        ("checkpoint-bad-checksum", False),
    ],
)
def test_published_inputs(name, verified):
    checkpoint = parse_checkpoint((DATA / "inputs" / f"{name}.json").read_bytes())
    assert checkpoint.verified is verified


def test_what_is_read():
    checkpoint = parse_checkpoint(
        (DATA / "vectors" / "dev-many-numa.json").read_bytes(), modified=12.5
    )
    assert checkpoint.modified == 12.5
    assert checkpoint.stored_checksum == 2207429755
    init, app, nic, fpga = checkpoint.allocations
    assert init.container == "init"
    assert app.devices == {
        -5: ("neg",),
        -1: ("gpu-x",),
        0: ("gpu-0",),
        2: ("gpu-2",),
        10: ("gpu-10",),
    }
    assert nic.device_nodes() == {"0000:3b:02.1": (0, 1)}
    assert nic.answer == AllocResponse()
    assert fpga.devices == {}
    assert init.answer is not None
    assert init.answer.envs == {"A": "1"}
    assert init.answer.mounts[0].read_only
    assert init.answer.cdi_devices == ("vendor.example/gpu=0",)
    assert checkpoint.registered["b.example/fpga"] == ()


def test_flat_lists_stand_under_no_topology():
    checkpoint = parse_checkpoint((DATA / "vectors" / "dev-old-pre120.json").read_bytes())
    (only,) = checkpoint.allocations
    assert only.flat
    assert only.devices == {-1: ("gpu-1", "gpu-0")}


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        # a missing key is empty, null is nil, and the number tells them apart
        ('{"Data":{"RegisteredDevices":{}}}', '{"Data":{"PodDeviceEntries":[]}}', True),
        ('{"Data":{"PodDeviceEntries":null}}', '{"Data":{"PodDeviceEntries":[]}}', False),
        ('{"Data":{"RegisteredDevices":null}}', "{}", False),
        ('{"Data":null}', "{}", True),
        ('{"Data":{"RegisteredDevices":{"a/b":null}}}', '{"Data":{"RegisteredDevices":{}}}', False),
        (
            '{"Data":{"RegisteredDevices":{"a/b":null}}}',
            '{"Data":{"RegisteredDevices":{"a/b":[]}}}',
            False,
        ),
        (
            '{"Data":{"RegisteredDevices":{"a/b":[null]}}}',
            '{"Data":{"RegisteredDevices":{"a/b":[""]}}}',
            True,
        ),
        ('{"Data":{"PodDeviceEntries":[null]}}', '{"Data":{"PodDeviceEntries":[{}]}}', True),
        (
            '{"Data":{"PodDeviceEntries":[{"DeviceIDs":{"+1":["a"]}}]}}',
            '{"Data":{"PodDeviceEntries":[{"DeviceIDs":{"1":["a"]}}]}}',
            True,
        ),
    ],
)
def test_null_empty_and_missing(left, right, same):
    numbers = [parse_checkpoint(text.encode()).computed_checksum for text in (left, right)]
    assert (numbers[0] == numbers[1]) is same


def entry(**changes: object) -> bytes:
    content = {
        "PodUID": "u",
        "ContainerName": "c",
        "ResourceName": "a.example/b",
        "DeviceIDs": {"0": ["d"]},
        "AllocResp": "",
    } | changes
    return json.dumps({"Data": {"PodDeviceEntries": [content]}, "Checksum": 1}).encode()


BAD = [
    (b"", "is empty"),
    (b" \n", "is empty"),
    (b"\0" * 100, "zero bytes"),
    (b"\x00{}", "is not JSON"),
    (b"{", "is not JSON"),
    (b"\xef\xbb\xbf{}", "is not JSON"),
    (b"{} {}", "is not JSON"),
    (b"[]", "the document is a list"),
    (b"null", "the document is null"),
    (b'"x"', "the document is text"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"a":' * 100_000, "nested too deeply"),
    (b'{"Checksum":' + b"9" * 5000 + b"}", "is not JSON"),
    (b'{"Checksum":-1}', "Checksum is a number"),
    (b'{"Checksum":18446744073709551616}', "Checksum is a number"),
    (b'{"Checksum":1.5}', "Checksum is a number"),
    (b'{"Checksum":true}', "Checksum is true or false"),
    (b'{"Checksum":NaN}', "NaN"),
    (b'{"Checksum":1,"Checksum":2}', "'Checksum' stands twice"),
    (b'{"Data":[]}', "Data is a list"),
    (b'{"Data":{"PodDeviceEntries":{}}}', "PodDeviceEntries is an object"),
    (b'{"Data":{"PodDeviceEntries":[1]}}', "PodDeviceEntries[0] is a number"),
    (b'{"Data":{"RegisteredDevices":[]}}', "RegisteredDevices is a list"),
    (b'{"Data":{"RegisteredDevices":{"a":{}}}}', "RegisteredDevices.a is an object"),
    (b'{"Data":{"RegisteredDevices":{"a":[1]}}}', "RegisteredDevices.a[0] is a number"),
    (entry(PodUID=3), "PodUID is a number"),
    (entry(DeviceIDs="x"), "DeviceIDs is text"),
    (entry(DeviceIDs={"x": []}), "where a NUMA node is wanted"),
    (entry(DeviceIDs={"9223372036854775808": []}), "where a NUMA node is wanted"),
    (entry(DeviceIDs={"٣": []}), "where a NUMA node is wanted"),
    (entry(DeviceIDs={"1": [], "01": []}), "NUMA node 1 twice"),
    (entry(DeviceIDs=[["x"]]), "DeviceIDs[0] is a list"),
    (entry(AllocResp="!"), "AllocResp is not base64"),
    (entry(AllocResp="QQ"), "AllocResp is not base64"),
    (entry(AllocResp=[1]), "AllocResp is a list"),
]


@pytest.mark.parametrize(("data", "words"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_what_cannot_be_decoded_is_said(data, words):
    with pytest.raises(BadDataError) as caught:
        parse_checkpoint(data)
    assert words in caught.value.message
    assert caught.value.code == ExitCode.BAD_DATA
    assert caught.value.hint


@pytest.mark.parametrize("name", ["checkpoint-truncated", "checkpoint-empty-file"])
def test_unfinished_files(name):
    with pytest.raises(BadDataError):
        parse_checkpoint((DATA / "inputs" / f"{name}.json").read_bytes())


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0" * (64 << 20),
        b"[" * (64 << 20),
        b'{"a":' * (12 << 20),
        b"[[],[]," * (9 << 20),
        b"{}," * (21 << 20),
        b"\xff" * (64 << 20),
        b'"' + b"x" * (64 << 20),
    ],
    ids=["zeros", "lists", "objects", "empty lists", "empty objects", "no text", "open text"],
)
def test_64_mib_of_garbage_is_refused_at_once(garbage):
    started = time.process_time()
    with pytest.raises(BadDataError):
        parse_checkpoint(garbage)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0"])
def test_documents_that_would_fill_the_memory_are_not_begun(value):
    data = b'{"Data":[' + (value + b",") * 4_000_000 + value + b"]}"
    with pytest.raises(BadDataError, match="more than 4000000 values"):
        parse_checkpoint(data)


def test_an_answer_that_cannot_be_decoded_is_no_reason_to_refuse_the_file():
    data = entry(AllocResp=base64.b64encode(b"\xff").decode())
    (only,) = parse_checkpoint(data).allocations
    assert only.alloc_resp == b"\xff"
    assert only.answer is None


def test_names_for_tab():
    data = (DATA / "vectors" / "dev-many-numa.json").read_bytes()
    assert registered_resources(data) == (
        "B.example/Upper",
        "a.example/nic",
        "b.example/fpga",
        "vendor.example/gpu",
    )
    with pytest.raises(BadDataError):
        registered_resources(b"{")


# Everything a gRPC string can carry, hostile ones often.
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(["", " ", "a]b:c map[x] {y}", "<nil>", "\0", "\u2028", "<&>", '"\\', "�"]),
)
IDS = st.lists(TEXTS, max_size=4).map(tuple)
NODES = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 12)
ALLOCATIONS = st.lists(
    st.builds(
        Allocation,
        pod_uid=TEXTS,
        container=TEXTS,
        resource=TEXTS,
        devices=st.dictionaries(NODES, IDS, max_size=4),
        alloc_resp=st.binary(max_size=20),
    ),
    max_size=4,
)


@settings(max_examples=200)
@given(ALLOCATIONS, st.dictionaries(TEXTS, IDS, max_size=4))
def test_round_trip(allocations, registered):
    data = encode_checkpoint(allocations, registered)
    assert b"\n" not in data
    found = parse_checkpoint(data)
    assert found.verified
    assert found.registered == registered
    assert [
        (a.pod_uid, a.container, a.resource, a.devices, a.alloc_resp, a.flat)
        for a in found.allocations
    ] == [
        (a.pod_uid, a.container, a.resource, dict(a.devices), a.alloc_resp, False)
        for a in allocations
    ]
    assert encode_checkpoint(found.allocations, found.registered) == data


@given(st.lists(st.text(max_size=6), max_size=4).map(tuple), st.text(max_size=6))
def test_lone_surrogates_become_the_replacement_character_and_verify(ids, name):
    found = parse_checkpoint(encode_checkpoint([], {name: ids}))
    assert found.verified


@settings(max_examples=300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["Data", "PodDeviceEntries", "RegisteredDevices", "DeviceIDs", "AllocResp", "0"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(document):
    with suppress(BadDataError):
        parse_checkpoint(json.dumps(document).encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    with suppress(BadDataError):
        parse_checkpoint(data)
