"""Writing a bundle: whole under its name or not at all, whatever happens on the way."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from dpctl.bundle import disk
from dpctl.bundle.disk import write_bundle
from dpctl.bundle.files import open_bundle
from dpctl.errors import NotAppliedError, UsageError

FILES = {
    "meta.json": b"{}\n",
    "plugins/a%2Fb.sock/state.json": b"{}",
    "plugins/" + "long-" * 40 + ".sock/state.json": b"1",
    "plugins/odd\udcff\n.sock/state.json": b"2",
    "sys/devices/system/cpu/online": b"0-3\n",
    "kubelet/device-lines.log": b"x" * 300_000,
}


@pytest.mark.parametrize("name", ["b.tgz", "b.tar.gz", "b.tar", "b"])
def test_the_reader_finds_what_was_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_bundle(str(path), FILES, time=1_800_000_000.5)
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing temporary is left
    files = open_bundle(str(path), max_file_size=1 << 20)
    for member, data in FILES.items():
        assert files.read(member) == data, member
    assert path.is_dir() == (name == "b")


def test_an_archive_unpacks_into_one_directory(tmp_path: Path) -> None:
    path = tmp_path / "b.tgz"
    write_bundle(str(path), FILES, time=1_800_000_000)
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert {m.name.partition("/")[0] for m in members} == {"dpctl-snapshot"}
    assert {stat.S_IMODE(m.mode) for m in members} == {0o600, 0o700}
    assert {(m.uid, m.gid, m.uname) for m in members} == {(0, 0, "")}


def test_the_same_evidence_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.tgz", "b.tgz"):
        write_bundle(str(tmp_path / name), FILES, time=1_800_000_000)
    assert (tmp_path / "a.tgz").read_bytes() == (tmp_path / "b.tgz").read_bytes()


@pytest.mark.parametrize("kind", ["file", "directory", "dangling link"])
def test_a_name_that_is_taken(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "b.tgz"
    if kind == "file":
        path.write_bytes(b"mine")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        write_bundle(str(path), FILES, time=0)
    assert [p.name for p in tmp_path.iterdir()] == ["b.tgz"]


@pytest.mark.parametrize("name", ["b.tgz", "b"])
def test_a_name_that_is_taken_meanwhile(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two snapshots at once have it."""
    write_bundle(str(tmp_path / name), FILES, time=0)
    monkeypatch.setattr(disk, "check_target", lambda _: None)
    with pytest.raises(UsageError, match="there already"):
        write_bundle(str(tmp_path / name), {"meta.json": b"other"}, time=0)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert open_bundle(str(tmp_path / name), max_file_size=1 << 20).read("meta.json") == b"{}\n"


def test_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dpctl snapshot "$UNSET"` in an empty directory took that directory's place."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="empty"):
        write_bundle("", FILES, time=0)
    assert list(tmp_path.iterdir()) == []


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    name = "\U0001f600" * 62 + ".tgz"
    write_bundle(str(tmp_path / name), FILES, time=0)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["b.tar", "b"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, name: str) -> None:
    """A limit on the size of files says what a full disk says, one errno apart."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(NotAppliedError) as caught:
            write_bundle(str(tmp_path / name), FILES, time=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "was not written" in caught.value.message
    assert caught.value.hint is not None
    assert "df -h" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


_SLOW = """
import os, sys
from dpctl.bundle import disk
real = os.fsync
def fsync(fd):
    print("writing", flush=True)
    sys.stdin.read()
disk.os.fsync = fsync
disk.write_bundle(sys.argv[1], {"meta.json": b"{}", "proc.json": b"x" * 1000}, time=0)
"""


@pytest.mark.parametrize("name", ["b.tgz", "b"])
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_killed_on_the_way(tmp_path: Path, name: str, ending: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW, str(tmp_path / name)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(ending)
    process.wait(60)
    process.communicate()
    left = [p.name for p in tmp_path.iterdir()]
    if ending is signal.SIGINT:
        assert left == []
    else:
        assert len(left) == 1
        assert left[0].startswith(f".{name}.")
        assert left[0].endswith(".partial")
        assert stat.S_IMODE((tmp_path / left[0]).stat().st_mode) in (0o600, 0o700)


def test_no_directory_to_write_to(tmp_path: Path) -> None:
    with pytest.raises(NotAppliedError):
        write_bundle(str(tmp_path / "no" / "b.tgz"), FILES, time=0)
    assert os.listdir(tmp_path) == []
