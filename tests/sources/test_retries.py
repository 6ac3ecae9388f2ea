"""What is sent once more and what is not, against a real HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpctl.errors import BadDataError, PeerError, UnreachableError
from dpctl.sources import retries
from dpctl.sources.apiserver import Api, connect
from dpctl.sources.retries import LostError, wait_after
from tests.fakes import api_server as fake
from tests.fakes.kubeconfigs import NODE, NODE_PATH, env_for, kubeconfig

STATUS = f"{NODE_PATH}/status"
GOOD = fake.json_reply(NODE)


@pytest.fixture
def server() -> Iterator[fake.Server]:
    with fake.running() as running:
        yield running


@pytest.fixture
def api(tmp_path: Path, server: fake.Server) -> Api:
    return connect(env_for(kubeconfig(tmp_path / "kubeconfig", server.url)))


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_FIRST_WAIT", 0.001)


def cut(handler: fake.Handler) -> None:
    """Half an answer, and the connection is gone."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True


TROUBLE = {
    "429": fake.status(429, "wait"),
    "429 with a time": fake.status(429, "wait", Retry_After="0"),
    "500": fake.status(500, "etcd"),
    "502": fake.status(502, "proxy"),
    "503": fake.status(503, "starting"),
    "504": fake.status(504, "slow"),
    "closed": fake.close,
    "cut off": cut,
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_read_is_asked_again(api: Api, server: fake.Server, trouble: str) -> None:
    server.answer(NODE_PATH, TROUBLE[trouble], TROUBLE[trouble], GOOD)
    assert api.get_node("worker-0").name == "worker-0"
    assert len(server.requests) == 3


@pytest.mark.parametrize("trouble", sorted(set(TROUBLE) - {"429 with a time"}))
def test_a_read_is_not_asked_for_ever(api: Api, server: fake.Server, trouble: str) -> None:
    server.answer(NODE_PATH, TROUBLE[trouble])
    with pytest.raises((PeerError, UnreachableError, BadDataError)):
        api.get_node("worker-0")
    assert len(server.requests) == retries._ATTEMPTS


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 422, 501])
def test_an_answer_that_stands_is_taken(api: Api, server: fake.Server, code: int) -> None:
    server.answer(NODE_PATH, fake.status(code, "no"))
    assert api.connection.exchange("GET", NODE_PATH).status == code
    assert len(server.requests) == 1


@pytest.mark.parametrize("trouble", ["500", "502", "503", "504"])
def test_a_change_that_the_server_failed_is_not_sent_twice(
    api: Api, server: fake.Server, trouble: str
) -> None:
    server.answer(STATUS, TROUBLE[trouble], GOOD)
    answer = api.connection.exchange("PATCH", STATUS, body=b"[]")
    assert (answer.status, len(server.requests)) == (int(trouble), 1)


@pytest.mark.parametrize("trouble", ["closed", "cut off"])
def test_a_change_whose_answer_was_lost_is_said_to_be_in_doubt(
    api: Api, server: fake.Server, trouble: str
) -> None:
    server.answer(STATUS, TROUBLE[trouble], GOOD)
    with pytest.raises(LostError):
        api.connection.exchange("PATCH", STATUS, body=b"[]")
    assert len(server.requests) == 1


def test_a_change_that_was_not_answered_in_time_is_in_doubt(
    tmp_path: Path, server: fake.Server
) -> None:
    env = env_for(kubeconfig(tmp_path / "kubeconfig", server.url), request_timeout=0.3)
    server.answer(STATUS, fake.hang)
    with pytest.raises(LostError, match="did not answer within"):
        connect(env).connection.exchange("PATCH", STATUS, body=b"[]")


def test_a_change_that_never_left_is_not_in_doubt(tmp_path: Path) -> None:
    api = connect(env_for(kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")))
    with pytest.raises(UnreachableError, match="refused") as e:
        api.connection.exchange("PATCH", STATUS, body=b"[]")
    assert not isinstance(e.value, LostError)


@pytest.mark.parametrize("trouble", ["429", "429 with a time"])
def test_a_change_that_was_turned_away_is_sent_again(
    api: Api, server: fake.Server, trouble: str
) -> None:
    server.answer(STATUS, TROUBLE[trouble], GOOD)
    assert api.connection.exchange("PATCH", STATUS, body=b"[]").status == 200
    assert server.methods == ["PATCH", "PATCH"]


def test_a_review_may_be_repeated(api: Api, server: fake.Server) -> None:
    server.answer("/review", TROUBLE["closed"], GOOD)
    answer = api.connection.exchange("POST", "/review", body=b"{}", repeatable=True)
    assert (answer.status, server.methods) == (200, ["POST", "POST"])


def test_a_time_beyond_the_deadline_is_not_waited_for(tmp_path: Path, server: fake.Server) -> None:
    path = kubeconfig(tmp_path / "kubeconfig", server.url)
    server.answer(NODE_PATH, fake.status(429, "wait", Retry_After="30"))
    answer = connect(env_for(path)).connection.exchange("GET", NODE_PATH)
    assert (answer.status, len(server.requests)) == (429, 1)


def test_patience_outlasts_the_timeout_of_one_request(tmp_path: Path, server: fake.Server) -> None:
    env = env_for(kubeconfig(tmp_path / "kubeconfig", server.url), request_timeout=0.5)
    server.answer(STATUS, fake.status(429, "wait", Retry_After="1"), GOOD)
    assert connect(env).connection.exchange("PATCH", STATUS, body=b"[]").status == 429
    server.answer(STATUS, fake.status(429, "wait", Retry_After="1"), GOOD)
    patient = connect(env, patience=60)
    assert patient.connection.exchange("PATCH", STATUS, body=b"[]").status == 200


@pytest.mark.parametrize("named", [None, "", "soon", "-1", "1.5", "9" * 7])
def test_waits_grow_and_end(named: str | None) -> None:
    waits = [wait_after(429, named, attempt=a, repeatable=False) for a in range(1, 7)]
    assert waits[-1] is None
    for step, wait in enumerate(waits[:-1]):
        assert wait is not None
        assert retries._FIRST_WAIT * 2**step / 2 <= wait <= retries._FIRST_WAIT * 2**step


def test_a_named_time_is_kept_with_some_jitter_and_a_bound() -> None:
    for named, least in (("1", 1.0), ("7", 7.0), ("99999", 60.0)):
        wait = wait_after(429, named, attempt=50, repeatable=False)
        assert wait is not None
        assert least <= wait <= least * 1.1


def test_connections_are_kept_and_bounded(tmp_path: Path, server: fake.Server) -> None:
    """Many requests by many threads, over as many connections as there are threads at most."""
    seen: set[tuple[str, int]] = set()
    lock = threading.Lock()

    def reply(handler: fake.Handler) -> None:
        with lock:
            seen.add(handler.client_address)
        GOOD(handler)

    server.answer(NODE_PATH, reply)
    api = connect(env_for(kubeconfig(tmp_path / "kubeconfig", server.url)), connections=12)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: api.get_node("worker-0"), range(200)))
    assert len(seen) <= 12
