from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpctl.errors import BadDataError
from dpctl.model import ListedDevice, PluginOptions, SocketState
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.pluginregistration.v1 import pluginregistration_pb2 as registration
from dpctl.sources.plugin_sockets import (
    list_directory,
    parse_devices_json,
    parse_options_json,
    probe_sockets,
)
from tests.fakes.grpc_sockets import (
    INFO,
    LIST,
    OPTIONS,
    dead,
    fail,
    listening,
    serving,
    short_directory,
    slow,
)

DATA = Path(__file__).parent.parent / "data"
BOTH = pb.DevicePluginOptions(
    pre_start_required=True, get_preferred_allocation_available=True
).SerializeToString()
PLUGIN = registration.PluginInfo(
    type="DevicePlugin", name="v.example/gpu", endpoint="", supported_versions=["v1beta1"]
).SerializeToString()
DEVICE_PLUGIN = "/v1beta1.DevicePlugin"


@pytest.fixture
def top():
    with short_directory() as path:
        yield path


def probe(top: Path, timeout: float = 2.0):
    return {s.endpoint: s for s in probe_sockets(list_directory(str(top)), timeout=timeout)}


def test_only_harmless_calls_are_made(top):
    everything = {
        f"{DEVICE_PLUGIN}/{name}": b""
        for name in ("ListAndWatch", "Allocate", "PreStartContainer", "GetPreferredAllocation")
    } | {
        "/pluginregistration.Registration/NotifyRegistrationStatus": b"",
        "/v1beta1.Registration/Register": b"",
        OPTIONS: BOTH,
        INFO: PLUGIN,
    }
    with serving(top / "p.sock", everything) as recorder:
        found = probe(top)["p.sock"]
    assert found.state is SocketState.SERVING
    assert found.options == PluginOptions(True, True)
    assert found.info is not None
    assert (found.info.type, found.info.name) == ("DevicePlugin", "v.example/gpu")
    assert found.detail is None
    assert recorder.methods == [OPTIONS, INFO]
    assert recorder.authorities == {b"localhost"}


def test_most_plugins_have_no_info(top):
    with serving(top / "p.sock", {OPTIONS: b""}):
        found = probe(top)["p.sock"]
    assert found.state is SocketState.SERVING
    assert found.options == PluginOptions(False, False)
    assert found.info is None


def test_kubelet_sock_is_never_probed_under_any_name(top):
    with serving(top / "kubelet.sock", {}) as recorder:
        os.link(top / "kubelet.sock", top / "other.sock")
        assert probe(top) == {}
    assert recorder.methods == []


def test_links_are_not_followed(top):
    with short_directory() as elsewhere, serving(elsewhere / "x.sock", {OPTIONS: b""}) as recorder:
        (top / "x.sock").symlink_to(elsewhere / "x.sock")
        listing = list_directory(str(top))
        assert probe_sockets(listing, timeout=1) == ()
        # put in place of a socket after the listing
        (top / "x.sock").unlink()
        dead(top / "x.sock")
        listing = list_directory(str(top))
        (top / "x.sock").unlink()
        (top / "x.sock").symlink_to(elsewhere / "x.sock")
        (found,) = probe_sockets(listing, timeout=1)
    assert found.state is SocketState.GONE
    assert recorder.methods == []


def test_names_that_decode_into_another_path(top):
    outside = top.parent / f"{top.name}-evil.sock"
    with serving(outside, {OPTIONS: BOTH}) as evil:
        name = f"%2e%2e%2f{outside.name}"
        dead(top / name)
        dead(os.fsencode(top) + b"/\xff#?.sock")
        found = probe(top)
    assert evil.methods == []
    assert {s.state for s in found.values()} == {SocketState.DEAD}
    assert set(found) == {name, "\udcff#?.sock"}


def test_sub_directories(top):
    (top / "sub").mkdir()
    with serving(top / "sub" / "x.sock", {OPTIONS: b""}):
        assert probe(top)["sub/x.sock"].state is SocketState.SERVING


STATES = [
    ({OPTIONS: fail("UNKNOWN", "boom")}, SocketState.SERVING, "UNKNOWN: boom"),
    ({OPTIONS: fail("UNAVAILABLE", "driver not ready")}, SocketState.SERVING, "driver not ready"),
    ({OPTIONS: b"\xff"}, SocketState.SERVING, "cannot be decoded"),
    ({OPTIONS: b"x" * (30 << 20)}, SocketState.SERVING, "larger than max"),
    ({OPTIONS: slow(20)}, SocketState.HUNG, "did not answer the call"),
    ({"/x.Y/Z": b""}, SocketState.WRONG_SERVICE, "another service"),
    ({INFO: PLUGIN}, SocketState.WRONG_SERVICE, "registration socket of DevicePlugin v.example"),
    ({LIST: b""}, SocketState.WRONG_SERVICE, "PodResources of a kubelet"),
    ({LIST: b"x" * (1 << 20)}, SocketState.WRONG_SERVICE, "PodResources of a kubelet"),
]


@pytest.mark.parametrize(("methods", "state", "words"), STATES)
def test_what_grpc_servers_answer(top, methods, state, words):
    with serving(top / "p.sock", methods):
        found = probe(top)["p.sock"]
    assert found.state is state
    assert words in (found.detail or "")
    assert found.options is None


def preface(connection: socket.socket) -> None:
    connection.sendall(b"\0\0\0\4\0\0\0\0\0")
    time.sleep(0.3)
    connection.close()


def frames(*sent: bytes):
    """HTTP/2's greeting, then these."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"\0\0\0\4\0\0\0\0\0")
        time.sleep(0.1)
        for frame in sent:
            connection.sendall(frame)

    return talk


def status(number: bytes) -> bytes:
    """HEADERS that end stream 1, with `:status` alone."""
    block = b"\0\7:status\3" + number
    return len(block).to_bytes(3, "big") + b"\1\5\0\0\0\1" + block


@pytest.mark.parametrize(
    ("talk", "state", "words"),
    [
        (
            lambda c: c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            SocketState.NOT_GRPC,
            "HTTP/1.1",
        ),
        (lambda c: c.sendall(b"\x15\x03\x03\0\2\2\x28"), SocketState.NOT_GRPC, "\\x15\\x03"),
        (lambda c: c.close(), SocketState.UNKNOWN, "closed the connection"),
        (lambda c: c.recv(100), SocketState.HUNG, "said nothing"),
        (lambda c: c.sendall(b"\0\0"), SocketState.HUNG, "nothing more"),
        (preface, SocketState.UNKNOWN, "broke off during the call"),
        (frames(b"\0\0\4\3\0\0\0\0\1\0\0\0\7"), SocketState.UNKNOWN, "error code 7"),
        (frames(*[b"\0\x40\0\0\0\0\0\0\1" + b"x" * 16384] * 8), SocketState.UNKNOWN, "no gRPC"),
        (frames(status(b"503")), SocketState.UNKNOWN, "503"),
        (frames(status(b"404")), SocketState.NOT_GRPC, "404"),
    ],
    ids=[
        "http1",
        "tls",
        "closes",
        "silent",
        "half a frame",
        "breaks off",
        "resets",
        "no headers",
        "a proxy without its plugin",
        "a web server",
    ],
)
def test_other_listeners(top, talk, state, words):
    """NotGRPC is for what no plugin can say: one that hangs up may serve the kubelet alone."""
    with listening(top / "x.sock", talk):
        found = probe(top, timeout=1.0)["x.sock"]
    assert found.state is state
    assert words in (found.detail or "")


def test_full_queue(top):
    with listening(top / "q.sock", backlog=0):
        first = socket.socket(socket.AF_UNIX)
        first.connect(str(top / "q.sock"))
        started = time.monotonic()
        found = probe(top, timeout=0.5)["q.sock"]
        first.close()
    assert found.state is SocketState.HUNG
    assert "queue is full" in (found.detail or "")
    assert time.monotonic() - started < 2


def test_datagram_sockets(top):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(top / "d.sock"))
        assert probe(top)["d.sock"].state is SocketState.NOT_GRPC


def test_a_plugin_that_exits_between_listing_and_connecting(top):
    dead(top / "gone.sock")
    listing = list_directory(str(top))
    (top / "gone.sock").unlink()
    (found,) = probe_sockets(listing, timeout=1)
    assert found.state is SocketState.GONE


def test_500_sockets_that_hang_and_500_dead_ones_cost_a_few_deadlines(top):
    with ExitStack() as stack:
        for number in range(500):
            dead(top / f"dead-{number}.sock")
            hung = stack.enter_context(socket.socket(socket.AF_UNIX))
            hung.bind(str(top / f"hung-{number}.sock"))
            hung.listen(1)
        stack.enter_context(serving(top / "zz-good.sock", {OPTIONS: b""}))
        started = time.monotonic()
        found = probe(top, timeout=0.5)
        assert time.monotonic() - started < 5
    states = [s.state for s in found.values()]
    assert states.count(SocketState.DEAD) == 500
    assert states.count(SocketState.HUNG) == 500
    assert found["zz-good.sock"].state is SocketState.SERVING


def test_many_that_speak_http2_and_never_answer(top):
    with ExitStack() as stack:
        for number in range(40):
            stack.enter_context(
                listening(top / f"h{number}.sock", lambda c: c.sendall(b"\0\0\0\4\0\0\0\0\0"))
            )
        started = time.monotonic()
        found = probe(top, timeout=0.4)
        assert time.monotonic() - started < 6
    assert {s.state for s in found.values()} <= {SocketState.HUNG, SocketState.UNKNOWN}


def test_no_rights(top):
    program = (
        "import os, sys\n"
        "from dpctl.sources.plugin_sockets import list_directory, probe_sockets\n"
        "listing = list_directory(sys.argv[1])\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "for s in probe_sockets(listing, timeout=2):\n"
        "    print(s.state, s.detail)\n"
    )
    with serving(top / "p.sock", {OPTIONS: b""}):
        (top / "p.sock").chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", program, str(top)], capture_output=True, text=True, timeout=60
        )
    assert done.stdout.startswith("NoRights permission denied"), done
    assert "srwxr-xr-x, owner 0:0" in done.stdout
    assert done.stderr == ""


def test_recorded_options():
    assert parse_options_json(b"{}") == PluginOptions(False, False)
    assert parse_options_json(b'{"preStartRequired":true}') == PluginOptions(True, False)
    assert parse_options_json(b'{"get_preferred_allocation_available":true,"x":1}') == (
        PluginOptions(False, True)
    )
    for data in (b"", b"[]", b'{"preStartRequired":"yes"}'):
        with pytest.raises(BadDataError):
            parse_options_json(data)


def test_recorded_devices():
    read = {
        name: parse_devices_json((DATA / "inputs" / f"listandwatch-{name}.json").read_bytes())
        for name in ("empty", "mig-grpcurl", "sriov")
    }
    assert read["empty"] == ()
    assert [d.numa_nodes for d in read["mig-grpcurl"]] == [(6,), (0,), (4,), None, (1,)]
    broken = ListedDevice("MIG-00000005-1111-5222-8333-000000000005", "Unhealthy", (1,))
    assert read["mig-grpcurl"][-1] == broken
    assert len(read["sriov"]) == 8
    assert parse_devices_json(b'{"devices":[{"ID":"a"},{"ID":"a","health":"weird"}]}') == (
        ListedDevice("a", "", None),
        ListedDevice("a", "weird", None),
    )
    for data in (b"", b"[]", b'{"items":[]}', b'{"devices":[{"ID":3}]}'):
        with pytest.raises(BadDataError):
            parse_devices_json(data)
