"""Every page as SVG, compared as bytes: the picture of the README is made so."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from dpctl.commands.dashboard import command
from dpctl.options import Common
from dpctl.tui.frame import Span
from dpctl.tui.pages import page_names
from dpctl.tui.shot import screen_svg
from tests.run import DATA, dpctl, golden

BUNDLE = str(DATA / "captures/2-plugin-dead-in-grace")


@pytest.mark.parametrize("page", page_names())
def test_each_page_of_a_captured_node(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shot.svg"
    monkeypatch.chdir(DATA)  # so that the paths on the page sources are the same everywhere
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    common = Common(bundle="captures/2-plugin-dead-in-grace")
    assert command(common, view=page, screenshot=str(file)) == 0
    golden(f"tui/{page}.svg", file.read_text(encoding="utf-8"))


def test_size_and_ascii(tmp_path: Path) -> None:
    file = tmp_path / "shot.svg"
    arguments = ("dashboard", "--from", BUNDLE, "--ascii", "--screenshot", str(file))
    assert dpctl(*arguments, env={"COLUMNS": "80", "LINES": "24"}).code == 0
    golden("tui/resources-80x24-ascii.svg", file.read_text(encoding="ascii"))


def test_hostile_texts_are_text() -> None:
    line = (Span("<b>&'\"\x1b[31m\u202e".replace("\x1b", "\\e")), Span("[red]x[/]", "bad"))
    root = ElementTree.fromstring(screen_svg([line], 40, "<title>"))
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] is not None
    assert texts[0].startswith("<b>&'\"\\e[31m")
    assert texts[1] == "[red]x[/]"


def test_a_name_of_another_kind_of_picture_is_refused(tmp_path: Path) -> None:
    found = dpctl("dashboard", "--from", BUNDLE, "--screenshot", str(tmp_path / "x.PNG"))
    assert (found.code, found.out) == (2, "")
    assert "only SVG is written" in found.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written() -> None:
    found = dpctl("dashboard", "--from", BUNDLE, "--screenshot", "/nonexistent/x.svg")
    assert (found.code, found.out) == (4, "")
    assert found.err.startswith("error: cannot write /nonexistent/x.svg: No such file or directory")
