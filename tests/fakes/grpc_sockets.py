"""Real gRPC servers, and servers that misbehave, on real unix sockets. Nothing of a kubelet."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
import grpc

Address = str | bytes | Path
Handler = Callable[[bytes, Any], bytes]
Answer = bytes | Handler
OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
WATCH = "/v1beta1.DevicePlugin/ListAndWatch"
PREFERRED = "/v1beta1.DevicePlugin/GetPreferredAllocation"
ALLOCATE = "/v1beta1.DevicePlugin/Allocate"
PRE_START = "/v1beta1.DevicePlugin/PreStartContainer"
INFO = "/pluginregistration.Registration/GetInfo"
LIST = "/v1.PodResourcesLister/List"
LIST_ALPHA = "/v1alpha1.PodResourcesLister/List"
GET = "/v1.PodResourcesLister/Get"
ALLOCATABLE = "/v1.PodResourcesLister/GetAllocatableResources"


@dataclass
class Recorder:
    """What a server was asked."""

    methods: list[str] = field(default_factory=list)
    authorities: set[bytes] = field(default_factory=set)


Stream = Callable[[bytes, Any], Iterator[bytes]]


@contextmanager
def serving(
    path: Address, methods: Mapping[str, Answer], streams: Mapping[str, Stream] | None = None
) -> Iterator[Recorder]:
    """A gRPC server that refuses calls whose :authority is not localhost, as Rust servers do."""
    recorder = Recorder()
    services = {method.split("/")[1] for method in methods}

    class Generic(grpc.GenericRpcHandler):  # type: ignore[type-arg]
        def service(self, details):
            found = (streams or {}).get(str(details.method))
            if found is not None:
                recorder.methods.append(str(details.method))
                return grpc.unary_stream_rpc_method_handler(found)
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: answer(str(details.method), request, context)
            )

    def answer(method: str, request: bytes, context: Any) -> bytes:
        recorder.methods.append(method)
        host = context._rpc_event.call_details.host
        recorder.authorities.add(host)
        if host != b"localhost":
            context.abort(grpc.StatusCode.INTERNAL, f"bad authority {host!r}")
        found = methods.get(method)
        if found is None:
            service = method.split("/")[1]
            kind = "method" if service in services else "service"
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"unknown {kind} {service}")
        assert found is not None  # abort() raises
        return found if isinstance(found, bytes) else found(request, context)

    server = grpc.server(
        futures.ThreadPoolExecutor(4),
        handlers=[Generic()],
        options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)],
    )
    with _short(path) as address:
        server.add_insecure_port("unix:" + urllib.parse.quote(address))
        server.start()
    try:
        yield recorder
    finally:
        server.stop(0).wait()


def fail(code: str, words: str) -> Handler:
    def answer(_request, context):
        context.abort(getattr(grpc.StatusCode, code), words)

    return answer


def slow(seconds: float, then: bytes = b"") -> Handler:
    def answer(_request, context):
        until = time.monotonic() + seconds
        while time.monotonic() < until and context.is_active():
            time.sleep(0.02)
        return then

    return answer


@contextmanager
def listening(
    path: Address, talk: Callable[[socket.socket], object] | None = None, *, backlog: int = 16
) -> Iterator[socket.socket]:
    """A plain listener. `talk` gets each connection; None: accept nothing at all."""
    listener = socket.socket(socket.AF_UNIX)
    with _short(path) as address:
        listener.bind(address)
    listener.listen(backlog)
    stop = threading.Event()
    speak = talk or socket.socket.close

    def run() -> None:
        listener.settimeout(0.05)
        open_ones = []
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                break
            connection.settimeout(5)
            open_ones.append(connection)
            with suppress(OSError):
                speak(connection)
        for connection in open_ones:
            connection.close()

    thread = threading.Thread(target=run, daemon=True) if talk is not None else None
    if thread is not None:
        thread.start()
    try:
        yield listener
    finally:
        stop.set()
        if thread is not None:
            thread.join()
        listener.close()


def dead(path: Address) -> None:
    """A socket file that its listener left behind."""
    with _short(path) as address, socket.socket(socket.AF_UNIX) as left:
        left.bind(address)


@contextmanager
def short_directory() -> Iterator[Path]:
    """pytest's own directories leave little of the 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="dpctl-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def _short(path: Address) -> Iterator[bytes]:
    directory, name = os.path.split(os.fsencode(path))
    if len(directory) + len(name) < 100:
        yield os.path.join(directory, name)
        return
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield b"/proc/self/fd/%d/%s" % (fd, name)
    finally:
        os.close(fd)


def as_nobody(action: Callable[[], str]) -> str:
    """What `action` returns in a child process without any rights (tests run as root)."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            words = action()
        except BaseException as e:
            words = f"unexpected {type(e).__name__}: {e}"
        os.write(write_end, words.encode("utf-8", "backslashreplace"))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        words = answer.read().decode()
    os.waitpid(pid, 0)
    return words
