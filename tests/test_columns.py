from __future__ import annotations

import unicodedata
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.columns import UNKNOWN, age_text, cell_text
from tests.outputs.sample import GPUS, ROWS, Health


class Number(Enum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (UNKNOWN, "?"),
        (0, "0"),
        (-3, "-3"),
        (10**20, "100000000000000000000"),
        (True, "yes"),
        (False, "no"),
        ((), "-"),
        ((0, 1), "0,1"),
        ((0, None, UNKNOWN), "0,-,?"),
        (["b", "a"], "b,a"),
        (frozenset({"b", "a"}), "a,b"),
        ({}, "-"),
        ({"a": 1, "b": None}, "a=1,b=-"),
        ("", '""'),
        ("a b", "a b"),
        ("a\nb\x1b", "a\\nb\\e"),
        (("a\n",), "a\\n"),
        ({"k\t": "v\r"}, "k\\t=v\\r"),
        (Health.UNHEALTHY, "Unhealthy"),
        (Number.ONE, "1"),
        (1.5, "1.5"),
        (2.0, "2"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_unsafe_cells_keep_texts_exactly() -> None:
    assert cell_text(("a\n\udcff", {"\x1b": "\t"}), safe=False) == "a\n\udcff,\x1b=\t"


SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.just(UNKNOWN)


@given(st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8))
def test_a_cell_is_never_blank_and_never_more_than_a_line(value: object) -> None:
    text = cell_text(value)
    assert text
    assert not {"Cc", "Cf", "Cs", "Zl", "Zp"} & {unicodedata.category(c) for c in text}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, None),
        (-5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 12 * 60, "5h12m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600 + 3599, "47h"),
        (48 * 3600, "2d"),
        (3 * 86400 + 4 * 3600, "3d4h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (760 * 86400, "2y30d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_ages_as_kubectl_writes_them(seconds: float | None, text: str | None) -> None:
    assert age_text(seconds) == text


def test_wide_columns_are_extra() -> None:
    shown = [column.title for column in GPUS.shown(wide=False)]
    assert shown == ["NAME", "HEALTH", "NUMA", "TOTAL", "CAPACITY", "FREE", "AGE"]
    assert [c.title for c in GPUS.shown(wide=True)] == [*shown, "ANNOTATIONS", "PARTS"]


def test_names_serve_where_nothing_else_is_given() -> None:
    assert GPUS.row_key(ROWS[0]) == "gpu/gpu-10"
    assert sorted(["gpu-10", "gpu-2"]) == ["gpu-10", "gpu-2"]  # what the next line is about
    assert GPUS.sort_key(ROWS[1]) < GPUS.sort_key(ROWS[0])
