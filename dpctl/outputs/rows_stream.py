"""Rows → text a batch at a time, so that a list of any length costs the memory of one batch.

The same text as all at once, but for two things that cannot be known before the end: a column of a
table is as wide as in the first batch at least, and `collectedAt` and `sources` come last (as they
always do). What takes the whole list, `jsonpath` and `--sort-by`, is not for here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from dpctl.columns import Row, View
from dpctl.documents import API_VERSION, Envelope, json_text, list_document, row_document
from dpctl.outputs.table import TextColumn, column_widths, table_lines
from dpctl.text import escape

_STEP = " " * 4


class JsonStream(Generic[Row]):
    """One JSON document, indented as `json_text(…, indent=4)` does it."""

    def __init__(self, view: View[Row]) -> None:
        self._view = view
        self._begun = False

    def rows(self, rows: Sequence[Row]) -> str:
        text = ""
        for row in rows:
            item = json_text(row_document(row, self._view), indent=len(_STEP))
            text += ",\n" if self._begun else self._head() + '    "items": [\n'
            self._begun = True
            text += "\n".join(f"{_STEP * 2}{line}" for line in item.split("\n"))
        return text

    def _head(self) -> str:
        kind = json_text(f"{self._view.kind}List")
        return f'{{\n    "apiVersion": {json_text(API_VERSION)},\n    "kind": {kind},\n'

    def end(self, envelope: Envelope) -> str:
        begin = "\n    ]" if self._begun else self._head() + '    "items": []'
        return f"{begin},\n{json_text(_tail(envelope), indent=len(_STEP))[2:]}\n"


class YamlStream(Generic[Row]):
    def __init__(self, view: View[Row]) -> None:
        self._view = view
        self._begun = False

    def rows(self, rows: Sequence[Row]) -> str:
        from dpctl.outputs.yaml_text import yaml_text

        if not rows:
            return ""
        head = "" if self._begun else self._head() + "items:\n"
        self._begun = True
        return head + yaml_text([row_document(row, self._view) for row in rows])

    def _head(self) -> str:
        from dpctl.outputs.yaml_text import yaml_text

        return yaml_text({"apiVersion": API_VERSION, "kind": f"{self._view.kind}List"})

    def end(self, envelope: Envelope) -> str:
        from dpctl.outputs.yaml_text import yaml_text

        return ("" if self._begun else self._head() + "items: []\n") + yaml_text(_tail(envelope))


def _tail(envelope: Envelope) -> dict[str, object]:
    whole = list_document((), "", envelope)
    return {key: whole[key] for key in ("collectedAt", "sources")}


class TableStream(Generic[Row]):
    """Headers stand above the first batch, and later ones keep its widths."""

    def __init__(
        self,
        columns: Callable[[Sequence[Row]], Sequence[TextColumn]],
        *,
        headers: bool,
        limit: int,
        always: bool = False,
    ) -> None:
        """`always`: the headers stand there without any row, too (custom-columns)."""
        self._always = always
        self._columns = columns
        self._headers = headers
        self._limit = limit
        self._widths: list[int] = []

    def rows(self, rows: Sequence[Row]) -> str:
        return self._lines(self._columns(rows)) if rows else ""

    def _lines(self, columns: Sequence[TextColumn]) -> str:
        lines = table_lines(
            columns, headers=self._headers, limit=self._limit, least_widths=self._widths
        )
        widths = column_widths(columns, headers=self._headers)
        before = self._widths or [0] * len(widths)
        self._widths = [max(pair) for pair in zip(widths, before, strict=True)]
        self._headers = False
        return "".join(f"{line}\n" for line in lines)

    def end(self, envelope: Envelope) -> str:
        return self._lines(self._columns(())) if self._always and self._headers else ""


class CsvStream(Generic[Row]):
    def __init__(self, view: View[Row], *, headers: bool, safe: bool) -> None:
        self._view = view
        self._headers = headers
        self._safe = safe

    def rows(self, rows: Sequence[Row]) -> str:
        from dpctl.outputs.csv_text import csv_text

        text = csv_text(rows, self._view.columns, headers=self._headers, safe=self._safe)
        self._headers = False
        return text

    def end(self, envelope: Envelope) -> str:
        return self.rows(())  # the header of no rows at all


class NameStream(Generic[Row]):
    """Each name once, whatever batch it is in."""

    def __init__(self, name: Callable[[Row], str]) -> None:
        self._name = name
        self._said: set[str] = set()

    def rows(self, rows: Sequence[Row]) -> str:
        found = dict.fromkeys(escape(self._name(row)) for row in rows)
        new = [name for name in found if name not in self._said]
        self._said.update(new)
        return "".join(f"{name}\n" for name in new)

    def end(self, envelope: Envelope) -> str:
        return ""
