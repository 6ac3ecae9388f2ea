"""What is generated is up to date, and good bash and roff."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace

import pytest

from dpctl import cli
from dpctl.gen import man, tree
from dpctl.gen.__main__ import generate
from dpctl.gen.tree import Argument, Node, Option
from tests.run import TESTS

ROOT = TESTS.parent
FILES = generate()
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "FILES", "ENVIRONMENT"]
SECTIONS += ["SEE ALSO"]


@pytest.mark.parametrize("path", FILES)
def test_regenerating_changes_nothing(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == FILES[path], "run `make gen`"


def test_nothing_else_lies_there() -> None:
    kept = {
        f"{folder}/{p.name}" for folder in ("man", "completions") for p in (ROOT / folder).iterdir()
    }
    assert kept == {path for path in FILES if not path.startswith("dpctl/")}


def test_there_is_a_page_for_every_command() -> None:
    pages = {path for path in FILES if path.startswith("man/")}
    assert pages == {"man/dpctl.1", *(f"man/dpctl-{name}.1" for name in cli.COMMANDS)}


@pytest.mark.parametrize("path", [path for path in FILES if path.startswith("man/")])
def test_pages(path: str) -> None:
    text = FILES[path]
    headings = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
    assert [h for h in headings if h not in ("COMMANDS", "EXAMPLES", "MANIFESTS")] == SECTIONS
    for line in text.splitlines():
        # Requests are ours; no text may become one, and nothing but ASCII is left to fonts.
        assert line.isascii(), line
        if line.startswith((".", "'")):
            assert re.match(r'\.(TH|SH|SS|PP|TP|nf|fi|\\")( |$)', line), line


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "lab"])
def test_pages_hold_the_examples(name: str) -> None:
    page = FILES[f"man/dpctl-{name}.1"]
    [node] = [child for child in tree.command_tree().children if child.words == (name,)]
    for each in node.walk():
        for line in each.examples:
            assert man.escaped(line) in page.splitlines()


def test_words_are_those_that_commands_take() -> None:
    """The generator has them as words: it loads no command's own modules."""
    from dpctl.commands import devices
    from dpctl.env.config_file import KEYS
    from dpctl.inventory.waited import CONDITIONS
    from dpctl.lab import cues
    from dpctl.topology.merge import Policy
    from dpctl.topology.settings import SCOPES
    from dpctl.tui.pages import page_names
    from dpctl.views.kinds import VIEWS

    taken: dict[str, Iterable[str]] = {
        "WHAT": devices._GROUPS,
        "POLICY": Policy,
        "SCOPE": SCOPES,
        "CONDITION": CONDITIONS,
        "VIEW": page_names(),
        "KEY": KEYS,
        "SCENARIO": cues.shipped(),
        "KIND": [view.kind for view in VIEWS],
    }
    assert {k: tree.KINDS[k].partition(":")[2].split() for k in taken} == {
        k: [str(word) for word in words] for k, words in taken.items()
    }


def sample(**changes: object) -> Node:
    node = Node(
        words=("odd",),
        summary='It\'s \\odd: `$(touch x)` "quoted"',
        text=".TH forged\n'br\n\\fBbold\\fR -x",
        usage=("[FILE]...",),
        options=(Option(("-x", "--ex"), "words:a b'c", "X", "it's \\x", "Options", None),),
        arguments=(Argument("file", "FILE", ".so /etc/passwd", True),),
        children=(),
        examples=(".so x", "'x", "\\x -y"),
    )
    return replace(node, **changes)  # type: ignore[arg-type]


def test_no_text_becomes_a_request() -> None:
    root = replace(sample(), words=(), children=(sample(),))
    page = man.pages(root, "1.0")["dpctl-odd.1"]
    for line in page.splitlines():
        assert not re.match(r"[.'](so|br|TH forged)", line), line
    assert "\\&.so x" in page.splitlines()
    assert "\\&'x" in page.splitlines()
    assert "\\ex \\-y" in page.splitlines()


def test_hostile_words_stay_words_in_bash() -> None:
    from dpctl.gen import bash

    root = replace(sample(), words=(), children=(sample(),))
    shown = 'printf "%s|" "${kinds[--ex]}" "${arguments[@]}"'
    code = f"complete() {{ :; }}; declare -A kinds\n{bash.script(root)}\n_dpctl_spec odd; {shown}"
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("words:a b'c|file|...|", "")


def test_the_script_is_bash() -> None:
    done = subprocess.run(
        ["bash", "-n"], input=FILES["completions/dpctl.bash"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_quotes_are_balanced_for_the_other_shells() -> None:
    """zsh and fish are not on every machine: their files hold no more than quoted words."""
    for path in ("completions/_dpctl", "completions/dpctl.fish"):
        for line in FILES[path].splitlines():
            if line.startswith(("complete ", "        subcommands=", "        flags=")):
                quotes = re.sub(r"'\\''|\\'|\\\\", "", line).count("'")
                assert quotes % 2 == 0, line
