"""The lab's API server against kubelet-facts §11 and §15, over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dpctl.lab import api_auth
from dpctl.lab.api_handlers import Handlers
from dpctl.lab.api_server import ApiServer
from dpctl.lab.api_store import Store

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
NODE = "/api/v1/nodes/lab-0"
STATUS = f"{NODE}/status"
GPU = "/status/capacity/vendor.example~1gpu"


class Server:
    """An API server with two nodes, and requests to it."""

    def __init__(self) -> None:
        self.store = Store()
        users = api_auth.users("lab-0")
        handlers = Handlers(self.store, version="v1.36.2", configz={"lab-0": {"kind": "K"}})
        self.api = ApiServer(self.store, users, handlers)
        for name in ("lab-0", "lab-1"):
            node = {"metadata": {"name": name, "labels": {"zone": name[-1]}}, "spec": {}}
            amounts = {"cpu": "4", "vendor.example/gpu": "2", "a~b/c": "1"}
            node["status"] = {"capacity": dict(amounts), "allocatable": dict(amounts)}
            self.store.create("nodes", node, "kubelet")

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = "admin",
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.api.port, timeout=10)
        sent = {"Authorization": f"Bearer {user}", "Content-Type": kind, **(headers or {})}
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        try:
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def patch(
        self, *operations: dict[str, Any], path: str = STATUS, user: str = "admin"
    ) -> tuple[int, dict[str, Any]]:
        return self.ask("PATCH", path, list(operations), kind=JSON_PATCH, user=user)

    def capacity(self, name: str = "lab-0") -> dict[str, str]:
        found: dict[str, str] = self.store.get("nodes", name)["status"]["capacity"]
        return found


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.api.close()


def test_remove(server: Server) -> None:
    code, node = server.patch(
        {"op": "test", "path": GPU, "value": "2"},
        {"op": "remove", "path": GPU},
        {"op": "remove", "path": "/status/capacity/a~0b~1c"},
    )
    assert code == 200
    assert node["status"]["capacity"] == server.capacity() == {"cpu": "4"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/status/capacity/vendor.example~1nope"},
        {"op": "remove", "path": "/status/capacity/vendor.example/gpu"},
        {"op": "test", "path": GPU, "value": "3"},
        {"op": "test", "path": GPU, "value": 2},
    ],
)
def test_422_without_the_reason(server: Server, operation: dict[str, Any]) -> None:
    code, status = server.patch({"op": "remove", "path": GPU}, operation)
    assert code == 422
    assert status["reason"] == "Invalid"
    assert status["message"] == "the server rejected our request due to an error in our request"
    assert status["details"] == {}
    assert server.capacity()["vendor.example/gpu"] == "2"  # all or nothing


def test_status_forgotten(server: Server) -> None:
    before = server.store.get("nodes", "lab-0")
    code, node = server.patch({"op": "remove", "path": GPU}, path=NODE)
    assert code == 200
    assert node["status"]["capacity"]["vendor.example/gpu"] == "2"
    assert server.store.get("nodes", "lab-0") is before


def test_status_changes_no_spec(server: Server) -> None:
    server.patch({"op": "add", "path": "/spec/unschedulable", "value": True})
    assert server.store.get("nodes", "lab-0")["spec"] == {}
    server.patch({"op": "add", "path": "/spec/unschedulable", "value": True}, path=NODE)
    assert server.store.get("nodes", "lab-0")["spec"] == {"unschedulable": True}


@pytest.mark.parametrize("body", [b"{", b'{"op": "remove"}', b"[{}]", b""])
def test_undecodable_patch(server: Server, body: bytes) -> None:
    code, status = server.ask("PATCH", STATUS, body, kind=JSON_PATCH)
    assert (code, status["reason"]) == (400, "BadRequest")
    assert "invalid JSON patch" in status["message"]


def test_too_many_operations(server: Server) -> None:
    operations = [{"op": "test", "path": GPU, "value": "2"}] * 10_001
    assert server.patch(*operations)[0] == 413
    assert server.patch(*operations[1:])[0] == 200


def test_dry_run(server: Server) -> None:
    code, node = server.patch({"op": "remove", "path": GPU}, path=f"{STATUS}?dryRun=All")
    assert code == 200
    assert "vendor.example/gpu" not in node["status"]["capacity"]
    assert server.capacity()["vendor.example/gpu"] == "2"
    assert server.patch({"op": "remove", "path": GPU}, path=f"{STATUS}?dryRun=x")[0] == 400


def test_quantities_are_stored_canonically(server: Server) -> None:
    server.patch({"op": "add", "path": GPU, "value": "1000"})
    assert server.capacity()["vendor.example/gpu"] == "1k"
    assert server.patch({"op": "test", "path": GPU, "value": "1000"})[0] == 422
    assert server.patch({"op": "test", "path": GPU, "value": "1k"})[0] == 200


@pytest.mark.parametrize(
    ("value", "wrong"),
    [("1500m", "must be an integer"), ("-1", "must be greater than or equal to 0")],
)
def test_validation(server: Server, value: str, wrong: str) -> None:
    code, status = server.patch({"op": "add", "path": GPU, "value": value})
    assert code == 422
    assert status["details"]["causes"][0]["field"] == "status.capacity.vendor.example/gpu"
    assert wrong in status["message"]


def test_merge_patch_is_idempotent(server: Server) -> None:
    body = {"status": {"capacity": {"vendor.example/gpu": None}}}
    for _ in range(2):
        assert server.ask("PATCH", STATUS, body, kind=MERGE)[0] == 200
    assert "vendor.example/gpu" not in server.capacity()


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "replace", "path": "/status", "value": "x"}],
        [{"op": "replace", "path": "/status/capacity", "value": ["x"]}],
        [{"op": "replace", "path": "", "value": []}],
        [{"op": "add", "path": "/metadata", "value": 1}],
    ],
)
def test_patch_that_breaks_the_object(server: Server, patch: list[dict[str, Any]]) -> None:
    assert server.patch(*patch)[0] == 422


def test_node_restriction(server: Server) -> None:
    """The review says yes for every node; the PATCH is then refused (§15)."""
    attributes = {"verb": "patch", "resource": "nodes", "subresource": "status", "name": "lab-1"}
    review = {"spec": {"resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert server.ask("POST", path, review, user="node")[1]["status"]["allowed"] is True
    assert server.ask("POST", path, review, user="nobody")[1]["status"]["allowed"] is False
    assert server.ask("POST", path, review, user="viewer")[1]["status"]["allowed"] is False
    remove = {"op": "remove", "path": GPU}
    code, status = server.patch(remove, path="/api/v1/nodes/lab-1/status", user="node")
    assert code == 403
    assert 'node "lab-0" is not allowed to modify node "lab-1"' in status["message"]
    assert server.patch(remove, user="node")[0] == 200


@pytest.mark.parametrize(
    ("user", "path", "code"),
    [
        ("node", "/api/v1/nodes/lab-0", 200),
        ("node", "/api/v1/nodes/lab-1", 403),
        ("node", "/api/v1/nodes", 403),
        ("node", "/api/v1/pods", 403),
        ("node", "/api/v1/pods?fieldSelector=spec.nodeName%3Dlab-0", 200),
        ("node", "/api/v1/pods?fieldSelector=spec.nodeName%3Dlab-1", 403),
        ("node", "/api/v1/events", 403),
        ("node", "/apis/resource.k8s.io/v1/deviceclasses", 403),
        ("node", "/api/v1/nodes/lab-0/proxy/configz", 403),
        ("viewer", "/apis/resource.k8s.io/v1/deviceclasses", 200),
        ("viewer", "/api/v1/nodes/lab-0/proxy/configz", 403),
        ("admin", "/api/v1/nodes/lab-0/proxy/configz", 200),
        ("nobody", "/api/v1/nodes", 403),
        ("nobody", "/version", 200),
        ("stranger", "/version", 401),
        ("admin", "/api/v1/secrets", 404),
        ("admin", "/api/v1/nodes/nope", 404),
        ("admin", "/apis/resource.k8s.io/v1/nodes", 404),
        ("admin", "/nothing", 404),
    ],
)
def test_who_may_read_what(server: Server, user: str, path: str, code: int) -> None:
    assert server.ask("GET", path, user=user)[0] == code


def test_impersonation(server: Server) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Impersonate-User": "system:node:lab-1", "Impersonate-Group": "system:nodes"}
    code, review = server.ask("POST", path, {}, headers=headers)
    assert code == 201
    assert review["status"]["userInfo"]["username"] == "system:node:lab-1"
    assert server.ask("GET", NODE, headers=headers)[0] == 403
    assert server.ask("GET", NODE, user="viewer", headers=headers)[0] == 403


def test_pages(server: Server) -> None:
    for number in range(5):
        pod = {"metadata": {"name": f"p{number}"}, "spec": {"containers": [{"name": "c"}]}}
        assert server.ask("POST", "/api/v1/namespaces/ml/pods", pod)[0] == 201
    names, token = [], ""
    for left in (3, 1, None):
        _, page = server.ask("GET", f"/api/v1/namespaces/ml/pods?limit=2&continue={token}")
        names += [item["metadata"]["name"] for item in page["items"]]
        assert page["metadata"].get("remainingItemCount") == left
        token = page["metadata"].get("continue", "")
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    assert token == ""
    assert server.ask("GET", "/api/v1/pods?limit=2&continue=nonsense")[0] == 400


def test_selectors(server: Server) -> None:
    _, found = server.ask("GET", "/api/v1/nodes?labelSelector=zone%3D1")
    assert [item["metadata"]["name"] for item in found["items"]] == ["lab-1"]
    _, found = server.ask("GET", "/api/v1/nodes?fieldSelector=metadata.name!%3Dlab-1")
    assert [item["metadata"]["name"] for item in found["items"]] == ["lab-0"]


def test_watch(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.api.port, timeout=10)
    version = server.store.version
    connection.request(
        "GET",
        f"/api/v1/nodes?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Dlab-0",
        headers={"Authorization": "Bearer admin"},
    )
    stream = connection.getresponse()
    server.patch({"op": "remove", "path": GPU}, path="/api/v1/nodes/lab-1/status")
    server.patch({"op": "remove", "path": GPU})
    event = json.loads(stream.readline())
    assert event["type"] == "MODIFIED"
    assert event["object"]["metadata"]["name"] == "lab-0"
    server.ask("DELETE", NODE)
    assert json.loads(stream.readline())["type"] == "DELETED"
    connection.close()


def test_watch_from_now_starts_with_what_is_there(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.api.port, timeout=10)
    path = "/api/v1/nodes?watch=1&timeoutSeconds=1"
    connection.request("GET", path, headers={"Authorization": "Bearer admin"})
    lines = connection.getresponse().read().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["ADDED", "ADDED"]
    connection.close()


def test_delete_checks_the_uid(server: Server) -> None:
    body = {"preconditions": {"uid": "another"}}
    assert server.ask("DELETE", NODE, body)[0] == 409
    assert server.ask("DELETE", NODE + "?dryRun=All")[0] == 200
    assert server.ask("DELETE", NODE)[0] == 200
    assert server.ask("GET", NODE)[0] == 404


def test_faults(server: Server) -> None:
    server.api.faults.add(count=2, code=429, method="PATCH", path_part="status", retry_after=1)
    assert server.ask("GET", NODE)[0] == 200
    remove = {"op": "remove", "path": GPU}
    assert [server.patch(remove)[0] for _ in range(3)] == [429, 429, 200]


def test_large_and_odd_requests(server: Server) -> None:
    assert server.ask("PATCH", STATUS, b"x" * (3 * 1024 * 1024 + 1), kind=JSON_PATCH)[0] == 413
    assert server.ask("PATCH", STATUS, {}, kind="application/apply-patch+yaml")[0] == 415
    assert server.ask("POST", "/api/v1/namespaces/ml/pods", {"metadata": {"name": "p"}})[0] == 422
    assert server.ask("POST", "/api/v1/namespaces/ml/pods", b"[]")[0] == 400
    assert server.ask("PATCH", STATUS, b"[" * 100_000, kind=JSON_PATCH)[0] == 400


# --- pages


def _named(number: int) -> str:
    return f"page-{number:03}"


def test_pages_neither_repeat_nor_leave_out_while_the_list_changes(server: Server) -> None:
    for number in range(6):
        server.store.create("nodes", {"metadata": {"name": _named(number)}}, "test")
    path = "/api/v1/nodes?limit=4"
    _, first = server.ask("GET", path)
    seen = [item["metadata"]["name"] for item in first["items"]]
    assert first["metadata"]["remainingItemCount"] == 4
    server.store.delete("nodes", seen[0])
    server.store.create("nodes", {"metadata": {"name": "a-new-one"}}, "test")
    token = first["metadata"]["continue"]
    _, second = server.ask("GET", f"{path}&continue={token}")
    seen += [item["metadata"]["name"] for item in second["items"]]
    assert seen == ["lab-0", "lab-1", *map(_named, range(6))]
    assert "continue" not in second["metadata"]


def test_a_token_that_has_expired_brings_one_that_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/api/v1/nodes?limit=1"
    _, first = server.ask("GET", path)
    monkeypatch.setattr(Store, "oldest", property(lambda store: store.version + 1))
    code, refusal = server.ask("GET", f"{path}&continue={first['metadata']['continue']}")
    assert (code, refusal["reason"]) == (410, "Expired")
    monkeypatch.undo()
    _, second = server.ask("GET", f"{path}&continue={refusal['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in second["items"]] == ["lab-1"]


@pytest.mark.parametrize("token", ["x", "e30=", "bnVsbA==", "%00"])
def test_a_token_that_is_none(server: Server, token: str) -> None:
    assert server.ask("GET", f"/api/v1/nodes?limit=1&continue={token}")[0] == 400


def test_a_pod_that_has_run_its_course_goes_at_once(server: Server) -> None:
    spec = {"nodeName": "lab-0", "containers": [{"name": "c"}]}
    pod = {"metadata": {"name": "over", "namespace": "default"}, "spec": spec}
    server.store.create("pods", pod, "test")

    def fail(found: dict[str, Any]) -> dict[str, Any]:
        return {**found, "status": {"phase": "Failed"}}

    server.store.update(
        "pods", "over", fail, namespace="default", manager="test", subresource="status"
    )
    path = "/api/v1/namespaces/default/pods/over"
    code, answer = server.ask("DELETE", path, {"preconditions": {"uid": "another"}})
    assert (code, answer["reason"]) == (409, "Conflict")
    assert server.ask("DELETE", f"{path}?dryRun=All")[0] == 200
    assert server.ask("GET", path)[0] == 200
    assert server.ask("DELETE", path)[0] == 200
    assert server.ask("GET", path)[0] == 404
