"""Bounded reads, and links inside a root, held against the kernel's own RESOLVE_IN_ROOT."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.env.reading import exists, read_limited, resolve_inside

_OPENAT2 = 437
_IN_ROOT = 0x10
_libc = ctypes.CDLL(None)


class OpenHow(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


def kernel_resolves(root: str, path: str) -> str | None:
    """The path as the kernel sees it with `root` for `/`; None: nothing there."""
    directory = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        how = OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT)
        descriptor = _libc.syscall(
            _OPENAT2, directory, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)
        )
        if descriptor < 0:
            return None
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    finally:
        os.close(directory)


_NAMES = st.sampled_from(["a", "b", "c", "..", ".", "", "deep"])
_PATHS = st.builds(
    lambda slash, parts: slash + "/".join(parts),
    st.sampled_from(["", "/", "//"]),
    st.lists(_NAMES, min_size=1, max_size=7),
).filter(lambda path: path != "")
_TREES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "b", "c", "deep"]), min_size=1, max_size=3),
        _PATHS | st.none(),
    ),
    max_size=8,
)


def build(root: str, tree: list[tuple[list[str], str | None]]) -> None:
    for parts, target in tree:
        path = os.path.join(root, *parts)
        if _leads_out(root, parts):
            continue  # the builder itself must not follow an earlier link out
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if target is None:
                os.mkdir(path)
            else:
                os.symlink(target, path)
        except OSError:
            continue  # a part of it is a link or there already


@settings(max_examples=300, deadline=None)
@given(_TREES, _PATHS)
def test_resolve_inside_agrees_with_the_kernel(
    tree: list[tuple[list[str], str | None]], path: str
) -> None:
    with tempfile.TemporaryDirectory() as outer:
        root = os.path.join(os.path.realpath(outer), "root")
        os.mkdir(root)
        # What an escape would reach.
        for name in ("a", "b", "c", "deep"):
            os.mkdir(os.path.join(outer, name))
        build(root, tree)
        expected = kernel_resolves(root, path)
        try:
            answer = resolve_inside(root, path)
        except OSError:
            assert expected is None  # a loop for the kernel, too (or it stopped before it)
            return
        assert answer == root or answer.startswith(f"{root}/")
        assert os.path.realpath(answer) == answer  # nothing left to follow: no way out
        if expected is not None:
            assert answer == expected


def _leads_out(root: str, parts: list[str]) -> bool:
    """Whether building this entry would follow an earlier link out of the tree."""
    real = os.path.realpath(os.path.join(root, *parts[:-1]))
    return real != root and not real.startswith(f"{root}/")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/kubelet", "snap/kubelet"),
        ("/var/lib/kubelet/device-plugins/x.sock", "snap/kubelet/device-plugins/x.sock"),
        ("/up", "etc"),
        ("/../../../etc/passwd", "etc/passwd"),
        ("/not/there/../here", "not/here"),
        ("/", ""),
    ],
)
def test_links_are_the_roots_own(tmp_path: Path, path: str, expected: str) -> None:
    (tmp_path / "var/lib").mkdir(parents=True)
    (tmp_path / "snap/kubelet/device-plugins").mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "var/lib/kubelet").symlink_to("/snap/kubelet")
    (tmp_path / "up").symlink_to("../../../../../../etc")
    assert resolve_inside(str(tmp_path), path) == str(tmp_path / expected).rstrip("/")


def test_a_loop_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic") as caught:
        resolve_inside(str(tmp_path), "/a/x")
    assert caught.value.errno == errno.ELOOP


def test_the_host_root_slash() -> None:
    assert resolve_inside("/", "/proc/../proc") == "/proc"
    assert resolve_inside("/", "/") == "/"


def test_nul_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"Invalid|argument"):
        resolve_inside(str(tmp_path), "a\0b")
    with pytest.raises(OSError, match=r"Invalid|argument"):
        read_limited("a\0b", 10)
    assert not exists("a\0b")


def test_read_limited(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 70_000)
    assert read_limited(str(file), 70_000) == b"x" * 70_000
    with pytest.raises(OSError, match="more than 69999") as caught:
        read_limited(str(file), 69_999)
    assert caught.value.errno == errno.EFBIG
    with pytest.raises(IsADirectoryError):
        read_limited(str(tmp_path), 10)
    assert b"btime" in read_limited("/proc/stat", 1 << 20)


def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        read_limited(str(tmp_path / "fifo"), 10)
