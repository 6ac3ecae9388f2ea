from __future__ import annotations

import errno
import os
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpctl.errors import BadDataError, DeniedError, UnreachableError
from dpctl.sources.sock_diag import parse_messages, read_rows, read_unix_sockets, socket_name
from dpctl.sources.sysfs import vfs_device


def message(kind: int, body: bytes, flags: int = 2) -> bytes:
    data = struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body
    return data + b"\0" * (-len(data) % 4)


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def row(inode: int = 7, kind: int = 1, state: int = 10, *attributes: bytes) -> bytes:
    return struct.pack("=BBBBIII", 1, kind, state, 0, inode, 0, 0) + b"".join(attributes)


NAME = attribute(0, b"/run/x.sock\0")
VFS = attribute(1, struct.pack("=II", 99, 8 << 20 | 1))
PEER = attribute(2, struct.pack("=I", 12))


def test_one_datagram() -> None:
    batch = parse_messages(
        message(20, row(7, 1, 10, NAME, VFS)) + message(20, row(8, 1, 1, NAME, VFS, PEER))
    )
    assert not batch.done
    assert [(r.inode, r.state, r.peer) for r in batch.rows] == [
        (7, "listen", None),
        (8, "established", 12),
    ]
    assert (batch.rows[0].file_inode, batch.rows[0].device) == (99, 8 << 20 | 1)


def test_the_end_the_error_and_the_interruption() -> None:
    done = parse_messages(message(20, row()) + message(3, struct.pack("=i", 0)) + b"rest")
    assert (done.done, done.error, len(done.rows)) == (True, 0, 1)
    failed = parse_messages(message(2, struct.pack("=i", -errno.ENOENT) + b"\0" * 16))
    assert (failed.done, failed.error) == (True, errno.ENOENT)
    assert parse_messages(message(2, b"")).error == errno.EIO
    assert parse_messages(message(3, struct.pack("=i", -errno.ENOMEM))).error == errno.ENOMEM
    assert parse_messages(message(20, row(), flags=0x12)).interrupted
    assert parse_messages(message(3, b"", flags=0x10)).interrupted


def test_other_messages_and_attributes_are_skipped() -> None:
    batch = parse_messages(message(1, b"") + message(20, row(7, 1, 10, attribute(6, b"\1"), NAME)))
    assert [r.name for r in batch.rows] == [b"/run/x.sock\0"]


@pytest.mark.parametrize(
    "data",
    [
        message(20, row(7, 1, 10, NAME))[:-8],
        message(1, b"x" * 40)[:-8],
        struct.pack("=IHHII", 4, 20, 0, 0, 0),
        struct.pack("=IHHII", 0, 20, 0, 0, 0),
        message(20, b"\1\1"),
        message(20, row() + struct.pack("=HH", 400, 0)),
        message(20, row() + struct.pack("=HH", 0, 0)),
    ],
)
def test_lengths_that_do_not_add_up(data: bytes) -> None:
    with pytest.raises(BadDataError):
        parse_messages(data)


WHOLE = message(20, row(7, 1, 10, NAME, VFS, PEER)) + message(3, struct.pack("=i", 0))


@given(st.binary(max_size=400))
@example(b"")
def test_any_bytes_end_in_rows_or_bad_data(data: bytes) -> None:
    for hostile in (data, message(20, data), message(20, row() + data), message(3, data)):
        try:
            batch = parse_messages(hostile)
        except BadDataError:
            continue
        assert len(batch.rows) <= len(hostile) // 16


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_cut_and_changed_answers(end: int, position: int, byte: int) -> None:
    changed = bytearray(WHOLE)
    changed[position] = byte
    for data in (WHOLE[:end], bytes(changed)):
        try:
            parse_messages(data)
        except BadDataError:
            continue


def test_names() -> None:
    assert socket_name(b"\0abstract\0x") == "@abstract\0x"
    assert socket_name(b"/a/b.sock\0") == "/a/b.sock"
    assert socket_name(b"/a/\xff") == "/a/\udcff"


def test_a_real_listener_and_its_connection(tmp_path: Path) -> None:
    path = str(tmp_path / "x.sock")
    with (
        socket.socket(socket.AF_UNIX) as server,
        socket.socket(socket.AF_UNIX) as client,
        socket.socket(socket.AF_UNIX) as queued,
    ):
        server.bind(path)
        file = os.stat(path)
        server.listen(5)
        client.connect(path)
        accepted, _ = server.accept()
        queued.connect(path)  # nobody has accepted it: not a connection of the server yet
        with accepted:
            os.unlink(path)  # what a starting kubelet does
            rows = [r for r in read_unix_sockets() if r.name == path]
            assert {(r.inode, r.state, r.peer) for r in rows} == {
                (os.fstat(server.fileno()).st_ino, "listen", None),
                (
                    os.fstat(accepted.fileno()).st_ino,
                    "established",
                    os.fstat(client.fileno()).st_ino,
                ),
            }
            assert {r.file_inode for r in rows} == {file.st_ino & 0xFFFFFFFF}
            assert {r.device for r in rows} == {vfs_device(str(tmp_path))}


def test_only_streams_with_a_path(tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as packets,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as unnamed,
    ):
        packets.bind(str(tmp_path / "p"))
        packets.listen()
        datagrams.bind(str(tmp_path / "d"))
        abstract.bind("\0dpctl-test")
        abstract.listen()
        inodes = {os.fstat(s.fileno()).st_ino for s in (packets, datagrams, abstract, unnamed)}
        assert inodes <= {r.inode for r in read_rows()}
        assert not inodes & {r.inode for r in read_unix_sockets()}


class FakeNetlink:
    """Stands in for the socket alone: what a kernel without diagnostics, or a busy one, answers."""

    answers: list[bytes | OSError]

    def __init__(self, *_: object) -> None:
        self.asked = 0

    def __enter__(self) -> FakeNetlink:
        return self

    def __exit__(self, *_: object) -> None: ...

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def setsockopt(self, *_: int) -> None: ...

    def sendto(self, data: bytes, address: tuple[int, int]) -> None:
        self.asked += 1

    def recvmsg(self, size: int) -> tuple[bytes, list[object], int, tuple[int, int]]:
        answer = type(self).answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer, [], 0, (0, 0)


@pytest.fixture
def netlink(monkeypatch: pytest.MonkeyPatch) -> type[FakeNetlink]:
    monkeypatch.setattr("dpctl.sources.sock_diag.socket.socket", FakeNetlink)
    return FakeNetlink


END = message(3, struct.pack("=i", 0))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (message(2, struct.pack("=i", -errno.ENOENT)), UnreachableError),
        (OSError(errno.EPROTONOSUPPORT, "no"), UnreachableError),
        (OSError(errno.EAFNOSUPPORT, "no"), UnreachableError),
        (TimeoutError("timed out"), UnreachableError),
        (PermissionError(errno.EACCES, "no"), DeniedError),
        (message(2, struct.pack("=i", -errno.EPERM)), DeniedError),
        (OSError(errno.ENOBUFS, "no"), UnreachableError),
    ],
)
def test_kernels_without_it(
    netlink: type[FakeNetlink], answer: bytes | OSError, error: type[Exception]
) -> None:
    netlink.answers = [answer]
    with pytest.raises(error) as caught:
        read_rows()
    assert isinstance(caught.value, (UnreachableError, DeniedError))
    assert "modprobe unix_diag" in (caught.value.hint or "")


def test_an_interrupted_dump_is_asked_again(netlink: type[FakeNetlink]) -> None:
    interrupted = message(3, b"", flags=0x12)
    netlink.answers = [message(20, row(5)) + interrupted, message(20, row(6)) + END]
    assert [r.inode for r in read_rows()] == [6]
    netlink.answers = [interrupted] * 5
    with pytest.raises(UnreachableError, match="changed during each of 5"):
        read_rows()


def test_a_dump_in_pieces_is_read_twice(netlink: type[FakeNetlink]) -> None:
    """Between pieces the kernel may skip a socket: what either reading has is kept."""
    netlink.answers = [
        message(20, row(5)),
        message(20, row(6)),
        END,
        message(20, row(5)),
        message(20, row(7)),
        END,
    ]
    assert [r.inode for r in read_rows()] == [5, 6, 7]
    assert netlink.answers == []
