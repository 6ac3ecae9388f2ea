"""The order of rows: by name as numbers are read, or by what `--sort-by` names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpctl.columns import Row, View
from dpctl.documents import json_text, keys_of, row_document
from dpctl.errors import UsageError
from dpctl.text import natural_key

if TYPE_CHECKING:
    from dpctl.outputs.jsonpath import Path

Key = tuple[Any, ...]


def sorted_rows(rows: Iterable[Row], view: View[Row], by: str | None) -> list[Row]:
    """`by`: a column's title in any case, or a JSON path; missing values come first, as in kubectl.

    Rows of equal value stay in the order of their names. Raises UsageError for an unknown field.
    """
    ordered = sorted(rows, key=view.sort_key)
    if by is None:
        return ordered
    from dpctl.outputs.jsonpath_parse import parse_path

    titled = next((c for c in view.columns if c.title.casefold() == by.strip().casefold()), None)
    # Not the cell's text: an age of `12s` would come after one of `5m`.
    path = parse_path(titled.path if titled else by)
    documents = [row_document(row, view) for row in ordered]
    found = [path.find(document) for document in documents]
    if titled is None and not any(found):
        _check(path, by, view, documents)
    keys = _keys([values[0] if values else None for values in found])
    return [ordered[at] for at in sorted(range(len(ordered)), key=keys.__getitem__)]


def _check(path: Path, by: str, view: View[Row], documents: list[dict[str, Any]]) -> None:
    """Nothing was found: fine below what happens to be null or empty, and where there are no rows
    at all; else a slip."""
    from dpctl.outputs.jsonpath import Field

    known = [column.path for column in view.columns]
    known += list(documents[0]) if documents else keys_of(view.row_type) if view.row_type else []
    first = path.nodes[0] if path.nodes else None
    unknown = isinstance(first, Field) and first.name not in {k.partition(".")[0] for k in known}
    if documents and not unknown:
        heads = [replace(path, nodes=path.nodes[:n]) for n in range(1, len(path.nodes))]
        ends = (value for d in documents for head in heads for value in head.find(d))
        unknown = not any(value is None or value in ([], {}) for value in ends)
    if unknown:
        titles = ", ".join(column.title for column in view.columns)
        fields = ", ".join(dict.fromkeys(known))
        raise UsageError(
            f"--sort-by: a {view.kind} has no field {by!r}", f"columns: {titles}; fields: {fields}"
        )


def _keys(values: list[Any]) -> list[Key]:
    texts = [value for value in values if isinstance(value, str)]
    amounts = _quantities(texts)
    return [_key(value, amounts) for value in values]


def _quantities(texts: list[str]) -> Mapping[str, Any]:
    """Amounts, if every text is one: `1k` comes after `4`."""
    from dpctl import quantity  # brings fractions and decimal: only for --sort-by

    try:
        return {text: quantity.parse(text) for text in texts}
    except ValueError:
        return {}


def _key(value: Any, amounts: Mapping[str, Any]) -> Key:
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value)
    if isinstance(value, str):
        return (1, amounts[value]) if value in amounts else (2, natural_key(value))
    if isinstance(value, list):
        return (3, tuple(_key(item, {}) for item in value))
    return (4, json_text(value))
