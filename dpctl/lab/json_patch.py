"""JSON Patch (RFC 6902) as the API server's library applies it. Pure.

Where that library is not the RFC, it is followed: `replace` creates an absent key, `test` of an
absent key passes with null (kubelet-facts §11, executed there). Errors carry the library's texts,
which the HTTP answer then drops.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from dpctl.lab.api_errors import Json

MAX_OPERATIONS = 10_000


class PatchError(Exception):
    """The patch was understood and does not apply."""


class UndecodableError(Exception):
    """Not a JSON Patch at all."""


def decode(body: bytes) -> list[Json]:
    """The operations. Raises UndecodableError."""
    try:
        operations = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UndecodableError(str(error)) from error
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        raise UndecodableError("cannot unmarshal into Go value of type jsonpatch.Patch")
    for operation in operations:
        if not isinstance(operation.get("op"), str) or not isinstance(operation.get("path"), str):
            raise UndecodableError("operation without op or path")
    return operations


def apply(document: Json, operations: list[Json]) -> Json:
    """A patched copy; `document` is left alone. All or nothing. Raises PatchError."""
    patched: Any = copy.deepcopy(document)
    for operation in operations:
        patched = _apply_one(patched, operation)
    if not isinstance(patched, dict):
        raise PatchError("the document is no object any more")
    return patched


def _apply_one(document: Any, operation: Json) -> Any:
    op, path = operation["op"], operation["path"]
    if op == "test":
        _test(document, path, operation.get("value"))
    elif op in ("add", "replace"):
        return _put(document, path, op, operation.get("value"))
    elif op == "remove":
        _remove(document, path)
    elif op in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise PatchError(f"{op} operation does not apply: from is missing")
        parent, key = _locate(document, source, op)
        value = copy.deepcopy(_get(parent, key, source, op))
        if op == "move":
            _remove(document, source)
        return _put(document, path, "add", value)
    else:
        raise PatchError(f"Unexpected kind: {op}")
    return document


def _tokens(path: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def _locate(document: Any, path: str, op: str) -> tuple[Any, str]:
    tokens = _tokens(path)
    missing = f'{op} operation does not apply: doc is missing path: "{path}": missing value'
    if not tokens:
        raise PatchError(missing)
    here = document
    for token in tokens[:-1]:
        try:
            here = here[int(token)] if isinstance(here, list) else here[token]
        except (KeyError, IndexError, ValueError, TypeError):
            raise PatchError(missing) from None
    if not isinstance(here, dict | list):
        raise PatchError(missing)
    return here, tokens[-1]


def _get(parent: Any, key: str, path: str, op: str) -> Any:
    try:
        return parent[int(key)] if isinstance(parent, list) else parent[key]
    except (KeyError, IndexError, ValueError):
        raise PatchError(
            f"error in {op} for path: '{path}': missing key: {key}: missing value"
        ) from None


def _test(document: Any, path: str, expected: Any) -> None:
    parent, key = _locate(document, path, "test")
    try:
        found = parent[int(key)] if isinstance(parent, list) else parent[key]
    except (KeyError, IndexError, ValueError):
        found = None
        if expected is not None:
            raise PatchError(f"testing value {path} failed: test failed") from None
    # `1 == True` in Python; in JSON they differ.
    if json.dumps(found, sort_keys=True) != json.dumps(expected, sort_keys=True):
        raise PatchError(f"testing value {path} failed: test failed")


def _put(document: Any, path: str, op: str, value: Any) -> Any:
    if path == "":
        return value
    parent, key = _locate(document, path, op)
    if isinstance(parent, dict):
        parent[key] = value
        return document
    try:
        index = len(parent) if key == "-" else int(key)
    except ValueError:
        raise PatchError(f"value was not a proper array index: '{key}'") from None
    if not 0 <= index <= len(parent) or (op == "replace" and index == len(parent)):
        raise PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    if op == "replace":
        parent[index] = value
    else:
        parent.insert(index, value)
    return document


def _remove(document: Any, path: str) -> None:
    parent, key = _locate(document, path, "remove")
    try:
        if isinstance(parent, list):
            del parent[int(key)]
        else:
            del parent[key]
    except (KeyError, IndexError, ValueError):
        raise PatchError(
            f"error in remove for path: '{path}': "
            f"Unable to remove nonexistent key: {key}: missing value"
        ) from None
