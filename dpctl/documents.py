"""Rows as JSON documents: the keys, the times, the list around them, and the JSON text.

Any dataclass works, field by field; nothing here knows a particular row. The JSON Schema of the
same documents is `schema.py`, which follows `key_of` and `is_time` of this module.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dpctl.columns import Row, Time, Unknown, View

if TYPE_CHECKING:
    from dpctl.model import Snapshot, SourceRow

API_VERSION = "dpctl/v1"
HIDDEN_IN_SOURCES = "seconds"
"""How long a reading took would differ at every replay of the same bundle."""


class Envelope(NamedTuple):
    """What a list says beside its items."""

    collected_at: Time | None = None
    """When the facts were read; None: a bundle without `meta.json`."""
    sources: tuple[SourceRow, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot) -> Envelope:
        return cls(snapshot.collected_at, snapshot.sources)


def document(row: object) -> dict[str, Any]:
    """A dataclass as a JSON object: every field, in order, camelCase; None stays as null.

    A field of type `Time` or named `…_at` becomes RFC 3339; `metadata={"json": "key"}` names the
    key, `{"json": None}` leaves the field out. `TypeError` for anything but a dataclass.
    """
    plan = _plan(type(row))  # type: ignore[arg-type, unused-ignore]  # a type is hashable
    return {key: _plain(getattr(row, name), moment) for name, key, moment in plan}


def row_document(row: Row, view: View[Row]) -> dict[str, Any]:
    return view.document(row) if view.document else document(row)


def keys_of(row_type: type) -> list[str]:
    """Keys of the documents of a row type, in order."""
    return [key for _, key, _ in _plan(row_type)]


def list_document(items: Iterable[dict[str, Any]], kind: str, envelope: Envelope) -> dict[str, Any]:
    """The one document of `-o json`: `kind` is that of one item, the list's has `List` added."""
    return {
        "apiVersion": API_VERSION,
        "kind": f"{kind}List",
        "items": list(items),
        "collectedAt": rfc3339(envelope.collected_at),
        "sources": [source_document(row) for row in envelope.sources],
    }


def source_document(row: SourceRow) -> dict[str, Any]:
    found = document(row)
    del found[HIDDEN_IN_SOURCES]
    return found


def json_text(value: object, *, indent: int | None = None) -> str:
    """JSON, ASCII only: exact for lone surrogates, and harmless on a terminal without escaping."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, indent=indent, separators=separators, allow_nan=False)


def rfc3339(seconds: float | None) -> str | None:
    """`2026-11-29T13:12:15Z`, with milliseconds if there are any; None for what no date can be."""
    if seconds is None or not math.isfinite(seconds):
        return None
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    try:
        at = time.gmtime(whole)
    except (OverflowError, OSError, ValueError):
        return None
    if not 0 <= at.tm_year <= 9999:
        return None
    fraction = f".{milliseconds:03d}" if milliseconds else ""
    return (
        f"{at.tm_year:04d}-{at.tm_mon:02d}-{at.tm_mday:02d}"
        f"T{at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d}{fraction}Z"
    )


def camel_case(name: str) -> str:
    """`numa_nodes` → `numaNodes`; a trailing underscore (`class_`) goes."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


class RowField(NamedTuple):
    """One field of a row type, as far as documents and schemas look at it."""

    name: str
    annotation: str
    """As written."""
    metadata: Mapping[str, Any]
    """Of a dataclass field; a named tuple's has none."""


@cache
def fields_of(row_type: type) -> tuple[RowField, ...]:
    """Fields in order, of a named tuple or a dataclass. `TypeError` for anything else."""
    names: tuple[str, ...] | None = getattr(row_type, "_fields", None)
    if names is not None:
        hints = row_type.__annotations__
        return tuple(RowField(name, _text(hints[name]), {}) for name in names)
    from dataclasses import fields, is_dataclass  # a row that is none of ours

    if not is_dataclass(row_type):
        raise TypeError(f"{row_type.__name__} is neither a named tuple nor a dataclass")
    return tuple(RowField(f.name, _text(f.type), f.metadata) for f in fields(row_type))


def _text(annotation: object) -> str:
    """Under `from __future__ import annotations` a string, which `NamedTuple` wraps."""
    return str(getattr(annotation, "__forward_arg__", annotation))


def key_of(field: RowField) -> str | None:
    """The JSON key of a field; None: not in the document."""
    if "json" in field.metadata:
        key: str | None = field.metadata["json"]
        return key
    return None if field.name.startswith("_") else camel_case(field.name)


_TIME = re.compile(r"\bTime\b|'time'")


def is_time(field: RowField) -> bool:
    """Whether its numbers are Unix seconds. Told from the annotation's text: resolving type hints
    costs more than writing the rows."""
    return field.name.endswith("_at") or _TIME.search(field.annotation) is not None


@cache
def _plan(row_type: type) -> tuple[tuple[str, str, bool], ...]:
    keys = ((field, key_of(field)) for field in fields_of(row_type))
    return tuple((field.name, key, is_time(field)) for field, key in keys if key is not None)


_AS_THEY_ARE = frozenset({str, bool, type(None)})
_LISTS = (tuple, list)
_SETS = (frozenset, set)
_NUMBERS = (int, float)


def _plain(value: object, moment: bool) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE or (kind is int and not moment):  # most values, 150 000 in a long list
        return value
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, _NUMBERS):
        if moment:
            return rfc3339(value)
        return value if isinstance(value, int) or math.isfinite(value) else None
    if isinstance(value, _LISTS) and not hasattr(value, "_fields"):
        return [_plain(item, moment) for item in value]
    if isinstance(value, Mapping):
        return {_mapping_key(key): _plain(item, moment) for key, item in value.items()}
    if isinstance(value, _SETS):
        return [_plain(item, moment) for item in sorted(value)]
    if isinstance(value, bytes):
        from base64 import b64encode  # no row of a table has one

        return b64encode(value).decode("ascii")
    return document(value)


def _mapping_key(key: object) -> str:
    return str(key.value if isinstance(key, Enum) else key)
