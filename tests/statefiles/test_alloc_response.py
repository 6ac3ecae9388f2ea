from __future__ import annotations

from contextlib import suppress

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.errors import BadDataError
from dpctl.model import AllocResponse, DeviceSpec, Mount
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.statefiles.alloc_response import decode_alloc_response

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MAPS = st.dictionaries(TEXTS, TEXTS, max_size=3)


@settings(max_examples=200)
@given(
    MAPS,
    st.lists(st.builds(pb.Mount, container_path=TEXTS, host_path=TEXTS, read_only=st.booleans())),
    st.lists(st.builds(pb.DeviceSpec, container_path=TEXTS, host_path=TEXTS, permissions=TEXTS)),
    MAPS,
    st.lists(TEXTS, max_size=3),
)
def test_reads_what_protobuf_writes(envs, mounts, devices, annotations, cdi):
    message = pb.ContainerAllocateResponse(
        envs=envs,
        mounts=mounts,
        devices=devices,
        annotations=annotations,
        cdi_devices=[pb.CDIDevice(name=name) for name in cdi],
    )
    assert decode_alloc_response(message.SerializeToString()) == model(message)


def model(message: pb.ContainerAllocateResponse) -> AllocResponse:
    return AllocResponse(
        dict(message.envs),
        tuple(Mount(m.container_path, m.host_path, m.read_only) for m in message.mounts),
        tuple(DeviceSpec(d.container_path, d.host_path, d.permissions) for d in message.devices),
        dict(message.annotations),
        tuple(c.name for c in message.cdi_devices),
    )


@settings(max_examples=1000)
@given(st.binary(max_size=40))
def test_agrees_with_protobuf_about_any_bytes(data):
    try:
        expected = model(pb.ContainerAllocateResponse.FromString(data))
    except DecodeError:
        # Protobuf also refuses texts that are no UTF-8; the kubelet's own decoder took them.
        with suppress(BadDataError):
            decode_alloc_response(data)
        return
    assert decode_alloc_response(data) == expected


def test_texts_that_are_no_utf8_are_kept():
    assert decode_alloc_response(b"\x2a\x04\x0a\x02a\xff").cdi_devices == ("a\udcff",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x0a", "middle of a number"),
        (b"\x0a\x05ab", "middle of a field"),
        (b"\xff" * 11, "more than ten bytes"),
        (b"\x00\x00", "field number 0"),
        (b"\x0e", "wire type 6"),
        (b"\x0c", "end of a group"),
        (b"\x73", "middle of a number"),
        (b"\x73" * 200, "nested too deeply"),
        (b"\x0d\x01", "middle of a field"),
    ],
)
def test_malformed(data, words):
    with pytest.raises(BadDataError) as caught:
        decode_alloc_response(data)
    assert words in caught.value.message


@pytest.mark.parametrize(
    "unknown",
    [
        b"\x78\x96\x01",  # field 15, a number
        b"\x79" + b"x" * 8,
        b"\x7d" + b"x" * 4,
        b"\x7a\x02hi",
        b"\x7b\x08\x01\x7b\x7c\x7c",  # a group in a group
        b"\x08\x05",  # field 1, which is a message, as a number
    ],
)
def test_unknown_fields_are_passed_over(unknown):
    known = pb.ContainerAllocateResponse(envs={"A": "b"}).SerializeToString()
    assert decode_alloc_response(unknown + known + unknown) == AllocResponse(envs={"A": "b"})
