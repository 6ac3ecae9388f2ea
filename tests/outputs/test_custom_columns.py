from __future__ import annotations

from typing import Any

import pytest

from dpctl.errors import UsageError
from dpctl.outputs.custom_columns import custom_columns, parse_spec
from dpctl.outputs.table import table_lines

DOCUMENTS: list[dict[str, Any]] = [
    {"name": "gpu-0", "numa": [0, 1], "m": {"a.b/c": "1"}, "holder": None, "empty": "", "n": 0},
    {"name": "a\nb\x1b", "numa": [], "m": {}, "holder": "p", "empty": "", "n": 12},
]


def lines(spec: str) -> list[str]:
    return table_lines(custom_columns(DOCUMENTS, parse_spec(spec)))


def test_paths_with_and_without_dot_and_braces() -> None:
    expected = ["A", "gpu-0", "a\\nb\\e"]
    for path in ("name", ".name", "{name}", "{.name}"):
        assert lines(f"A:{path}") == expected


def test_missing_null_and_several() -> None:
    assert lines("NAME:name,H:holder,N:.numa[*],L:numa,X:no.such,E:empty,I:n") == [
        "NAME     H        N        L       X        E    I",
        'gpu-0    <none>   0,1      [0,1]   <none>   ""   0',
        'a\\nb\\e   p        <none>   []      <none>   ""   12',
    ]


def test_commas_inside_brackets_belong_to_the_path() -> None:
    assert lines("A:['name','holder'],B:m['a.b/c']")[1] == "gpu-0,<none>   1"
    assert lines("A:{.numa[?(@==1)]},B:n")[1] == "1        0"
    assert [title for title, _ in parse_spec('A:{.a[?(@=="x,]")]},B:n')] == ["A", "B"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("NAME", "'NAME' is not NAME:PATH"),
        ("A:x,", "'' is not NAME:PATH"),
        (":x", "':x' is not NAME:PATH"),
        ("A:", "'A:' is not NAME:PATH"),
        ("A:.x[", "[ without its ]"),
        ("A:{.x}{.y}", "one path, and no more at character 5 of '{.x}{.y}'"),
        ("A:{.x", "{ without its } at character 1"),
        ("A:{}", "nothing to look for"),
    ],
)
def test_slips_are_usage_errors(spec: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(spec)
    assert words in caught.value.message
    assert caught.value.hint
