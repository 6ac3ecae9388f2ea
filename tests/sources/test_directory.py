from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import BadDataError, DeniedError, DpctlError, UnreachableError
from dpctl.sources import directory as module
from dpctl.sources.directory import kernel_device, list_directory, parse_ls
from tests.fakes.grpc_sockets import as_nobody, dead, short_directory

DATA = Path(__file__).parent.parent / "data"


def test_lists_kinds_and_hostile_names_exactly():
    with short_directory() as top:
        dead(os.fsencode(top) + b"/bad\xff.sock")
        dead(top / "%2e%2e%2fevil.sock")
        (top / "x.sock").write_text("a file")
        os.mkfifo(top / "fifo")
        (top / "link.sock").symlink_to("/run/other.sock")
        (top / "sub" / "deep").mkdir(parents=True)
        dead(top / "sub" / "y.sock")
        dead(top / "sub" / "deep" / "z.sock")
        (top / "sub" / "file").write_text("")
        (top / ".123").write_text("")
        outside = top.parent / f"{top.name}-outside"
        outside.mkdir()
        dead(outside / "o.sock")
        (top / "way").symlink_to(outside)
        try:
            listing = list_directory(str(top))
        finally:
            (outside / "o.sock").unlink()
            outside.rmdir()
    found = {entry.name: entry for entry in listing.entries}
    assert {name: entry.kind for name, entry in found.items()} == {
        "%2e%2e%2fevil.sock": "socket",
        ".123": "file",
        "bad\udcff.sock": "socket",
        "fifo": "other",
        "link.sock": "symlink",
        "sub": "directory",
        "sub/y.sock": "socket",
        "way": "symlink",
        "x.sock": "file",
    }
    assert found["link.sock"].link_target == "/run/other.sock"
    assert found["x.sock"].size == 6
    assert found["x.sock"].uid == os.getuid()
    assert [entry.name for entry in listing.entries] == sorted(found)
    assert all(entry.device == listing.device for entry in listing.entries)
    assert listing.inode
    assert listing.entry("nothing") is None


def test_a_link_put_in_place_of_a_sub_directory_is_not_entered(tmp_path):
    (tmp_path / "top").mkdir()
    (tmp_path / "outside").mkdir()
    dead(tmp_path / "outside" / "o.sock")
    (tmp_path / "top" / "sub").symlink_to(tmp_path / "outside")
    fd = os.open(tmp_path / "top", os.O_RDONLY)
    try:
        assert list(module._below(fd, "sub", "", "top")) == []
    finally:
        os.close(fd)


def test_device_numbers_are_the_kernels():
    assert kernel_device(os.makedev(259, 3)) == 259 << 20 | 3


def test_bounded(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_MOST_ENTRIES", 5)
    for number in range(6):
        (tmp_path / str(number)).touch()
    with pytest.raises(BadDataError, match="more than 5 names"):
        list_directory(str(tmp_path))


def test_20_000_names(tmp_path):
    for number in range(20_000):
        os.mknod(tmp_path / f"s{number}")
    assert len(list_directory(str(tmp_path)).entries) == 20_000


def test_failures(tmp_path):
    with pytest.raises(UnreachableError, match="does not exist"):
        list_directory(str(tmp_path / "no"))
    (tmp_path / "file").touch()
    with pytest.raises(UnreachableError, match="file is not a directory"):
        list_directory(str(tmp_path / "file"))

    def listed(path: str) -> str:
        try:
            list_directory(path)
        except DpctlError as e:
            return f"{type(e).__name__} {e.message}"
        return "was listed"

    with short_directory() as top:
        top.chmod(0o700)
        assert as_nobody(lambda: listed(str(top))).startswith(DeniedError.__name__)


def test_recorded_listings():
    path = DATA / "captures" / "1-healthy" / "device-plugins" / "ls.txt"
    listing = parse_ls(path.read_bytes(), "device-plugins")
    assert [(e.name, e.kind) for e in listing.entries] == [
        ("fpga.sock", "socket"),
        ("gdp-ZWRnZS5leGFtcGxlL2Z1c2U=-1764421000.sock", "socket"),
        ("kubelet.sock", "socket"),
        ("kubelet_internal_checkpoint", "file"),
        ("rdma.sock", "socket"),
        ("vendor-gpu.sock", "socket"),
    ]
    checkpoint = listing.entry("kubelet_internal_checkpoint")
    assert checkpoint is not None
    assert checkpoint.modified == pytest.approx(1795957935.2722021, abs=1e-6)
    assert (checkpoint.mode, checkpoint.size, checkpoint.uid) == (0o600, 1941, 0)
    assert checkpoint.inode is None


def test_loose_listing_of_a_report():
    path = DATA / "inputs" / "dir-listing-after-kubelet-restart.txt"
    listing = parse_ls(path.read_bytes(), "device-plugins")
    assert [(e.name, e.kind, e.modified) for e in listing.entries] == [
        ("DEPRECATION", "file", None),
        ("kubelet.sock", "socket", None),
        ("kubelet_internal_checkpoint", "file", None),
        ("nvidia-gpu.sock", "socket", None),
    ]


@pytest.mark.parametrize(
    ("line", "name", "uid", "modified"),
    [
        ("srwxr-xr-x 1 0 0 0 2026-11-29 13:11:36.5 +0100 a b.sock", "a b.sock", 0, 1795954296.5),
        ("srwxr-xr-x. 1 root root 0 2026-11-29 13:11 x.sock", "x.sock", 0, None),
        ("srwxr-xr-x+ 1 kube root 0 Nov 29 13:11 x.sock", "x.sock", -1, None),
        ("123 srwxr-xr-x 1 70 root 0 Nov  9  2025 x.sock", "x.sock", 70, None),
        ("srwxr-xr-x 1 root root 0 2026-99-29 13:11:36.5 +0100 x.sock", "x.sock", 0, None),
    ],
)
def test_other_forms(line, name, uid, modified):
    (entry,) = parse_ls(line.encode(), "p").entries
    assert (entry.name, entry.kind, entry.uid) == (name, "socket", uid)
    assert entry.modified == (None if modified is None else pytest.approx(modified))


def test_links_and_modes():
    (entry,) = parse_ls(
        b"lrwsr-Sr-t 1 root root 0 2026-11-29 13:11:36.5 +0100 a -> /b -> c", "p"
    ).entries
    assert (entry.kind, entry.name, entry.link_target) == ("symlink", "a", "/b -> c")
    assert entry.mode == 0o7745


def test_names_that_lead_elsewhere_are_left_out():
    listing = parse_ls(b"srwxr-xr-x ../up.sock\nsrwxr-xr-x ..\nsrwxr-xr-x ok.sock", "p")
    assert [entry.name for entry in listing.entries] == ["ok.sock"]


def test_no_listing():
    with pytest.raises(BadDataError, match="no output of ls"):
        parse_ls(b"ls: cannot access\n", "p")
    assert parse_ls(b"", "p").entries == ()
    assert parse_ls(b"total 0\n", "p").entries == ()


@given(st.binary(max_size=80).map(lambda tail: b"srwxr-xr-x 1 root root 0 " + tail))
def test_any_line_is_read_or_refused(data):
    parse_ls(data, "p")
