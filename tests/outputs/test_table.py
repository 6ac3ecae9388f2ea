from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.columns import Column
from dpctl.outputs.table import TextColumn, column_widths, cut, table_lines, text_columns
from dpctl.text import width
from tests.outputs.sample import GPUS, HOSTILE, ROWS


def test_the_look_of_kubectl() -> None:
    columns = [
        TextColumn("NAME", ["gpu-0", "a"]),
        TextColumn("TOTAL", ["4", "128"], "right"),
        TextColumn("NOTE", ["-", "two words"]),
    ]
    assert table_lines(columns) == [
        "NAME    TOTAL   NOTE",
        "gpu-0       4   -",
        "a         128   two words",
    ]
    assert table_lines(columns, headers=False) == ["gpu-0     4   -", "a       128   two words"]


def test_a_right_aligned_last_column_stays_aligned() -> None:
    assert table_lines([TextColumn("A", ["x"]), TextColumn("N", ["7", "10"][:1], "right")]) == [
        "A   N",
        "x   7",
    ]
    columns = [TextColumn("A", ["x", "y"]), TextColumn("N", ["7", "10"], "right")]
    assert table_lines(columns) == ["A    N", "x    7", "y   10"]


def test_wide_characters_count_twice() -> None:
    columns = [TextColumn("NAME", ["显卡-0", "gpu-00", "é"]), TextColumn("N", ["1", "2", "3"])]
    assert table_lines(columns) == ["NAME     N", "显卡-0   1", "gpu-00   2", "é        3"]
    columns[0].align = "right"
    assert table_lines(columns)[1:] == ["显卡-0   1", "gpu-00   2", "     é   3"]


def test_no_rows_and_no_columns() -> None:
    assert table_lines([TextColumn("A", []), TextColumn("B", [])]) == ["A   B"]
    assert table_lines([]) == []


def test_parts_line_up() -> None:
    first = [TextColumn("A", ["long-one"]), TextColumn("B", ["1"])]
    later = [TextColumn("A", ["x"]), TextColumn("B", ["1"])]
    lines = table_lines(later, headers=False, least_widths=column_widths(first))
    assert lines == ["x          1"]


# --- narrow terminals


def test_the_widest_texts_are_cut_numbers_and_titles_are_not() -> None:
    columns = [
        TextColumn("NAME", ["gpu-0"]),
        TextColumn("TOTAL", ["1234567890123"], "right"),
        TextColumn("A LONG TITLE", ["x" * 40]),
        TextColumn("NOTE", ["y" * 60]),
    ]
    lines = table_lines(columns, limit=70)
    assert [width(line) for line in lines] == [51, 70]  # nothing behind the last title
    assert lines[1] == f"gpu-0  1234567890123  {'x' * 11}…{'x' * 11}  {'y' * 11}…{'y' * 11}"
    floor = table_lines(columns, limit=10)  # wraps, since nothing could be told any more
    assert floor[1] == f"gpu-0 1234567890123 {'x' * 6}…{'x' * 5} {'y' * 4}…{'y' * 3}"
    assert floor[0] == "NAME          TOTAL A LONG TITLE NOTE"


def test_nothing_is_cut_where_it_fits() -> None:
    columns = [TextColumn("NAME", ["x" * 40]), TextColumn("N", ["1"])]
    assert table_lines(columns, limit=44) == table_lines(columns)
    assert table_lines(columns, limit=43)[1] == f"{'x' * 40}  1"
    assert table_lines(columns, limit=42)[1] == f"{'x' * 40} 1"
    assert "…" in table_lines(columns, limit=41)[1]


def test_words_are_not_cut_while_names_can_be() -> None:
    """Which state, of which of two resources of one vendor: that has to be read."""
    columns = [
        TextColumn("RESOURCE", ["vendor.example/gpu", "vendor.example/gpu.shared"]),
        TextColumn("STATE", ["Degraded", "Unregistered"]),
        TextColumn("PLUGIN", ["~a-very-long-name-of-a-socket.sock", "-"]),
    ]
    assert table_lines(columns, limit=50) == [
        "RESOURCE           STATE         PLUGIN",
        "vendor.e…mple/gpu  Degraded      ~a-very-…ket.sock",
        "vendor.e…u.shared  Unregistered  -",
    ]


def test_a_sentence_in_the_last_column_goes_on_below() -> None:
    columns = [
        TextColumn("RESOURCE", ["vendor.example/gpu", "x"]),
        TextColumn("REASON", ["a plugin serves it on vendor-gpu.sock (inferred)", "-"]),
    ]
    assert table_lines(columns, limit=54) == [
        "RESOURCE            REASON",
        "vendor.example/gpu  a plugin serves it on",
        "                    vendor-gpu.sock (inferred)",
        "x                   -",
    ]
    assert table_lines(columns)[1].endswith("vendor-gpu.sock (inferred)")  # in a pipe: one line


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "ab…ef"),
        ("ab def", 5, "ab d…"),
        ("abcdef", 4, "ab…f"),
        ("abcdef", 2, "a…"),
        ("abcdef", 1, "…"),
        ("abcdef", 0, ""),
        ("显卡显卡", 8, "显卡显卡"),
        ("显卡显卡", 7, "显卡…卡"),
        ("显卡显卡", 6, "显…卡"),  # one column stays free: half a character cannot be shown
    ],
)
def test_cut(text: str, room: int, shown: str) -> None:
    assert cut(text, room) == shown


TEXTS = st.text(alphabet="abc-é显卡\u0301 ", min_size=1, max_size=30)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=6), st.integers(0, 80))
def test_columns_start_at_one_place_and_lines_fit(
    rows: list[tuple[str, str, str]], limit: int
) -> None:
    marked = [(f"[{a}", f"[{b}", f"[{c}") for a, b, c in rows]
    columns = [TextColumn("", list(texts)) for texts in zip(*marked, strict=True)]
    lines = table_lines(columns, limit=limit, headers=False)
    starts = {tuple(width(line[: m.start()]) for m in re.finditer(r"\[", line)) for line in lines}
    assert len(starts - {()}) == 1  # what goes on below starts nothing
    least = 3 * 8 + 2 * 1
    if limit >= least:
        assert all(width(line) <= limit for line in lines)


# --- hostile texts, colour, size


def test_nothing_raw_gets_through() -> None:
    lines = table_lines(text_columns(ROWS, GPUS.columns))
    assert len(lines) == len(ROWS) + 1
    unsafe = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not unsafe & {unicodedata.category(c) for line in lines for c in line}
    assert "gpu\\e[2J\\n\\u{202e}evil\\xff\\0" in "\n".join(lines)
    assert HOSTILE not in "\n".join(lines)


def test_colour_is_around_the_text_alone() -> None:
    plain = table_lines(text_columns(ROWS, GPUS.columns))
    painted = table_lines(text_columns(ROWS, GPUS.columns, color=True))
    assert [re.sub(r"\x1b\[[0-9]*m", "", line) for line in painted] == plain
    assert "\x1b[31mUnhealthy\x1b[0m" in painted[2]
    assert painted[0] == plain[0]
    right = TextColumn("N", ["7", "10"], "right", ["bad", None])
    assert table_lines([right]) == [" N", " \x1b[31m7\x1b[0m", "10"]


def test_colour_of_a_text_that_is_cut() -> None:
    column = TextColumn("STATE", ["x" * 30], "left", ["warn"])
    assert table_lines([column], limit=10)[1] == f"\x1b[33m{'x' * 5}…{'x' * 4}\x1b[0m"


def test_ten_thousand_rows() -> None:
    """The bound is ten times what it takes here: it catches a square, not a slow machine."""
    columns = [Column(f"C{n}", lambda r, n=n: f"value-{n}-{r}", "x") for n in range(10)]  # type: ignore[misc]
    started = time.process_time()
    lines = table_lines(text_columns(range(10_000), columns), limit=120)
    assert len(lines) == 10_001
    assert time.process_time() - started < 4
