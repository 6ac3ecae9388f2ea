"""Rejected pods deleted by UID, against the lab's API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.changes.failed_pods import delete_failed
from dpctl.errors import DeniedError
from dpctl.lab.api_errors import ApiError
from dpctl.lab.api_handlers import Call
from dpctl.model.changes import Outcome
from dpctl.model.leftovers import PodChangeRow
from dpctl.sources.apiserver import connect
from tests.changes.nodes import OLD, Nodes, running
from tests.fakes import api_server
from tests.fakes.kubeconfigs import env_for, kubeconfig


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with running(tmp_path) as made:
        made.add(0)
        made.add_pod("greedy", "n-0", OLD, phase="Failed")
        yield made


def row(nodes: Nodes) -> PodChangeRow:
    uid = nodes.store.get("pods", "greedy", "ml")["metadata"]["uid"]
    return PodChangeRow("ml", "greedy", uid, "UnexpectedAdmissionError", None, None, None, None)


def left(nodes: Nodes) -> int:
    return len(nodes.store.list("pods")[0])


def test_it_is_deleted(nodes: Nodes) -> None:
    assert delete_failed(nodes.api(), row(nodes)).outcome is Outcome.CHANGED
    assert left(nodes) == 0


def test_one_that_a_finalizer_holds_is_not_called_deleted(nodes: Nodes) -> None:
    def hold(pod: dict[str, Any]) -> dict[str, Any]:
        pod["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking", "a.example/b"]
        return pod

    def release(pod: dict[str, Any]) -> dict[str, Any]:
        del pod["metadata"]["finalizers"]
        return pod

    nodes.store.update("pods", "greedy", hold, namespace="ml", manager="job")
    dry = delete_failed(nodes.api(), row(nodes), dry_run=True)
    assert (dry.outcome, "held by" in (dry.detail or "")) == (Outcome.NOT_APPLIED, True)
    done = delete_failed(nodes.api(), row(nodes))
    assert (done.outcome, left(nodes)) == (Outcome.NOT_APPLIED, 1)
    assert done.detail == (
        "marked for deletion, held by batch.kubernetes.io/job-tracking, a.example/b (finalizers)"
    )
    nodes.store.update("pods", "greedy", release, namespace="ml", manager="job")
    assert left(nodes) == 0


POD = "/api/v1/namespaces/ml/pods/greedy"
SEEN = PodChangeRow("ml", "greedy", "u-1", "UnexpectedAdmissionError", None, None, None, None)


def pod(**metadata: object) -> dict[str, object]:
    named = {"name": "greedy", "namespace": "ml", "uid": SEEN.uid, **metadata}
    return {"kind": "Pod", "metadata": named, "spec": {"containers": []}}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"kind": "Status", "status": "Failure"}, "its answer is a failure"),
        (pod(uid="u-2"), "its answer is about another pod"),
        (pod(finalizers="x"), "finalizers is text, not a list"),
        (pod(finalizers=[None]), "held by a nameless one"),
        ([], "its answer is a list, not an object"),
    ],
)
def test_an_answer_that_says_something_else(tmp_path: Path, answer: object, words: str) -> None:
    with api_server.running() as server:
        server.answer(POD, api_server.json_reply(answer))
        api = connect(env_for(kubeconfig(tmp_path / "k", server.url)))
        done = delete_failed(api, SEEN)
    assert done.outcome is Outcome.NOT_APPLIED
    assert words in (done.detail or "")


def test_an_answer_that_is_lost_says_nothing(tmp_path: Path) -> None:
    held = pod(finalizers=["a.example/b"], deletionTimestamp="2026-01-01T00:00:00Z")
    with api_server.running() as server:
        api = connect(env_for(kubeconfig(tmp_path / "k", server.url)))
        server.answer(POD, api_server.close, api_server.json_reply(held))
        done = delete_failed(api, SEEN)
        words = "marked for deletion, held by a.example/b (finalizers)"
        assert (done.outcome, done.detail) == (Outcome.NOT_APPLIED, words)
        server.answer(POD, api_server.close, api_server.status(404, "gone"))
        assert delete_failed(api, SEEN).outcome is Outcome.CHANGED


def test_a_dry_run_leaves_it(nodes: Nodes) -> None:
    assert delete_failed(nodes.api(), row(nodes), dry_run=True).outcome is Outcome.DRY_RUN
    assert left(nodes) == 1


def test_another_pod_of_the_name_stays(nodes: Nodes) -> None:
    seen = row(nodes)
    nodes.store.delete("pods", "greedy", "ml")
    nodes.add_pod("greedy", "n-0", OLD)
    done = delete_failed(nodes.api(), seen)
    assert (done.outcome, left(nodes)) == (Outcome.NOT_APPLIED, 1)
    assert "another pod has the name by now" in (done.detail or "")


def test_one_that_is_gone_already(nodes: Nodes) -> None:
    seen = row(nodes)
    nodes.store.delete("pods", "greedy", "ml")
    assert delete_failed(nodes.api(), seen).outcome is Outcome.GONE_ALREADY


def test_without_the_right(nodes: Nodes, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{nodes.server.port}"
    api = connect(env_for(kubeconfig(tmp_path / "other", url, {"token": "viewer"})))
    with pytest.raises(DeniedError, match="delete pods"):
        delete_failed(api, row(nodes))
    assert left(nodes) == 1


def test_an_error_of_the_server_is_told(nodes: Nodes) -> None:
    def before(call: Call) -> None:
        raise ApiError(500, "InternalError", "etcd is away")

    nodes.handlers.before = before
    done = delete_failed(nodes.api(), row(nodes))
    assert done.outcome is Outcome.NOT_APPLIED
    assert "etcd is away" in (done.detail or "")
