"""Control groups, version 1 or 2: make them, kill everything in them, remove them.

Everything that a test node starts lives in one control group. The kernel keeps that list, so it
is complete and exact even after the test runner was killed: no process can leave it by forking,
and no number in it can belong to somebody else.

Version 2 has not been run as yet. What a kubelet wants of its `cgroupRoot`
there is read from its source (`cgroup_v2_manager_linux.go`), and `make` does it.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# A kubelet refuses a version 2 group that lacks one of the first five, where the machine has it.
CONTROLLERS = ("cpu", "cpuset", "memory", "hugetlb", "pids", "io")
KILL_SECONDS = 20.0


def hierarchies() -> list[Path]:
    """Mount points of all hierarchies: one on version 2, one per controller on version 1."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    # Names such as cpu,cpuacct have links beside them; each real folder once.
    return sorted(p for p in ROOT.iterdir() if p.is_dir() and not p.is_symlink())


def make(name: str) -> list[Path]:
    """Make the group `a/b` in every hierarchy; the `cgroup.procs` files to write a pid into."""
    files = []
    for hierarchy in hierarchies():
        folder = hierarchy
        for part in Path(name).parts:
            parent, folder = folder, folder / part
            folder.mkdir(exist_ok=True)
            if hierarchy == ROOT:
                # Version 2: a group has the controllers that the one above switches on for it. What
                # is switched on at the root stays so, as container runtimes leave it, too.
                (parent / "cgroup.subtree_control").write_text(_switched_on())
            # A new version 1 cpuset is empty and takes no process until it has CPUs and memory.
            for setting in ("cpuset.cpus", "cpuset.mems"):
                file = folder / setting
                if hierarchy != ROOT and file.exists() and not file.read_text().strip():
                    file.write_text((parent / setting).read_text())
        files.append(folder / "cgroup.procs")
    return files


def _switched_on() -> str:
    present = (ROOT / "cgroup.controllers").read_text().split()
    return " ".join(f"+{name}" for name in CONTROLLERS if name in present)


def make_any_cpu(name: str, pretended: Path) -> dict[Path, Path]:
    """Make the group `name` such that CPUs which the machine lacks can be written into it.

    Answers file -> where to mount it in the writer's namespace. On version 2 nothing can be done.
    """
    make(name)
    folder = ROOT / "cpuset" / name
    if not (folder / "cgroup.clone_children").exists():
        return {}
    # Groups below take the real CPUs at birth, instead of copying what was written here.
    (folder / "cgroup.clone_children").write_text("1")
    pretended.write_text((folder / "cpuset.cpus").read_text())
    return {pretended: folder / "cpuset.cpus"}


def processes(name: str) -> set[int]:
    """Pids in the group and all groups below it, in any hierarchy."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / name):
            try:
                text = (Path(folder) / "cgroup.procs").read_text()
            except OSError:
                continue  # removed between the listing and the look, or a threaded group
            # 0 stands for a process of another pid namespace, which cannot be signalled.
            found.update(int(pid) for pid in text.split() if pid != "0")
    return found


def kill(name: str) -> None:
    """Kill everything in the group and below it, until nothing is left."""
    deadline = time.monotonic() + KILL_SECONDS
    # Again and again, because something may fork while the list is read.
    while pids := processes(name):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes do not die: {sorted(pids)}")
        time.sleep(0.02)


def remove(name: str) -> None:
    """Remove the group and the groups below it; they must hold no process any more."""
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            _remove_one(Path(folder))


def _remove_one(folder: Path) -> None:
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            # A process that has just died keeps its group busy for a moment.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
