"""Tar archives, read without trust: names and contents only, nothing is ever unpacked to its place.

`tarfile` is not used: it reads extended headers of any length into memory and takes a damaged
header for the end of the archive. Which members matter is not known here.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from dpctl.errors import BadDataError
from dpctl.text import shorten

if TYPE_CHECKING:
    from typing_extensions import Buffer

_BLOCK = 512
_CHUNK = 1 << 16
# A long name or an extended header; Linux has paths of 4 KiB.
_LONGEST_HEADER = 1 << 16
_NAME_LENGTH = 120
# Concatenated gzip files; block-wise writers make one for each 64 KiB.
_MOST_PARTS = 10_000
_KINDS = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hard link",
    b"2": "symbolic link",
    b"3": "device",
    b"4": "device",
    b"5": "directory",
    b"6": "pipe",
}


@dataclass(frozen=True, slots=True)
class Limits:
    file: int
    """Bytes of one member that is kept."""
    total: int
    """Bytes of the whole archive, unpacked."""
    members: int


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    """Relative, its parts joined by `/`, without `.` and `..`."""
    kind: str
    """`file`, `directory`, or what it is instead, for a message."""
    size: int


class TarReader:
    """Members in order; `read` gives the contents of the one just yielded.

    Raises BadDataError for anything that is no archive, is damaged, breaks off, leads outside
    (`..`, an absolute name), names a member twice, or goes past the limits.
    """

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        start = file.read(2)
        file.seek(0)
        self._stream: BinaryIO | io.BufferedReader = (
            io.BufferedReader(_Gunzip(file, limits.total), _CHUNK) if start == b"\x1f\x8b" else file
        )
        self._limits = limits
        self._position = 0
        self._left = 0
        self._padding = 0

    def members(self) -> Iterator[Member]:
        seen: set[str] = set()
        while (header := self._header()) is not None:
            member = header
            if member.name in seen and member.kind != "directory":
                raise BadDataError(f"it holds {_shown(member.name)} twice")
            seen.add(member.name)
            if len(seen) > self._limits.members:
                raise BadDataError(f"it holds more than {self._limits.members} members")
            self._left = member.size
            self._padding = -member.size % _BLOCK
            yield member
            self._skip(self._left + self._padding)
        if not seen:
            raise BadDataError("it is an empty archive")
        while self._take(_CHUNK, partial=True):
            pass  # gzip tells of damage only at its end

    def read(self) -> bytes:
        """The current member's content, whole. BadDataError past the limit for one file."""
        if self._left > self._limits.file:
            raise BadDataError(
                f"it is larger than {self._limits.file} bytes", "raise --max-message-size"
            )
        data = self._take(self._left)
        self._left = 0
        return data

    def _header(self) -> Member | None:
        long_name: bytes | None = None
        long_size: int | None = None
        block = self._block(first=self._position == 0)
        while block is not None:
            size = _number(block[124:136])
            kind = block[156:157]
            if kind in (b"x", b"g", b"L", b"K"):
                text = self._extension(size)
                if kind == b"L":
                    long_name = text.rstrip(b"\0")
                elif kind == b"x":
                    records = _records(text)
                    long_name = records.get(b"path", long_name)
                    if b"size" in records:
                        long_size = _decimal(records[b"size"])
                    if any(key.startswith(b"GNU.sparse") for key in records):
                        raise BadDataError("it holds a sparse file", "pack it without --sparse")
                block = self._block()
                continue
            name = _name(block) if long_name is None else long_name
            word = _KINDS.get(kind, "special file")
            if word == "file" and name.endswith(b"/"):
                word = "directory"  # as archives older than POSIX mark one
            # Only files carry content; some writers give links the size of their target.
            length = size if long_size is None else long_size
            if word in ("hard link", "symbolic link", "directory", "device", "pipe"):
                length = 0
            if self._position + length > self._limits.total:
                raise BadDataError(f"it unpacks to more than {self._limits.total} bytes")
            return Member(_checked(name), word, length)
        return None

    def _block(self, *, first: bool = False) -> bytes | None:
        """The next header; None at the end-of-archive mark."""
        block = self._take(_BLOCK, partial=True)
        if not block or not block.strip(b"\0"):
            if first and not block:
                raise BadDataError("it is empty")
            if not block:
                raise BadDataError("it breaks off: the end mark is missing")
            return None
        signed = 256 + sum(block[:148]) + sum(block[156:])
        if len(block) < _BLOCK or _number(block[148:156]) != signed:
            raise BadDataError("it is no tar archive" if first else "a header in it is damaged")
        return block

    def _extension(self, size: int) -> bytes:
        if size > _LONGEST_HEADER:
            raise BadDataError(f"it has an extended header of {size} bytes")
        text = self._take(size)
        self._take(-size % _BLOCK)
        return text

    def _take(self, size: int, *, partial: bool = False) -> bytes:
        parts: list[bytes] = []
        left = size
        while left:
            try:
                part = self._stream.read(min(left, _CHUNK))
            except (OSError, EOFError, zlib.error) as e:
                raise BadDataError(f"it is damaged: {shorten(str(e), 100)}") from e
            if not part:
                if partial:
                    break
                raise BadDataError("it breaks off in the middle of a file")
            left -= len(part)
            parts.append(part)
            self._position += len(part)
            if self._position > self._limits.total:
                raise BadDataError(f"it unpacks to more than {self._limits.total} bytes")
        return b"".join(parts)

    def _skip(self, size: int) -> None:
        while size > 0:
            size -= len(self._take(min(size, _CHUNK)))


class _Gunzip(io.RawIOBase):
    """What gzip files, one after the other, unpack to. The standard library's reader passes over
    any number of empty ones inside one `read`.

    Reading raises BadDataError past the limits, zlib.error and EOFError.
    """

    def __init__(self, file: BinaryIO, total: int) -> None:
        self._file = file
        # What does not compress becomes a little larger.
        self._most = total + total // 64 + (1 << 20)
        self._taken = 0
        self._parts = 0
        self._packed = b""
        self._part: zlib._Decompress | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, target: Buffer, /) -> int:
        room = memoryview(target)
        while self._more():
            if self._part is None:
                self._parts += 1
                if self._parts > _MOST_PARTS:
                    raise BadDataError(f"it is more than {_MOST_PARTS} gzip files in one")
                self._part = zlib.decompressobj(wbits=31)
            data = self._part.decompress(self._packed, len(room))
            if self._part.eof:
                self._packed, self._part = self._part.unused_data, None
            else:
                self._packed = self._part.unconsumed_tail
            if data:
                room[: len(data)] = data
                return len(data)
        return 0

    def _more(self) -> bool:
        """Whether there is packed data; zero bytes behind a part are padding."""
        while True:
            if self._part is None and self._parts:
                self._packed = self._packed.lstrip(b"\0")
            if self._packed:
                return True
            self._packed = self._file.read(_CHUNK)
            self._taken += len(self._packed)
            if self._taken > self._most:
                raise BadDataError(f"it is larger than {self._most} bytes, packed")
            if not self._packed:
                if self._part is not None:
                    raise EOFError("it breaks off inside of gzip")
                return False


def _name(block: bytes) -> bytes:
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _checked(raw: bytes) -> str:
    name = raw.decode("utf-8", "surrogateescape")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise BadDataError(f"it holds {_shown(name)}, which leads outside of it")
    return "/".join(parts)


def _shown(name: str) -> str:
    return repr(shorten(name, _NAME_LENGTH))


def _number(field: bytes) -> int:
    """Octal text, or the binary form that GNU tar uses for large numbers."""
    if field[0] & 0x80:
        if field[0] == 0xFF:
            raise BadDataError("a header in it has a negative number")
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.strip(b" \0")
    if not text:
        return 0
    if text.strip(b"01234567"):
        raise BadDataError("it is no tar archive, or a header in it is damaged")
    return int(text, 8)


def _records(text: bytes) -> dict[bytes, bytes]:
    """`LENGTH KEY=VALUE\\n` records of a pax header."""
    records: dict[bytes, bytes] = {}
    rest = text
    while rest:
        digits, space, _ = rest.partition(b" ")
        length = _decimal(digits)
        record, rest = rest[len(digits) + 1 : length], rest[length:]
        key, equals, value = record.partition(b"=")
        if not space or not equals or not value.endswith(b"\n"):
            raise BadDataError("it has a damaged extended header")
        records[key] = value[:-1]
    return records


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise BadDataError("it has a damaged extended header")
    return int(text)
