"""Reading a real HTTP(S) server that speaks the API, well and badly."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.errors import (
    BadDataError,
    DeniedError,
    ExitCode,
    PeerError,
    UnreachableError,
    UsageError,
)
from dpctl.sources.apiserver import Api, connect
from dpctl.writes.node_status import patch_node_status
from dpctl.writes.pods import delete_pod
from tests.fakes import api_server as fake
from tests.fakes.kubeconfigs import NODE, NODE_PATH, env_for, headers_of, kubeconfig

PODS_PATH = "/api/v1/pods"
CLASSES = "/apis/resource.k8s.io/{}/deviceclasses"


def pod(number: int) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ml", "name": f"p{number}", "uid": f"u{number}"},
        "spec": {"nodeName": "worker-0", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


@pytest.fixture
def server() -> Iterator[fake.Server]:
    with fake.running() as running:
        yield running


@pytest.fixture
def api(tmp_path: Path, server: fake.Server) -> Api:
    return connect(env_for(kubeconfig(tmp_path / "kubeconfig", server.url)))


# --- what works ---


def test_a_node_is_read_with_the_token(api: Api, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.json_reply(NODE))
    node = api.get_node("worker-0")
    assert (node.name, node.capacity) == ("worker-0", {"vendor.example/gpu": "4"})
    assert headers_of(server, "Authorization") == ["Bearer secret"]
    assert headers_of(server, "User-Agent")[0].startswith("dpctl/")


def test_pods_come_page_by_page(api: Api, server: fake.Server) -> None:
    first = {"kind": "PodList", "metadata": {"continue": "t/1="}, "items": [pod(1), pod(2)]}
    last = {"kind": "PodList", "metadata": {}, "items": [pod(3)]}
    server.answer(PODS_PATH, fake.json_reply(first), fake.json_reply(last))
    assert [p.name for p in api.list_pods("worker-0")] == ["p1", "p2", "p3"]
    selector = {"fieldSelector": "spec.nodeName=worker-0", "limit": "500"}
    assert [r[1] for r in server.requests] == [selector, {**selector, "continue": "t/1="}]


def test_an_expired_page_token_starts_the_list_again(api: Api, server: fake.Server) -> None:
    first = {"metadata": {"continue": "t"}, "items": [pod(1)]}
    server.answer(
        PODS_PATH,
        fake.json_reply(first),
        fake.status(410, "The provided continue parameter is too old"),
        fake.json_reply(first),
        fake.json_reply({"items": [pod(2)]}),
    )
    assert [p.name for p in api.list_pods("worker-0")] == ["p1", "p2"]
    assert ["continue" in r[1] for r in server.requests] == [False, True, False, True]


def test_a_list_that_expires_for_ever_is_given_up(api: Api, server: fake.Server) -> None:
    def reply(handler: fake.Handler) -> None:
        if "continue" in handler.query:
            fake.status(410, "too old")(handler)
        else:
            fake.json_reply({"metadata": {"continue": "t"}, "items": []})(handler)

    server.answer(PODS_PATH, reply)
    with pytest.raises(PeerError, match="expired 3 times"):
        api.list_pods("worker-0")


def numbered(count: int, wait: float = 0.0) -> fake.Reply:
    """Pages of `count` items, each with a token of its own."""
    numbers = itertools.count()

    def reply(handler: fake.Handler) -> None:
        handler.server.release.wait(wait)
        metadata = {"continue": f"t{next(numbers)}"}
        fake.json_reply({"metadata": metadata, "items": [pod(1)] * count})(handler)

    return reply


def test_a_list_without_an_end_is_given_up(
    api: Api, server: fake.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpctl.sources.pages._MOST_PAGES", 5)
    server.answer(PODS_PATH, numbered(1))
    with pytest.raises(BadDataError, match="does not end"):
        api.list_pods("worker-0")
    assert len(server.requests) == 5


def test_a_list_of_empty_pages_is_given_up(api: Api, server: fake.Server) -> None:
    server.answer(PODS_PATH, numbered(0))
    with pytest.raises(BadDataError, match="does not end") as e:
        api.list_pods("worker-0")
    assert len(server.requests) == 10
    assert e.value.hint


def test_a_list_is_bounded_in_bytes(tmp_path: Path, server: fake.Server) -> None:
    server.answer(PODS_PATH, numbered(100))
    path = kubeconfig(tmp_path / "k", server.url)
    with pytest.raises(BadDataError, match=r"the list .* is larger than 100000 bytes") as e:
        connect(env_for(path, max_message_size=100_000)).list_pods("worker-0")
    assert "--max-message-size" in (e.value.hint or "")


def test_a_list_is_bounded_in_time(tmp_path: Path, server: fake.Server) -> None:
    server.answer(PODS_PATH, numbered(1, 0.1))
    path = kubeconfig(tmp_path / "k", server.url)
    with pytest.raises(UnreachableError, match=r"end of the list /api/v1/pods within 1\.2 s"):
        connect(env_for(path, request_timeout=0.2)).list_pods("worker-0")


def test_a_page_token_that_is_no_text(api: Api, server: fake.Server) -> None:
    first = fake.raw(b'{"metadata": {"continue": "\\ud800"}, "items": []}')
    server.answer(PODS_PATH, first, fake.json_reply({"items": [pod(1)]}))
    assert [p.name for p in api.list_pods("worker-0")] == ["p1"]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_device_classes_of_the_newest_version_served(
    api: Api, server: fake.Server, version: str
) -> None:
    item = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "vendor.example/gpu"}}
    server.answer(CLASSES.format(version), fake.json_reply({"items": [item]}))
    (found,) = api.list_device_classes()
    assert (found.name, found.extended_resource_name) == ("gpu", "vendor.example/gpu")


def test_no_device_class_api_is_no_class(api: Api) -> None:
    assert api.list_device_classes() == ()


# --- refusals ---


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"),
    [
        (401, DeniedError, ExitCode.DENIED),
        (403, DeniedError, ExitCode.DENIED),
        (404, PeerError, ExitCode.PEER),
        (429, PeerError, ExitCode.PEER),
        (500, PeerError, ExitCode.PEER),
        (503, PeerError, ExitCode.PEER),
    ],
)
def test_a_refusal_says_who_and_why(
    api: Api, server: fake.Server, code: int, kind: type[PeerError], exit_code: ExitCode
) -> None:
    server.answer(NODE_PATH, fake.status(code, "because\x1b[31m of that"))
    with pytest.raises(kind) as e:
        api.get_node("worker-0")
    assert e.value.code == exit_code
    assert server.url in e.value.message
    assert e.value.hint
    if code != 404:
        assert "because\x1b[31m of that" in e.value.message


def test_403_names_the_missing_right(api: Api, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.status(403, 'User "u" cannot get resource "nodes"'))
    server.answer(CLASSES.format("v1"), fake.status(403, "no"))
    with pytest.raises(DeniedError, match="right to get nodes worker-0") as e:
        api.get_node("worker-0")
    assert '{apiGroups: [""], resources: ["nodes"], verbs: ["get"]}' in (e.value.hint or "")
    with pytest.raises(DeniedError, match=r"list deviceclasses\.resource\.k8s\.io") as e:
        api.list_device_classes()
    assert '["resource.k8s.io"]' in (e.value.hint or "")


def test_403_with_a_nodes_own_credentials(api: Api, server: fake.Server) -> None:
    server.answer(PODS_PATH, fake.status(403, 'User "system:node:worker-1" cannot list pods'))
    with pytest.raises(DeniedError) as e:
        api.list_pods("worker-0")
    assert "a node's own credentials" in (e.value.hint or "")


def test_404_names_the_node_and_where_the_name_came_from(api: Api) -> None:
    with pytest.raises(PeerError, match=r"no Node worker-9 \(the name is from: host name\)") as e:
        api.get_node("worker-9", origin="host name")
    assert "--node" in (e.value.hint or "")


@pytest.mark.parametrize(
    "name", ["", "..", "a/../b", "a%2fb", "UPPER", "a" * 254, "a\n", "\udcff", "a,b=c"]
)
def test_a_name_that_no_node_has_is_not_sent(api: Api, server: fake.Server, name: str) -> None:
    with pytest.raises(UsageError, match="no Node can be called"):
        api.get_node(name)
    with pytest.raises(UsageError, match="no Node can be called"):
        api.list_pods(name)
    assert server.requests == []


def test_a_busy_server_is_asked_again_in_time(api: Api, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.status(429, "slow down", Retry_After="1"), fake.json_reply(NODE))
    started = time.monotonic()
    assert api.get_node("worker-0").name == "worker-0"
    assert time.monotonic() - started >= 1


def test_a_busy_server_is_not_waited_for_past_the_timeout(api: Api, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.status(429, "slow down", Retry_After="30"))
    started = time.monotonic()
    with pytest.raises(PeerError, match="too busy"):
        api.get_node("worker-0")
    assert time.monotonic() - started < 2
    assert len(server.requests) == 1


def test_redirects_are_not_followed(api: Api, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.raw(b"", 302, Location="http://login.example/"))
    with pytest.raises(PeerError, match=r"redirects to http://login\.example/"):
        api.get_node("worker-0")


def test_a_proxys_page_is_not_printed(api: Api, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.raw(b"<html>" + b"x" * 5000, 502))
    with pytest.raises(PeerError, match="status 502") as e:
        api.get_node("worker-0")
    assert "html" not in e.value.message


# --- credentials that wear out ---


def test_a_token_that_ran_out_is_loaded_again(tmp_path: Path, server: fake.Server) -> None:
    path = kubeconfig(tmp_path / "k", server.url, {"token": "old"})
    api = connect(env_for(path))

    def reply(handler: fake.Handler) -> None:
        accepted = {"Bearer new"} if len(server.requests) > 1 else {"Bearer old"}
        if handler.headers["Authorization"] in accepted:
            fake.json_reply(NODE)(handler)
        else:
            fake.status(401, "Unauthorized")(handler)

    server.answer(NODE_PATH, reply)
    api.get_node("worker-0")
    kubeconfig(tmp_path / "k", server.url, {"token": "new"})
    api.get_node("worker-0")
    assert len(server.requests) == 3


def test_credentials_refused_from_the_start_are_not_tried_twice(
    api: Api, server: fake.Server
) -> None:
    server.answer(NODE_PATH, fake.status(401, "Unauthorized"))
    with pytest.raises(DeniedError):
        api.get_node("worker-0")
    assert len(server.requests) == 1


# --- transport ---


def failing(
    path: Path, server: fake.Server, reply: fake.Reply, **settings: Any
) -> Callable[[], Any]:
    server.answer(NODE_PATH, reply)
    api = connect(env_for(kubeconfig(path / "k", server.url), **settings))
    return lambda: api.get_node("worker-0")


@pytest.mark.parametrize("reply", [fake.hang, fake.drip])
def test_an_answer_that_does_not_come_in_time(
    tmp_path: Path, server: fake.Server, reply: fake.Reply
) -> None:
    read = failing(tmp_path, server, reply, request_timeout=0.5)
    started = time.monotonic()
    with pytest.raises(UnreachableError, match=r"did not answer within 0\.5 s") as e:
        read()
    assert time.monotonic() - started < 2
    assert "--request-timeout" in (e.value.hint or "")


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def dripping(start: bytes, part: bytes) -> fake.Reply:
    def reply(handler: fake.Handler) -> None:
        handler.wfile.write(start)
        while not handler.server.release.wait(0.05):
            handler.wfile.write(part)

    return reply


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("start", "part"),
    [
        (b"HTTP/1.1 200 ", b"O"),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (HEAD, b"0"),
        (HEAD + b"2\r\n{}\r\n0\r\n", b"X: y\r\n"),
        (b"HTTP/1.0 200 OK\r\n\r\n{}", b" "),
    ],
)
def test_an_answer_that_drips_outside_of_its_body(
    tmp_path: Path, server: fake.Server, start: bytes, part: bytes, kept: bool
) -> None:
    server.answer(NODE_PATH, fake.json_reply(NODE), dripping(start, part))
    api = connect(env_for(kubeconfig(tmp_path / "k", server.url), request_timeout=0.5))
    if kept:  # on a connection that is open already
        api.get_node("worker-0")
    else:
        server.routes[NODE_PATH].pop(0)
    started = time.monotonic()
    with pytest.raises(UnreachableError, match=r"did not answer within 0\.5 s"):
        api.get_node("worker-0")
    assert time.monotonic() - started < 2


def test_a_tls_handshake_that_drips(tmp_path: Path) -> None:
    done = threading.Event()

    def serve(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"\x16\x03\x03\x40\x00")  # a record of 16 KiB
            while not done.wait(0.05):
                peer.sendall(b"\x02")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        api = connect(env_for(kubeconfig(tmp_path / "k", url), request_timeout=0.5))
        started = time.monotonic()
        with pytest.raises(UnreachableError, match=r"did not answer within 0\.5 s"):
            api.get_node("worker-0")
        assert time.monotonic() - started < 2
        done.set()


def test_no_descriptor_is_left_behind(api: Api, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.json_reply(NODE))
    api.get_node("worker-0")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        api.get_node("worker-0")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_connection_closed_without_an_answer(tmp_path: Path, server: fake.Server) -> None:
    with pytest.raises(UnreachableError, match=r"closed the connection|reset"):
        failing(tmp_path, server, fake.close)()


def test_a_body_that_breaks_off(tmp_path: Path, server: fake.Server) -> None:
    with pytest.raises(BadDataError, match="broke off"):
        failing(tmp_path, server, fake.raw(b'{"kind":', length=1000))()


@pytest.mark.parametrize("body", [b"nonsense", b"", b"\xff\xfe", b'{"a":' * 20000, b"[1", b"7"])
def test_a_body_that_is_no_json(tmp_path: Path, server: fake.Server, body: bytes) -> None:
    with pytest.raises(BadDataError, match="the answer of") as e:
        failing(tmp_path, server, fake.raw(body))()
    assert e.value.code == ExitCode.BAD_DATA


@pytest.mark.parametrize("reply", [fake.endless, fake.raw(b" ", length=100 << 20)])
def test_a_body_past_the_limit(tmp_path: Path, server: fake.Server, reply: fake.Reply) -> None:
    read = failing(tmp_path, server, reply, max_message_size=1 << 20)
    with pytest.raises(BadDataError, match="larger than 1048576 bytes") as e:
        read()
    assert "--max-message-size" in (e.value.hint or "")


def test_a_compressed_body_nobody_asked_for(tmp_path: Path, server: fake.Server) -> None:
    with pytest.raises(BadDataError, match="sends gzip"):
        failing(tmp_path, server, fake.raw(b"x", Content_Encoding="gzip"))()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1", "refused"),
        ("https://127.0.0.1:1", "refused"),
        ("http://nowhere.invalid", "cannot be resolved"),
    ],
)
def test_a_server_that_is_not_there(tmp_path: Path, url: str, message: str) -> None:
    path = kubeconfig(tmp_path / "k", url)
    with pytest.raises(UnreachableError, match=message) as e:
        connect(env_for(path)).get_node("worker-0")
    assert url in e.value.message
    assert path in (e.value.hint or "")


@pytest.mark.parametrize("name", ["..", "."])
def test_a_name_never_leads_to_another_path(api: Api, server: fake.Server, name: str) -> None:
    """urllib3 takes dots out of a path, as browsers do."""
    with pytest.raises(BadDataError, match="no object has it"):
        patch_node_status(api, name, [], manager="dpctl")
    with pytest.raises(BadDataError, match="no object has it"):
        delete_pod(api, name, "p", uid="u")
    assert not server.requests
