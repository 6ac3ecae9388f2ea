"""Who wrote which field: `metadata.managedFields`, kept as the API server keeps them. Pure.

An update gives the writer the fields it changed and takes them from everybody else; unchanged
fields stay whose they were; what came with an object's creation through another subresource has
no owner (kubelet-facts §15). Only `Update` is known, not server-side apply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dpctl.lab.api_errors import Json
from dpctl.lab.merge_patch import MERGE_KEYS

Path = tuple[str, ...]
"""Segments as in FieldsV1: `f:status`, `k:{"type":"Ready"}`."""

_NOT_TRACKED = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "selfLink",
    }
)


def updated(old: Json, new: Json, manager: str, subresource: str | None, time: str) -> list[Json]:
    """The entries after `manager` made `new` of `old` ({}: created)."""
    before, after = _leaves(old), _leaves(new)
    if not old and subresource is None:  # a status sent along with a creation is nobody's
        after = {path: value for path, value in after.items() if path[0] != "f:status"}
    changed = {path for path, value in after.items() if before.get(path, _ABSENT) != value}
    gone = before.keys() - after.keys()
    entries: list[tuple[Json, set[Path]]] = []
    mine: set[Path] | None = None
    for entry in old.get("metadata", {}).get("managedFields") or []:
        paths = set(_paths(entry.get("fieldsV1", {}))) - gone
        if entry.get("manager") == manager and entry.get("subresource") == subresource:
            mine = paths | changed
            moment = time if changed else entry.get("time")
            entries.append(({**entry, "time": moment}, mine))
        else:
            entries.append((entry, paths - changed))
    if mine is None and changed:
        entry = {"apiVersion": new.get("apiVersion", "v1"), "fieldsType": "FieldsV1"}
        entry |= {"manager": manager, "operation": "Update", "time": time}
        entries.append((entry | ({"subresource": subresource} if subresource else {}), changed))
    return [{**entry, "fieldsV1": _tree(paths)} for entry, paths in entries if paths]


_ABSENT = object()


def _leaves(document: Json) -> dict[Path, Any]:
    found: dict[Path, Any] = {}
    for key in ("metadata", "spec", "status"):
        if isinstance(document.get(key), dict):
            _walk(document[key], (f"f:{key}",), found)
    return found


def _walk(value: Any, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if path != ("f:metadata",) or key not in _NOT_TRACKED:
                _walk(item, (*path, f"f:{key}"), found)
        return
    key_field = MERGE_KEYS.get(path[-1].removeprefix("f:")) if isinstance(value, list) else None
    if key_field is None:
        found[path] = value
        return
    for item in value:
        key = json.dumps({key_field: item.get(key_field)}, separators=(",", ":"))
        _walk(item, (*path, f"k:{key}"), found)


def _paths(fields: Json, path: Path = ()) -> Iterator[Path]:
    for key, below in fields.items():
        if key == ".":
            continue
        if below:
            yield from _paths(below, (*path, key))
        else:
            yield (*path, key)


def _tree(paths: set[Path]) -> Json:
    tree: Json = {}
    for path in sorted(paths):
        here = tree
        for segment in path:
            here = here.setdefault(segment, {})
    return tree
