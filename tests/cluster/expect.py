"""What a command must have said: exit code, stdout and stderr together, as literals.

A table is written with two or more spaces between cells, in whatever alignment reads well. A cell
`*` matches any value that is there (a pid, an age), never `-` or `?`. In other text `*` matches
the rest of a word.
"""

from __future__ import annotations

import difflib
import json
import re
import textwrap
from typing import Any

from .node import Result

Rows = list[list[str]]


def cells(text: str) -> Rows:
    """A table's rows."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines() if line.strip()]


def assert_table(result: Result, table: str, stderr: str = "", code: int = 0) -> None:
    """The whole of what a command printed, where stdout is a table (or nothing)."""
    wanted = cells(table)
    found = _blur(wanted, cells(result.stdout))
    _compare(result, code, _joined(wanted), _joined(found), stderr)


def assert_text(result: Result, stdout: str, stderr: str = "", code: int = 0) -> None:
    """The whole of what a command printed."""
    _compare(result, code, _lines(stdout), _text(stdout, result.stdout), stderr)


def document(result: Result, stderr: str = "", code: int = 0) -> dict[str, Any]:
    """The JSON document of a command that ended as it must."""
    _compare(result, code, [], [], stderr)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def _compare(result: Result, code: int, wanted: list[str], found: list[str], stderr: str) -> None:
    """One verdict over all three, and all three in its message."""
    left = [f"exit code {code}", *wanted, "--- stderr", *_lines(stderr)]
    right = [f"exit code {result.code}", *found, "--- stderr", *_text(stderr, result.stderr)]
    if left != right:
        changes = "\n".join(difflib.ndiff(left, right))
        raise AssertionError(f"- is what was expected, + what came:\n{changes}")


def _joined(rows: Rows) -> list[str]:
    return ["   ".join(row) for row in rows]


def _lines(text: str) -> list[str]:
    return textwrap.dedent(text).strip("\n").splitlines()


def _blur(wanted: Rows, found: Rows) -> Rows:
    """`found`, with `*` where that is wanted and a value stands."""
    if len(wanted) != len(found):
        return found
    return [
        [
            "*" if column < len(row) and row[column] == "*" and cell not in ("-", "?") else cell
            for column, cell in enumerate(line)
        ]
        for row, line in zip(wanted, found, strict=True)
    ]


def _text(wanted: str, found: str) -> list[str]:
    """`found` as lines, each put as wanted where the wildcards match."""
    lines = found.splitlines()
    templates = _lines(wanted)
    if len(lines) != len(templates):
        return lines
    return [
        template if re.fullmatch(r"\S+".join(map(re.escape, template.split("*"))), line) else line
        for template, line in zip(templates, lines, strict=True)
    ]
