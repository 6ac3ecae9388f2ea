"""Protobuf's wire format by hand; pure.

Importing google.protobuf costs more than decoding what needs it here. Field numbers and their
meaning belong to the messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpctl.errors import BadDataError

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_MOST_GROUPS = 100  # protobuf's own limit of nesting
_LARGEST_FIELD = 2**29 - 1
_LONGEST_VARINT = 10


def fields(data: bytes) -> Iterator[tuple[int, bytes | int | None]]:
    """Field numbers with their value: bytes, a varint, or None for the kinds nobody uses here.
    Raises BadDataError with what is wrong, for the caller to say of what."""
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
    return BadDataError(words)
