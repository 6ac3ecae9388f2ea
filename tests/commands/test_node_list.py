"""`dpctl node`: rows of one Node, of many, of a captured one; against the lab's API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.lab.fixture import Lab
from tests.fakes import api_server as fake
from tests.fakes.kubeconfigs import kubeconfig
from tests.run import DATA, dpctl, golden

GPU = "vendor.example/gpu"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("table.txt", ()),
        ("wide.txt", ("-o", "wide")),
        ("names.txt", ("vendor.example/*", "-o", "name")),
        ("quiet.txt", ("vendor.example/*", "-q")),
        ("list.csv", ("-o", "csv")),
        ("paths.txt", ("-o", "jsonpath={range .items[*]}{.resource}={.free}{'\\n'}{end}")),
        ("free.txt", ("--sort-by", "FREE")),
    ],
)
def test_golden(lab: Lab, name: str, arguments: tuple[str, ...]) -> None:
    result = dpctl("node", *arguments, env=lab.env)
    assert (result.code, result.err) == (0, "")
    golden(f"node/{name}", result.out)


def test_from_a_workstation(lab: Lab) -> None:
    """With nothing of the node but the API server."""
    env = {"KUBECONFIG": lab.env["KUBECONFIG"]}
    result = dpctl("node", "--node", "lab-0", "--host-root", "/nonexistent", GPU, "-q", env=env)
    assert (result.code, result.out, result.err) == (0, f"{GPU}\n", "")


def test_a_captured_node() -> None:
    bundle = str(DATA / "captures/1-healthy")
    result = dpctl("node", "--from", bundle, "-o", "json")
    assert result.code == 0
    found = {row["resource"]: row for row in json.loads(result.out)["items"]}
    assert {row["requested"] is None for row in found.values()} == {False}
    assert dpctl("node", "--from", bundle, "--all-nodes").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--node", "nope"), 4, "has no Node nope (the name is from: flag)"),
        (("--node", "lab-0", "--all-nodes"), 2, "is one Node, and many are meant as well"),
        (("-l", " "), 2, "-l is empty"),
        (("-l", "pool=none"), 0, "No resources found"),
        (("no.example/such",), 1, 'no resource "no.example/such" here'),
        (("list",), 1, "`dpctl node --help` every command"),
        (("--all-nodes", "--context", "lab-nobody"), 5, 'resources: ["nodes"], verbs: ["list"]'),
        (
            ("--all-nodes", "--context", "lab-node"),
            5,
            "a node's own credentials see their own Node",
        ),
    ],
)
def test_what_it_says(lab: Lab, arguments: tuple[str, ...], code: int, words: str) -> None:
    result = dpctl("node", *arguments, env=lab.env)
    assert (result.code, result.out) == (code, "")
    assert words in result.err


def test_a_node_sees_itself_with_its_own_credentials(lab: Lab) -> None:
    result = dpctl("node", "--context", "lab-node", GPU, "-o", "json", env=lab.env)
    (row,) = json.loads(result.out)["items"]
    assert (row["node"], row["requested"] is None) == ("lab-0", False)


# --- many Nodes, from a server that counts what it is asked


@pytest.fixture
def server() -> Iterator[fake.Server]:
    with fake.running() as running:
        yield running


@pytest.fixture
def ask(tmp_path: Path, server: fake.Server) -> Callable[..., Any]:
    path = kubeconfig(tmp_path / "kubeconfig", server.url)
    return lambda *arguments: dpctl("node", *arguments, env={"KUBECONFIG": path})


def nodes(*numbers: int, token: str = "") -> fake.Reply:
    status = {"capacity": {GPU: "2"}, "allocatable": {GPU: "2"}}
    items = [{"metadata": {"name": f"n-{number}"}, "status": status} for number in numbers]
    return fake.json_reply({"metadata": {"continue": token}, "items": items})


def pods(*counts: int) -> fake.Reply:
    """One pod per count, on the Node of that number."""
    items: list[dict[str, Any]] = []
    for number in counts:
        requests = {"requests": {GPU: "1"}}
        spec = {"nodeName": f"n-{number}", "containers": [{"name": "c", "resources": requests}]}
        meta = {"namespace": "ml", "name": f"p{len(items)}", "uid": f"u{len(items)}"}
        items.append({"metadata": meta, "spec": spec, "status": {"phase": "Running"}})
    return fake.json_reply({"items": items})


def test_many_nodes_in_natural_order_with_pods_listed_once(
    ask: Callable[..., Any], server: fake.Server
) -> None:
    server.answer("/api/v1/pods", pods(2, 2, 2, 10))
    server.answer("/api/v1/nodes", nodes(1, 10, 2, token="t"), nodes(3))
    result = ask("--all-nodes", "--no-headers")
    assert [line.split()[0::5] for line in result.out.splitlines()] == [
        ["n-1", "2"],
        ["n-2", "-1"],
        ["n-10", "1"],
        ["n-3", "2"],
    ]
    assert sum(path == "/api/v1/pods" for path, _, _ in server.requests) == 1


def test_pods_that_may_not_be_listed(ask: Callable[..., Any], server: fake.Server) -> None:
    server.answer("/api/v1/pods", fake.status(403, "not you"))
    server.answer("/api/v1/nodes", nodes(1))
    result = ask("--all-nodes", "--no-headers")
    assert (result.code, result.out.split()) == (0, ["n-1", GPU, "2", "2", "?", "?"])
    assert "warning: pods not read" in result.err
    assert 'resources: ["pods"], verbs: ["list"]' in result.err
    assert ask("--all-nodes", "--strict").code == 5


def test_a_list_that_breaks_off_keeps_what_came(
    ask: Callable[..., Any], server: fake.Server
) -> None:
    server.answer("/api/v1/pods", pods())
    server.answer("/api/v1/nodes", nodes(1, token="t"), fake.status(403, "no more"))
    result = ask("--all-nodes", "-o", "json")
    document = json.loads(result.out)
    assert ([row["node"] for row in document["items"]], result.code) == (["n-1"], 5)
    assert [(s["name"], s["state"]) for s in document["sources"]] == [
        ("node", "failed"),
        ("pods", "read"),
    ]
