"""JSON of a state file, read as strictly as Go reads it and bounded; pure.

Only the document and the types of its values. What keys mean belongs to the formats; how Go writes,
and what it says to a damaged text, to `go_json`.
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


class UnreadError(BadDataError):
    """dpctl does not read it; a kubelet may (a key twice, nested deeply, absurdly many values)."""


def load(data: bytes, what: str) -> object:
    """The decoded document; bytes that are no UTF-8 become lone surrogates.

    Raises BadDataError naming `what`: not JSON, numbers absurd; UnreadError: too deep, a key twice,
    too many values.
    """
    if not data.strip(b" \t\r\n"):
        words = "is empty (a crash or power loss can leave a file like that)"
        raise BadDataError(f"{what} {words}", _DAMAGED)
    if not data.strip(b"\0"):
        words = "holds nothing but zero bytes (power loss before the data reached the disk)"
        raise BadDataError(f"{what} {words}", _DAMAGED)
    if data.count(b",") + data.count(b"[") + data.count(b"{") > _MOST_VALUES:
        raise UnreadError(f"{what} has more than {_MOST_VALUES} values", _DAMAGED)
    try:
        return json.loads(
            data.decode("utf-8", "surrogateescape"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
        )
    except RecursionError as e:
        raise UnreadError(f"{what} is not usable JSON: nested too deeply", _DAMAGED) from e
    except _TwiceError as e:
        raise UnreadError(f"{what} is not JSON: {e}", _DAMAGED) from e
    except ValueError as e:
        raise BadDataError(f"{what} is not JSON: {shorten(str(e), 200)}", _DAMAGED) from e


def known(
    what: str, path: str, value: object, names: tuple[str, ...]
) -> tuple[dict[str, object], tuple[str, ...]]:
    """The members of an object that Go decodes into a struct with these keys, and the keys that it
    passes over. As in Go the case of letters does not count. `null` is an empty struct."""
    if value is None:
        return {}, ()
    found: dict[str, object] = {}
    others: list[str] = []
    folded = {name.lower(): name for name in names}
    for key, item in members(what, path, value).items():
        name = key if key in names else folded.get(key.lower())
        if name is None:
            others.append(key)
        elif name in found:
            raise UnreadError(f"{what}: {path} has {name} twice, spelled differently", _DAMAGED)
        else:
            found[name] = item
    return found, tuple(others)


def whole(what: str, path: str, value: object, *, signed: bool = False) -> int:
    """A whole number of 64 bits; `null` and missing are 0, as in Go."""
    if value is None:
        return 0
    low, high = (-(2**63), 2**63) if signed else (0, 2**64)
    if isinstance(value, int) and not isinstance(value, bool) and low <= value < high:
        return value
    raise wrong(what, path, value, f"a whole number of 64 bits{'' if signed else ', 0 or more'}")


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


class _TwiceError(ValueError):
    pass


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(f"key {shorten(key, _QUOTED)!r} stands twice in one object")
            seen.add(key)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
