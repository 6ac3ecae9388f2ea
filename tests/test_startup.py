"""What a run loads. Sets of modules are the gate; milliseconds belong to `make bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpctl import cli
from tests.run import TESTS

HEAVY = (
    "grpc",
    "google",
    "kubernetes",
    "yaml",
    "rich",
    "textual",
    "pydantic",
    "asyncio",
    "urllib3",
)

_PROBE = """
import sys
sys.argv = ["dpctl", *sys.argv[1:]]
from dpctl.__main__ import main
code = main()
sys.stdout.flush()
modules = sorted(sys.modules)
import json
sys.stderr.write(json.dumps([code, modules]))
"""


def loaded(home: Path, *arguments: str, **more: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, *arguments],
        env={**os.environ, "HOME": str(home), "DPCTL_HOST_ROOT": str(home), **more},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


def rooms(modules: set[str]) -> set[str]:
    """Top-level rooms of dpctl."""
    return {name.split(".")[1] for name in modules if name.startswith("dpctl.")}


def assert_none(modules: set[str], names: tuple[str, ...]) -> None:
    assert not {m for m in modules if m.split(".")[0] in names}


def test_the_version_loads_no_typer(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "--version")
    assert_none(modules, (*HEAVY, "typer", "dataclasses", "typing", "json", "inspect"))
    assert rooms(modules) == {"__main__", "errors", "streams"}


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ()])
def test_the_help_loads_no_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    modules = loaded(tmp_path, *arguments)
    assert_none(modules, HEAVY)
    assert rooms(modules) == {"__main__", "cli", "errors", "interruption", "streams"}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_a_command_loads_that_command_alone(tmp_path: Path, name: str) -> None:
    modules = loaded(tmp_path, name, "--help")
    assert_none(modules, HEAVY)
    assert not rooms(modules) & {"sources", "lab", "output", "env", "collect", "gen"}
    others = {f"dpctl.commands.{each}" for each in cli.COMMANDS} - {f"dpctl.commands.{name}"}
    assert not modules & others


@pytest.mark.parametrize(
    "kind", ["resources", "devices", "pods", "namespaces", "endpoints", "sockets", "no"]
)
def test_tab_loads_no_parser_and_no_model(tmp_path: Path, kind: str) -> None:
    modules = loaded(tmp_path, "__complete", kind, "x")
    assert_none(modules, (*HEAVY, "typer", "dataclasses", "inspect", "tomllib"))
    assert not rooms(modules) & {"cli", "options", "model", "statefiles", "sources", "inventory"}


@pytest.mark.parametrize(
    "arguments", [("env",), ("config", "view"), ("version",), ("schema", "User")]
)
def test_what_reads_nothing_loads_no_wire(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    modules = loaded(tmp_path, *arguments)
    assert_none(modules, HEAVY)
    assert not rooms(modules) & {"sources", "pb", "lab"}
