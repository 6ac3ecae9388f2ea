"""An API server that is gone, slow, refuses or lies; kubeconfigs and Nodes that mean harm."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from tests.fakes import api_server
from tests.fakes.api_server import Reply, json_reply, raw, status
from tests.fakes.grpc_sockets import LIST, serving
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.node_tree import (
    CONTROLS,
    NODE_PATH,
    RESOURCE,
    NodeTree,
    items,
    kubelet_answers,
    node,
    node_document,
    said,
    serve_cluster,
)
from tests.run import Result

FAULTS: dict[str, tuple[Reply | None, int, str]] = {
    "refused": (None, 3, "refused"),
    "hangs": (api_server.hang, 3, "did not answer within"),
    "drips": (api_server.drip, 3, "did not answer within"),
    "closes": (api_server.close, 3, "127.0.0.1"),
    "401": (status(401, f"who{CONTROLS}"), 5, "does not accept the credentials"),
    "403": (status(403, f"not you{CONTROLS}"), 5, "refuses"),
    "404": (status(404, "nothing"), 4, "has no"),
    "500": (status(500, f"broken{CONTROLS}"), 4, "status 500"),
    "garbage": (raw(bytes(range(256)) * 100), 7, "127.0.0.1"),
    "HTML": (raw(b"<html>\x1b[2J</html>"), 7, "127.0.0.1"),
    "deep": (raw(b"[" * 200_000), 7, "127.0.0.1"),
    "100 MiB": (api_server.endless, 7, "is larger than"),
    "another type": (json_reply({"items": {"a": CONTROLS}}), 7, "items"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[api_server.Server]:
    with api_server.running() as made:
        yield made


@pytest.fixture(scope="module")
def tree(server: api_server.Server) -> Iterator[NodeTree]:
    with node(kubelet=False, cluster=False, plugin=False) as made:
        yield made


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_the_rest_goes_on(
    server: api_server.Server, tree: NodeTree, fault: str
) -> None:
    reply, code, words = FAULTS[fault]
    kubeconfig(tree.kubeconfig, server.url if reply else "http://127.0.0.1:1")
    if reply is not None:
        for path in (NODE_PATH, "/api/v1/pods"):
            server.answer(path, reply)
    # Silence is waited for to the end; reading much may take a while on a busy machine.
    patience = ("--request-timeout", "1s" if code == 3 else "30s")
    lines = [
        ("pods", "--failed", *patience),
        ("pods", "--failed", "-o", "json", *patience),
        ("pods", "-o", "wide", *patience),
    ]
    table, document, partial = tree.ask_all(lines)
    for result in (table, document):
        assert (result.code, result.out) == (code, ""), result.err
        said(result, "error", "pods", words)
    assert (partial.code, RESOURCE in partial.out) == (0, True)
    for source in ("node", "pods"):
        said(partial, "warning", source, " not read: ")


def test_strict_gives_the_code_of_what_is_missing(
    server: api_server.Server, tree: NodeTree
) -> None:
    kubeconfig(tree.kubeconfig, server.url)
    serve_cluster(server)
    with node(cluster=False) as healthy:
        kubeconfig(healthy.kubeconfig, server.url)
        assert healthy.run("resources", "--strict").code == 0
        server.answer("/api/v1/pods", status(403, "no"))
        result = healthy.run("resources", "-o", "json", "--strict")
    assert result.code == 5
    assert [row["resource"] for row in items(result)] == [RESOURCE]


# --- kubeconfigs ----------------------------------------------------------------------------------

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
KUBECONFIGS: dict[str, bytes] = {
    "empty": b"",
    "a list": b"[1, 2]",
    "no YAML": b"{\x1b[2J: [",
    "binary": bytes(range(256)),
    "billion laughs": LAUGHS.encode() + b"clusters: *i\ncontexts: *i\nusers: *i\n",
    "a program": b"!!python/object/apply:os.system ['touch /tmp/dpctl-was-here']",
    "tags": b"current-context: !!int ''\nclusters: []\n",
    "timestamps": b"current-context: !!timestamp x\nclusters: []\n",
    "booleans": b"current-context: !!bool x\nclusters: []\n",
    "deep": b"clusters: " + b"[" * 20_000,
    "names": json.dumps({"current-context": f"c{CONTROLS}", "contexts": [], "clusters": [],
                         "users": []}).encode(),
    "types": b"current-context: 7\ncontexts: 7\nclusters: x\nusers: {a: b}\n",
    "server": b"current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
    b"clusters: [{name: c, cluster: {server: \"http://\\e[2J:99999999\"}}]\n"
    b"users: [{name: u, user: {token: t}}]\n",
}  # fmt: skip


@pytest.mark.parametrize("fault", KUBECONFIGS)
def test_a_kubeconfig_that_is_none(tree: NodeTree, fault: str) -> None:
    tree.kubeconfig.write_bytes(KUBECONFIGS[fault])
    result, partial = tree.ask_all([("pods", "--failed"), ("pods", "-o", "json")])
    assert (result.code in (3, 7), result.out) == (True, ""), result.err
    said(result, "error", "pods")
    assert str(tree.kubeconfig) in result.err
    assert (partial.code, RESOURCE in partial.out) == (0, True)
    said(partial, "warning", "node, pods not read: ", str(tree.kubeconfig))


# --- Nodes ----------------------------------------------------------------------------------------

KEYS: dict[str, object] = {
    f"evil.example/{CONTROLS}": "1",
    "../../etc/passwd": "1",
    "": "1",
    "long.example/" + "x" * 65536: "1",
    "a/b/c": "-5",
    "big.example/a": "9" * 4000,
    "big.example/b": "1e999999999",
    "big.example/c": "1E",
    "odd.example/a": f"4{CONTROLS}",
    "odd.example/b": "0x10",
    "odd.example/c": "١",
    "odd.example/d": "",
}


def test_a_node_with_hostile_keys_and_quantities(server: api_server.Server, tree: NodeTree) -> None:
    kubeconfig(tree.kubeconfig, server.url)
    serve_cluster(server)
    server.answer(NODE_PATH, json_reply(node_document(**KEYS)))
    results = tree.ask("resources")
    assert [result.code for result in results] == [0, 0, 0]
    assert "\nevil.example/\\0\\e[2J\\e]0;x\\x07\\r\\n\\t" in results[0].out
    rows = {row["resource"]: row for row in items(results[2])}
    assert set(KEYS) <= set(rows)
    for name, quantity in KEYS.items():
        assert rows[name]["capacity"] == quantity
    assert rows[f"evil.example/{CONTROLS}"]["state"] == "Malformed"


@pytest.mark.parametrize("value", [7, None, ["1"], {"a": "1"}, True, 1e400])
def test_a_quantity_of_another_type(
    server: api_server.Server, tree: NodeTree, value: object
) -> None:
    kubeconfig(tree.kubeconfig, server.url)
    serve_cluster(server)
    server.answer(NODE_PATH, json_reply(node_document(**{"odd.example/a": value})))
    result = tree.run("resources")
    assert (result.code, RESOURCE in result.out) == (0, True)


def test_a_hundred_thousand_keys(server: api_server.Server, tree: NodeTree) -> None:
    kubeconfig(tree.kubeconfig, server.url)
    serve_cluster(server)
    many: dict[str, object] = {f"v.example/r-{number}": "1" for number in range(100_000)}
    server.answer(NODE_PATH, json_reply(node_document(**many)))
    (result,) = tree.ask("resources", formats=("table",))
    assert result.code == 0
    assert result.out.count("\nv.example/r-") == 100_000 or "more than" in result.err


@pytest.mark.parametrize(
    ("reply", "named", "words"),
    [
        (status(404, "nothing"), True, "has no Node worker-0 (the name is from: environment"),
        (
            status(404, "nothing"),
            False,
            "has no Node vm (the name is from: host name ({host}), since no kubelet was found",
        ),
        (status(403, "no"), False, "refuses"),
    ],
)
def test_pods_of_a_node_that_may_not_be_there_are_no_evidence(
    server: api_server.Server, tree: NodeTree, reply: Reply, named: bool, words: str
) -> None:
    """Nobody lists pods of it, and the pods that hold devices here are alive all the same."""
    kubeconfig(tree.kubeconfig, server.url)
    (tree.root / "etc").mkdir(exist_ok=True)
    host = tree.root / "etc/hostname"
    host.write_text("vm\n")
    for path in (NODE_PATH, "/api/v1/nodes/vm"):
        server.answer(path, reply)
    server.answer("/api/v1/pods", json_reply({"items": []}))
    name = {} if named else {"NODE_NAME": ""}
    result = tree.run("devices", **name)
    assert result.code == 0
    assert "Orphaned" not in result.out
    said(result, "warning", "node, pods not read: ", words.format(host=host))
    row = items(tree.run("resources", "-o", "json", **name))[0]
    assert (row["resource"], row["allocated"]) == (RESOURCE, 1)
    assert "trainer" in tree.run("pods", "-o", "wide", **name).out


def test_pods_count_although_their_node_may_not_be_read(
    server: api_server.Server, tree: NodeTree
) -> None:
    kubeconfig(tree.kubeconfig, server.url)
    server.answer(NODE_PATH, status(403, "no"))
    server.answer("/api/v1/pods", json_reply({"items": []}))
    result = tree.run("devices")
    assert "Orphaned" in result.out
    said(result, "warning", "node not read: ")


def test_a_node_of_this_name_on_another_machine(server: api_server.Server, tree: NodeTree) -> None:
    kubeconfig(tree.kubeconfig, server.url)
    serve_cluster(server)
    document = node_document()
    document["status"]["nodeInfo"] = {"bootID": "another"}
    server.answer(NODE_PATH, json_reply(document))
    result = tree.run("devices")
    assert (result.code, result.out) == (0, "")
    said(result, "warning", "Node worker-0 is another machine", "nothing of this machine was used")
    assert "hint: run dpctl on worker-0, or name this machine's cluster: --kube" in result.err


def test_the_api_server_is_asked_for_holders_that_may_be_gone(
    server: api_server.Server, tree: NodeTree
) -> None:
    """The last pod with a device was deleted, or the kubelet has just started: its List is empty
    in both cases, and the checkpoint has the pod."""

    def answers() -> tuple[Result, bool, object]:
        """The table, whether the document has a row, and what `who` says of the holder."""
        table, document, who = tree.ask_all(
            [("pods",), ("pods", "-o", "json"), ("who", "gpu-0", "-o", "json")]
        )
        return table, bool(items(document)), items(who)[0]["state"]

    kubeconfig(tree.kubeconfig, server.url)
    serve_cluster(server)
    nobody = pb.ListPodResourcesResponse().SerializeToString()
    with serving(tree.pod_resources, {**kubelet_answers(), LIST: nobody}):
        table, row, state = answers()
        assert ("trainer" in table.out, row, state) == (True, True, "active")
        server.answer("/api/v1/pods", json_reply({"items": []}))
        table, row, state = answers()
        assert (table.out, table.err) == ("", "No resources found\n")
        assert (row, state) == (False, "gone")
        kubeconfig(tree.kubeconfig, "http://127.0.0.1:1")
        table, row, state = answers()
        assert ("trainer" in table.out, row, state) == (True, True, None)
        said(table, "warning", "node, pods not read: ")


def test_the_api_server_is_asked_for_nothing_else(
    server: api_server.Server, tree: NodeTree
) -> None:
    kubeconfig(tree.kubeconfig, server.url)
    server.requests.clear()
    with serving(tree.pod_resources, kubelet_answers()):
        assert "trainer" in tree.run("pods").out
        assert "active" in tree.run("who", "gpu-0").out
    said(tree.run("pods"), "warning", "podresources not read: ")
    assert not server.requests
