"""The first word of every socket of a directory, all at once: connect, HTTP/2's preface, wait.

Tells a dead socket, a hung one and one that speaks another protocol from one worth a gRPC call,
without a thread for each: 500 sockets that hang cost one deadline, not 500. Nothing of gRPC here.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpctl.errors import DeniedError, DpctlError
from dpctl.model import SocketState
from dpctl.sources.channel import socket_address
from dpctl.sources.files import denied

# The client's preface, with an empty SETTINGS frame; every HTTP/2 server answers with its own.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0" + b"\0" * 4
_FRAME_HEADER = 9
_SETTINGS = 4
_LARGEST_SETTINGS = 1 << 14
_SIDE_BY_SIDE = 256  # half of the usual limit of 1024 descriptors, and to spare
_RETRY = 0.05  # seconds between attempts at a full queue


@dataclass(frozen=True, slots=True)
class Greeting:
    """`state` None: it speaks HTTP/2, ask it more."""

    state: SocketState | None
    detail: str | None = None


_GOOD = Greeting(None)


def greet(paths: Sequence[str], *, timeout: float, until: float) -> dict[str, Greeting]:
    """How each socket took it, within `timeout` seconds each, and all before `until` (monotonic).

    Sockets that were not reached in time are Unknown. Symbolic links are not followed.
    """
    found: dict[str, Greeting] = {}
    for start in range(0, len(paths), _SIDE_BY_SIDE):
        batch = paths[start : start + _SIDE_BY_SIDE]
        deadline = min(time.monotonic() + timeout, until)
        if start and deadline <= time.monotonic():
            words = "not spoken to: the sockets before it used up the time"
            found.update((path, Greeting(SocketState.UNKNOWN, words)) for path in batch)
        else:
            found.update(_Batch(batch, deadline).run())
    return found


class _Batch:
    def __init__(self, paths: Sequence[str], deadline: float) -> None:
        self.deadline = deadline
        self.found: dict[str, Greeting] = {}
        self.queued = list(paths)
        self.open: dict[int, tuple[str, socket.socket, bytearray]] = {}
        self.poll = select.poll()

    def run(self) -> Mapping[str, Greeting]:
        try:
            while True:
                self.queued = [path for path in self.queued if not self._connect(path)]
                left = self.deadline - time.monotonic()
                if left <= 0 or not (self.queued or self.open):
                    break
                wait = min(left, _RETRY) if self.queued else left
                for fd, _ in self.poll.poll(int(wait * 1000) + 1):
                    self._hear(fd)
            self._give_up()
        finally:
            for _, connection, _ in self.open.values():
                connection.close()
        return self.found

    def _connect(self, path: str) -> bool:
        """False: the queue is full, try again."""
        try:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as e:
            self.found[path] = _refused(path, e)
            return True
        try:
            with socket_address(path, follow=False) as address:
                connection.connect(address)
            connection.send(_PREFACE, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            connection.close()
            return False
        except (OSError, DpctlError) as e:
            connection.close()
            self.found[path] = _refused(path, e)
            return True
        self.open[connection.fileno()] = path, connection, bytearray()
        self.poll.register(connection, select.POLLIN)
        return True

    def _hear(self, fd: int) -> None:
        path, connection, heard = self.open[fd]
        try:
            received = connection.recv(_FRAME_HEADER - len(heard))
        except BlockingIOError:
            return
        except OSError:
            received = b""
        heard += received
        if received and len(heard) < _FRAME_HEADER and not _is_foreign(heard):
            return
        self._close(fd)
        if len(heard) == _FRAME_HEADER and not _is_foreign(heard):
            self.found[path] = _GOOD
        elif heard:
            words = f"it answered {bytes(heard)!r} to HTTP/2"
            self.found[path] = Greeting(SocketState.NOT_GRPC, words)
        else:
            # A plugin may turn away whoever is not the kubelet.
            words = "it closed the connection without an HTTP/2 answer"
            self.found[path] = Greeting(SocketState.UNKNOWN, words)

    def _give_up(self) -> None:
        for path, _, heard in self.open.values():
            words = "it took the connection and said nothing"
            if heard:
                words = f"it said {bytes(heard)!r} and nothing more"
            self.found[path] = Greeting(SocketState.HUNG, words)
        for path in self.queued:
            words = "its queue is full: the process does not take connections"
            self.found[path] = Greeting(SocketState.HUNG, words)

    def _close(self, fd: int) -> None:
        self.poll.unregister(fd)
        self.open.pop(fd)[1].close()


def _is_foreign(heard: bytearray) -> bool:
    """Whether these bytes cannot be the beginning of a SETTINGS frame."""
    if len(heard) > 3 and heard[3] != _SETTINGS:
        return True
    if len(heard) > 0 and heard[0] != 0:  # lengths of 64 KiB and more
        return True
    if len(heard) < _FRAME_HEADER:
        return False
    return int.from_bytes(heard[:3]) > _LARGEST_SETTINGS or any(heard[5:])


def state_of_failure(error: DpctlError) -> SocketState:
    """Gone, or a link or a file in its place; anything else (no descriptors left, no memory) says
    nothing of the socket."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno not in (
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.ENOTSOCK,
    ):
        return SocketState.UNKNOWN
    return SocketState.GONE


def _refused(path: str, error: OSError | DpctlError) -> Greeting:
    if isinstance(error, DeniedError):
        return Greeting(SocketState.NO_RIGHTS, error.message)
    if isinstance(error, DpctlError):
        return Greeting(state_of_failure(error), error.message)
    code = error.errno
    if code == errno.ECONNREFUSED:
        return Greeting(SocketState.DEAD, "connection refused: nobody listens behind the file")
    if code in (errno.EACCES, errno.EPERM):
        return Greeting(SocketState.NO_RIGHTS, denied(path, connect=True).message)
    if code in (errno.ENOENT, errno.ENOTDIR):
        return Greeting(SocketState.GONE, "the file vanished")
    if code == errno.EPROTOTYPE:
        return Greeting(SocketState.NOT_GRPC, "not a stream socket")
    if code in (errno.EPIPE, errno.ECONNRESET):
        return Greeting(SocketState.UNKNOWN, "it closed the connection at once")
    return Greeting(SocketState.UNKNOWN, error.strerror or str(error))
