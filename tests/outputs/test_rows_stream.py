"""Rows a batch at a time print what they print at once, and nothing is kept."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dpctl.output import OutputOptions, RowPrinter, write
from tests.outputs.sample import GPUS, HOSTILE, META, ROWS, Gpu

ALL = tuple(sorted((*ROWS, replace(ROWS[0], name=HOSTILE)), key=GPUS.sort_key))
FORMATS: tuple[dict[str, Any], ...] = (
    {"output": "json"},
    {"output": "yaml"},
    {"output": "name"},
    {"quiet": True},
    {"output": "csv"},
    {"output": "csv", "no_headers": True},
    {"output": "jsonpath={.items[*].name}"},
    {"sort_by": "TOTAL"},
)


def at_once(rows: Sequence[Gpu], flags: dict[str, Any]) -> str:
    stream = io.StringIO(newline="")
    write(rows, GPUS, options=OutputOptions(**flags), snapshot_meta=META, stream=stream)
    return stream.getvalue()


def in_batches(batches: Sequence[Sequence[Gpu]], flags: dict[str, Any]) -> str:
    stream = io.StringIO(newline="")
    printer = RowPrinter(GPUS, options=OutputOptions(**flags), stream=stream)
    for batch in batches:
        printer.add(batch)
    printer.close(META)
    return stream.getvalue()


@pytest.mark.parametrize("flags", FORMATS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_the_same_text(flags: dict[str, Any], size: int) -> None:
    batches = [ALL[at : at + size] for at in range(0, len(ALL), size)]
    assert in_batches([(), *batches, ()], flags) == at_once(ALL, flags)


TABLES: tuple[dict[str, Any], ...] = (
    {},
    {"output": "wide"},
    {"no_headers": True},
    {"output": "custom-columns=NAME:.name,NUMA:.numaNodes"},
)


@pytest.mark.parametrize("flags", [*FORMATS, *TABLES], ids=str)
def test_no_rows(flags: dict[str, Any]) -> None:
    assert in_batches([], flags) == in_batches([()], flags) == at_once((), flags)


@pytest.mark.parametrize("flags", TABLES, ids=str)
def test_a_table(flags: dict[str, Any]) -> None:
    """One batch is the table; later ones stand under the same header, and line up with it."""
    assert in_batches([ALL], flags) == at_once(ALL, flags)
    widest = max(ROWS, key=lambda row: len(row.name))
    rest = [row for row in ROWS if row is not widest]
    parts = in_batches([[widest], rest], flags).splitlines()
    assert len(parts) == len(ROWS) + ("no_headers" not in flags)
    assert sum(line.startswith("NAME ") for line in parts) == ("no_headers" not in flags)


def test_each_batch_is_printed_when_it_comes_and_in_order() -> None:
    stream = io.StringIO()
    printer = RowPrinter(GPUS, options=OutputOptions(output="name"), stream=stream)
    printer.add(ROWS[::-1])
    assert stream.getvalue() == at_once(ROWS, {"output": "name"})
