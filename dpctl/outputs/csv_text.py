"""Rows as CSV: every column of the view, wide ones too, values in full."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from dpctl.columns import Column, Row, cell_text


class _Lines:
    """Takes what the csv module writes, one call a row, and ends lines as the system does.

    The module quotes a carriage return only where it is part of its own line end.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> int:
        self.lines.append(line.removesuffix("\r\n") + "\n")
        return len(line)


def csv_text(
    rows: Sequence[Row],
    columns: Sequence[Column[Row]],
    *,
    headers: bool,
    safe: bool,
) -> str:
    """`safe`: texts escaped, for a terminal; else exactly as the peer sent them."""
    sink = _Lines()
    writer = csv.writer(sink, lineterminator="\r\n")
    if headers:
        writer.writerow([column.title for column in columns])
    for row in rows:
        writer.writerow([_value(column.get(row), safe) for column in columns])
    return "".join(sink.lines)


def _value(value: object, safe: bool) -> str:
    return "" if value == "" else cell_text(value, safe=safe)
