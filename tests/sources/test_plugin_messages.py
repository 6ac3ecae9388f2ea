from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import BadDataError
from dpctl.model import ListedDevice
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.sources import plugin_messages as messages

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NODES = st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple)
DEVICES = st.lists(st.builds(ListedDevice, TEXTS, TEXTS, NODES), max_size=4)


def wire(devices: list[ListedDevice]) -> bytes:
    message = pb.ListAndWatchResponse()
    for device in devices:
        made = message.devices.add(ID=device.device_id, health=device.health)
        if device.numa_nodes is not None:
            made.topology.SetInParent()
            for node in device.numa_nodes:
                made.topology.nodes.add(ID=node)
    return message.SerializeToString()


@given(DEVICES)
def test_a_list_as_sent(devices: list[ListedDevice]) -> None:
    data = wire(devices)
    found = messages.parse_devices_binpb(data)
    assert (found.devices, found.size, found.sound) == (tuple(devices), len(data), True)


@given(DEVICES)
def test_by_hand_as_by_protobuf(devices: list[ListedDevice]) -> None:
    """A text that is no UTF-8 makes protobuf refuse the whole; the rest must read the same."""
    data = wire(devices)
    broken = b"\x0a\x05\x0a\x03a\xff\x01"  # a device whose ID is a, 0xff, 0x01
    found = messages.parse_devices_binpb(data + broken)
    assert found.devices == (*devices, ListedDevice("a\udcff\x01", "", None))
    assert not found.sound


@given(st.binary(max_size=40))
def test_anything_is_a_list_or_bad_data(data: bytes) -> None:
    try:
        size = messages.parse_devices_binpb(data).size
    except BadDataError:
        return  # whose words are tested below
    assert size == len(data)


def test_what_is_no_list() -> None:
    with pytest.raises(BadDataError, match=r"ListAndWatch .2 bytes.") as caught:
        messages.parse_devices_binpb(b"\xff\xff")
    assert caught.value.hint


def test_options() -> None:
    data = pb.DevicePluginOptions(get_preferred_allocation_available=True).SerializeToString()
    assert messages.parse_options_binpb(data) == (False, True)
    assert messages.parse_options_binpb(b"") == (False, False)
    with pytest.raises(BadDataError, match="GetDevicePluginOptions"):
        messages.parse_options_binpb(b"\xff\xff")


def test_preference() -> None:
    data = messages.encode_preferred(["a", "b"], ["b"], 1)
    (asked,) = pb.PreferredAllocationRequest.FromString(data).container_requests
    assert list(asked.available_deviceIDs) == ["a", "b"]
    assert list(asked.must_include_deviceIDs) == ["b"]
    assert asked.allocation_size == 1
    one = pb.ContainerPreferredAllocationResponse(deviceIDs=["b", "b"])
    both = pb.PreferredAllocationResponse(container_responses=[one])
    assert messages.parse_preferred_binpb(both.SerializeToString()) == ("b", "b")
    assert messages.parse_preferred_binpb(b"") is None
    with pytest.raises(BadDataError, match="GetPreferredAllocation"):
        messages.parse_preferred_binpb(b"\xff")


def test_an_id_that_grpc_cannot_carry() -> None:
    for encode in (messages.encode_allocate, messages.encode_pre_start):
        with pytest.raises(BadDataError, match="no UTF-8"):
            encode(["\udcff"])


def test_allocate() -> None:
    first = pb.ContainerAllocateResponse(envs={"A": "1"})
    first.devices.add(container_path="/dev/x", host_path="/dev/y", permissions="rw")
    sent = pb.AllocateResponse(container_responses=[first, pb.ContainerAllocateResponse()])
    found = messages.parse_allocate_binpb(sent.SerializeToString())
    assert [dict(c.envs) for c in found.containers] == [{"A": "1"}, {}]
    assert found.containers[0].device_specs == (("/dev/x", "/dev/y", "rw"),)
    assert found.sound
    assert messages.parse_allocate_binpb(b"").containers == ()
    broken = messages.parse_allocate_binpb(b"\x0a\x08\x0a\x06\x0a\x01\xff\x12\x01\xfe")
    assert not broken.sound
    assert dict(broken.containers[0].envs) == {"\udcff": "\udcfe"}
    with pytest.raises(BadDataError, match="Allocate"):
        messages.parse_allocate_binpb(b"\x0a\xff")
