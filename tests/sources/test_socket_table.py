"""Real listeners and clients in processes of their own, looked at through the kernel's table."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.env import Env, Settings, find_env
from dpctl.errors import UnreachableError
from dpctl.model import Process, SocketTable, UnixSocket
from dpctl.sources import socket_table
from dpctl.sources.processes import is_ending
from dpctl.sources.socket_table import parse_net_unix, read_socket_table
from dpctl.sources.sysfs import vfs_device
from tests.sources.peer import peer

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def plugins() -> Iterator[Path]:
    """A device-plugins directory with a short name: a socket's path holds 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dp") as name:
        directory = Path(name) / "device-plugins"
        directory.mkdir()
        yield directory


def environment(plugins: Path) -> Env:
    settings = Settings(device_plugin_dir=str(plugins))
    return find_env(settings, {"HOME": "/nonexistent"}, scan=False)


def read(plugins: Path) -> tuple[SocketTable, dict[int, Process]]:
    return read_socket_table(environment(plugins))


def named(plugins: Path, name: str, state: str = "listen") -> UnixSocket:
    table, _ = read(plugins)
    (row,) = (s for s in table.sockets if s.name == name and s.state == state)
    return row


def is_in(row: UnixSocket, directory: Path) -> bool:
    return (
        row.parent_known
        and row.parent_inode == directory.stat().st_ino
        and row.parent_device == vfs_device(str(directory))
    )


def is_elsewhere(row: UnixSocket) -> bool:
    return row.parent_known and row.parent_inode is None


def test_processes_are_those_that_may_be_plugins(plugins: Path) -> None:
    """Their arguments, environment and control group; a machine has hundreds of other listeners."""
    there, elsewhere = plugins / "gpu.sock", plugins.parent / "dbus.sock"
    registry = plugins.parent / "plugins_registry"
    registry.mkdir()
    settings = Settings(device_plugin_dir=str(plugins), kubelet_root=str(plugins.parent))
    env = find_env(settings, {"HOME": "/nonexistent"}, scan=False)
    assert env.plugins_registry.value == str(registry)
    with peer() as plugin, peer() as unlinked, peer() as linked, peer() as driver, peer() as other:
        plugin("listen", str(there))
        unlinked("listen", str(plugins / "gone.sock"))
        (plugins / "gone.sock").unlink()
        linked("listen", str(plugins.parent / "own.sock"))
        (plugins / "name.sock").hardlink_to(plugins.parent / "own.sock")
        driver("listen", str(registry / "driver.sock"))
        other("listen", str(elsewhere))
        _, processes = read_socket_table(env)
    ours = {peer.pid for peer in (plugin, unlinked, linked, driver)}
    assert ours <= set(processes)
    assert other.pid not in processes


def test_a_kubelet_and_its_plugin(plugins: Path) -> None:
    path = str(plugins / "gpu.sock")
    with peer() as plugin, peer() as kubelet:
        listener = plugin("listen", path)
        client = kubelet("connect", path)
        accepted = plugin("accept", path)
        file = os.stat(path)
        for step in ("file there", "file gone"):
            table, processes = read(plugins)
            rows = {s.inode: s for s in table.sockets if s.name == path}
            assert set(rows) == {listener, accepted}, step
            assert rows[listener].state == "listen"
            assert (rows[listener].pid, rows[listener].peer_pids) == (plugin.pid, ())
            assert is_in(rows[listener], plugins), step
            assert rows[accepted].state == "established"
            assert rows[accepted].peer == client
            assert (rows[accepted].pid, rows[accepted].peer_pids) == (plugin.pid, (kubelet.pid,))
            assert {r.file_inode for r in rows.values()} == {file.st_ino & 0xFFFFFFFF}
            assert {r.device for r in rows.values()} == {vfs_device(str(plugins))}
            assert processes[plugin.pid].command.startswith("python")
            assert "-S" in processes[plugin.pid].arguments
            assert kubelet.pid not in processes  # listens nowhere
            if step == "file there":
                os.unlink(path)
        os.kill(plugin.pid, signal.SIGKILL)
        plugin.process.wait()
        table, processes = read(plugins)
        assert not [s for s in table.sockets if s.name == path]
        assert plugin.pid not in processes


def test_an_inherited_end_has_two_holders(plugins: Path) -> None:
    path = str(plugins / "gpu.sock")
    with peer() as plugin, peer() as kubelet:
        plugin("listen", path)
        kubelet("connect", path)
        plugin("accept", path)
        child = kubelet("fork")
        worker = plugin("fork")
        row = named(plugins, path, "established")
        assert row.peer_pids == tuple(sorted((kubelet.pid, child)))
        assert named(plugins, path).pid == min(plugin.pid, worker)


@needs_root
def test_bound_by_another_path_in_other_mounts(plugins: Path) -> None:
    """A container's mount: the directory is /plugins there."""
    inside = plugins.parent / "inside"
    inside.mkdir()
    script = f'mount --bind {plugins} {inside} && exec "$@"'
    with peer("unshare", "-m", "sh", "-c", script, "sh") as plugin:
        name = str(inside / "gpu.sock")
        plugin("listen", name)
        row = named(plugins, name)
        assert (plugins / "gpu.sock").stat().st_ino & 0xFFFFFFFF == row.file_inode
        assert is_in(row, plugins)
        os.unlink(plugins / "gpu.sock")
        assert is_in(named(plugins, name), plugins)


@needs_root
def test_an_absolute_link_means_the_holders_root(plugins: Path) -> None:
    """/var/run -> /run in an image must not be looked up in our /run."""
    root = plugins.parent / "image"
    (root / "run").mkdir(parents=True)
    (root / "var").mkdir()
    (root / "var/run").symlink_to("/run")
    with peer() as plugin:
        plugin("chroot", str(root))
        plugin("listen", "/var/run/gpu.sock")
        assert is_in(named(plugins, "/var/run/gpu.sock"), root / "run")


def test_relative_names(plugins: Path) -> None:
    with peer() as plugin:
        plugin("chdir", str(plugins))
        plugin("listen", "relative-gpu.sock")
        assert is_in(named(plugins, "relative-gpu.sock"), plugins)
        os.unlink(plugins / "relative-gpu.sock")
        assert is_in(named(plugins, "relative-gpu.sock"), plugins)
        # Moved on, file gone: a guess from the new directory would be a wrong "not it".
        plugin("chdir", str(plugins.parent))
        assert not named(plugins, "relative-gpu.sock").parent_known


def test_a_relative_name_elsewhere_is_believed_with_its_file(plugins: Path) -> None:
    other = plugins.parent / "other"
    other.mkdir()
    with peer() as plugin:
        plugin("chdir", str(other))
        plugin("listen", "other-gpu.sock")
        assert is_in(named(plugins, "other-gpu.sock"), other)
        with peer() as namesake:
            namesake("listen", str(plugins.parent / "other-gpu.sock"))
            plugin("chdir", str(plugins.parent))  # where another's socket has that name
            row = next(s for s in read(plugins)[0].sockets if s.pid == plugin.pid)
            assert not row.parent_known
        plugin("chdir", "/")
        assert not named(plugins, "other-gpu.sock").parent_known


def test_names_below_proc_cannot_be_told(plugins: Path) -> None:
    with peer() as plugin:
        plugin("chdir", str(plugins))
        name = "/proc/self/cwd/by-proc.sock"
        plugin("listen", name)
        assert not named(plugins, name).parent_known


def test_a_directory_that_is_gone_is_not_it(plugins: Path) -> None:
    other = plugins.parent / "other"
    other.mkdir()
    with peer() as plugin:
        plugin("listen", str(other / "x.sock"))
        assert is_in(named(plugins, str(other / "x.sock")), other)
        shutil.rmtree(other)
        assert is_elsewhere(named(plugins, str(other / "x.sock")))


@needs_root
def test_a_directory_that_is_gone_in_other_mounts_may_have_been_it(plugins: Path) -> None:
    other = plugins.parent / "other"
    other.mkdir()
    with peer("unshare", "-m") as plugin:
        plugin("listen", str(other / "x.sock"))
        shutil.rmtree(other)
        assert not named(plugins, str(other / "x.sock")).parent_known


@needs_root
def test_another_superblock_is_not_it(plugins: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="dp", dir="/dev/shm") as shm, peer() as plugin:
        plugin("chdir", shm)
        plugin("listen", "shm-gpu.sock")
        os.unlink(f"{shm}/shm-gpu.sock")
        plugin("chdir", "/")
        assert is_elsewhere(named(plugins, "shm-gpu.sock"))


@needs_root
def test_another_network_namespace(plugins: Path) -> None:
    """The listener is in that namespace's table alone, the kubelet's connection in ours."""
    path = str(plugins / "gpu.sock")
    with peer("unshare", "-n") as plugin, peer() as kubelet:
        listener = plugin("listen", path)
        client = kubelet("connect", path)
        accepted = plugin("accept", path)
        file = os.stat(path)
        os.unlink(path)
        row = named(plugins, path)
        assert (row.inode, row.pid, row.other_namespace) == (listener, plugin.pid, True)
        assert (row.file_inode, row.device) == (None, None)
        assert is_in(row, plugins)
        connection = named(plugins, path, "established")
        assert (connection.inode, connection.peer) == (accepted, client)
        assert not connection.other_namespace
        assert (connection.pid, connection.peer_pids) == (plugin.pid, (kubelet.pid,))
        assert connection.file_inode == file.st_ino & 0xFFFFFFFF
        _, processes = read(plugins)
        assert plugin.pid in processes


@needs_root
def test_the_other_way_round_the_table_is_empty(plugins: Path) -> None:
    """Seen from elsewhere, the host's listeners have no file: the joins then do not trust it."""
    path = str(plugins / "kubelet.sock")
    code = (
        "import sys; from dpctl.env import *; from dpctl.sources.socket_table import *\n"
        f"t, _ = read_socket_table(find_env(Settings(device_plugin_dir={str(plugins)!r}), {{}}))\n"
        f"print([(s.file_inode, s.other_namespace) for s in t.sockets if s.name == {path!r}])"
    )
    with peer() as kubelet:
        kubelet("listen", path)
        answer = subprocess.run(
            ["unshare", "-n", sys.executable, "-c", code], capture_output=True, text=True
        )
    assert answer.stdout == "[(None, True)]\n", answer.stderr


def test_more_than_a_thousand_sockets(plugins: Path) -> None:
    with peer() as plugin:
        plugin("many", str(plugins), 1200)
        started = time.process_time()
        table, processes = read(plugins)
        spent = time.process_time() - started
        rows = [s for s in table.sockets if s.pid == plugin.pid]
        assert len(rows) == 1200
        assert all(is_in(row, plugins) for row in rows[::100])
        assert list(processes).count(plugin.pid) == 1
        assert spent < 2  # 40 ms on an idle machine


def test_other_kinds_of_sockets_are_no_listeners(plugins: Path) -> None:
    with peer() as plugin:
        plugin("listen", str(plugins / "attach"), "SOCK_SEQPACKET")
        plugin("listen", str(plugins / "log"), "SOCK_DGRAM")
        table, _ = read(plugins)
        assert not [s for s in table.sockets if s.name and s.name.startswith(str(plugins))]


@needs_root
def test_a_name_with_a_line_feed_forges_a_row_that_nobody_holds(plugins: Path) -> None:
    with peer("unshare", "-n") as plugin:
        plugin("chdir", str(plugins))
        name = "a\n0: 2 0 10000 0001 01 4294967000 "
        (plugins / name).mkdir()
        plugin("listen", f"{name}/x")
        table, _ = read(plugins)
        (forged,) = (s for s in table.sockets if s.inode == 4294967000)
        assert forged.pid is None
        assert not forged.parent_known


def test_no_directory_is_no_reason_to_fail(plugins: Path) -> None:
    with peer() as plugin:
        plugin("listen", str(plugins / "x.sock"))
        table, _ = read_socket_table(environment(plugins / "none"))
        assert any(s.name == str(plugins / "x.sock") and s.parent_inode for s in table.sockets)


def test_a_bundle_has_no_table() -> None:
    env = find_env(Settings(bundle="/b"), {"HOME": "/nonexistent"})
    with pytest.raises(UnreachableError, match="bundle"):
        read_socket_table(env)


HEAD = b"Num       RefCount Protocol Flags    Type St Inode Path\n"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"0000: 00000002 00000000 00010000 0001 01  4711 /a b/x.sock", [(4711, "/a b/x.sock")]),
        (b"0000: 00000003 00000000 00000000 0001 03  4711 /a/x.sock", []),  # connected
        (b"0000: 00000002 00000000 00010000 0005 01  4711 /a/attach", []),
        (b"0000: 00000002 00000000 00010000 0001 01  4711 @abstract", []),
        (b"0000: 00000002 00000000 00010000 0001 01  4711", []),
        (b"0000: x 00000000 zz 0001 01  4711 /a", []),
        (b"0000: 2 0 10000 1 1 5 /\xff", [(5, "/\udcff")]),
    ],
)
def test_lines_of_proc_net_unix(line: bytes, found: list[tuple[int, str]]) -> None:
    assert parse_net_unix(HEAD + line + b"\n") == found


@given(st.binary(max_size=300))
def test_any_proc_net_unix(data: bytes) -> None:
    for inode, name in parse_net_unix(HEAD + data):
        assert isinstance(inode, int)
        assert name


def test_a_listener_that_was_closed_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is read before the processes: who is gone by then has no process to be told by."""
    gone = UnixSocket(10, "listen", "ctl", 77, None, None)
    there = gone._replace(inode=11)
    ending = gone._replace(inode=12, holders=(1,))  # its process went before its directory was seen
    known = gone._replace(inode=14, parent_known=True)
    accepted = gone._replace(inode=13, state="established")
    monkeypatch.setattr(socket_table, "read_unix_sockets", lambda: (there,))
    rows = [gone, there, ending, accepted, known]
    kept = socket_table._still_there(rows, lambda rows: False)
    assert kept == [there, accepted, known]


def test_who_has_just_ended_is_looked_for_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it was asked whether its process ends, it has."""
    row = UnixSocket(10, "listen", "ctl", 77, None, None)
    table = [row]

    def ended(rows: object) -> bool:
        table.clear()
        return False

    monkeypatch.setattr(socket_table, "read_unix_sockets", lambda: tuple(table))
    assert socket_table._still_there([row], ended) == []


ENDS_SLOWLY = """
import ctypes, os, socket, sys, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
def last():
    sys.stdin.read(1)
    os._exit(0)
threading.Thread(target=last).start()
ctypes.CDLL(None).pthread_exit(None)  # this thread alone
"""


@needs_root
def test_a_process_that_ends_keeps_its_sockets_for_a_moment(
    plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose process it is cannot be told by then: gRPC's threads take their time."""
    path = str(plugins.parent / "x.sock")

    def rows() -> list[UnixSocket]:
        return [row for row in read(plugins)[0].sockets if row.name == path]

    command = [sys.executable, "-c", ENDS_SLOWLY, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        # Its first thread has ended alone: it lives, and is not waited for.
        assert not is_ending("/proc", process.pid)
        assert [row.parent_known for row in rows()] == [False]

        def end(pause: float) -> None:
            if pause and process.returncode is None:
                process.communicate(b"x")

        monkeypatch.setattr(socket_table, "time", SimpleNamespace(sleep=end))
        monkeypatch.setattr(socket_table, "is_ending", lambda proc, pid: pid == process.pid)
        assert rows() == []


@pytest.mark.parametrize(
    ("threads", "ends"),
    [
        ({8: ("S", 0x100)}, True),  # SIGKILL, and no processor yet
        ({8: ("Z", 0), 9: ("X", 0)}, True),
        ({8: ("S", 0x100), 9: ("S", 0)}, False),
        ({8: ("S", 0x4000)}, False),  # SIGTERM may be ignored
        ({}, False),  # nothing is left of it
    ],
)
def test_a_process_without_its_first_thread_ends_or_lives(
    tmp_path: Path, threads: dict[int, tuple[str, int]], ends: bool
) -> None:
    def thread(number: int, state: str, pending: int) -> None:
        folder = tmp_path / "7/task" / str(number)
        folder.mkdir(parents=True)
        stat = (
            f"{number} (a) b) {state} 1 7 7 0 -1 {4194304} " + "0 " * 10 + f"{len(threads) + 1} 0"
        )
        (folder / "stat").write_text(stat)
        (folder / "status").write_text(f"Name:\ta\nState:\t{state} (x)\nSigPnd:\t{pending:016x}\n")
        if number == 7:
            (tmp_path / "7/stat").write_text(stat)

    thread(7, "Z", 0)
    for number, (state, pending) in threads.items():
        thread(number, state, pending)
    assert is_ending(str(tmp_path), 7) is ends
