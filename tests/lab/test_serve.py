"""A served scenario without a kubelet: whose files it takes away, and what its control socket
bears."""

from __future__ import annotations

import io
import os
import socket
import stat
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from dpctl.errors import PeerError, UsageError
from dpctl.lab.cues import Served
from dpctl.lab.runner import Runner
from dpctl.lab.serve import Server
from dpctl.lab.spec import PluginSpec, SampleDevice
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc
from tests.commands.by_hand import eventually

SPEC = PluginSpec("x", "sample.example/x", "x.sock", (SampleDevice("x-0"), SampleDevice("x-1")))


def careful(directory: Path, told: list[Any] | None = None) -> Runner:
    return Runner(
        SPEC, directory, told.append if told is not None else lambda _: None, careful=True
    )


def listener(path: Path) -> socket.socket:
    mine = socket.socket(socket.AF_UNIX)
    mine.bind(str(path))
    mine.listen()
    return mine


def test_its_own_socket_goes_with_it(tmp_path: Path) -> None:
    runner = careful(tmp_path)
    runner.serve()
    assert stat.S_ISSOCK((tmp_path / "x.sock").stat().st_mode)
    runner.stop()
    assert not (tmp_path / "x.sock").exists()


def somebodys(path: Path, kind: str) -> socket.socket | None:
    """What somebody else has put there."""
    if kind == "socket":
        return listener(path)
    if kind == "file":
        path.write_text("mine")
    else:
        path.symlink_to("nowhere")
    return None


@pytest.mark.parametrize("kind", ["socket", "file", "link"])
def test_what_took_its_name_stays(tmp_path: Path, kind: str) -> None:
    runner = careful(tmp_path)
    runner.serve()
    path = tmp_path / "x.sock"
    path.unlink()
    mine = somebodys(path, kind)
    before = path.lstat()
    runner.take_down()
    runner.stop()
    assert os.path.samestat(path.lstat(), before)
    if mine is not None:
        mine.close()


@pytest.mark.parametrize(
    ("kind", "words"),
    [("socket", "another plugin listens"), ("file", "no socket"), ("link", "no socket")],
)
def test_what_has_its_name_already_stays(tmp_path: Path, kind: str, words: str) -> None:
    path = tmp_path / "x.sock"
    (tmp_path / "kubelet.sock").touch()
    mine = somebodys(path, kind)
    before = path.lstat()
    told: list[Any] = []
    runner = careful(tmp_path, told)
    thread = threading.Thread(target=runner.run)
    thread.start()
    eventually(lambda: told)
    runner.stop()
    thread.join()
    assert words in told[0]["error"]
    assert os.path.samestat(path.lstat(), before)
    if mine is not None:
        mine.close()


def test_a_dead_socket_is_taken_over(tmp_path: Path) -> None:
    listener(tmp_path / "x.sock").close()
    (tmp_path / "kubelet.sock").touch()
    told: list[Any] = []
    runner = careful(tmp_path, told)
    thread = threading.Thread(target=runner.run)
    thread.start()
    eventually(lambda: told)
    runner.stop()
    thread.join()
    assert told[0] == {"event": "serving"}


def test_a_directory_that_is_no_utf8(tmp_path: Path) -> None:
    below = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    below.mkdir()
    runner = careful(below)
    runner.serve()
    assert (below / "x.sock").exists()
    runner.stop()


def test_the_place_of_a_device_may_stand_twice_in_its_path(tmp_path: Path) -> None:
    spec = PluginSpec("x", "a.b/x", "x.sock", (SampleDevice("x-0"),), device_path="/dev/{}/{}")
    runner = Runner(spec, tmp_path, lambda _: None)
    runner.serve()
    with grpc.insecure_channel(f"unix:{tmp_path}/x.sock") as channel:
        stub = rpc.DevicePluginStub(channel)  # type: ignore[no-untyped-call]
        asked = pb.AllocateRequest(
            container_requests=[pb.ContainerAllocateRequest(devices_ids=["x-0"])]
        )
        answer = stub.Allocate(asked, timeout=60)
    runner.stop()
    assert answer.container_responses[0].devices[0].host_path == "/dev/0/0"


# -- a kubelet that refuses


@contextmanager
def refusing(directory: Path, answer: str) -> Iterator[list[str]]:
    """A kubelet.sock whose Register fails with this text, and the names that it was asked for."""
    asked: list[str] = []

    class Refusing(rpc.RegistrationServicer):
        def Register(self, request: Any, context: Any) -> Any:
            asked.append(request.resource_name)
            context.abort(grpc.StatusCode.UNKNOWN, answer)

    server = grpc.server(futures.ThreadPoolExecutor(2))
    rpc.add_RegistrationServicer_to_server(Refusing(), server)  # type: ignore[no-untyped-call]
    server.add_insecure_port(f"unix:{directory}/kubelet.sock")
    server.start()
    try:
        yield asked
    finally:
        server.stop(0).wait(10)


def test_it_is_asked_again_ever_more_seldom_and_on_the_same_socket(tmp_path: Path) -> None:
    told: list[Any] = []
    runner = careful(tmp_path, told)
    thread = threading.Thread(target=runner.run)
    with refusing(tmp_path, "failed to dial device plugin: context deadline exceeded") as asked:
        thread.start()
        eventually(lambda: len(asked) == 3 and runner._pause == 4.0)
        runner.stop()
        thread.join()
    assert [event["event"] for event in told] == ["serving", "refused", "refused", "refused"]


@pytest.mark.parametrize(
    "answer",
    [
        f'the ResourceName "{SPEC.resource}" is invalid',
        'requested API version "v1beta1" is not supported by kubelet. Supported version is ["v2"]',
    ],
)
def test_what_it_will_never_take_is_the_end(tmp_path: Path, answer: str) -> None:
    told: list[Any] = []
    server = Server(Served(SPEC, "", (), False), tmp_path, told.append)
    with refusing(tmp_path, answer) as asked, pytest.raises(PeerError, match="never take"):
        server.run(None)
    assert asked == [SPEC.resource]
    assert [event.get("final") for event in told] == [None, True]


# -- the control socket


@contextmanager
def serving(directory: Path, control: Path) -> Iterator[list[Any]]:
    """A server that waits for a kubelet, and what it tells."""
    told: list[Any] = []
    server = Server(Served(SPEC, "", (), False), directory, told.append)
    thread = threading.Thread(target=server.run, args=(str(control),))
    thread.start()
    try:
        eventually(lambda: accepts(control))
        yield told
    finally:
        server.stopped.set()
        thread.join()


def accepts(control: Path) -> bool:
    """A socket's file is there before anybody listens on it."""
    with socket.socket(socket.AF_UNIX) as talk:
        return talk.connect_ex(str(control)) == 0


def ask(control: Path, data: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect(str(control))
        talk.sendall(data)
        talk.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: talk.recv(65536), b""))


def test_a_line_that_is_too_long_is_no_cue_and_nor_is_its_rest(tmp_path: Path) -> None:
    control = tmp_path / "ctl"
    with serving(tmp_path, control) as told:
        answers = ask(control, b"add " + b"x" * (1 << 20) + b"\nhealth x-0 Ill\n").splitlines()
        assert answers == [b"error: a line of more than 1048576 bytes", b"ok"]
        # What stands behind the limit would be a cue by itself.
        answers = ask(control, b"#" * ((1 << 20) + 1) + b" remove x-0\n").splitlines()
        assert answers == [b"error: a line of more than 1048576 bytes"]
        answers = ask(control, b"#" * (1 << 20) + b"remove x-1\nstate\n").splitlines()
        assert b'"x-0": "Ill", "x-1": "Healthy"' in answers[-1]
    assert [event["line"] for event in told if "error" not in event] == ["health x-0 Ill"]


def test_who_leaves_without_reading_the_answers_is_nobodys_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    control = tmp_path / "ctl"
    with serving(tmp_path, control):
        for _ in range(30):
            with socket.socket(socket.AF_UNIX) as talk:
                talk.connect(str(control))
                talk.sendall(b"state\n" * 500)
        eventually(lambda: not any("_converse" in t.name for t in threading.enumerate()))
    assert failed == []


def test_what_took_the_control_sockets_name_stays(tmp_path: Path) -> None:
    control = tmp_path / "ctl"
    with serving(tmp_path, control):
        control.unlink()
        control.write_text("mine")
    assert control.read_text() == "mine"


def test_a_datagram_socket_is_in_use_and_stays(tmp_path: Path) -> None:
    control = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine:
        mine.bind(str(control))
        before = control.stat()
        with pytest.raises(UsageError, match="is there already"):
            Server(Served(SPEC, "", (), False), tmp_path, lambda _: None).run(str(control))
        assert os.path.samestat(control.stat(), before)


def test_a_closed_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        Server(Served(SPEC, "", (), False), tmp_path, lambda _: None).run("-")


def test_a_standard_input_that_fails_is_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _buffer: Any) -> int:
            raise OSError(5, "Input/output error")

    server = Server(Served(SPEC, "", (), False), tmp_path, lambda _: None)
    server._obey(io.BufferedReader(Broken()), None)
