"""`-o custom-columns=NAME:PATH,…`: a table over the rows' documents. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpctl.columns import cell_text
from dpctl.errors import UsageError
from dpctl.outputs.jsonpath import Path, value_text
from dpctl.outputs.jsonpath_parse import parse_path
from dpctl.outputs.table import TextColumn

EXAMPLE = "for example: -o custom-columns=NAME:.name,NUMA:.numaNodes"


def parse_spec(spec: str) -> tuple[tuple[str, Path], ...]:
    """Title and path of each column. Raises UsageError."""
    columns: list[tuple[str, Path]] = []
    for part in _split(spec):
        title, colon, path = part.partition(":")
        if not colon or not title.strip() or not path.strip():
            raise UsageError(f"custom-columns: {part!r} is not NAME:PATH", EXAMPLE)
        columns.append((title.strip(), parse_path(path)))
    return tuple(columns)


def custom_columns(
    documents: Sequence[dict[str, Any]], columns: Sequence[tuple[str, Path]]
) -> list[TextColumn]:
    """Several values joined by `,`; missing and null `<none>`, as kubectl has it.

    Texts are always escaped (as in kubectl): a line of a table must stay a line.
    """
    return [
        TextColumn(cell_text(title), [_cell(path.find(document)) for document in documents])
        for title, path in columns
    ]


def _cell(values: list[Any]) -> str:
    return ",".join(_value(value) for value in values) or "<none>"


def _value(value: Any) -> str:
    if value is None:
        return "<none>"
    return cell_text(value) if isinstance(value, str) else value_text(value, safe=True)


def _split(spec: str) -> list[str]:
    """At the commas outside brackets and quotes."""
    parts, start, depth, quote = [], 0, 0, ""
    for at, character in enumerate(spec):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and depth:
            quote = character
        elif character in "[({":
            depth += 1
        elif character in "])}":
            depth = max(depth - 1, 0)
        elif character == "," and not depth:
            parts.append(spec[start:at])
            start = at + 1
    return [*parts, spec[start:]]
