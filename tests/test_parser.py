"""The first-word rule, and help pages."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer._click import Context

from dpctl import cli
from dpctl.options import NAMESPACES, OUTPUT, Common, declare
from dpctl.parser import build, first_word, hoist, shared_value_flags

FLAGS = frozenset({"-n", "--namespace", "-o"})


@pytest.mark.parametrize(
    ("line", "index"),
    [
        ("pods", 0),
        ("-n x pods", 2),
        ("-nx pods", 1),
        ("-An x pods", 2),
        ("-Anx pods", 1),
        ("--namespace x pods", 2),
        ("--namespace=x pods", 1),
        ("-A -q pods", 2),
        ("-n pods", None),
        ("-A", None),
        ("-A -- pods", None),
        ("- pods", 0),
        ("", None),
    ],
)
def test_first_word(line: str, index: int | None) -> None:
    assert first_word(line.split(), FLAGS) == index


@given(st.lists(st.sampled_from(["-n", "-A", "x", "--", "-o", "--namespace", "--n=1", "-nA", "y"])))
def test_hoisting_keeps_every_word(words: list[str]) -> None:
    moved = hoist(words, FLAGS)
    assert sorted(moved) == sorted(words)
    index = first_word(words, FLAGS)
    if index is not None:
        assert moved[0] == words[index]
        assert hoist(moved, FLAGS) == moved


def test_shared_flags_with_values_are_known_without_a_command() -> None:
    flags = shared_value_flags()
    assert {"-n", "--namespace", "-o", "--output", "--from", "--as", "--as-group"} <= flags
    assert not {"-q", "-A", "-w", "-v", "--strict", "--watch"} & flags


def module(with_default: bool) -> tuple[ModuleType, list[object]]:
    seen: list[object] = []
    made = ModuleType("dpctl.commands.sample")

    @declare(OUTPUT, NAMESPACES, examples="# One\ndpctl sample   x\n\ndpctl sample y")
    def command(common: Common, names: list[str] | None = None) -> int | None:
        """Show samples."""
        seen.append(("default", common.namespace, names))
        return None

    @declare(examples="dpctl sample prune")
    def prune(common: Common, dry: bool = False) -> int | None:
        """Prune samples.

        More words.
        """
        seen.append(("prune", dry))
        return 6

    vars(made).update({"SUBCOMMANDS": {"prune": prune}, "HELP": "All of samples."})
    if with_default:
        vars(made)["command"] = command
    return made, seen


@pytest.mark.parametrize(
    ("line", "with_default", "expected", "code"),
    [
        ("", True, ("default", None, None), 0),
        ("-n x", True, ("default", "x", None), 0),
        ("--names prune", True, ("default", None, ["prune"]), 0),
        ("-n prune", True, ("default", "prune", None), 0),
        ("prune", True, ("prune", False), 6),
        ("prune --dry", True, ("prune", True), 6),
        ("--dry prune", True, ("prune", True), 6),
        ("prune", False, ("prune", False), 6),
    ],
)
def test_a_first_word_that_names_a_subcommand_is_the_subcommand(
    monkeypatch: pytest.MonkeyPatch, line: str, with_default: bool, expected: object, code: int
) -> None:
    made, seen = module(with_default)
    monkeypatch.setattr(cli, "load", lambda name: build(name, made, "Samples."))
    assert cli.run(["pods", *line.split()]) == code
    assert seen == [expected]


def page(with_default: bool) -> str:
    made, _ = module(with_default)
    command = build("sample", made, "Samples.")
    return command.make_context("sample", ["--"], Context(cli.root(), info_name="dpctl")).get_help()


def test_the_help_keeps_examples_as_they_are_and_groups_options() -> None:
    text = page(with_default=True)
    assert text.endswith("Examples:\n  # One\n  dpctl sample   x\n\n  dpctl sample y")
    headings = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Options", "Namespaces", "Output", "Commands", "Examples"]
    assert "  prune  Prune samples." in text


def test_a_branch_without_a_default_shows_its_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, seen = module(with_default=False)
    monkeypatch.setattr(cli, "load", lambda name: build(name, made, "Samples."))
    assert cli.run(["pods"]) == 0
    out = capsys.readouterr().out
    assert "All of samples." in out
    assert "  prune  Prune samples." in out
    assert seen == []
