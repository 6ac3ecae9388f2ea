"""ContainerAllocateResponse: what a plugin asked the runtime to give a container; pure.

Protobuf's wire format by hand (kubelet-facts §2.1): importing google.protobuf costs more than
decoding a whole checkpoint, and a checkpoint is the only place where these bytes are read.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpctl.errors import BadDataError
from dpctl.model import AllocResponse, DeviceSpec, Mount

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_MOST_GROUPS = 100  # protobuf's own limit of nesting
_LARGEST_FIELD = 2**29 - 1
_LONGEST_VARINT = 10


def decode_alloc_response(data: bytes) -> AllocResponse:
    """The message in `data`; unknown fields are skipped, bytes that are no UTF-8 kept as lone
    surrogates. Raises BadDataError for what is no protobuf message."""
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: list[Mount] = []
    devices: list[DeviceSpec] = []
    cdi_devices: list[str] = []
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            key, text = _texts(value, 1, 2)
            envs[key] = text
        elif number == 2:
            container, host = _texts(value, 1, 2)
            mounts.append(Mount(container, host, _flag(value, 3)))
        elif number == 3:
            container, host, permissions = _texts(value, 1, 2, 3)
            devices.append(DeviceSpec(container, host, permissions))
        elif number == 4:
            key, text = _texts(value, 1, 2)
            annotations[key] = text
        elif number == 5:
            cdi_devices += _texts(value, 1)
    return AllocResponse(envs, tuple(mounts), tuple(devices), annotations, tuple(cdi_devices))


def _texts(data: bytes, *numbers: int) -> list[str]:
    """The string fields with these numbers; the last of several counts, a missing one is empty."""
    found = {
        number: value.decode("utf-8", "surrogateescape")
        for number, value in _fields(data)
        if isinstance(value, bytes)
    }
    return [found.get(number, "") for number in numbers]


def _flag(data: bytes, wanted: int) -> bool:
    found = False
    for number, value in _fields(data):
        if number == wanted and isinstance(value, int):
            found = value != 0
    return found


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int | None]]:
    """Field numbers with their value: bytes, a varint, or None for the kinds nobody uses here."""
    position = 0
    while position < len(data):
        number, kind, position = _tag(data, position)
        if kind == _BYTES:
            length, position = _varint(data, position)
            end = _within(data, position + length)
            yield number, data[position:end]
            position = end
        elif kind == _VARINT:
            value, position = _varint(data, position)
            yield number, value
        else:
            position = _skip(data, position, number, kind)
            yield number, None


def _skip(data: bytes, position: int, number: int, kind: int) -> int:
    """The position behind a field whose tag was read; groups by a stack, not by recursion."""
    groups: list[int] = []
    while True:
        if kind == _GROUP:
            groups.append(number)
            if len(groups) > _MOST_GROUPS:
                raise _malformed("groups nested too deeply")
        elif kind == _GROUP_END:
            if not groups or groups.pop() != number:
                raise _malformed("the end of a group that was not begun")
        elif kind == _BYTES:
            length, position = _varint(data, position)
            position = _within(data, position + length)
        elif kind == _VARINT:
            _, position = _varint(data, position)
        elif kind in (_FIXED32, _FIXED64):
            position = _within(data, position + (4 if kind == _FIXED32 else 8))
        else:
            raise _malformed(f"wire type {kind}")
        if not groups:
            return position
        number, kind, position = _tag(data, position)


def _tag(data: bytes, position: int) -> tuple[int, int, int]:
    tag, position = _varint(data, position)
    if not 0 < tag >> 3 <= _LARGEST_FIELD:
        raise _malformed(f"field number {tag >> 3}")
    return tag >> 3, tag & 7, position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for count in range(_LONGEST_VARINT):
        if position + count >= len(data):
            raise _malformed("it ends in the middle of a number")
        byte = data[position + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value & (2**64 - 1), position + count + 1
    raise _malformed("a number of more than ten bytes")


def _within(data: bytes, end: int) -> int:
    if end > len(data):
        raise _malformed("it ends in the middle of a field")
    return end


def _malformed(words: str) -> BadDataError:
    return BadDataError(
        f"a plugin's Allocate answer (AllocResp) cannot be decoded: {words}",
        "the entry's devices are still good; see `dpctl state devices -o json` for the raw bytes",
    )
