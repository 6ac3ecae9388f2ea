"""Lines of a screen: exactly as wide as it, and nothing in them that a terminal obeys."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.text import width, wrapped
from dpctl.tui.frame import Span, both_ends, cut, fitted

HOSTILE = (
    "gpu\x1b[2J\x1b]0;owned\x07\n\u202eevil\udcff\x00",
    "[red]x[/]",
    "显卡-0",
    "e\u0301" * 30,
    "a" * 65536,
    "\u2066\u2067\u2028\ue000",
)
TEXTS = st.one_of(st.text(), st.sampled_from(HOSTILE))


def harmless(text: str) -> bool:
    return all(c.isprintable() or unicodedata.category(c) == "Zs" for c in text)


@given(st.lists(TEXTS, max_size=5), st.integers(1, 120), st.booleans())
def test_a_line_is_as_wide_as_the_screen_and_harmless(
    texts: list[str], room: int, ascii_only: bool
) -> None:
    line = fitted([Span(text) for text in texts], room, ascii_only=ascii_only)
    whole = "".join(span.text for span in line)
    assert width(whole) == room
    assert harmless(whole)
    assert whole.isascii() or not ascii_only


def test_markup_stays_text() -> None:
    [span] = fitted([Span("[red]x[/]")], 20)
    assert span.text.rstrip() == "[red]x[/]"


def test_the_lines_of_boxes_have_ascii() -> None:
    line = fitted([Span("┌─ NUMA ┐│└┘ › a…")], 20, ascii_only=True)
    assert "".join(span.text for span in line).rstrip() == "+- NUMA +|++ > a~"


@pytest.mark.parametrize(("text", "room", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…")])
def test_a_cut_is_marked(text: str, room: int, shown: str) -> None:
    assert cut(text, room) == shown


def test_the_right_end_stays_and_the_left_one_is_cut() -> None:
    line = both_ends([Span("a" * 50)], [Span("age")], 20)
    assert "".join(span.text for span in line) == "a" * 14 + "…  age"


@given(TEXTS.map(lambda t: t.replace("\n", " ")), st.integers(10, 90))
def test_wrapping_loses_nothing_but_blanks(text: str, room: int) -> None:
    lines = wrapped(text, room)
    assert all(width(line) <= max(room, 10) for line in lines if line.isascii())
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_text_of_megabytes_is_wrapped_piece_by_piece() -> None:
    copied = 0

    class Counted(str):
        def __getitem__(self, key: Any) -> str:
            nonlocal copied
            found = Counted(str.__getitem__(self, key))
            copied += len(found)
            return found

        def lstrip(self, *characters: Any) -> str:
            return Counted(str.lstrip(self, *characters))

    lines = wrapped(Counted("gpu-é " * 20_000), 76)
    assert len(lines) == 20_000 // 12 + 1
    assert copied < 20 * 120_000
