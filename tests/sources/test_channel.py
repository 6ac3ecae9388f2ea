from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from dpctl.errors import DeniedError, DpctlError, PeerError, UnreachableError
from dpctl.sources.channel import CallFailed, open_channel, translate_error
from tests.fakes.grpc_sockets import (
    LIST,
    as_nobody,
    dead,
    fail,
    listening,
    serving,
    short_directory,
    slow,
)

METHOD = "/a.B/C"
MIB = 1 << 20


def call(path: str, timeout: float = 3.0, size: int = MIB) -> bytes:
    with open_channel(path, max_message_size=size) as peer:
        try:
            return peer.call(METHOD, b"q", timeout=timeout)
        except CallFailed as e:
            raise translate_error(peer, e, METHOD, timeout) from e


@pytest.fixture
def top():
    with short_directory() as path:
        yield path


@pytest.mark.parametrize(
    "name",
    [
        b"plain.sock",
        b"%2e%2e%2fevil.sock",
        b"a#b.sock",
        b"a?b=c.sock",
        b"with space.sock",
        b"bad\xff\xfe.sock",
        "ünïcødé-🚀.sock".encode(),
        b"@x",
        b"-n",
        b"new\nline.sock",
        b"%",
    ],
)
def test_any_name_is_reached_and_the_authority_is_localhost(top, name):
    path = os.fsencode(top) + b"/" + name
    # where the encoded names would lead if somebody decoded them
    with (
        serving(top.parent / f"{top.name}-evil", {METHOD: b"evil"}),
        serving(path, {METHOD: lambda request, _: b"got " + request}) as recorder,
    ):
        assert call(os.fsdecode(path)) == b"got q"
    assert recorder.authorities == {b"localhost"}


def test_the_encoded_path_works_too_without_proc(top, monkeypatch):
    path = os.fsencode(top) + b"/%2e%2e%2fe#v?i l\xff.sock"
    with serving(path, {METHOD: b"ok"}) as recorder:
        monkeypatch.setattr("dpctl.sources.channel.os.path.exists", lambda _: False)
        assert call(os.fsdecode(path)) == b"ok"
        assert recorder.authorities == {b"localhost"}


def test_long_paths_are_reached_or_said_to_be_too_long(top, monkeypatch):
    deep = top
    for _ in range(4):
        deep = deep / ("d" * 100)
    deep.mkdir(parents=True)
    path = deep / "kubelet.sock"
    with serving(str(path), {METHOD: b"ok"}):
        assert call(str(path)) == b"ok"
        monkeypatch.setattr("dpctl.sources.channel.os.path.exists", lambda _: False)
        with pytest.raises(
            UnreachableError, match=r"bytes long, a unix socket's path may have 107"
        ):
            call(str(path))


def test_relative_paths(top, monkeypatch):
    monkeypatch.chdir(top)
    with serving(top / "r.sock", {METHOD: b"ok"}):
        assert call("r.sock") == b"ok"


def test_links_are_followed_only_where_the_user_named_them(top):
    (top / "link.sock").symlink_to("real.sock")
    with serving(top / "real.sock", {METHOD: b"ok"}):
        assert call(str(top / "link.sock")) == b"ok"
        with (
            pytest.raises(UnreachableError, match="is a symbolic link, not a socket"),
            open_channel(str(top / "link.sock"), max_message_size=MIB, follow=False),
        ):
            pass


def test_proxies_of_the_environment_are_not_asked(top, monkeypatch):
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(top / "p.sock", {METHOD: b"ok"}):
        assert call(str(top / "p.sock")) == b"ok"


def test_no_socket(top):
    with pytest.raises(UnreachableError, match="does not exist"):
        call(str(top / "no.sock"))
    (top / "file").touch()
    with pytest.raises(UnreachableError, match="is a regular file, not a socket"):
        call(str(top / "file"))
    with pytest.raises(UnreachableError, match="is a directory, not a socket"):
        call(str(top))


def test_dead_socket(top):
    dead(top / "d.sock")
    with pytest.raises(UnreachableError, match="nobody listens behind that file") as caught:
        call(str(top / "d.sock"))
    assert "systemctl status kubelet" in (caught.value.hint or "")


@pytest.mark.parametrize("backlog", [16, 0])
def test_silence_ends_with_the_deadline(top, backlog):
    with listening(top / "s.sock", backlog=backlog):
        started = time.monotonic()
        with pytest.raises(UnreachableError) as caught:
            call(str(top / "s.sock"), timeout=0.6)
        assert time.monotonic() - started < 3
    assert "did not answer C within 0.6 s" in caught.value.message
    assert "--request-timeout" in (caught.value.hint or "")


def test_a_call_that_never_ends(top):
    with (
        serving(top / "s.sock", {METHOD: slow(20)}),
        pytest.raises(UnreachableError, match="did not answer C within"),
    ):
        call(str(top / "s.sock"), timeout=0.5)


def test_another_protocol(top):
    with (
        listening(top / "h.sock", lambda c: c.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")),
        pytest.raises(UnreachableError, match="speaks no gRPC"),
    ):
        call(str(top / "h.sock"), timeout=1.5)


def test_answers_are_bounded(top):
    with serving(top / "b.sock", {METHOD: b"x" * (30 * MIB)}):
        with pytest.raises(
            PeerError, match="the answer to C is 30 MiB, dpctl takes 1 MiB"
        ) as caught:
            call(str(top / "b.sock"))
        assert "--max-message-size" in (caught.value.hint or "")
        assert len(call(str(top / "b.sock"), timeout=20, size=64 * MIB)) == 30 * MIB
        assert len(call(str(top / "b.sock"), timeout=20, size=1 << 40)) == 30 * MIB


def test_rate_limit_is_waited_for_inside_the_deadline(top):
    calls = []

    def limited(request, context):
        calls.append(time.monotonic())
        if len(calls) < 4:
            return fail("RESOURCE_EXHAUSTED", "rejected by rate limit")(request, context)
        return b"ok"

    with serving(top / "l.sock", {METHOD: limited}):
        assert call(str(top / "l.sock"), timeout=5) == b"ok"
        assert len(calls) == 4


def test_rate_limit_that_does_not_end(top):
    with serving(top / "l.sock", {METHOD: fail("RESOURCE_EXHAUSTED", "rejected by rate limit")}):
        started = time.monotonic()
        with pytest.raises(PeerError, match="rate limit"):
            call(str(top / "l.sock"), timeout=0.8)
        assert time.monotonic() - started < 2


def test_errors_of_the_peer(top):
    with serving(top / "e.sock", {METHOD: fail("UNKNOWN", "boom\x1b[2J" + "x" * 5000)}):
        with pytest.raises(PeerError, match="answered C with UNKNOWN: boom") as caught:
            call(str(top / "e.sock"))
        assert len(caught.value.message) < 1000
    with (
        serving(top / "u.sock", {METHOD: fail("UNAVAILABLE", "driver not ready")}),
        pytest.raises(PeerError, match="answered C with UNAVAILABLE: driver not ready"),
    ):
        call(str(top / "u.sock"))
    with (
        serving(top / "p.sock", {METHOD: fail("PERMISSION_DENIED", "go away")}),
        pytest.raises(DeniedError, match="go away"),
    ):
        call(str(top / "p.sock"))


def test_no_rights_on_the_socket():
    # grpc must not be used before a fork, so the child is a program of its own.
    program = (
        "import sys\n"
        "from tests.sources.test_channel import call\n"
        "from dpctl.errors import DpctlError\n"
        "import os, grpc; os.setgid(65534); os.setuid(65534)\n"
        "try: call(sys.argv[1])\n"
        "except DpctlError as e: print(type(e).__name__, e.message, '|', e.hint)\n"
    )
    with short_directory() as top, serving(top / "n.sock", {METHOD: b"ok"}):
        (top / "n.sock").chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", program, str(top / "n.sock")],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.stdout.startswith("DeniedError permission denied"), done
    assert "srwxr-xr-x, owner 0:0" in done.stdout
    assert "needs its `w` permission" in done.stdout
    assert "uid 65534" in done.stdout
    assert done.stderr == ""


def test_grpc_says_nothing_on_stderr(top):
    dead(top / "d.sock")
    program = (
        "import sys\n"
        "from dpctl.errors import DpctlError\n"
        "from dpctl.sources.podresources import list_pod_resources\n"
        "for path in sys.argv[1:]:\n"
        "    try: list_pod_resources(path, timeout=0.5, max_message_size=1000)\n"
        "    except DpctlError as e: print('said')\n"
    )
    with (
        listening(top / "h.sock", lambda c: c.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")),
        listening(top / "s.sock"),
        serving(top / "b.sock", {LIST: b"x" * (2 * MIB)}),
        serving(top / "u.sock", {LIST: b"\xff"}),
    ):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                program,
                *(str(top / f"{name}.sock") for name in ("d", "h", "s", "b", "u")),
            ],
            env={k: v for k, v in os.environ.items() if not k.startswith("GRPC_")},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.stdout == "said\n" * 5
    assert done.stderr == ""


def test_descriptors_are_given_back(top):
    with serving(top / "f.sock", {METHOD: b"ok"}):
        call(str(top / "f.sock"))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            call(str(top / "f.sock"))
        time.sleep(0.3)
        assert len(os.listdir("/proc/self/fd")) <= before + 6


def test_as_nobody_really_is():
    assert as_nobody(lambda: str(os.geteuid())) == "65534"
    assert issubclass(DeniedError, DpctlError)


def test_verbosity_is_set_before_grpc_loads_unless_the_user_did():
    program = (
        "import os, sys\n"
        "from dpctl.sources import channel, plugin_sockets, podresources, registry\n"
        "heavy = [m for m in ('grpc', 'google.protobuf') if m in sys.modules]\n"
        "channel.load_grpc()\n"
        "print(heavy, os.environ['GRPC_VERBOSITY'])\n"
    )
    plain = {k: v for k, v in os.environ.items() if not k.startswith("GRPC_")}
    said = [
        subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        ).stdout
        for env in (plain, plain | {"GRPC_VERBOSITY": "debug"})
    ]
    assert said == ["[] NONE\n", "[] debug\n"]
