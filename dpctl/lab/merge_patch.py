"""Merge patch (RFC 7386) and the strategic one, as far as nodes and pods need it. Pure."""

from __future__ import annotations

import copy
from typing import Any

from dpctl.lab.api_errors import Json

MERGE_KEYS = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "containerStatuses": "name",
    "initContainerStatuses": "name",
}
"""Lists that a strategic merge patch merges by a key (`patchMergeKey` of the API types)."""


def merge(document: Any, patch: Any, *, strategic: bool = False) -> Any:
    """A merged copy: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            continue  # $setElementOrder, $patch: orders and directives nobody here sends
        if value is None:
            merged.pop(key, None)
        elif strategic and isinstance(value, list) and key in MERGE_KEYS:
            merged[key] = _merge_list(merged.get(key), value, MERGE_KEYS[key])
        else:
            merged[key] = merge(merged.get(key), value, strategic=strategic)
    return merged


def diff(old: Any, new: Any) -> Json:
    """The merge patch that makes `new` of `old`; keyed lists item by item (a kubelet's two-way
    diff). Empty: nothing changed."""
    patch: Json = {}
    for key in old.keys() | new.keys():
        if key not in new:
            patch[key] = None
        elif key not in old:
            patch[key] = new[key]
        elif old[key] != new[key]:
            if isinstance(old[key], dict) and isinstance(new[key], dict):
                patch[key] = diff(old[key], new[key])
            elif key in MERGE_KEYS and isinstance(old[key], list):
                patch[key] = [item for item in new[key] if item not in old[key]]
            else:
                patch[key] = new[key]
    return patch


def _merge_list(old: Any, patch: list[Any], key: str) -> list[Any]:
    items = list(old) if isinstance(old, list) else []
    places = {item.get(key): place for place, item in enumerate(items) if isinstance(item, dict)}
    for item in patch:
        if isinstance(item, dict) and item.get(key) in places:
            place = places[item.get(key)]
            items[place] = merge(items[place], item, strategic=True)
        else:
            items.append(copy.deepcopy(item))
    return items
