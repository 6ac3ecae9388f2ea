"""What a test run leaves on the machine when it is killed, and what a plugin leaves in the run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import cgroups, slots
from .bench import Bench
from .node import REPOSITORY
from .processes import wait_for

pytestmark = pytest.mark.newest

# A run of its own, in a slot of its own, in the midst of a command in its node's namespace.
RUNNER = """
import sys
from tests.cluster.control import ControlPlane
from tests.cluster.node import Node

plane = ControlPlane()
plane.start()
node = Node(plane, sys.argv[1])
node.start()
print(plane.place.number, node.namespace.pid, flush=True)
node.run("sh", "-c", f": > {node.path}/runs; exec sleep 600", seconds=600)
"""


def everywhere() -> Iterator[tuple[Path, str]]:
    """Every process of the machine, and its mount namespace."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield process, os.readlink(process / "ns/mnt")
        except OSError:
            continue  # it has ended


def left_of(number: int, namespace: str) -> list[str]:
    """What is there of a slot, and of its node's namespace."""
    path = slots.BASE / str(number)
    groups = [folder / f"dpc/{number}" for folder in cgroups.hierarchies()]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return [
        *(f"{process} in a group" for process in cgroups.processes(f"dpc/{number}")),
        *(f"{process} in the namespace" for process, its in everywhere() if its == namespace),
        *(str(folder) for folder in (*groups, path) if folder.exists()),
        *(line for line in mounts if Path(line.split(" ")[4]).is_relative_to(path)),
    ]


@pytest.mark.usefixtures("bench")
def test_killed_run_leaves_nothing(request: pytest.FixtureRequest) -> None:
    minor = request.node.callspec.params["bench"]
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER, minor], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as runner:
        try:
            assert runner.stdout is not None
            number, holder = map(int, runner.stdout.readline().split())
            namespace = os.readlink(f"/proc/{holder}/ns/mnt")
            path = slots.BASE / str(number)
            wait_for("the command", lambda: list(path.glob("w*/runs")), 20)
            assert len(left_of(number, namespace)) > 10
        finally:
            runner.kill()
    try:
        wait_for("the slot to be empty", lambda: not left_of(number, namespace), 20)
    except Exception as error:
        error.add_note("\n".join(left_of(number, namespace)))
        raise


def test_killed_plugin_leaves_no_descriptor(bench: Bench) -> None:
    """A run has some hundred of them, and a process no more than 1024 descriptors."""

    def of_plugins() -> int:
        links = [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()]
        return sum("pipe:" in link or "pidfd" in link for link in links)

    before = of_plugins()
    plugin = bench.plugin("ready.test/gpu", ["gpu-0"])
    assert of_plugins() == before + 3
    plugin.kill()
    wait_for("its pipes to be closed", lambda: of_plugins() == before, 10)


def test_controllers_are_switched_on_down_to_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a folder that looks like version 2, since no machine at hand has it."""
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids rdma misc\n")
    assert cgroups.make("dpc/0/worker-1") == [tmp_path / "dpc/0/worker-1/cgroup.procs"]
    files = {file.parent: file.read_text() for file in tmp_path.rglob("cgroup.subtree_control")}
    every = "+cpu +cpuset +memory +hugetlb +pids +io"
    assert files == {tmp_path / name: every for name in ("", "dpc", "dpc/0")}
