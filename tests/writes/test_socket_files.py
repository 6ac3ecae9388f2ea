"""Socket files removed and put back, with plugins that come and go at every step."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from dpctl.sources.directory import kernel_device
from dpctl.writes.socket_files import Fate, deal_with_aside, original_of, remove_socket


def bind(path: Path, *, listen: bool = True) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    if listen:
        made.listen(64)
    return made


def dead(path: Path) -> Path:
    bind(path).close()
    return path


def remove(path: Path) -> Fate:
    found = path.lstat()
    return remove_socket(
        str(path.parent), path.name, inode=found.st_ino, device=kernel_device(found.st_dev)
    )


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(str(path))
        except OSError:
            return False
    return True


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_a_dead_one_goes(tmp_path: Path) -> None:
    assert remove(dead(tmp_path / "gpu.sock")) is Fate.REMOVED
    assert names(tmp_path) == []


def test_a_living_one_stays_the_same_file(tmp_path: Path) -> None:
    with bind(tmp_path / "gpu.sock"):
        before = (tmp_path / "gpu.sock").stat().st_ino
        assert remove(tmp_path / "gpu.sock") is Fate.ALIVE
        assert (tmp_path / "gpu.sock").stat().st_ino == before
        assert answers(tmp_path / "gpu.sock")
    assert names(tmp_path) == ["gpu.sock"]


def test_a_full_queue_is_a_sign_of_life(tmp_path: Path) -> None:
    with bind(tmp_path / "gpu.sock"):
        waiting = []
        while True:
            peer = socket.socket(socket.AF_UNIX)
            peer.setblocking(False)
            waiting.append(peer)
            try:
                peer.connect(str(tmp_path / "gpu.sock"))
            except BlockingIOError:
                break
        assert remove(tmp_path / "gpu.sock") is Fate.ALIVE
        for peer in waiting:
            peer.close()


def test_a_datagram_socket_is_none_of_ours(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "log.sock"))
        with pytest.raises(OSError, match="wrong type"):
            remove(tmp_path / "log.sock")
    assert names(tmp_path) == ["log.sock"]


def test_another_file_of_the_name(tmp_path: Path) -> None:
    path = dead(tmp_path / "gpu.sock")
    found = path.lstat()
    os.rename(path, tmp_path / "old")
    args = {"inode": found.st_ino, "device": kernel_device(found.st_dev)}
    assert remove_socket(str(tmp_path), "gpu.sock", **args) is Fate.GONE
    path.write_text("not a socket")
    assert remove_socket(str(tmp_path), "gpu.sock", **args) is Fate.ANOTHER
    path.unlink()
    path.symlink_to("old")  # a link to the very file: it is not followed
    assert remove_socket(str(tmp_path), "gpu.sock", **args) is Fate.ANOTHER
    assert names(tmp_path) == ["gpu.sock", "old"]


def test_links_are_moved_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between look and rename the name becomes a link to somebody else's living socket."""
    path = dead(tmp_path / "gpu.sock")
    other = tmp_path / "elsewhere"
    other.mkdir()
    with bind(other / "victim.sock"):

        def swap() -> None:
            path.unlink()
            path.symlink_to(other / "victim.sock")

        _before_rename(monkeypatch, swap)
        assert remove(path) is Fate.ANOTHER
        assert os.readlink(path) == str(other / "victim.sock")
        assert answers(other / "victim.sock")
    assert names(tmp_path) == ["elsewhere", "gpu.sock"]


def _before_rename(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    rename = os.rename

    def hooked(*args: object, **kwargs: object) -> None:
        monkeypatch.undo()
        act()
        rename(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", hooked)


def test_a_plugin_that_returns_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It unlinks the dead file and binds anew: another inode of the same name."""
    path = dead(tmp_path / "gpu.sock")
    returned: list[socket.socket] = []

    def restart() -> None:
        path.rename(tmp_path / "kept")  # keeps the inode from being used again
        returned.append(bind(path))

    _before_rename(monkeypatch, restart)
    assert remove(path) is Fate.ANOTHER
    assert answers(path)
    assert names(tmp_path) == ["gpu.sock", "kept"]
    returned[0].close()


def test_a_plugin_that_listens_before_the_second_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very same socket begins to listen: it was bound all the time."""
    path = tmp_path / "gpu.sock"
    with bind(path, listen=False) as plugin:
        _before_rename(monkeypatch, lambda: plugin.listen(64))
        assert remove(path) is Fate.ALIVE
        assert answers(path)
    assert names(tmp_path) == ["gpu.sock"]


def test_a_living_one_whose_name_is_taken_meanwhile_is_left_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gpu.sock"
    link = os.link
    second: list[socket.socket] = []

    def hooked(*args: object, **kwargs: object) -> None:
        second.append(bind(path))
        link(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", hooked)
    with bind(path) as first:
        assert remove(path) is Fate.STRANDED
        assert answers(path)
        (aside,) = [name for name in names(tmp_path) if original_of(name)]
        assert answers(tmp_path / aside)
        first.close()
    monkeypatch.undo()
    assert deal_with_aside(str(tmp_path), aside) is Fate.REMOVED
    assert names(tmp_path) == ["gpu.sock"]
    second[0].close()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("call", ["stat", "rename", "link", "unlink", "open"])
def test_killed_at_any_step_the_next_run_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: bool, call: str
) -> None:
    path = tmp_path / "gpu.sock"
    plugin = bind(path)
    if not alive:
        plugin.close()
    inode, device = path.lstat().st_ino, kernel_device(path.lstat().st_dev)
    for at in range(6):
        _kill(monkeypatch, call, at)
        with suppress(Killed):
            remove_socket(str(tmp_path), "gpu.sock", inode=inode, device=device)
        monkeypatch.undo()
        for name in names(tmp_path):
            if original_of(name):
                deal_with_aside(str(tmp_path), name)
        assert names(tmp_path) in ([["gpu.sock"]] if alive else [["gpu.sock"], []])
        assert not alive or answers(path)
    plugin.close()


def _kill(monkeypatch: pytest.MonkeyPatch, call: str, at: int) -> None:
    """The `at`-th call of this kind never happens."""
    real = getattr(os, call)
    left = [at]

    def hooked(*args: object, **kwargs: object) -> object:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        return real(*args, **kwargs)

    monkeypatch.setattr(os, call, hooked)


def test_a_name_too_long_to_be_set_aside_stays(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    name = "x" * 250
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "short"))
    os.rename("short", name, src_dir_fd=directory, dst_dir_fd=directory)
    os.close(directory)
    with pytest.raises(OSError, match="too long"):
        remove(tmp_path / name)
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("call", ["open", "link", "unlink"])
def test_a_second_dpctl_that_tidies_up_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: bool, call: str
) -> None:
    path = tmp_path / "gpu.sock"
    plugin = bind(path)
    if not alive:
        plugin.close()
    real = getattr(os, call)

    def hooked(*args: object, **kwargs: object) -> object:
        monkeypatch.undo()
        for name in names(tmp_path):
            if original_of(name):
                deal_with_aside(str(tmp_path), name)
        return real(*args, **kwargs)

    inode, device = path.lstat().st_ino, kernel_device(path.lstat().st_dev)
    if call == "open":  # the first one is the directory's
        opened = os.open(tmp_path, os.O_RDONLY)
        monkeypatch.setattr("dpctl.writes.socket_files._opened", lambda _: nullcontext(opened))
    monkeypatch.setattr(os, call, hooked)
    fate = remove_socket(str(tmp_path), "gpu.sock", inode=inode, device=device)
    assert fate in ((Fate.GONE, Fate.ALIVE) if alive else (Fate.GONE, Fate.REMOVED))
    assert names(tmp_path) == (["gpu.sock"] if alive else [])
    plugin.close()


@pytest.mark.parametrize("number", [28, 122])  # no space, over quota
def test_a_disk_without_room_takes_no_name_from_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", full)
    with bind(tmp_path / "gpu.sock"):
        assert remove(tmp_path / "gpu.sock") is Fate.ALIVE
        assert answers(tmp_path / "gpu.sock")
    assert names(tmp_path) == ["gpu.sock"]


@pytest.mark.parametrize(
    "name",
    ["", ".dpctl-aside-", ".dpctl-aside-0123abcd-", "gpu.sock", ".dpctl-aside-0123abcd-d/x.sock"],
)
def test_names_that_are_no_names_aside(tmp_path: Path, name: str) -> None:
    assert original_of(name) is None
    assert original_of(".dpctl-aside-0123abcd-gpu.sock") == "gpu.sock"
