"""Node, Pod and DeviceClass JSON, as kubectl and the API server print it, and worse."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import BadDataError
from dpctl.model import HealthWord
from dpctl.sources.node_json import (
    device_classes_from_json,
    node_from_json,
    nodes_from_json,
    pods_from_json,
)

DATA = Path(__file__).parent.parent / "data"
HEALTHY = DATA / "captures/1-healthy/api"


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def node(**changes: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n", **changes.pop("metadata", {})}, **changes}


def managed(manager: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"manager": manager, "fieldsV1": {"f:status": fields}, **more}


# --- Node ---


def test_a_captured_node() -> None:
    found = node_from_json(load(HEALTHY / "node.json"))
    assert found.name == "worker-0"
    assert found.uid == "1fd1cf12-d493-4aa4-80f7-73fcc62ab53e"
    assert found.boot_id == "00000000-0000-0000-0000-000000000000"
    assert found.kubelet_version == "v0.0.0-master+8e16b12fda5b1dccc41a6de48b3e356cc7d5048b"
    assert found.capacity["fabric.example/rdma"] == "5"
    assert found.allocatable["fabric.example/rdma"] == "4"
    assert found.allocatable["nodomain"] == "3"
    assert "nodomain" not in found.capacity
    assert found.owners is not None
    assert found.owners["kkloud.io/widget"] == ("kubectl-patch",)
    assert found.owners["vendor.example/gpu"] == ("kubelet",)
    # Keys that came with the Node's creation have no owner; allocatable counts for nobody.
    assert "pods" not in found.owners
    assert "nodomain" not in found.owners
    assert found.kubelet_manager == "kubelet"
    assert found.ready is False
    assert found.heartbeat == 1795957974.0


def test_kubectls_output_has_no_owners() -> None:
    document = load(HEALTHY / "node.json")
    del document["metadata"]["managedFields"]
    assert node_from_json(document).owners is None
    document["metadata"]["managedFields"] = []
    assert node_from_json(document).owners is None


@pytest.mark.parametrize(
    "path", sorted((DATA / "inputs").glob("node-*.json")), ids=lambda p: p.stem
)
def test_reported_nodes(path: Path) -> None:
    found = node_from_json(load(path))
    assert found.name == "node-a"
    assert set(found.capacity) >= {"cpu", "memory", "pods"}
    if path.stem == "node-hand-patched":
        assert found.owners == {"hc.example.com/memory": ("kubectl-patch",), "cpu": ("kubelet",)}
    else:
        assert found.owners is None


def test_every_subresource_and_several_owners_count() -> None:
    document = node(
        metadata={
            "managedFields": [
                managed("a", {"f:capacity": {".": {}, "f:x.io/y": {}}}, operation="Apply"),
                managed("b", {"f:capacity": {"f:x.io/y": {}}}, subresource="status"),
                managed("a", {"f:capacity": {"f:x.io/y": {}}}, subresource="other"),
                {"manager": "c", "fieldsV1": {"f:spec": {}}},
                {"manager": "d"},
            ]
        }
    )
    assert node_from_json(document).owners == {"x.io/y": ("a", "b")}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], "kubelet"),
        ([("k3s", 'k:{"type":"Ready"}', ["f:lastHeartbeatTime"])], "k3s"),
        ([("k3s", 'k:{ "type" : "Ready" }', ["f:lastHeartbeatTime"])], "k3s"),
        ([("x", 'k:{"type":"DiskPressure"}', ["f:lastHeartbeatTime"])], "kubelet"),
        ([("x", "k:{broken", ["f:lastHeartbeatTime"])], "kubelet"),
        ([("x", "k:" + '{"a":' * 5000, [])], "kubelet"),
        ([("x", 'v:"Ready"', ["f:lastHeartbeatTime"])], "kubelet"),
        # The node controller writes `status` of a silent kubelet's Ready, never its heartbeat.
        (
            [
                ("kube-controller-manager", 'k:{"type":"Ready"}', ["f:status"]),
                ("rke2", 'k:{"type":"Ready"}', ["f:lastHeartbeatTime"]),
            ],
            "rke2",
        ),
        ([("odd", 'k:{"type":"Ready"}', ["f:message"])], "odd"),
        (
            [
                ("odd", 'k:{"type":"Ready"}', ["f:message"]),
                ("kubelet", 'k:{"type":"Ready"}', ["f:status"]),
            ],
            "kubelet",
        ),
    ],
)
def test_who_the_kubelet_is(entries: list[tuple[str, str, list[str]]], expected: str) -> None:
    fields = [
        managed(name, {"f:conditions": {key: {field: {} for field in inner}}})
        for name, key, inner in entries
    ]
    assert node_from_json(node(metadata={"managedFields": fields})).kubelet_manager == expected


@pytest.mark.parametrize(("word", "ready"), [("True", True), ("False", False), ("Unknown", None)])
def test_ready(word: str, ready: bool | None) -> None:
    status = {"conditions": [{"type": "MemoryPressure"}, {"type": "Ready", "status": word}]}
    assert node_from_json(node(status=status)).ready is ready


def test_a_bare_node_has_what_is_known_and_nothing_else() -> None:
    found = node_from_json(node())
    assert (found.uid, found.boot_id, found.ready, found.heartbeat) == (None,) * 4
    assert (found.capacity, found.allocatable) == ({}, {})


def test_numbers_by_hand_are_quantities() -> None:
    assert node_from_json(node(status={"capacity": {"x.io/y": 4}})).capacity == {"x.io/y": "4"}


@pytest.mark.parametrize("kind", ["List", "NodeList", None])
def test_lists(kind: str | None) -> None:
    document = {"kind": kind, "items": [node(kind="Node")]}
    assert node_from_json(document).name == "n"
    assert node_from_json([node()]).name == "n"


def test_one_of_several_nodes_is_taken_by_name_only() -> None:
    both = [node(), node(metadata={"name": "m"})]
    assert [n.name for n in nodes_from_json(both)] == ["n", "m"]
    assert node_from_json(both, name="m").name == "m"
    with pytest.raises(BadDataError, match="holds 2 Nodes: n, m"):
        node_from_json(both)
    with pytest.raises(BadDataError, match="no Node is called x"):
        node_from_json(both, name="x")
    with pytest.raises(BadDataError, match="holds no Node"):
        node_from_json([])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (7, "the document is a number, not an object"),
        (None, "the document is missing, not an object"),
        ({}, r"metadata\.name is missing"),
        ({"kind": "Pod"}, "holds a Pod, not a Node"),
        ({"kind": "List", "items": [node(), node(kind="Secret")]}, r"items\[1\] is a Secret"),
        ({"kind": "Status", "message": "nodes is forbidden"}, "nodes is forbidden"),
        (node(status=[]), "status is a list, not an object"),
        (node(status={"capacity": {"a/b": []}}), r"status\.capacity\.a/b is a list"),
        (node(status={"capacity": {"a/b": True}}), r"status\.capacity\.a/b is true or false"),
        (node(status={"capacity": {"a/b": None}}), r"status\.capacity\.a/b is missing"),
        (node(metadata={"uid": 5}), r"metadata\.uid is a number, not text"),
        (node(metadata={"managedFields": {}}), r"managedFields is an object, not a list"),
        (node(metadata={"managedFields": [7]}), r"managedFields\[0\] is a number"),
        (
            node(status={"conditions": [{"type": "Ready", "lastHeartbeatTime": "soon"}]}),
            r"status\.conditions\[0\]\.lastHeartbeatTime is not an RFC 3339 time: soon",
        ),
    ],
)
def test_wrong_types_are_named_by_their_path(document: object, message: str) -> None:
    with pytest.raises(BadDataError, match=message):
        node_from_json(document)


# --- Pod ---


def test_captured_pods() -> None:
    pods = {pod.name: pod for pod in pods_from_json(load(HEALTHY / "pods.json"))}
    greedy = pods["greedy"]
    assert (greedy.phase, greedy.reason) == ("Failed", "UnexpectedAdmissionError")
    assert greedy.terminal
    assert (greedy.message or "").startswith("Pod was rejected: Allocate failed")
    proxy, jupyter = pods["notebook"].containers
    assert (proxy.name, proxy.kind, proxy.state) == ("proxy", "sidecar", "running")
    assert jupyter.kind == "app"
    assert jupyter.health == (HealthWord("vendor.example/gpu", "gpu-0", "Healthy", None),)
    warmup, main = pods["trainer"].containers
    assert (warmup.kind, warmup.state, warmup.reason) == ("init", "waiting", "RunContainerError")
    assert main.requests["fabric.example/rdma"] == "2"
    assert {word.device_id for word in main.health} == {"gpu-2", "gpu-3", "0000:af:00.2", "bond0"}
    assert all(pod.node_name == "worker-0" and not pod.deleted for pod in pods.values())


def pod(**changes: Any) -> dict[str, Any]:
    meta = {"namespace": "ns", "name": "p", "uid": "u", **changes.pop("metadata", {})}
    return {"metadata": meta, "spec": {}, **changes}


def test_a_limit_stands_in_for_a_request() -> None:
    resources = {"limits": {"a/b": "2", "c/d": "3"}, "requests": {"c/d": "1", "cpu": "1"}}
    (found,) = pods_from_json(pod(spec={"containers": [{"name": "c", "resources": resources}]}))
    assert found.containers[0].requests == {"a/b": "2", "c/d": "1", "cpu": "1"}
    assert found.containers[0].limits == {"a/b": "2", "c/d": "3"}


def test_everything_a_pod_can_say() -> None:
    document = pod(
        metadata={
            "annotations": {"kubernetes.io/config.hash": "abc"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                {"kind": "Other", "name": "o"},
                {"kind": "DaemonSet", "name": "plugin", "controller": True},
            ],
        },
        spec={
            "nodeName": "n",
            "overhead": {"cpu": "250m"},
            "resources": {"requests": {"memory": "1Gi"}},
            "initContainers": [
                {"name": "first"},
                {"name": "side", "restartPolicy": "Always"},
                {"name": "last"},
            ],
            "containers": [{"name": "c"}],
            "ephemeralContainers": [{"name": "debug"}],
        },
        status={
            "phase": "Running",
            "initContainerStatuses": [
                {
                    "name": "side",
                    "state": {"running": {}},
                    "allocatedResourcesStatus": [
                        {"name": "a/b", "resources": [{"resourceID": "0"}]}
                    ],
                },
                {"name": "first", "state": {"terminated": {"reason": "Completed"}}},
                # a container of that name, but not an init container
                {"name": "c", "state": {"terminated": {"reason": "Wrong"}}},
            ],
            "containerStatuses": [
                {
                    "name": "c",
                    "state": {"waiting": {"reason": "Slow"}},
                    "allocatedResourcesStatus": [
                        {
                            "name": "claim:x",
                            "resources": [
                                {"resourceID": "d/p/1", "health": "Unhealthy", "message": "Xid 48"}
                            ],
                        }
                    ],
                }
            ],
        },
    )
    (found,) = pods_from_json({"kind": "PodList", "items": [document]})
    assert (found.config_hash, found.deleted, found.owner) == ("abc", True, "DaemonSet/plugin")
    assert (found.node_name, found.phase) == ("n", "Running")
    assert (found.overhead, found.pod_requests) == ({"cpu": "250m"}, {"memory": "1Gi"})
    assert [(c.name, c.kind, c.state, c.reason) for c in found.containers] == [
        ("first", "init", "terminated", "Completed"),
        ("side", "sidecar", "running", None),
        ("last", "init", None, None),
        ("c", "app", "waiting", "Slow"),
    ]
    assert found.containers[1].health == (HealthWord("a/b", "0", "Unknown", None),)
    assert found.containers[3].health == (HealthWord("claim:x", "d/p/1", "Unhealthy", "Xid 48"),)


def test_a_pod_without_a_status_is_not_terminal() -> None:
    (found,) = pods_from_json(pod())
    assert (found.phase, found.terminal, found.containers) == ("Unknown", False, ())


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (pod(metadata={"uid": None}), r"metadata\.uid is missing"),
        (pod(metadata={"annotations": {"a": 1}}), r"metadata\.annotations\.a is a number"),
        (pod(spec={"containers": [{}]}), r"spec\.containers\[0\]\.name is missing"),
        (pod(spec={"containers": "x"}), r"spec\.containers is text, not a list"),
        (pod(spec={"overhead": {"cpu": "lots"}}), r"spec\.overhead\.cpu is not a quantity: lots"),
        (
            pod(spec={"containers": [{"name": "c", "resources": {"limits": {"a/b": "1e999999"}}}]}),
            r"spec\.containers\[0\]\.resources\.limits\.a/b is not a quantity",
        ),
        (pod(status={"containerStatuses": [{"name": 1}]}), r"status\.containerStatuses\[0\]\.name"),
    ],
)
def test_a_broken_pod_is_named(document: object, message: str) -> None:
    whole = {"kind": "List", "items": [pod(), document]}
    with pytest.raises(BadDataError, match=r"items\[1\]\." + message):
        pods_from_json(whole)


def test_device_classes() -> None:
    items = [
        {"metadata": {"name": "plain"}},
        {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "v.io/gpu"}},
    ]
    found = device_classes_from_json({"kind": "DeviceClassList", "items": items})
    assert [(c.name, c.extended_resource_name) for c in found] == [
        ("plain", None),
        ("gpu", "v.io/gpu"),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "items", "kind", "metadata", "spec", "status", "x"]), inner
        )
    ),
    max_leaves=10,
)
CAPTURED: list[tuple[str, Callable[[object], object]]] = [
    ("node.json", node_from_json),
    ("pods.json", pods_from_json),
]


@given(st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    """A captured document with one value replaced by anything: a model or a BadDataError."""
    name, parse = data.draw(st.sampled_from(CAPTURED))
    document = copy.deepcopy(load(HEALTHY / name))
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(here[key], (dict, list)) or not here[key] or data.draw(st.booleans()):
            here[key] = data.draw(JSON)
            break
        here = here[key]
    with suppress(BadDataError):
        parse(document)


@given(JSON)
def test_any_document_is_read_or_refused(document: object) -> None:
    parsers: tuple[Callable[[object], object], ...] = (
        nodes_from_json,
        pods_from_json,
        device_classes_from_json,
    )
    for parse in parsers:
        with suppress(BadDataError):
            parse(document)
