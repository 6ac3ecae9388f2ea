"""The table of kubelet-facts §11: what the API server's JSON Patch library answers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dpctl.lab import json_patch

DOCUMENT: dict[str, Any] = {
    "status": {"capacity": {"vendor.example/gpu": "2", "cpu": "4"}, "list": ["a", "b"]}
}
GPU = "/status/capacity/vendor.example~1gpu"
NOPE = "/status/capacity/vendor.example~1nope"


def patched(*operations: dict[str, Any]) -> dict[str, Any]:
    return json_patch.apply(DOCUMENT, list(operations))


def test_remove_present() -> None:
    capacity = patched({"op": "remove", "path": GPU})["status"]["capacity"]
    assert capacity == {"cpu": "4"}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            {"op": "remove", "path": NOPE},
            f"error in remove for path: '{NOPE}': Unable to remove nonexistent key: "
            "vendor.example/nope: missing value",
        ),
        (
            {"op": "remove", "path": "/status/nothing/here"},
            'remove operation does not apply: doc is missing path: "/status/nothing/here": '
            "missing value",
        ),
        (
            {"op": "remove", "path": "/status/capacity/vendor.example/gpu"},
            "remove operation does not apply: doc is missing path: "
            '"/status/capacity/vendor.example/gpu": missing value',
        ),
        ({"op": "test", "path": GPU, "value": "3"}, f"testing value {GPU} failed: test failed"),
        ({"op": "test", "path": GPU, "value": 2}, f"testing value {GPU} failed: test failed"),
        ({"op": "test", "path": NOPE, "value": "2"}, f"testing value {NOPE} failed: test failed"),
        ({"op": "test", "path": GPU, "value": None}, f"testing value {GPU} failed: test failed"),
    ],
)
def test_does_not_apply(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(json_patch.PatchError) as raised:
        patched(operation)
    assert str(raised.value) == message


def test_test_passes() -> None:
    same = patched(
        {"op": "test", "path": GPU, "value": "2"}, {"op": "test", "path": NOPE, "value": None}
    )
    assert same == DOCUMENT


@pytest.mark.parametrize("op", ["add", "replace"])
def test_put_creates_and_overwrites(op: str) -> None:
    capacity = patched(
        {"op": op, "path": NOPE, "value": "1"}, {"op": op, "path": GPU, "value": "9"}
    )["status"]["capacity"]
    assert capacity == {"vendor.example/gpu": "9", "cpu": "4", "vendor.example/nope": "1"}


def test_lists_move_and_copy() -> None:
    status = patched(
        {"op": "add", "path": "/status/list/-", "value": "c"},
        {"op": "remove", "path": "/status/list/0"},
        {"op": "move", "from": GPU, "path": NOPE},
        {"op": "copy", "from": "/status/capacity/cpu", "path": "/status/copied"},
    )["status"]
    assert status == {
        "capacity": {"cpu": "4", "vendor.example/nope": "2"},
        "list": ["b", "c"],
        "copied": "4",
    }


def test_all_or_nothing() -> None:
    before = copy.deepcopy(DOCUMENT)
    with pytest.raises(json_patch.PatchError):
        patched({"op": "remove", "path": GPU}, {"op": "remove", "path": GPU})
    assert before == DOCUMENT


@pytest.mark.parametrize(
    "body", [b"{", b"{}", b'[{"op": "remove"}]', b"[1]", b'[{"op": 1, "path": "/x"}]', b"\xff"]
)
def test_undecodable(body: bytes) -> None:
    with pytest.raises(json_patch.UndecodableError):
        json_patch.decode(body)
