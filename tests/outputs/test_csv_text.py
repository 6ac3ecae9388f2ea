from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from dpctl.columns import Column
from dpctl.outputs.csv_text import csv_text

PAIR: list[Column[tuple[str, str]]] = [
    Column("A", lambda r: r[0], "a"),
    Column("B", lambda r: r[1], "b", wide=True),
]


@given(st.lists(st.tuples(st.text(), st.text())))
def test_reads_back_exactly(rows: list[tuple[str, str]]) -> None:
    text = csv_text(rows, PAIR, headers=True, safe=False)
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read == [["A", "B"], *map(list, rows)]


def test_lines_end_as_the_system_has_it() -> None:
    rows = [("a,b", 'c"d'), ("e\nf", "g\rh")]
    text = csv_text(rows, PAIR, headers=True, safe=False)
    assert text == 'A,B\n"a,b","c""d"\n"e\nf","g\rh"\n'


def test_escaped_for_a_terminal() -> None:
    text = csv_text([("e\nf", "\x1b[2J")], PAIR, headers=False, safe=True)
    assert text == "e\\nf,\\e[2J\n"


def test_values_other_than_texts_read_as_in_a_table() -> None:
    columns: list[Column[object]] = [Column("V", lambda r: r, "v")]
    values: list[object] = [None, 0, (0, 1), "", True]
    text = csv_text(values, columns, headers=False, safe=False)
    assert text == '-\n0\n"0,1"\n""\nyes\n'
