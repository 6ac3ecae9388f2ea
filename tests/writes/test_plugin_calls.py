"""The calls that take or change, on real sockets; the harmless ones beside them (`sources`)."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.errors import BadDataError, PeerError, UnreachableError
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.sources import plugin_calls as reads
from dpctl.writes import plugin_calls as calls
from tests.fakes.grpc_sockets import (
    ALLOCATE,
    INFO,
    LIST,
    OPTIONS,
    PRE_START,
    PREFERRED,
    WATCH,
    dead,
    fail,
    listening,
    serving,
    short_directory,
    slow,
)

HOW: dict[str, Any] = {"follow": False, "timeout": 10.0, "max_message_size": 64 << 20}
BRIEFLY: dict[str, Any] = {**HOW, "timeout": 0.5}


@pytest.fixture
def path() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory / "p.sock"


def listed(*ids: str) -> bytes:
    devices = [pb.Device(ID=device_id, health="Healthy") for device_id in ids]
    return pb.ListAndWatchResponse(devices=devices).SerializeToString()


# --- ListAndWatch ---------------------------------------------------------------------------------


def test_every_message_and_then_the_end(path: Path) -> None:
    def stream(_request: bytes, _context: Any) -> Iterator[bytes]:
        yield listed("a")
        yield listed("a", "b")

    with serving(path, {}, {WATCH: stream}):
        messages = calls.watch_devices(str(path), **HOW)
        found = [[device.device_id for device in next(messages).devices] for _ in range(2)]
        with pytest.raises(PeerError, match="ended ListAndWatch"):
            next(messages)
    assert found == [["a"], ["a", "b"]]


def test_closing_hangs_up(path: Path) -> None:
    gone = threading.Event()

    def stream(_request: bytes, context: Any) -> Iterator[bytes]:
        context.add_callback(gone.set)
        yield listed("a")
        gone.wait(30)

    with serving(path, {}, {WATCH: stream}):
        messages = calls.watch_devices(str(path), **HOW)
        assert next(messages).size == len(listed("a"))
        assert not gone.is_set()
        messages.close()
        assert gone.wait(30)


def test_only_the_first_message_has_a_limit(path: Path) -> None:
    def stream(_request: bytes, _context: Any) -> Iterator[bytes]:
        yield listed("a")
        time.sleep(6)
        yield listed("b")

    with serving(path, {}, {WATCH: stream}):
        messages = calls.watch_devices(str(path), **{**HOW, "timeout": 5.0})
        ids = [m.devices[0].device_id for m in itertools.islice(messages, 2)]
        messages.close()
    assert ids == ["a", "b"]


def test_no_message_in_time(path: Path) -> None:
    def stream(_request: bytes, context: Any) -> Iterator[bytes]:
        while context.is_active():
            time.sleep(0.02)
        yield b""

    with (
        serving(path, {}, {WATCH: stream}),
        pytest.raises(UnreachableError, match=r"sent no list within 0\.5 s"),
    ):
        next(calls.watch_devices(str(path), **BRIEFLY))


def test_a_message_of_more_than_is_taken(path: Path) -> None:
    big = listed(*(f"device-{n}-{'x' * 90}" for n in range(50_000)))
    with serving(path, {}, {WATCH: lambda *_: iter([big])}):
        message = next(calls.watch_devices(str(path), **HOW))
        assert message.size == len(big) > 4 << 20
        with pytest.raises(PeerError, match="dpctl takes 1 MiB") as caught:
            next(calls.watch_devices(str(path), **{**HOW, "max_message_size": 1 << 20}))
    assert "--max-message-size" in (caught.value.hint or "")


def test_a_message_that_is_none(path: Path) -> None:
    with (
        serving(path, {}, {WATCH: lambda *_: iter([b"\xff\xff\xff"])}),
        pytest.raises(BadDataError, match="ListAndWatch"),
    ):
        next(calls.watch_devices(str(path), **HOW))


# --- Allocate and PreStartContainer ---------------------------------------------------------------


def test_allocate(path: Path) -> None:
    asked: list[bytes] = []

    def answer(request: bytes, _context: Any) -> bytes:
        asked.append(request)
        one = pb.ContainerAllocateResponse(envs={"IDS": "a"})
        return pb.AllocateResponse(container_responses=[one]).SerializeToString()

    with serving(path, {ALLOCATE: answer, PRE_START: b""}) as recorder:
        found = calls.allocate(str(path), ["a", "b"], **HOW)
        calls.pre_start(str(path), ["a", "b"], **HOW)
    assert dict(found.containers[0].envs) == {"IDS": "a"}
    (request,) = pb.AllocateRequest.FromString(asked[0]).container_requests
    assert list(request.devices_ids) == ["a", "b"]
    assert recorder.methods == [ALLOCATE, PRE_START]
    assert recorder.authorities == {b"localhost"}


def test_the_plugins_own_words(path: Path) -> None:
    with (
        serving(path, {ALLOCATE: fail("UNKNOWN", "no such card")}),
        pytest.raises(PeerError, match="UNKNOWN: no such card") as caught,
    ):
        calls.allocate(str(path), ["a"], **HOW)
    assert "plugin's own words" in (caught.value.hint or "")


def test_allocate_that_takes_too_long_may_have_been_done(path: Path) -> None:
    with (
        serving(path, {ALLOCATE: slow(20)}),
        pytest.raises(UnreachableError, match="did not answer Allocate") as caught,
    ):
        calls.allocate(str(path), ["a"], **BRIEFLY)
    assert "may have carried" in (caught.value.hint or "")


# --- the harmless ones, and peers that are no plugin ----------------------------------------------


def test_options_and_preference(path: Path) -> None:
    good = pb.DevicePluginOptions(pre_start_required=True).SerializeToString()
    with serving(path, {OPTIONS: good, PREFERRED: b""}) as recorder:
        assert reads.get_options(str(path), **HOW).pre_start_required
        assert reads.get_preferred(str(path), ["a"], [], 1, **HOW) is None
    assert recorder.methods == [OPTIONS, PREFERRED]


def test_a_plugin_without_the_method(path: Path) -> None:
    with (
        serving(path, {OPTIONS: b""}),
        pytest.raises(PeerError, match="does not implement GetPreferredAllocation"),
    ):
        reads.get_preferred(str(path), ["a"], [], 1, **HOW)


def test_another_service(path: Path) -> None:
    with (
        serving(path, {LIST: b""}),
        pytest.raises(PeerError, match="no device plugin: PodResources of a kubelet"),
    ):
        reads.get_options(str(path), **HOW)
    with serving(path, {INFO: b""}), pytest.raises(PeerError, match="no device plugin"):
        next(calls.watch_devices(str(path), **HOW))


def talks(words: bytes):
    def talk(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(words)

    return talk


@pytest.mark.parametrize(
    "words", [b"HTTP/1.1 400 Bad\x1b[2J\r\n\r\n", b"\x00" * 64, b"SSH-2.0-x\r\n"]
)
def test_no_grpc_at_all(path: Path, words: bytes) -> None:
    with listening(path, talks(words)), pytest.raises(UnreachableError) as caught:
        reads.get_options(str(path), **HOW)
    assert str(path) in caught.value.message


def test_nobody_listens(path: Path) -> None:
    dead(path)
    with pytest.raises(UnreachableError, match="nobody listens"):
        next(calls.watch_devices(str(path), **HOW))


def test_a_link_is_not_followed_unless_a_person_named_it(path: Path) -> None:
    link = path.with_name("link.sock")
    link.symlink_to(path)
    with serving(path, {OPTIONS: b""}):
        assert not reads.get_options(str(link), **{**HOW, "follow": True}).pre_start_required
        with pytest.raises(UnreachableError):
            reads.get_options(str(link), **HOW)
