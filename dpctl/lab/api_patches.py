"""PATCH bodies: content type and bytes to a change of an object (kubelet-facts §11). Pure."""

from __future__ import annotations

import json
from collections.abc import Callable

from dpctl.lab import json_patch
from dpctl.lab.api_errors import ApiError, Json, bad_request, unprocessable
from dpctl.lab.merge_patch import merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def change_of(content_type: str, body: bytes) -> Callable[[Json], Json]:
    """What the patch does to an object.

    Raises ApiError 400 (undecodable), 413 (too many operations), 415; the change raises 422.
    """
    kind = content_type.partition(";")[0].strip()
    if kind == JSON_PATCH:
        try:
            operations = json_patch.decode(body)
        except json_patch.UndecodableError as error:
            raise bad_request(f"error decoding patch: invalid JSON patch: {error}") from None
        if len(operations) > json_patch.MAX_OPERATIONS:
            message = (
                "Request entity too large: The allowed maximum operations in a JSON patch is "
                f"{json_patch.MAX_OPERATIONS}, got {len(operations)}"
            )
            raise ApiError(413, "RequestEntityTooLarge", message)
        return lambda old: _apply(old, operations)
    if kind in (MERGE_PATCH, STRATEGIC):
        try:
            patch = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise bad_request(f"error decoding patch: {error}") from None
        if not isinstance(patch, dict):
            raise bad_request("error decoding patch: json: cannot unmarshal into map")
        strategic = kind == STRATEGIC
        return lambda old: _object(merge(old, patch, strategic=strategic))
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC}"
    )
    raise ApiError(415, "UnsupportedMediaType", message)


def _apply(old: Json, operations: list[Json]) -> Json:
    try:
        return _object(json_patch.apply(old, operations))
    except json_patch.PatchError:
        raise unprocessable() from None


def _object(document: Json) -> Json:
    for key in ("metadata", "spec", "status"):
        if not isinstance(document.get(key, {}), dict):
            raise unprocessable()
    for part in ("capacity", "allocatable"):
        if not isinstance(document.get("status", {}).get(part) or {}, dict):
            raise unprocessable()
    return document
