"""What is at a path of the host: looked at, never opened, never outside the root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dpctl.model import (
    AllocResponse,
    CdiDevice,
    CdiSpec,
    Checkpoint,
    DeviceSpec,
    HostPath,
    Mount,
)
from dpctl.sources.hostpaths import read_host_paths
from tests import build


def asking(*paths: str) -> Checkpoint:
    answer = AllocResponse(mounts=tuple(Mount("/x", path, True) for path in paths))
    return build.checkpoint({}, [build.allocation("u", "c", "r", {})._replace(answer=answer)])


def kinds(root: Path, *paths: str) -> dict[str, str | None]:
    return {path: f.kind for path, f in read_host_paths(str(root), asking(*paths)).items()}


def test_kinds(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/file")
    (tmp_path / "dangling").symlink_to("/nothing")
    (tmp_path / "loop").symlink_to("loop")
    found = read_host_paths(
        str(tmp_path), asking("/directory", "/file", "/fifo", "/link", "/dangling", "/loop", "/no")
    )
    assert {path: f.kind for path, f in found.items()} == {
        "/directory": "directory",
        "/file": "file",
        "/fifo": "FIFO",
        "/link": "file",
        "/dangling": None,
        "/loop": None,
        "/no": None,
    }
    assert found["/loop"].reason
    assert found["/no"].reason is None


def test_nothing_outside_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside").write_text("x")
    (root / "up").symlink_to("../outside")
    (root / "absolute").symlink_to(tmp_path / "outside")
    paths = ("/up", "/absolute", "/../outside", "/a\0b", "/" + "x" * 5000, "relative")
    found = kinds(root, *paths)
    assert found == dict.fromkeys(paths[:-1])


def test_paths_of_specs_and_of_device_specs(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x")
    answer = AllocResponse(device_specs=(DeviceSpec("/x", "/a", "rw"),))
    entry = build.allocation("u", "c", "r", {})._replace(answer=answer)
    spec = CdiSpec("p", 0, devices=(CdiDevice("d", ("/b",)),), device_nodes=("/c", "/d"))
    found = read_host_paths(str(tmp_path), build.checkpoint({}, [entry]), (spec,))
    assert {path: f.kind for path, f in found.items()} == {
        "/a": "file",
        "/b": "file",
        "/c": "file",
        "/d": None,
    }


def test_a_device_of_this_machine() -> None:
    found = read_host_paths("/", asking("/dev/null"))["/dev/null"]
    assert (found.kind, found.number) == ("character device", "1:3")
    assert found.linked is os.path.exists("/dev/char/1:3")


def test_the_link_by_number(tmp_path: Path) -> None:
    """What systemd finds a device by; one that leads elsewhere is none."""
    node, block = tmp_path / "dev/x", tmp_path / "dev/b"
    (tmp_path / "dev/char").mkdir(parents=True)
    (tmp_path / "dev/block").mkdir()
    try:
        os.mknod(node, stat.S_IFCHR | 0o640, os.makedev(1, 3))
        os.mknod(block, stat.S_IFBLK | 0o640, os.makedev(7, 77))
    except PermissionError:
        pytest.skip("making device nodes needs root")
    os.chmod(node, 0o640)

    def look(path: str = "/dev/x") -> HostPath:
        return read_host_paths(str(tmp_path), asking(path))[path]

    assert look() == HostPath("character device", 0o640, "1:3", False)
    link = tmp_path / "dev/char/1:3"
    link.symlink_to("../x")
    assert look().linked is True
    link.unlink()
    link.symlink_to("../b")
    assert look().linked is False
    assert look("/dev/b").linked is False
    (tmp_path / "dev/block/7:77").symlink_to("/dev/b")
    assert look("/dev/b") == HostPath("block device", look("/dev/b").mode, "7:77", True)
