"""Every example of the manual is run in the lab, and what it says is kept in tests/golden/examples.

The names in the examples are the sample lab's: who opens one (`dpctl lab run -- bash`) can type
them as they stand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dpctl.gen.tree import command_tree
from dpctl.lab.fixture import Lab
from dpctl.lab.runner import Runner
from dpctl.lab.spec import PluginSpec, SampleDevice
from tests.examples.shell import Shell
from tests.needs import marks
from tests.run import golden

LEAVES = {" ".join(leaf.words): leaf for leaf in command_tree().walk() if leaf.examples}

ELSEWHERE = {"lab up", "lab down", "lab run", "dashboard"}
"""Tried by tests/lab and tests/tui: they are labs of their own, and a screen."""

POD = """
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  containers:
  - name: main
    resources: {limits: {vendor.example/gpu: 4, cpu: 2, memory: 1Gi}}
"""

OLD = "touch -d '1 hour ago' $DPCTL_HOST_ROOT/var/lib/kubelet/device-plugins/rdma.sock"

PLUGIN = PluginSpec(
    "test",
    "test.example/card",
    "test.sock",
    (SampleDevice("card-0"), SampleDevice("card-1")),
    register=False,
    pre_start=True,
)
"""What ./test.sock is in the examples."""

BEFORE = {
    "resources": ["dpctl snapshot bundle.tgz"],
    "diff": ["dpctl snapshot after.tgz"],
    "node undo": ["dpctl node prune --yes", "dpctl node set ghost.example/tpu=0 --yes"],
    "plugins prune": [OLD],
}
"""What a page's examples take as given."""

UNTIL = {
    "dpctl plugin devices vendor.example/gpu --watch": "gpu-7",
    "dpctl node set vendor.example/dongle=4 --keep --yes": "SIGTERM ends it",
    "dpctl plugin serve ./mine.toml": "ListAndWatch",
    "(sleep 3; echo health gpu-3 Unhealthy; sleep 60)"
    " | dpctl plugin serve gpus --yes --control -": "Unhealthy",
}
"""What goes on until Ctrl-C, and what it has said by then."""

WAITS = {
    "dpctl node remove fabric.example/rdma --wait --yes": "note: waiting for",
    "dpctl plugin wait fabric.example/rdma --for gone --timeout 10m && dpctl node prune --yes": (
        "note: waiting for"
    ),
}
"""What waits for the end of the kubelet's grace: it is over, once this has been said."""


def test_what_has_no_example() -> None:
    """Only groups, whose commands have them."""
    bare = {node.words for node in command_tree().walk() if not node.examples}
    assert bare == {(), ("plugin",), ("lab",), ("config",)}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=marks(leaf.examples))
        for words, leaf in LEAVES.items()
        if words not in ELSEWHERE
    ],
)
def test_examples(words: str, new_lab: Callable[..., Lab], tmp_path: Path) -> None:
    lab = new_lab()
    shell = Shell(tmp_path, lab.env)
    (shell.work / "pod.yaml").write_text(POD)
    with contextlib.ExitStack() as stack:
        plugin = Runner(PLUGIN, shell.work, lambda _: None)
        plugin.serve()
        stack.callback(plugin.stop)
        told = transcript(words, shell, lab)
    golden(f"examples/{words.replace(' ', '-')}.txt", told)


def transcript(words: str, shell: Shell, lab: Lab) -> str:
    for line in BEFORE.get(words, ()):
        shell.run(line)
    told = ""
    for line in LEAVES[words].examples:
        told += f"{line}\n"
        if line and not line.startswith("#"):
            typed = line.replace("/var/lib/dpctl", f"{shell.home}/.local/state/dpctl")
            if line in WAITS:
                said = shell.run(typed, until=WAITS[line], then=lambda: lab.clock.advance(301))
            else:
                said = shell.run(typed, until=UNTIL.get(line))
            told += shell.comparable(said)
    return told
