"""Which socket files may go, and what is said of each."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from dpctl.changes.sockets import YOUNGEST, plan_sockets, prune_socket
from dpctl.model import Snapshot, SocketState
from dpctl.model.changes import Outcome, Verdict
from dpctl.model.leftovers import SocketChangeRow
from dpctl.sources.plugin_sockets import list_directory, probe_sockets


def dead(path: Path, age: float = 3600.0) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    now = path.stat().st_mtime
    os.utime(path, (now - age, now - age))


def plan(directory: Path, *patterns: str) -> dict[str, SocketChangeRow]:
    import time

    listing = list_directory(str(directory))
    plugins = probe_sockets(listing, timeout=2.0)
    snap = Snapshot(time.time(), (), directory=listing, plugins=plugins)
    return {row.endpoint: row for row in plan_sockets(snap, patterns)}


def test_only_dead_ones_go(tmp_path: Path) -> None:
    dead(tmp_path / "gone.sock")
    dead(tmp_path / "kubelet.sock")
    os.link(tmp_path / "kubelet.sock", tmp_path / "alias.sock")
    (tmp_path / "kubelet_internal_checkpoint").write_text("{}")
    (tmp_path / "link.sock").symlink_to("gone.sock")
    (tmp_path / "sub").mkdir()
    dead(tmp_path / "sub/x.sock")
    dead(tmp_path / "young.sock", YOUNGEST / 2)
    dead(tmp_path / "future.sock", -3600)
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(tmp_path / "alive.sock"))
        alive.listen(64)
        rows = plan(tmp_path)
    verdicts = {name: row.verdict for name, row in rows.items()}
    assert verdicts.pop("gone.sock") is Verdict.CHANGE
    assert set(verdicts) == {
        "alias.sock",
        "alive.sock",
        "future.sock",
        "kubelet.sock",
        "sub/x.sock",
        "young.sock",
    }
    assert set(verdicts.values()) == {Verdict.KEEP}
    assert "kubelet's own" in rows["alias.sock"].reason
    assert rows["alive.sock"].state == SocketState.HUNG


@pytest.mark.parametrize("name", ["kubelet.sock", "alive.sock", "young.sock"])
def test_a_named_one_that_must_stay_is_refused(tmp_path: Path, name: str) -> None:
    dead(tmp_path / "kubelet.sock")
    dead(tmp_path / "young.sock", 1)
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(tmp_path / "alive.sock"))
        alive.listen(64)
        assert plan(tmp_path, name)[name].verdict is Verdict.REFUSE
        assert plan(tmp_path, "*")[name].verdict is Verdict.KEEP


def test_pruned(tmp_path: Path) -> None:
    dead(tmp_path / "gone.sock")
    row = plan(tmp_path)["gone.sock"]
    assert prune_socket(str(tmp_path), row).outcome is Outcome.CHANGED
    assert os.listdir(tmp_path) == []
    assert prune_socket(str(tmp_path), row).outcome is Outcome.GONE_ALREADY


def test_a_plugin_that_came_back_is_told(tmp_path: Path) -> None:
    dead(tmp_path / "gpu.sock")
    row = plan(tmp_path)["gpu.sock"]
    (tmp_path / "gpu.sock").rename(tmp_path / "kept")
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(tmp_path / "gpu.sock"))
        alive.listen(64)
        done = prune_socket(str(tmp_path), row)
    assert done.outcome is Outcome.NOT_APPLIED
    assert "another file has the name by now" in done.reason


@pytest.mark.parametrize("alive", [True, False])
def test_what_a_killed_run_left_aside(tmp_path: Path, alive: bool) -> None:
    aside = tmp_path / ".dpctl-aside-0123abcd-gpu.sock"
    with socket.socket(socket.AF_UNIX) as plugin:
        plugin.bind(str(aside))
        if alive:
            plugin.listen(64)
        row = plan(tmp_path)[aside.name]
        assert row.verdict is Verdict.CHANGE
        done = prune_socket(str(tmp_path), row)
    assert done.outcome is Outcome.CHANGED
    assert os.listdir(tmp_path) == (["gpu.sock"] if alive else [])
    assert ("it is gpu.sock again" in done.reason) == alive


def test_a_directory_that_may_not_be_written() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        directory = Path(place)
        dead(directory / "gone.sock")
        (directory / "gone.sock").chmod(0o777)
        row = plan(directory)["gone.sock"]
        directory.chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)  # root may write anywhere
        try:
            done = prune_socket(str(directory), row)
        finally:
            os.seteuid(user)
            directory.chmod(0o700)
        assert (directory / "gone.sock").exists()
    assert done.outcome is Outcome.NOT_APPLIED
    assert "could not be removed" in done.reason
