"""The tables of plans, as bytes: what would be changed, what not, and why."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpctl.lab.fixture import Lab
from tests.run import dpctl, golden

OLD, GPU, DONGLE = "old.example/retired", "vendor.example/gpu", "vendor.example/dongle"
PLANS = {
    "remove.txt": ("node", "remove", OLD, "fabric.example/rdma", GPU, "cpu", "no.example/such"),
    "prune.txt": ("node", "prune", "--include", "ghost,malformed,foreign"),
    "prune-wide.txt": ("node", "prune", "-o", "wide"),
    "set.txt": ("node", "set", f"{DONGLE}=4"),
    "set-served.txt": ("node", "set", f"{GPU}=1"),
    "plugins-prune.txt": ("plugins", "prune"),
    "plugins-prune-wide.txt": ("plugins", "prune", "-o", "wide"),
    "pods-prune.txt": ("pods", "prune", "--failed"),
}


@pytest.fixture(scope="module")
def own() -> Iterator[Lab]:
    """The sample lab; its plugins' sockets were made thirty days ago. The kubelet's own is left as
    it is: a plugin that sees it change registers anew."""
    with Lab() as running:
        made = time.time() - (30 * 24 + 1) * 3600
        for path in running.device_plugins.glob("*.sock"):
            if path.name != "kubelet.sock":
                os.utime(path, (made, made))
        yield running


@pytest.mark.parametrize("name", PLANS)
def test_plan(own: Lab, name: str) -> None:
    command = PLANS[name]
    dry = "--dry-run" if command[0] == "plugins" else "--dry-run=client"
    result = dpctl(*command, dry, env=own.env)
    assert result.code in (0, 6), result
    text = re.sub(r"(\d+ min )?\d+ s(?= are left)", "N min NN s", result.out)
    text = re.sub(r"(?m)^(kubelet\.sock +- +)\S+ +", r"\1AGE   ", text)
    golden(f"plans/{name}", text)


def test_undo(own: Lab, tmp_path: Path) -> None:
    """The last test of this file: it needs a change that can be undone."""
    env = {**own.env, "XDG_STATE_HOME": str(tmp_path)}
    changed = dpctl("node", "set", f"{DONGLE}=4", "--yes", "--verify", "1s", env=env)
    assert changed.code == 0, changed
    golden("plans/set-done.txt", changed.out)
    result = dpctl("node", "undo", "--dry-run=client", env=env)
    assert result.code == 0, result
    golden("plans/undo.txt", result.out)
