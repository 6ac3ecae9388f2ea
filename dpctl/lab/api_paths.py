"""URL paths and selectors of the lab's API server: text to request. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from dpctl.lab.api_errors import ApiError, Json, bad_request, expired
from dpctl.lab.api_store import KINDS

_GROUPS = {
    ("api", "v1"): "",
    ("apis", "resource.k8s.io", "v1"): "resource.k8s.io",
    ("apis", "authentication.k8s.io", "v1"): "authentication.k8s.io",
    ("apis", "authorization.k8s.io", "v1"): "authorization.k8s.io",
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL path names."""

    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target(path: str) -> Target:
    """Raises ApiError 404 for a path that names nothing here."""
    parts = tuple(unquote(part) for part in path.strip("/").split("/"))
    for prefix, group in _GROUPS.items():
        if parts[: len(prefix)] == prefix and len(parts) > len(prefix):
            return _within(group, list(parts[len(prefix) :]))
    raise ApiError(404, "NotFound", "the server could not find the requested resource")


def _within(group: str, parts: list[str]) -> Target:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    resource, rest = parts[0], parts[1:]
    served = "" if resource not in KINDS else KINDS[resource][0].rpartition("/")[0]
    if len(rest) > 3 or (resource in KINDS and served != group):
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    return Target(
        group,
        resource,
        namespace,
        rest[0] if rest else "",
        "/".join(rest[1:]),
    )


def field_selector(text: str) -> dict[str, tuple[bool, str]]:
    """`spec.nodeName=lab-0,status.phase!=Failed` to field, whether equal, value."""
    found: dict[str, tuple[bool, str]] = {}
    for term in filter(None, text.split(",")):
        for sign, equal in (("!=", False), ("==", True), ("=", True)):
            name, split, value = term.partition(sign)
            if split:
                found[name.strip()] = (equal, value.strip())
                break
        else:
            raise bad_request(f"invalid field selector: {term}")
    return found


def matches_fields(document: Json, selector: Mapping[str, tuple[bool, str]]) -> bool:
    return all((_dig(document, f) == value) is equal for f, (equal, value) in selector.items())


def matches_labels(document: Json, selector: str) -> bool:
    """Equalities, inequalities and presence; no sets."""
    labels = document.get("metadata", {}).get("labels") or {}
    for term in filter(None, (part.strip() for part in selector.split(","))):
        if "!=" in term:
            name, _, value = term.partition("!=")
            if labels.get(name.strip()) == value.strip():
                return False
        elif "=" in term:
            name, _, value = term.replace("==", "=").partition("=")
            if labels.get(name.strip()) != value.strip():
                return False
        elif (term.lstrip("!") in labels) is term.startswith("!"):
            return False
    return True


def _dig(document: Any, path: str) -> str:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return "" if document is None else str(document)


Key = tuple[str, str]


def page(
    items: list[Json], limit: int, token: str, *, version: int, oldest: int
) -> tuple[list[Json], Json]:
    """One page of `items`, which are in the order of their keys, and what list metadata says of the
    rest (`continue`, `remainingItemCount`).

    A token names the last key and the version that the list began with, so objects that come and go
    between two pages neither shift nor repeat others. Raises ApiError 410 for one that began before
    `oldest`; its `continue` goes on behind the same key with what there is now.
    """
    begun = version
    if token:
        begun, last = _decode_token(token)
        if begun < oldest:
            raise expired(_token(version, last))
        items = [item for item in items if _key(item) > last]
    chosen = items[:limit] if limit else items
    left = len(items) - len(chosen)
    if left <= 0:
        return chosen, {}
    return chosen, {"continue": _token(begun, _key(chosen[-1])), "remainingItemCount": left}


def _key(item: Json) -> Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _token(version: int, last: Key) -> str:
    text = json.dumps({"v": version, "start": list(last)}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def _decode_token(token: str) -> tuple[int, Key]:
    try:
        found = json.loads(base64.urlsafe_b64decode(token))
        namespace, name = found["start"]
        return int(found["v"]), (str(namespace), str(name))
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise bad_request("continue key is not valid") from None
