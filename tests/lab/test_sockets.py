from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from dpctl.lab import sockets


def test_only_a_refused_connection_is_a_dead_socket(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert not sockets.is_dead(path)
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as mine:
            mine.bind(str(path))
            if kind != socket.SOCK_DGRAM:
                mine.listen(0)
            assert sockets.is_socket(path)
            assert not sockets.is_dead(path), kind
        assert sockets.is_dead(path)
        link = tmp_path / "link"
        link.symlink_to(path)
        assert not sockets.is_dead(link)
        assert not sockets.is_socket(link)
        link.unlink()
        path.unlink()


def test_a_full_queue_is_alive(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with socket.socket(socket.AF_UNIX) as mine:
        mine.bind(str(path))
        mine.listen(0)
        with socket.socket(socket.AF_UNIX) as one:
            one.setblocking(False)
            one.connect(str(path))
            assert not sockets.is_dead(path)


@pytest.mark.parametrize("kind", ["file", "directory", "fifo"])
def test_what_is_no_socket_is_not_dead(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "file":
        path.write_text("mine")
    elif kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert not sockets.is_dead(path)


def test_no_path_is_too_long(tmp_path: Path) -> None:
    below = tmp_path / ("d" * 100)
    below.mkdir()
    before = os.getcwd()
    os.chdir(below)
    try:
        with socket.socket(socket.AF_UNIX) as mine:
            mine.bind("x")
            mine.listen()
            assert not sockets.is_dead(below / "x")
        assert sockets.is_dead(below / "x")
    finally:
        os.chdir(before)


def test_identity_of_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert sockets.identity(link) is None
    assert sockets.identity(link, follow=False) is not None
