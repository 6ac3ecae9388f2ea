"""The messages of `v1beta1.DevicePlugin`, bytes to model and back (kubelet-facts §2.1). Pure.

Which calls may be made, and by whom, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpctl.errors import BadDataError
from dpctl.model import ListedDevice, PluginOptions
from dpctl.model.plugin_calls import AllocateAnswer, DeviceMessage
from dpctl.statefiles.alloc_response import decode_alloc_response
from dpctl.statefiles.protobuf_wire import fields

_SIGN = 1 << 63


def parse_options_binpb(data: bytes) -> PluginOptions:
    """Raises BadDataError."""
    from google.protobuf.message import DecodeError

    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    try:
        answer = pb.DevicePluginOptions.FromString(data)
    except DecodeError as e:
        raise _undecodable("GetDevicePluginOptions", data, str(e)) from e
    return PluginOptions(answer.pre_start_required, answer.get_preferred_allocation_available)


def parse_devices_binpb(data: bytes) -> DeviceMessage:
    """A ListAndWatch message. One with texts that are no UTF-8 is decoded all the same (lone
    surrogates) and marked. Raises BadDataError for what is no message at all."""
    from google.protobuf.message import DecodeError

    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    try:
        message = pb.ListAndWatchResponse.FromString(data)
    except DecodeError:
        return DeviceMessage(_devices_by_hand(data), len(data), sound=False)
    devices = tuple(
        ListedDevice(
            device.ID,
            device.health,
            tuple(node.ID for node in device.topology.nodes)
            if device.HasField("topology")
            else None,
        )
        for device in message.devices
    )
    return DeviceMessage(devices, len(data))


def _devices_by_hand(data: bytes) -> tuple[ListedDevice, ...]:
    try:
        return tuple(
            _device(value) for number, value in fields(data) if number == 1 and _is_bytes(value)
        )
    except BadDataError as e:
        raise _undecodable("ListAndWatch", data, e.message) from e


def _device(data: bytes | int | None) -> ListedDevice:
    assert isinstance(data, bytes)
    texts = {1: "", 2: ""}
    nodes: list[int] | None = None
    for number, value in fields(data):
        if isinstance(value, bytes) and number in texts:
            texts[number] = value.decode("utf-8", "surrogateescape")
        elif isinstance(value, bytes) and number == 3:
            nodes = [_node(n) for f, n in fields(value) if f == 1 and isinstance(n, bytes)]
    return ListedDevice(texts[1], texts[2], None if nodes is None else tuple(nodes))


def _node(data: bytes) -> int:
    found = 0
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            found = value - 2 * _SIGN if value >= _SIGN else value
    return found


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes)


def encode_preferred(available: Sequence[str], must: Sequence[str], size: int) -> bytes:
    """A PreferredAllocationRequest for one container. Raises BadDataError: no such text."""
    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    _check_texts([*available, *must])
    one = pb.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
    )
    return pb.PreferredAllocationRequest(container_requests=[one]).SerializeToString()


def parse_preferred_binpb(data: bytes) -> tuple[str, ...] | None:
    """IDs for the first container; None: an answer without one. Raises BadDataError."""
    from google.protobuf.message import DecodeError

    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    try:
        answer = pb.PreferredAllocationResponse.FromString(data)
    except DecodeError as e:
        raise _undecodable("GetPreferredAllocation", data, str(e)) from e
    found = answer.container_responses
    return tuple(found[0].deviceIDs) if found else None


def encode_allocate(ids: Sequence[str]) -> bytes:
    """An AllocateRequest for one container. Raises BadDataError."""
    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    _check_texts(ids)
    one = pb.ContainerAllocateRequest(devices_ids=ids)
    return pb.AllocateRequest(container_requests=[one]).SerializeToString()


def parse_allocate_binpb(data: bytes) -> AllocateAnswer:
    """Texts that are no UTF-8 are decoded all the same (lone surrogates), and the answer marked.
    Raises BadDataError for what is no message at all."""
    from google.protobuf.message import DecodeError

    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    try:
        parts = [value for number, value in fields(data) if number == 1]
    except BadDataError as e:
        raise _undecodable("Allocate", data, e.message) from e
    found = tuple(decode_alloc_response(part) for part in parts if isinstance(part, bytes))
    try:
        pb.AllocateResponse.FromString(data)
    except DecodeError:
        return AllocateAnswer(found, data, sound=False)
    return AllocateAnswer(found, data)


def encode_pre_start(ids: Sequence[str]) -> bytes:
    """A PreStartContainerRequest. Raises BadDataError."""
    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    _check_texts(ids)
    return pb.PreStartContainerRequest(devices_ids=ids).SerializeToString()


def _check_texts(texts: Sequence[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadDataError(
                f"the device ID {text!r} is no UTF-8, which gRPC cannot carry",
                "give the ID as the plugin lists it: `dpctl plugin devices SOCKET`",
            ) from None


def _undecodable(call: str, data: bytes, why: str) -> BadDataError:
    return BadDataError(
        f"the plugin's answer to {call} ({len(data)} bytes) cannot be decoded: {why}",
        "a kubelet cannot decode it either; look at what the plugin sends",
    )
