from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpctl.env import Settings, find_env, layouts
from dpctl.sources.proc import boot_id, find_kubelets, kubelet_from_pid
from tests.env.tree import Tree
from tests.sources.peer import peer


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(layouts, "SYSTEM_FILE", str(tmp_path / "none.toml"))
    return Tree(tmp_path / "host")


def test_kubelets_of_a_machine(tree: Tree) -> None:
    tree.process(1, "init")
    tree.process(
        40, "kubelet", "--root-dir=/r", "--config=/c.yaml", "--hostname-override=w-0", "--v=4"
    )
    tree.process(50, "kubelet", "--hostname-override=w-1")
    tree.file("/proc/40/stat", "40 (kubelet) S " + " ".join(str(i) for i in range(4, 40)))
    tree.file("/proc/stat", "btime 1000\n")
    one, two = find_kubelets(tree.find())
    assert one.pid == 40
    assert one.arguments[-1] == "--v=4"
    assert (one.node_name, one.root_dir) == ("w-0", "/r")
    assert one.config_path == tree.at("/c.yaml")
    assert one.started == 1000 + 22 / os.sysconf("SC_CLK_TCK")
    assert (two.node_name, two.root_dir, two.config_path) == ("w-1", "/var/lib/kubelet", None)


def test_a_process_of_any_name_by_its_listener() -> None:
    """The holder of kubelet.sock counts even if it is called otherwise."""
    env = find_env(Settings(), {"HOME": "/nonexistent"}, scan=False)
    with peer() as child:
        kubelet = kubelet_from_pid(env, child.pid)
        assert kubelet is not None
        assert kubelet.pid == child.pid
        assert kubelet.root_dir is None
        assert child.pid not in [found.pid for found in find_kubelets(env)]
    assert kubelet_from_pid(env, child.pid) is None


def test_a_loop_instead_of_a_configuration(tree: Tree) -> None:
    tree.link("/loop", "/loop")
    tree.process(40, "kubelet", "--config=/loop")
    assert find_kubelets(tree.find())[0].config_path is None


def test_boot_id(tree: Tree) -> None:
    live = find_env(Settings(), {"HOME": "/nonexistent"}, scan=False)
    assert boot_id(live) == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    tree.process(1, "init")
    assert boot_id(tree.find()) is None
    tree.file("/proc/sys/kernel/random/boot_id", "abc\n")
    assert boot_id(tree.find()) == "abc"
    assert boot_id(find_env(Settings(bundle="/b"), {"HOME": "/nonexistent"})) is None
    assert find_kubelets(find_env(Settings(bundle="/b"), {"HOME": "/nonexistent"})) == ()
