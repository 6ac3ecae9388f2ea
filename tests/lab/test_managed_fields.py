from __future__ import annotations

from typing import Any

from dpctl.lab.managed_fields import updated


def node(capacity: dict[str, str], fields: list[dict[str, Any]]) -> dict[str, Any]:
    metadata = {"name": "n", "labels": {"a": "b"}, "managedFields": fields}
    return {"apiVersion": "v1", "metadata": metadata, "status": {"capacity": capacity}}


def owned(fields: list[dict[str, Any]]) -> dict[tuple[str, str | None], set[str]]:
    """(manager, subresource) to the capacity keys."""
    return {
        (entry["manager"], entry.get("subresource")): {
            key.removeprefix("f:")
            for key in entry["fieldsV1"].get("f:status", {}).get("f:capacity", {})
        }
        for entry in fields
    }


def test_what_comes_with_the_creation_has_no_owner() -> None:
    fields = updated({}, node({"cpu": "2"}, []), "kubelet", None, "t0")
    assert owned(fields) == {("kubelet", None): set()}
    assert fields[0]["fieldsV1"] == {"f:metadata": {"f:labels": {"f:a": {}}}}


def test_writer_owns_what_changed_and_nobody_else_does() -> None:
    start = node({"cpu": "2"}, [])
    first = updated(start, node({"cpu": "2", "a/x": "1", "a/y": "1"}, []), "kubelet", "status", "1")
    assert owned(first) == {("kubelet", "status"): {"a/x", "a/y"}}
    before = node({"cpu": "2", "a/x": "1", "a/y": "1"}, first)
    second = updated(
        before, node({"cpu": "2", "a/x": "5", "a/y": "1"}, []), "kubectl-patch", "status", "2"
    )
    assert owned(second) == {("kubelet", "status"): {"a/y"}, ("kubectl-patch", "status"): {"a/x"}}
    assert {entry["manager"]: entry["time"] for entry in second} == {
        "kubelet": "1",
        "kubectl-patch": "2",
    }


def test_writing_the_same_value_changes_no_owner() -> None:
    fields = updated(node({}, []), node({"a/x": "1"}, []), "kubelet", "status", "1")
    same = node({"a/x": "1"}, fields)
    assert updated(same, same, "kubectl-patch", "status", "2") == fields


def test_removed_fields_leave_all_entries() -> None:
    fields = updated(node({}, []), node({"a/x": "1"}, []), "kubelet", "status", "1")
    assert updated(node({"a/x": "1"}, fields), node({}, []), "admin", "status", "2") == []


def test_conditions_are_keyed_by_type() -> None:
    new = node({}, [])
    new["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    fields = updated(node({}, []), new, "kubelet", "status", "1")
    assert fields[0]["fieldsV1"]["f:status"]["f:conditions"] == {
        'k:{"type":"Ready"}': {"f:status": {}, "f:type": {}}
    }
