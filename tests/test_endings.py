"""How a run ends that is not left alone: Ctrl-C, a reader that goes away, a stdout that is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO

import pytest

from dpctl.lab.fixture import Lab
from tests.fakes import api_server
from tests.fakes.grpc_sockets import ALLOCATABLE, LIST, OPTIONS, listening, serving, slow
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.node_tree import RESOURCE, NodeTree, checkpoint, node

DPCTL = [sys.executable, "-m", "dpctl"]
QUICKLY = 10.0
"""Seconds on a machine that is busy; every wait here would otherwise last a minute."""


def clean(env: Mapping[str, str]) -> dict[str, str]:
    base = {k: v for k, v in os.environ.items() if not k.startswith("DPCTL_")}
    return {**base, "COLUMNS": "80", **env}


@pytest.fixture
def tree() -> Iterator[NodeTree]:
    with node(kubelet=False, cluster=False, plugin=False) as made:
        yield made


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def interrupted(tree: NodeTree, asked: Callable[[], bool], *arguments: str) -> None:
    """Start, wait until it hangs in its call, Ctrl-C: 130, quiet, quickly."""
    process = subprocess.Popen(
        [*DPCTL, *arguments, "--request-timeout", "60s"],
        env=clean(tree.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        until(asked)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=QUICKLY)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_ctrl_c_while_the_kubelet_hangs(tree: NodeTree) -> None:
    with serving(tree.pod_resources, {LIST: slow(60)}) as recorder:
        interrupted(tree, lambda: LIST in recorder.methods, "pods")


def test_ctrl_c_while_the_api_server_hangs(tree: NodeTree) -> None:
    with api_server.running() as server:
        kubeconfig(tree.kubeconfig, server.url)
        for path in ("/api/v1/nodes/worker-0", "/api/v1/pods"):
            server.answer(path, api_server.hang)
        interrupted(tree, lambda: bool(server.requests), "pods", "--failed")


def test_ctrl_c_while_everything_hangs(tree: NodeTree) -> None:
    answers = {LIST: slow(60), ALLOCATABLE: slow(60)}
    plugin = {OPTIONS: slow(60)}
    with (
        api_server.running() as server,
        serving(tree.pod_resources, answers) as kubelet,
        serving(tree.device_plugins / "p.sock", plugin),
    ):
        kubeconfig(tree.kubeconfig, server.url)
        server.answer("/api/v1/nodes/worker-0", api_server.hang)
        interrupted(tree, lambda: bool(server.requests) and LIST in kubelet.methods, "resources")


def test_ctrl_c_while_plugins_hang(tree: NodeTree) -> None:
    taken: list[object] = []
    with listening(tree.device_plugins / "hung.sock", taken.append):
        interrupted(tree, lambda: bool(taken), "plugins", "-o", "json")


def test_ctrl_c_of_a_watch(tree: NodeTree) -> None:
    process = subprocess.Popen(
        [*DPCTL, "plugins", "-w", "-q", "--interval", "60s"],
        env=clean(tree.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with listening(tree.device_plugins / "hung.sock"):
        pass
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=QUICKLY)
    assert process.returncode == 130
    assert b"Traceback" not in err


# --- stdout ---------------------------------------------------------------------------------------


def shell(tree: NodeTree, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'dpctl() {{ {" ".join(DPCTL)} "$@"; }}\n{script}'],
        env=clean(tree.env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("output", ["table", "json", "wide"])
def test_a_reader_that_has_seen_enough(tree: NodeTree, output: str) -> None:
    tree.checkpoint.write_bytes(checkpoint({RESOURCE: [f"d-{n}" for n in range(20_000)]}))
    done = shell(tree, f'dpctl devices -o {output} | head -1; echo "${{PIPESTATUS[0]}}"')
    assert done.stdout.splitlines()[0].startswith("DEVICE " if output != "json" else "{")
    assert done.stdout.splitlines()[1:] == ["141"]
    # What it says of the kubelet that is missing is no noise.
    said = done.stderr.splitlines()
    assert not [line for line in said if not line.startswith(("warning: ", "hint: "))]


@pytest.mark.parametrize("command", ["plugins", "env", "version", "schema Device", "pods -o json"])
def test_a_full_disk(tree: NodeTree, command: str) -> None:
    with serving(tree.device_plugins / "p.sock", {OPTIONS: b""}):
        done = shell(tree, f"dpctl {command} >/dev/full")
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 4
    assert errors == ["error: cannot write to standard output: No space left on device"]
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("command", ["plugins", "env -o json"])
def test_a_stdout_that_is_closed(tree: NodeTree, command: str) -> None:
    done = shell(tree, f"dpctl {command} >&-")
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith("error: cannot write to standard output")
    assert "Traceback" not in done.stderr


def test_stderr_that_is_closed_or_full(tree: NodeTree) -> None:
    for end in ("2>&-", "2>/dev/full"):
        done = shell(tree, f"dpctl who gpu-0 {end}")
        assert done.returncode == 0
        assert "gpu-0 " in done.stdout


# --- -w in a pipe ---------------------------------------------------------------------------------


def rows_until(stream: IO[str], *words: str) -> list[str]:
    """Lines up to the one with all the words."""
    found: list[str] = []
    while not found or not all(word in found[-1] for word in words):
        line = stream.readline()
        assert line, f"it ended after {found}"
        found.append(line.rstrip("\n"))
    return found


def test_a_watch_in_a_pipe_prints_what_changes(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab()
    process = subprocess.Popen(
        [*DPCTL, "resources", "-w", "--interval", "300ms"],
        env=clean({**lab.env, "HOME": "/nonexistent"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        first = rows_until(process.stdout, "video.example/encoder", "ADDED")
        assert first[0].split()[0] == "RESOURCE"
        assert len(first) == 12
        time.sleep(2)  # several readings, none of which says anything new
        lab.plugin("gpu").kill()
        lab.wait_settled()
        changed = rows_until(process.stdout, "vendor.example/gpu ", "Grace", "CHANGED")
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=QUICKLY)
    finally:
        process.kill()
    assert {line.split()[0] for line in changed} == {"vendor.example/gpu"}
    assert (process.returncode, err) == (130, "")
    assert all(line.startswith("vendor.example/gpu ") for line in rest.splitlines())
