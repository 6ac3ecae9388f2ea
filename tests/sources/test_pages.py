"""Long lists page by page from a real HTTP server: tokens that expire, lists that change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.errors import BadDataError, PeerError
from dpctl.sources.apiserver import Api, Selection, connect
from tests.fakes import api_server as fake
from tests.fakes.kubeconfigs import env_for, kubeconfig

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"


def node(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"n{number}"}, "status": {"capacity": {"v.example/g": "1"}}}


def pod(number: int) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ml", "name": f"p{number}", "uid": f"u{number}"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


def page(*items: dict[str, Any], token: str = "") -> fake.Reply:
    return fake.json_reply({"metadata": {"continue": token}, "items": list(items)})


def expired(token: str = "") -> fake.Reply:
    body = {"kind": "Status", "message": "too old", "metadata": {"continue": token}}
    return fake.json_reply(body, 410)


@pytest.fixture
def server() -> Iterator[fake.Server]:
    with fake.running() as running:
        yield running


@pytest.fixture
def api(tmp_path: Path, server: fake.Server) -> Api:
    return connect(env_for(kubeconfig(tmp_path / "kubeconfig", server.url)))


def names(api: Api, **selection: Any) -> list[list[str]]:
    return [[n.name for n in found] for found in api.node_pages(Selection(**selection))]


def test_pages_come_one_by_one(api: Api, server: fake.Server) -> None:
    server.answer(NODES, page(node(1), node(2), token="t"), page(node(3)))
    pages = api.node_pages(Selection(labels="pool=gpu", fields="spec.unschedulable=true"))
    assert [n.name for n in next(pages)] == ["n1", "n2"]
    assert len(server.requests) == 1  # the second page is not asked for before it is wanted
    assert [[n.name for n in found] for found in pages] == [["n3"]]
    asked = {"labelSelector": "pool=gpu", "fieldSelector": "spec.unschedulable=true"}
    assert server.requests[1][1] == {**asked, "limit": "500", "continue": "t"}


def test_nodes_go_on_behind_an_expired_page(api: Api, server: fake.Server) -> None:
    server.answer(NODES, page(node(1), token="t"), expired("fresh"), page(node(2)))
    assert names(api) == [["n1"], ["n2"]]
    assert [r[1].get("continue") for r in server.requests] == [None, "t", "fresh"]


def test_each_node_comes_once_when_the_list_begins_again(api: Api, server: fake.Server) -> None:
    server.answer(
        NODES, page(node(1), node(2), token="t"), expired(), page(node(1), node(2), node(3))
    )
    assert names(api) == [["n1", "n2"], ["n3"]]


def test_pods_begin_again_so_that_sums_are_of_one_moment(api: Api, server: fake.Server) -> None:
    server.answer(PODS, page(pod(1), token="t"), expired("fresh"), page(pod(1), pod(2)))
    pages = list(api.pod_pages())
    assert [(p.first, len(p.pods)) for p in pages] == [(True, 1), (True, 2)]
    assert [r[1].get("continue") for r in server.requests] == [None, "t", None]
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    assert server.requests[0][1]["fieldSelector"] == selector


def test_pods_of_one_node_are_selected_so_that_its_own_credentials_may(
    api: Api, server: fake.Server
) -> None:
    server.answer(PODS, page(pod(1)))
    list(api.pod_pages("n1"))
    assert server.requests[0][1]["fieldSelector"].startswith("spec.nodeName=n1,")


def test_tokens_that_expire_for_ever(api: Api, server: fake.Server) -> None:
    server.answer(NODES, page(node(1), token="t"), expired("t"))  # the same token again: no way on
    server.routes[NODES] = [page(node(1), token="t"), expired("t")] * 3
    with pytest.raises(PeerError, match="expired 3 times"):
        names(api)


def test_a_page_of_something_else_is_named(api: Api, server: fake.Server) -> None:
    server.answer(NODES, fake.json_reply({"items": {"a": 1}}))
    with pytest.raises(BadDataError, match="items is an object, not a list"):
        names(api)


def test_a_list_that_goes_round_is_told_at_once(api: Api, server: fake.Server) -> None:
    there, back = page(node(1), token="a"), page(node(2), token="b")
    server.answer(NODES, there, back, there, back, there)
    with pytest.raises(BadDataError, match="does not end"):
        names(api)
    assert len(server.requests) == 3


@pytest.mark.parametrize("document", [{}, {"kind": "Status", "message": "later"}, None])
def test_an_answer_without_a_list_is_no_empty_one(
    api: Api, server: fake.Server, document: object
) -> None:
    """Pods that are not listed would seem not to be there."""
    server.answer(PODS, fake.json_reply(document))
    with pytest.raises(BadDataError, match=f"{PODS} is no list"):
        api.list_pods("n1")
    server.answer(PODS, fake.json_reply({"items": None}))
    assert api.list_pods("n1") == ()


def test_another_node_than_was_asked_for(api: Api, server: fake.Server) -> None:
    server.answer(f"{NODES}/n1", fake.json_reply(node(2)))
    with pytest.raises(BadDataError, match="asked for Node n1 and answered with n2"):
        names(api, name="n1")
