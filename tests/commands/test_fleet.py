"""`dpctl node remove --all-nodes` as a process: killed, interrupted, taken up again, reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpctl.lab.api_handlers import Call
from tests.changes.nodes import OLD, Nodes, running
from tests.run import Result, dpctl

REMOVE = ("node", "remove", OLD, "--assume-gone", "--all-nodes", "--yes")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with running(tmp_path) as made:
        yield made


class Process:
    """dpctl, and a signal at one of its patches."""

    def __init__(self, nodes: Nodes, *arguments: str) -> None:
        self.nodes = nodes
        self.arguments = arguments
        self.process: subprocess.Popen[str] | None = None
        self.ready = threading.Event()
        self.left = -1
        self.signal = signal.SIGKILL

    def run(self, at: int, number: signal.Signals, *, after: bool) -> Result:
        """`number` is sent when the `at`-th patch comes, or when it has been made."""
        self.left, self.signal = at, number
        hook = "after" if after else "before"
        setattr(self.nodes.handlers, hook, self._strike)
        environment = {**os.environ, **self.nodes.env, "HOME": "/nonexistent"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dpctl", *self.arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ready.set()
        out, err = self.process.communicate(timeout=100)
        setattr(self.nodes.handlers, hook, lambda call: None)
        return Result(self.process.returncode, out, err)

    def _strike(self, call: Call) -> None:
        if call.method != "PATCH":
            return
        self.left -= 1
        if self.left == 0:
            self.ready.wait(10)
            assert self.process is not None
            self.process.send_signal(self.signal)
            if self.signal == signal.SIGKILL:
                self.process.wait(10)


def test_killed_again_and_again_every_node_is_done_once(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(24))
    arguments = (*REMOVE, "--verify", "0.2", "--parallel", "3", "--resume", str(tmp_path / "j"))
    for at, after in ((5, False), (4, True), (1, True)):
        result = Process(nodes, *arguments).run(at, signal.SIGKILL, after=after)
        assert result.code == -signal.SIGKILL
    assert None in nodes.keys().values()
    assert "0" in nodes.keys().values()
    result = dpctl(*arguments, "-o", "json", env=nodes.env)
    assert (result.code, set(nodes.keys().values())) == (0, {None}), result.err
    assert nodes.patches() == dict.fromkeys(nodes.keys(), 1)
    rows = json.loads(result.out)["items"]
    assert sorted(row["node"] for row in rows) == sorted(nodes.keys())
    assert {row["outcome"] for row in rows} == {"Changed"}
    again = dpctl(*arguments, env=nodes.env)
    assert (again.code, again.out) == (0, "")
    assert "an earlier run has done 24 Nodes" in again.err


def test_ctrl_c_ends_it_between_two_nodes(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(24))
    arguments = (*REMOVE, "--verify", "60s", "--parallel", "2", "--resume", str(tmp_path / "j"))
    result = Process(nodes, *arguments).run(6, signal.SIGINT, after=False)
    done = {name for name, text in nodes.keys().items() if text is None}
    assert result.code == 130
    assert 6 <= len(done) < 24
    assert {line.split()[0] for line in result.out.splitlines()} == {f"node/{n}" for n in done}
    assert {line.split(" ", 2)[2] for line in result.out.splitlines()} == {"removed (not verified)"}
    left = 24 - len(done)
    assert f"interrupted; {len(done)} Nodes changed, {left} Nodes not tried" in result.err
    assert "Traceback" not in result.err
    rest = dpctl(*arguments[:-4], "--verify", "0.2", "--resume", str(tmp_path / "j"), env=nodes.env)
    assert rest.code == 0
    assert nodes.patches() == dict.fromkeys(nodes.keys(), 1)


def test_what_came_back_is_no_case_that_is_done(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1, 2, 3)

    def after(call: Call) -> None:
        if call.method == "PATCH" and "n-1/" in call.path:
            nodes.set_key("n-1", OLD, "0")

    nodes.handlers.after = after
    arguments = (*REMOVE, "--verify", "0.1", "--resume", str(tmp_path / "j"))
    assert dpctl(*arguments, env=nodes.env).code == 6
    assert dpctl(*arguments, env=nodes.env).code == 6
    nodes.handlers.after = lambda call: None
    nodes.store.delete("nodes", "n-3")
    nodes.add(3)
    last = dpctl(*arguments, env=nodes.env)
    assert (last.code, set(nodes.keys().values())) == (0, {None})
    assert "an earlier run has done 1 Node" in last.err


def test_a_full_disk_at_the_end_hides_nothing(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1, 2)
    arguments = (*REMOVE, "--verify", "0.1", "--resume")
    assert dpctl(*arguments, str(tmp_path / "whole"), env=nodes.env).code == 0
    nodes.add(3, 4)
    room = (tmp_path / "whole").stat().st_size - 50
    limited = (
        "import resource, signal, sys\n"
        "from dpctl.__main__ import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
        "sys.exit(main())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", limited, *arguments, str(tmp_path / "j")],
        env={**os.environ, **nodes.env, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout.count(" removed\n")) == (6, 2), result.stderr
    assert "the journal" in result.stderr
    assert "dpctl node undo" in result.stderr


@pytest.mark.parametrize(
    ("which", "redirected"), [("--all-nodes", "2>/dev/full"), ("--node=n-1", "-o json 2>&-")]
)
def test_nobody_to_tell_is_no_reason_to_fail(nodes: Nodes, which: str, redirected: str) -> None:
    nodes.add(1)
    command = f"{sys.executable} -m dpctl node remove {OLD} --assume-gone {which} --yes --verify 0"
    result = subprocess.run(
        ["/bin/sh", "-c", f"{command} {redirected}"],
        env={**os.environ, **nodes.env, "HOME": "/nonexistent"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (result.returncode, nodes.keys()) == (0, {"n-1": None})
    assert not redirected.startswith("-o") or json.loads(result.stdout)["items"]


def test_what_a_pipe_is_told(nodes: Nodes) -> None:
    nodes.add(2, 10)
    nodes.add(3, keys={OLD: "4"})
    result = dpctl(*REMOVE, "--verify", "0.1", env=nodes.env)
    assert result.code == 6
    assert result.out == f"node/n-2 {OLD} removed\nnode/n-10 {OLD} removed\n"
    lines = [json.loads(line) for line in result.err.splitlines() if line.startswith("{")]
    assert [line["done"] for line in lines] == [1, 2]
    assert {line["node"] for line in lines} == {"n-2", "n-10"}
    assert "error: 1 key refused" in result.err
    assert "Changed       2      2" in result.err


def test_nothing_is_done_without_being_asked_for(nodes: Nodes) -> None:
    nodes.add(1)
    result = dpctl(*REMOVE[:-1], env=nodes.env)
    assert (result.code, nodes.keys()) == (2, {"n-1": "0"})
    assert "nobody can be asked here" in result.err


def test_a_document_is_whole_however_it_ends(nodes: Nodes) -> None:
    nodes.add(1)
    nodes.add(2, keys={OLD: "4"})  # refused, and printed before the question
    result = dpctl(*REMOVE[:-1], "-o", "json", env=nodes.env)
    assert result.code == 2
    assert [row["node"] for row in json.loads(result.out)["items"]] == ["n-2"]
    assert nodes.keys() == {"n-1": "0", "n-2": "4"}


def test_a_set_on_many_nodes(nodes: Nodes) -> None:
    nodes.add(1, 2, pool="gpu")
    nodes.add(3)
    command = ("node", "set", "vendor.example/dongle=4", "-l", "pool=gpu", "--yes")
    result = dpctl(*command, "--verify", "0.1", env=nodes.env)
    assert (result.code, result.out.count(" set\n")) == (0, 2)
    found = {n["metadata"]["name"]: n["status"] for n in nodes.store.list("nodes")[0]}
    assert {n: s["capacity"].get("vendor.example/dongle") for n, s in found.items()} == {
        "n-1": "4",
        "n-2": "4",
        "n-3": None,
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--parallel", "0"), "from 1 to 256"),
        (("--wait",), "--wait is for the node itself"),
        (("--undo-file", "x"), "each has a file of its own"),
        (("--node", "n-1"), "is one Node, and many are meant"),
        (("-l", ""), "-l is empty"),
    ],
)
def test_what_makes_no_sense(nodes: Nodes, arguments: tuple[str, ...], words: str) -> None:
    nodes.add(1)
    result = dpctl(*REMOVE, *arguments, env=nodes.env)
    assert (result.code, nodes.keys()) == (2, {"n-1": "0"})
    assert words in result.err


def test_a_journal_of_one_node(nodes: Nodes, tmp_path: Path) -> None:
    command = ("node", "remove", OLD, "--node", "n-1", "--resume", str(tmp_path / "j"))
    result = dpctl(*command, env=nodes.env)
    assert (result.code, "--resume is for many Nodes" in result.err) == (2, True)
