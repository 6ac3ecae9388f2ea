"""The API server's error answers (`Status` objects). Texts and codes: kubelet-facts §11. A leaf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
"""A decoded JSON object."""


class ApiError(Exception):
    """An answer other than success: HTTP code, reason, message, details."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        headers: Mapping[str, str] | None = None,
        metadata: Json | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = {} if details is None else details
        self.headers = {} if headers is None else dict(headers)
        self.metadata = {} if metadata is None else metadata

    def status(self) -> Json:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def not_found(resource: str, name: str) -> ApiError:
    return ApiError(
        404, "NotFound", f'{resource} "{name}" not found', {"name": name, "kind": resource}
    )


def already_exists(resource: str, name: str) -> ApiError:
    details = {"name": name, "kind": resource}
    return ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists', details)


def conflict(resource: str, name: str) -> ApiError:
    message = (
        f'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return ApiError(409, "Conflict", message, {"name": name, "kind": resource})


def unprocessable() -> ApiError:
    """A JSON Patch that does not apply: the reason is dropped on the way (kubelet-facts §11)."""
    return ApiError(
        422, "Invalid", "the server rejected our request due to an error in our request"
    )


def invalid(kind: str, name: str, causes: Sequence[tuple[str, str, str]]) -> ApiError:
    """Validation failures: (field, bad value, what is wrong) each."""
    texts = [f'{field}: Invalid value: "{value}": {wrong}' for field, value, wrong in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {
        "name": name,
        "kind": kind,
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "message": f'Invalid value: "{value}": {wrong}',
                "field": field,
            }
            for field, value, wrong in causes
        ],
    }
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {joined}', details)


def expired(following: str) -> ApiError:
    """A page token whose version is gone; `following` goes on with what there is now."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can"
        " start a new list without the continue parameter, or use the continue token in this"
        " response to retrieve the remainder of the results. Continuing with the provided token"
        " results in an inconsistent list - objects that were created, modified, or deleted between"
        " the time the first chunk was returned and now may show up in the list."
    )
    return ApiError(410, "Expired", message, metadata={"continue": following})
