"""JSON of a state file, read as strictly as Go reads it and bounded; pure.

Only the document and the types of its values. What keys mean belongs to the formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from dpctl.errors import BadDataError
from dpctl.text import shorten

# Python needs about 60 bytes even for an empty list, so 64 MiB of "[]," would be 1.3 GB. The
# largest real files (1000 pods, 100 000 devices) hold a few hundred thousand values.
_MOST_VALUES = 4_000_000
_QUOTED = 80
_DAMAGED = (
    "the file is damaged; a kubelet that starts with it begins with empty device state (it logs"
    " `Continue after failing to read checkpoint file`)"
)


def load(data: bytes, what: str) -> object:
    """The decoded document; bytes that are no UTF-8 become lone surrogates.

    Raises BadDataError naming `what`: not JSON, too deep, a key twice, numbers or counts absurd.
    """
    if not data.strip(b" \t\r\n"):
        words = "is empty (a crash or power loss can leave a file like that)"
        raise BadDataError(f"{what} {words}", _DAMAGED)
    if not data.strip(b"\0"):
        words = "holds nothing but zero bytes (power loss before the data reached the disk)"
        raise BadDataError(f"{what} {words}", _DAMAGED)
    if data.count(b",") + data.count(b"[") + data.count(b"{") > _MOST_VALUES:
        raise BadDataError(f"{what} has more than {_MOST_VALUES} values", _DAMAGED)
    try:
        return json.loads(
            data.decode("utf-8", "surrogateescape"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
        )
    except RecursionError as e:
        raise BadDataError(f"{what} is not usable JSON: nested too deeply", _DAMAGED) from e
    except ValueError as e:
        raise BadDataError(f"{what} is not JSON: {shorten(str(e), 200)}", _DAMAGED) from e


def wrong(what: str, path: str, value: object, wanted: str) -> BadDataError:
    """The error for a value of the wrong type."""
    return BadDataError(f"{what}: {path} is {kind(value)}, not {wanted}", _DAMAGED)


def damaged(what: str, words: str) -> BadDataError:
    return BadDataError(f"{what}: {words}", _DAMAGED)


def members(what: str, path: str, value: object) -> Mapping[str, object]:
    """The members of an object."""
    if isinstance(value, dict):
        return value
    raise wrong(what, path, value, "an object")


def text(what: str, path: str, value: object) -> str:
    """A string; `null` and missing are empty, as in Go."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise wrong(what, path, value, "text")


def texts(what: str, path: str, value: object) -> list[str] | None:
    """A list of strings; None for `null` or a missing one."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise wrong(what, path, value, "a list")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            if item is None:
                return [text(what, f"{path}[{i}]", one) for i, one in enumerate(value)]
            raise wrong(what, f"{path}[{index}]", item, "text")
    return value


def kind(value: object) -> str:
    """What a value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return f"text ({shorten(value, _QUOTED)!r})"
    return "a list" if isinstance(value, list) else "an object"


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {shorten(key, _QUOTED)!r} stands twice in one object")
            seen.add(key)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
