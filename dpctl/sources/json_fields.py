"""Typed access to decoded JSON of the API server and of bundles; pure.

A `Field` knows its path, so that a wrong type is reported as `items[3].spec.containers[0].name is a
number, not text`. What a field means belongs to the parsers that use it, not here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from dpctl.errors import BadDataError
from dpctl.text import shorten

_PATH_LENGTH = 200
# As `statefiles.json_document` bounds a state file: Python needs about 60 bytes even for an empty
# list, and 20 million "[]," compress to nothing.
_MOST_VALUES = 4_000_000
# Byte order marks: kubectl's output, redirected by a PowerShell.
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def parse_json(data: bytes, what: str) -> object:
    """The decoded document. Bytes that are no UTF-8 become lone surrogates (as the model has them).

    Raises BadDataError naming `what`, also for nesting that is too deep, for numbers too long and
    for more values than any real document has.
    """
    text = None
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
    if text is None:
        text = data.decode("utf-8", "surrogateescape")
    if not text.strip():
        raise BadDataError(f"{what} is empty")
    if text.count(",") + text.count("[") + text.count("{") > _MOST_VALUES:
        raise BadDataError(f"{what} is not usable JSON: more than {_MOST_VALUES} values")
    try:
        return json.loads(text)
    except RecursionError as e:
        raise BadDataError(f"{what} is not usable JSON: nested too deeply") from e
    except ValueError as e:
        raise BadDataError(f"{what} is not JSON: {shorten(str(e), 200)}") from e


@dataclass(frozen=True, slots=True)
class Field:
    """A value and where it stands. A missing field and `null` are the same: `value` is None."""

    value: object
    path: str

    def wrong(self, wanted: str) -> BadDataError:
        """The error for a value of the wrong type."""
        return BadDataError(
            f"{shorten(self.path, _PATH_LENGTH)} is {_kind(self.value)}, not {wanted}"
        )

    def at(self, *keys: str) -> Field:
        """A field further down; each level must be an object, or missing."""
        here = self
        for key in keys:
            members = here.members()
            path = f"{here.path}.{key}" if here.path else key
            here = Field(members.get(key), path)
        return here

    def members(self) -> Mapping[str, object]:
        """The object's members, none for a missing object."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def fields(self) -> Iterator[tuple[str, Field]]:
        """Members as fields, in their order."""
        for key, value in self.members().items():
            yield key, Field(value, f"{self.path}.{key}" if self.path else key)

    def items(self) -> Iterator[Field]:
        """Elements of a list, none for a missing list."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for index, value in enumerate(self.value):
            yield Field(value, f"{self.path}[{index}]")

    def text(self) -> str | None:
        if self.value is None or isinstance(self.value, str):
            return self.value
        raise self.wrong("text")

    def needed_text(self) -> str:
        """Text that must be there and not be empty."""
        text = self.text()
        if not text:
            raise BadDataError(f"{shorten(self.path, _PATH_LENGTH)} is missing")
        return text

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(item.text() or "" for item in self.items())

    def text_map(self) -> dict[str, str]:
        """An object whose values are all texts."""
        return {key: field.text() or "" for key, field in self.fields()}

    def quantities(self) -> dict[str, str]:
        """Resource name to quantity text; a bare number, written by hand, is taken as its text."""
        found: dict[str, str] = {}
        for key, field in self.fields():
            value = field.value
            if isinstance(value, float) and not math.isfinite(value):
                path = shorten(field.path, _PATH_LENGTH)
                raise BadDataError(f"{path} is {value}, which is no quantity")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found[key] = str(value)
            elif isinstance(value, str):
                found[key] = value
            else:
                raise field.wrong("a quantity")
        return found

    def whole(self) -> int | None:
        """A whole number; also one written as text, as protojson does for 64 bits."""
        value = self.value
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
            return int(value)
        raise self.wrong("a whole number")

    def needed_whole(self) -> int:
        number = self.whole()
        if number is None:
            raise BadDataError(f"{shorten(self.path, _PATH_LENGTH)} is missing")
        return number

    def flag(self) -> bool:
        """A boolean; missing is False."""
        if self.value is None:
            return False
        if isinstance(self.value, bool):
            return self.value
        raise self.wrong("true or false")

    def time(self) -> float | None:
        """An RFC 3339 time as Unix seconds."""
        text = self.text()
        if text is None:
            return None
        try:
            return parse_time(text)
        except ValueError as e:
            message = f"{shorten(self.path, _PATH_LENGTH)} is not an RFC 3339 time"
            raise BadDataError(f"{message}: {shorten(text, 60)}") from e


_FINER = re.compile(r"([^.]{19})\.([0-9]{7,18})([^.]*)")


def parse_time(text: str) -> float:
    """RFC 3339 to Unix seconds. Raises ValueError, also for a time without an offset.

    A datetime has microseconds; a file's time has more, and all of them count when a bundle has to
    give the ages that the node gave.
    """
    finer = _FINER.fullmatch(text)
    if finer is not None:
        return parse_time(finer[1] + finer[3]) + float(f"0.{finer[2]}")
    try:
        when = datetime.fromisoformat(text)
    except OverflowError as e:
        raise ValueError(str(e)) from e
    if when.tzinfo is None:
        raise ValueError("no offset from UTC")
    return when.timestamp()


def _kind(value: object) -> str:
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"
