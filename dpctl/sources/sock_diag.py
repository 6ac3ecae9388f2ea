"""The kernel's unix-socket table by netlink (what `ss -xp` asks), as rows. No socket is touched.

Only this network namespace is in it; another one's is empty, without an error (kubelet-facts §15).
Who holds a socket is not in it either: `socket_table` finds that in /proc.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from dpctl.errors import BadDataError, DeniedError, DpctlError, UnreachableError
from dpctl.model import UnixSocket

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NLM_F_DUMP_INTR = 0x10
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_SHOW_NAME_VFS_PEER = 0x1 | 0x2 | 0x4
_NAME, _VFS, _PEER = 0, 1, 2
_ALL_STATES = 0xFFFFFFFF

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_REQUEST = struct.Struct(
    "=BBHIIIII"
)  # unix_diag_req: family, protocol, pad, states, inode, show, cookie
_MESSAGE = struct.Struct("=BBBBIII")  # unix_diag_msg: family, type, state, pad, inode, cookie
_ATTRIBUTE = struct.Struct("=HH")
_TWO_NUMBERS = struct.Struct("=II")
_NUMBER = struct.Struct("=I")

_STATES = {10: "listen", 1: "established"}  # TCP_LISTEN, TCP_ESTABLISHED
# The kernel fills what the reader offers, up to 32 KiB: fewer calls, fewer chances to change.
_RECEIVE = 1 << 18
_TIMEOUT = 5.0
_TRIES = 5
_MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One socket of the dump."""

    inode: int
    type: int
    """`socket.SOCK_STREAM` and so on."""
    state: str
    name: bytes | None
    file_inode: int | None
    """Low 32 bits: the kernel's field has no more."""
    device: int | None
    peer: int | None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one datagram of the answer held."""

    rows: tuple[Row, ...]
    done: bool
    interrupted: bool
    """The table changed meanwhile; the dump must be asked for again."""
    error: int
    """errno of an error message, 0 without one."""


def parse_messages(data: bytes) -> Batch:
    """Decode one datagram. Raises BadDataError for lengths that do not add up."""
    rows: list[Row] = []
    interrupted = False
    position = 0
    while position + _HEADER.size <= len(data):
        length, kind, flags, _, _ = _HEADER.unpack_from(data, position)
        if length < _HEADER.size or position + length > len(data):
            raise BadDataError(f"netlink message of {length} bytes in {len(data) - position}")
        body = data[position + _HEADER.size : position + length]
        interrupted = interrupted or bool(flags & _NLM_F_DUMP_INTR)
        if kind == _NLMSG_DONE:
            # A dump that failed half-way says so in its last message.
            return Batch(tuple(rows), True, interrupted, _error_number(body))
        if kind == _NLMSG_ERROR:
            return Batch(tuple(rows), True, interrupted, _error_number(body) or errno.EIO)
        if kind == _SOCK_DIAG_BY_FAMILY:
            rows.append(_row(body))
        position += (length + 3) & ~3
    return Batch(tuple(rows), False, interrupted, 0)


def _error_number(body: bytes) -> int:
    if len(body) < 4:
        return 0
    number = int(struct.unpack_from("=i", body)[0])
    return -number if number < 0 else 0


def _row(body: bytes) -> Row:
    if len(body) < _MESSAGE.size:
        raise BadDataError(f"socket of {len(body)} bytes")
    _, kind, state, _, inode, _, _ = _MESSAGE.unpack_from(body)
    name: bytes | None = None
    file: tuple[int, int] | tuple[None, None] = (None, None)
    peer: int | None = None
    for attribute, value in _attributes(body[_MESSAGE.size :]):
        if attribute == _NAME:
            name = value
        elif attribute == _VFS and len(value) >= _TWO_NUMBERS.size:
            file = _TWO_NUMBERS.unpack_from(value)
        elif attribute == _PEER and len(value) >= _NUMBER.size:
            peer = int(_NUMBER.unpack_from(value)[0])
    return Row(inode, kind, _STATES.get(state, "other"), name, file[0], file[1], peer)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, position)
        if length < _ATTRIBUTE.size or position + length > len(data):
            raise BadDataError(f"netlink attribute of {length} bytes in {len(data) - position}")
        yield kind & 0x3FFF, data[position + _ATTRIBUTE.size : position + length]
        position += (length + 3) & ~3


def read_unix_sockets() -> tuple[UnixSocket, ...]:
    """Stream sockets of this network namespace that carry a path: listeners, and accepted ends.

    Others cannot be a gRPC server's. Raises UnreachableError (a kernel or sandbox without socket
    diagnostics), DeniedError, BadDataError.
    """
    return tuple(unix_socket(row) for row in read_rows() if _matters(row))


def _matters(row: Row) -> bool:
    return (
        row.type == socket.SOCK_STREAM
        and row.state in ("listen", "established")
        and bool(row.name)
        and not (row.name or b"").startswith(b"\0")
    )


def unix_socket(row: Row) -> UnixSocket:
    name = None if row.name is None else socket_name(row.name)
    return UnixSocket(
        inode=row.inode,
        state=row.state,
        name=name,
        file_inode=row.file_inode,
        device=row.device,
        peer=row.peer,
    )


def socket_name(name: bytes) -> str:
    """`sun_path` as text: an abstract name starts with `@`, a path ends at its first NUL."""
    if name.startswith(b"\0"):
        return "@" + os.fsdecode(name[1:])
    return os.fsdecode(name.partition(b"\0")[0])


def read_rows() -> tuple[Row, ...]:
    """The whole table, ascending by inode. Errors as `read_unix_sockets`."""
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
        ) as diag:
            diag.settimeout(_TIMEOUT)
            diag.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * _RECEIVE)
            rows, chunks = _consistent_dump(diag)
            if chunks > 1:
                # Between two chunks the kernel goes on by position in a hash chain: a socket that
                # closed there hides its neighbour. A second look finds it.
                rows = {**rows, **_consistent_dump(diag)[0]}
    except OSError as e:
        raise _translate(e) from e
    return tuple(rows[inode] for inode in sorted(rows))


def _consistent_dump(diag: socket.socket) -> tuple[dict[int, Row], int]:
    for sequence in range(1, _TRIES + 1):
        rows, chunks, interrupted = _dump(diag, sequence)
        if not interrupted:
            return rows, chunks
    raise UnreachableError(
        f"the kernel's socket table changed during each of {_TRIES} readings", "try again"
    )


def _dump(diag: socket.socket, sequence: int) -> tuple[dict[int, Row], int, bool]:
    request = _REQUEST.pack(socket.AF_UNIX, 0, 0, _ALL_STATES, 0, _SHOW_NAME_VFS_PEER, 0, 0)
    length = _HEADER.size + len(request)
    flags = _NLM_F_REQUEST | _NLM_F_DUMP
    diag.sendto(_HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, flags, sequence, 0) + request, (0, 0))
    rows: dict[int, Row] = {}
    chunks = 0
    interrupted = False
    while True:
        data, _, message_flags, sender = diag.recvmsg(_RECEIVE)
        if sender[0] != 0:
            continue  # not the kernel: any process may send to a netlink socket's port
        if message_flags & socket.MSG_TRUNC:
            raise BadDataError("the kernel's socket table came cut off")
        batch = parse_messages(data)
        interrupted = interrupted or batch.interrupted
        rows.update((row.inode, row) for row in batch.rows)
        if batch.error:
            raise OSError(batch.error, os.strerror(batch.error))
        if len(rows) > _MOST_ROWS:
            raise BadDataError(f"more than {_MOST_ROWS} unix sockets")
        if batch.done:
            return rows, chunks, interrupted
        chunks += 1


def _translate(error: OSError) -> DpctlError:
    hint = (
        "which plugins are connected cannot be told here: `modprobe unix_diag` (as root), or run "
        "dpctl on the host instead of in a sandbox; `ss -x` shows whether it works"
    )
    if isinstance(error, PermissionError):
        return DeniedError("the kernel refuses its unix-socket table", hint)
    if isinstance(error, TimeoutError):
        return UnreachableError(
            f"the kernel did not give its unix-socket table within {_TIMEOUT:g} s", hint
        )
    if error.errno in (
        errno.ENOENT,
        errno.EPROTONOSUPPORT,
        errno.EAFNOSUPPORT,
        errno.EOPNOTSUPP,
        errno.EINVAL,
    ):
        return UnreachableError("this kernel has no unix-socket diagnostics", hint)
    return UnreachableError(f"the kernel's unix-socket table: {error.strerror or error}", hint)
