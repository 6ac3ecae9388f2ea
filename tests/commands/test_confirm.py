from __future__ import annotations

import io

import pytest

from dpctl.commands._confirm import confirm


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "agreed"), [("y\n", True), ("n\n", False), ("", False)])
def test_names_in_a_question_are_obeyed_by_nobody(
    typed: str, agreed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    said = io.StringIO()
    monkeypatch.setattr("sys.stderr", said)
    name = "a.b/\x1b[2J\r\u202egpu\udcff" + "x" * 70_000
    assert confirm(f"Allocate {name}?", False) is agreed
    shown = said.getvalue().removesuffix("\n")
    assert shown.isprintable()
    assert "a.b/\\e[2J\\r\\u{202e}gpu\\xffxx" in shown
    assert len(shown) < 1100
