"""`--dry-run` alone and `--dry-run=client` are the same, on everything that changes something."""

from __future__ import annotations

import time

import pytest

from dpctl.changes.sockets import YOUNGEST
from dpctl.cli import dry_runs
from dpctl.lab.fixture import Lab
from tests.examples.shell import comparable
from tests.run import dpctl

COMMANDS = [
    ("node", "prune"),
    ("node", "remove", "old.example/retired"),
    ("node", "set", "ghost.example/tpu=0"),
    ("plugins", "prune"),
    ("pods", "prune", "--failed"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_both_spellings(lab: Lab, command: tuple[str, ...]) -> None:
    dead = lab.device_plugins / "rdma.sock"
    # Right after the lab's start it is too young to be removed.
    while time.time() - dead.stat().st_mtime < YOUNGEST:
        time.sleep(0.1)
    head = command[:2]
    ways = (
        (*command, "--dry-run"),
        (*command, "--dry-run=client"),
        (*head, "--dry-run", *command[2:]),
        (*command, "--dry-run", "client"),
    )
    results = [dpctl(*way, "-o", "name", env=lab.env) for way in ways]
    assert results[0].code == 0, results[0]
    assert results[0].out
    # How much is left of a grace is another in each.
    assert len({(r.code, r.out, comparable(r.err)) for r in results}) == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["node", "prune", "--dry-run"], ["node", "prune", "--dry-run=client"]),
        (["node", "prune", "--dry-run", "server"], ["node", "prune", "--dry-run", "server"]),
        (["pods", "prune", "--", "--dry-run"], ["pods", "prune", "--", "--dry-run"]),
        (["lab", "run", "kubectl", "--dry-run"], ["lab", "run", "kubectl", "--dry-run"]),
        ([], []),
    ],
)
def test_what_is_meant(given: list[str], meant: list[str]) -> None:
    assert dry_runs(given) == meant


def test_what_it_cannot_be(lab: Lab) -> None:
    result = dpctl("plugins", "prune", "--dry-run=all", env=lab.env)
    assert (result.code, result.out) == (2, "")
    assert "not one of none, client, server" in result.err


def test_a_typo_is_pointed_out(lab: Lab) -> None:
    """A key that is gone is no failure, and a typo looks like one."""
    result = dpctl("node", "remove", "old.example/retierd", "--dry-run", env=lab.env)
    assert result.code == 0
    assert 'did you mean "old.example/retired"' in result.err
