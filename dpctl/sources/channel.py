"""gRPC over a unix socket, the way that works with every plugin and kubelet; errors in words.

Nothing here knows a message: requests and answers are bytes, so that answers can be bounded, kept
for a bundle, and decoded without grpc's own logging. Which calls are harmless is the callers' duty.
"""

from __future__ import annotations

import errno
import os
import random
import re
import socket
import stat
import threading
import time
import urllib.parse
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpctl.errors import DeniedError, DpctlError, PeerError, UnreachableError
from dpctl.sources.files import denied, file_error, kind_in_words, size_in_words
from dpctl.text import shorten

if TYPE_CHECKING:
    import grpc

LONGEST_ADDRESS = 107
"""Bytes of a path in `sockaddr_un`, less the closing zero."""
_QUOTED = 300
_LARGEST_INT = 2**31 - 1
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0
_TOO_LARGE = re.compile(r"larger than max \((\d+) vs\.? (\d+)\)")
_GRPCS_WORDS = re.compile(
    r"stream removed|socket closed|endpoint closing|connection reset|broken pipe|recvmsg|sendmsg"
    r"|goaway received|(received )?rst_stream|received http2 header|no status received"
    r"|failed to connect|failed parsing|frame of size",
    re.IGNORECASE,
)
"""How the details begin where gRPC made the status itself, by versions 1.72 to 1.85."""


class CallFailed(Exception):
    """A call ended with a status that is not OK. Internal to `sources`: callers get DpctlError."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"{code}: {details}")
        self.code = code
        """Name of the gRPC status, e.g. `UNIMPLEMENTED`."""
        self.details = details

    @property
    def rate_limited(self) -> bool:
        return self.code == "RESOURCE_EXHAUSTED" and "rate limit" in self.details.lower()

    @property
    def made_here(self) -> bool:
        """Whether gRPC seems to have made the status, because the peer broke off or is no gRPC.

        Nothing tells it from a status that came over the wire but its words, which a peer may use
        too: good for what is said, never as proof of anything."""
        return _GRPCS_WORDS.match(self.details) is not None

    @property
    def too_large(self) -> bool:
        return self.code == "RESOURCE_EXHAUSTED" and "larger than max" in self.details.lower()


def load_grpc() -> Any:
    """The grpc module, told to keep its C core's chatter off stderr."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import grpc

    return grpc


@dataclass(frozen=True, slots=True)
class GrpcSocket:
    """An open channel to one unix socket."""

    path: str
    address: str
    """What the kernel is given: at most 107 bytes, leads to the very same socket."""
    channel: grpc.Channel
    max_message_size: int

    def call(self, method: str, request: bytes = b"", *, timeout: float) -> bytes:
        """One unary call; `method` is `/package.Service/Method`. The answer's bytes, undecoded.

        "rejected by rate limit" is tried again with back-off until the deadline. Raises CallFailed.
        """
        grpc = load_grpc()
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        # grpc-stubs want serializers; without them grpc hands bytes through.
        stub: Any = self.channel.unary_unary(method, None, None)
        while True:
            try:
                answer: bytes = stub(request, timeout=max(deadline - time.monotonic(), 0.001))
                return answer
            except grpc.RpcError as e:
                failed = CallFailed(e.code().name, e.details() or "")
            # The bucket is shared by all clients of the node: spread out.
            wait = pause * random.uniform(0.5, 1.0)
            if not failed.rate_limited or time.monotonic() + wait >= deadline:
                raise failed
            time.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def stream(self, method: str, *, first_within: float) -> Generator[bytes]:
        """The messages of a stream, undecoded, until it ends; closing the iterator hangs up.

        Only the first one is waited for with a limit, in seconds. Raises CallFailed.
        """
        grpc = load_grpc()
        stub: Any = self.channel.unary_stream(method, None, None)
        call = stub(b"")
        late = threading.Event()

        def give_up() -> None:
            late.set()
            call.cancel()

        timer = threading.Timer(first_within, give_up)
        timer.daemon = True
        timer.start()
        try:
            for message in call:
                timer.cancel()
                yield message
        except grpc.RpcError as e:
            code = "DEADLINE_EXCEEDED" if late.is_set() else e.code().name
            raise CallFailed(code, e.details() or "") from None
        finally:
            timer.cancel()
            call.cancel()


@contextmanager
def open_channel(path: str, *, max_message_size: int, follow: bool = True) -> Iterator[GrpcSocket]:
    """A channel to the socket file `path`, closed at the end. Nothing is sent before a call.

    `follow=False`: a symbolic link is refused (names found in a plugins' directory).
    Raises UnreachableError (not there, no socket, too long), DeniedError.
    """
    grpc = load_grpc()
    with socket_address(path, follow=follow) as address:
        channel = grpc.insecure_channel(
            # gRPC decodes the target's path.
            "unix:" + urllib.parse.quote(os.fsencode(address)),
            options=(
                # Otherwise the socket's path becomes :authority, which Rust and C# servers refuse.
                ("grpc.default_authority", "localhost"),
                ("grpc.enable_http_proxy", 0),
                ("grpc.enable_retries", 0),
                ("grpc.max_receive_message_length", min(max_message_size, _LARGEST_INT)),
                # No connection shared with, nor back-off inherited from, an earlier channel.
                ("grpc.use_local_subchannel_pool", 1),
            ),
        )
        try:
            yield GrpcSocket(path, address, channel, max_message_size)
        finally:
            channel.close()


@contextmanager
def socket_address(path: str, *, follow: bool = True) -> Iterator[str]:
    """A name for the socket that fits into an address, whatever the length of `path`.

    It goes by an open descriptor, `/proc/self/fd/N`: the file seen first is the one connected to,
    even if somebody puts a link in its place. Without /proc it is the path itself.
    """
    try:
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        fd = os.open(path, flags)
    except (OSError, ValueError) as e:
        raise file_error(e, path, connect=True) from e
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISSOCK(mode):
            raise UnreachableError(f"{path} is {kind_in_words(mode)}, not a socket")
        address = f"/proc/self/fd/{fd}"
        if not os.path.exists(address):
            address = os.path.join(os.getcwd(), path)
            length = len(os.fsencode(address))
            if length > LONGEST_ADDRESS:
                raise UnreachableError(
                    f"{path} is {length} bytes long, a unix socket's path may have"
                    f" {LONGEST_ADDRESS}",
                    "mount /proc (dpctl then reaches it by a short name), or give a shorter path",
                )
        yield address
    finally:
        os.close(fd)


def connect_error(address: str) -> OSError | None:
    """What the kernel says to a plain connection: None where it is taken. Never waits."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(address)
        except OSError as e:
            return e
    return None


def translate_error(
    peer: GrpcSocket, failed: CallFailed, method: str, timeout: float
) -> DpctlError:
    """A failed call in words. Only within `open_channel`: it may connect once more to find out why.

    Does not know what UNIMPLEMENTED means to the caller: see `wrong_socket`.
    """
    call = method.rpartition("/")[2]
    details = shorten(failed.details, _QUOTED)
    if failed.code == "UNAVAILABLE" and (error := _unavailable(peer, failed)) is not None:
        return error
    if failed.code == "DEADLINE_EXCEEDED":
        return UnreachableError(
            f"{peer.path} did not answer {call} within {timeout:g} s",
            "its process is stopped, dead-locked or overloaded; `--request-timeout` waits longer",
        )
    if failed.too_large:
        return _too_large(peer, failed, call)
    if failed.rate_limited:
        return PeerError(
            f"{peer.path} rejected {call} by its rate limit for {timeout:g} s",
            "all clients of the node share 100 calls a second: a monitoring agent may use them up;"
            " `--request-timeout` tries longer",
        )
    if failed.code in ("PERMISSION_DENIED", "UNAUTHENTICATED"):
        return DeniedError(f"{peer.path} refused {call}: {failed.code} {details}")
    return PeerError(f"{peer.path} answered {call} with {failed.code}: {details or 'no words'}")


def _unavailable(peer: GrpcSocket, failed: CallFailed) -> DpctlError | None:
    """None: it is there, and says so itself (a driver that is not ready)."""
    error = connect_error(peer.address)
    if error is None:
        if not failed.made_here:
            return None
        details = shorten(failed.details, _QUOTED)
        return UnreachableError(
            f"{peer.path} takes connections but speaks no gRPC, or broke off: {details}",
            "try again; if it stays so, another program listens there (`ss -xlp`)",
        )
    if error.errno == errno.ECONNREFUSED:
        return UnreachableError(
            f"{peer.path}: connection refused, nobody listens behind that file",
            "the process that made it is gone (a kubelet: `systemctl status kubelet`); a container"
            " must mount the directory, since the file is replaced when its owner starts anew",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return denied(peer.path, connect=True)
    if error.errno == errno.EAGAIN:
        return UnreachableError(
            f"{peer.path} has a full queue: its process does not take connections",
            "it is stopped or dead-locked; `ss -xlp` names it",
        )
    return file_error(error, peer.path, connect=True)


def _too_large(peer: GrpcSocket, failed: CallFailed, call: str) -> DpctlError:
    sizes = _TOO_LARGE.search(failed.details)
    limit = size_in_words(peer.max_message_size)
    if sizes is None:
        return PeerError(
            f"the answer to {call} is larger than {limit}", "raise it with `--max-message-size`"
        )
    wanted = int(sizes[1][:15])
    megabytes = -(-wanted // (1 << 20))
    return PeerError(
        f"the answer to {call} is {size_in_words(wanted)}, dpctl takes {limit}",
        f"raise it: `--max-message-size {megabytes + megabytes // 4 + 1}Mi`",
    )
