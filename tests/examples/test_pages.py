"""Every command in the pages of docs/ and the README is run in a lab, and its output there is true.

A fenced block marked `console` is a transcript: lines after `$ ` were typed. A comment
`<!-- lab: … -->` is what happens to the node between two blocks. DPCTL_UPDATE_GOLDEN=1 writes the
outputs anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpctl.lab.fixture import Lab
from dpctl.model import SocketState
from tests.examples.shell import Shell, comparable
from tests.needs import marks
from tests.run import TESTS

ROOT = TESTS.parent
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]

TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}

_PART = re.compile(
    r"^<!-- lab: (?P<happens>[^\n]*) -->\n|^```console\n(?P<shown>.*?)^```\n", re.M | re.S
)


def happen(lab: Lab, what: str) -> None:
    word, *rest = what.split()
    if word == "delete":
        namespace, name = rest
        code, _ = lab.api("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")
        assert code == 200
        lab.wait_settled()
    elif word == "exit":
        lab.plugin(rest[0]).exit()
        lab.wait_settled()
    elif word == "later":
        lab.clock.advance(float(rest[0]))
        lab.wait_settled()
    elif word == "age":
        hour = (lab.device_plugins / rest[0]).stat().st_mtime - 3600
        os.utime(lab.device_plugins / rest[0], (hour, hour))
    else:
        raise AssertionError(f"the page wants what no lab does: {what}")


def told_anew(page: str, shell: Shell, lab: Lab) -> Iterator[str]:
    """The page's text in pieces, with what the commands say now."""
    end = 0
    for part in _PART.finditer(page):
        yield page[end : part.start()]
        end = part.end()
        if part["happens"]:
            happen(lab, part["happens"])
            yield part[0]
            continue
        lines = [line for line in part["shown"].splitlines() if line.startswith("$ ")]
        assert lines, part[0]
        yield "```console\n"
        for line in lines:
            yield f"{line}\n"
            yield re.sub(r"(?m)[ \t]+$", "", shell.run(line.removeprefix("$ ")))
        yield "```\n"
    yield page[end:]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=marks(text.splitlines()))
        for name, text in TEXTS.items()
        if "```console\n" in text
    ],
)
def test_transcripts(name: str, new_lab: Callable[..., Lab], tmp_path: Path) -> None:
    file, page = ROOT / name, TEXTS[name]
    lab = new_lab()
    shell = Shell(tmp_path, lab.env)
    now = "".join(told_anew(page, shell, lab))
    now = shell.as_root(now)
    if os.environ.get("DPCTL_UPDATE_GOLDEN") and comparable(now) != comparable(page):
        file.write_text(now, encoding="utf-8")
    assert comparable(now) == comparable(file.read_text(encoding="utf-8"))


def test_the_states_of_sockets_are_all_explained() -> None:
    table = re.findall(r"^\| (\w+) \|", TEXTS["docs/plugin-does-not-register.md"], re.MULTILINE)
    assert sorted(table) == sorted(["STATE", *SocketState])


def test_links_lead_somewhere() -> None:
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / name).parent.joinpath(target).exists(), (name, target)


def test_every_page_is_in_the_index() -> None:
    for name in TEXTS:
        page = name.removeprefix("docs/")
        assert page == "README.md" or f"({page})" in TEXTS["docs/README.md"]
