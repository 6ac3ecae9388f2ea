"""A device-plugins directory full of sockets that are not what they should be."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.fakes.grpc_sockets import INFO, OPTIONS, dead, listening, serving, slow
from tests.fakes.node_tree import NodeTree, as_nobody, items, node, said

# More than one harmless field: an options answer that fills the limit.
HUGE = b"\x1a\x80\x80\x80\x0f" + b"x" * (30 << 20)


@pytest.fixture
def tree() -> Iterator[NodeTree]:
    with node(kubelet=False, cluster=False, plugin=False) as made:
        yield made


def talks_http1(connection: socket.socket) -> None:
    connection.recv(100)
    connection.sendall(b"HTTP/1.1 400 Bad\x1b[2J\r\n\r\n")


def bind(tree: NodeTree, name: bytes) -> socket.socket:
    """A listener that answers nothing, its name written as it is.

    By the whole path: what is bound as /proc/self/fd/N/name may be anybody's plugin to whoever
    looks at the machine meanwhile, other tests' labs among them.
    """
    made = socket.socket(socket.AF_UNIX)
    made.bind(os.path.join(os.fsencode(tree.device_plugins), name))
    made.listen(1)
    return made


def test_every_kind_of_socket_in_one_directory(tree: NodeTree) -> None:
    at = tree.device_plugins
    names = [b"a\x1b[2J\n.sock", b"%2e%2e%2fevil.sock", b"\xff\xfe.sock", "\u202e.sock".encode()]
    (tree.kubelet / "evil.sock").touch()
    with ExitStack() as stack:
        for name, talk in (("hung", lambda _: None), ("http1", talks_http1)):
            stack.enter_context(listening(at / f"{name}.sock", talk))
        stack.enter_context(serving(at / "good.sock", {OPTIONS: b"", INFO: b""}))
        stack.enter_context(serving(at / "slow.sock", {OPTIONS: slow(20)}))
        stack.enter_context(serving(at / "wrong.sock", {"/a.B/C": b""}))
        stack.enter_context(serving(at / "huge.sock", {OPTIONS: HUGE}))
        stack.enter_context(serving(at / "odd.sock", {OPTIONS: b"\xff\xff"}))
        dead(at / "dead.sock")
        for odd in names:
            stack.enter_context(bind(tree, odd))
        (at / "loop.sock").symlink_to("loop.sock")
        (at / "out.sock").symlink_to("/var/run/docker.sock")
        os.mkfifo(at / "fifo.sock")
        # Long enough for who answers on a busy machine, short enough to sit out who hangs.
        table, wide, document = tree.ask("plugins", "--request-timeout", "4s")
    assert [r.code for r in (table, wide, document)] == [0, 0, 0], document.err
    states = {row["endpoint"]: row["state"] for row in items(document)}
    assert states == {
        "dead.sock": "Dead",
        "good.sock": "Serving",
        "http1.sock": "NotGRPC",
        "huge.sock": "Serving",
        "hung.sock": "Hung",
        "odd.sock": "Serving",
        "slow.sock": "Hung",
        "wrong.sock": "WrongService",
        **{os.fsdecode(name): "Hung" for name in names},
    }
    for result in (table, wide):
        assert "a\\e[2J\\n.sock " in result.out
        assert "\n\\xff\\xfe.sock " in result.out
        assert "\n\\u{202e}.sock " in result.out
        assert "\n%2e%2e%2fevil.sock " in result.out


def test_five_hundred_sockets_that_hang(tree: NodeTree) -> None:
    with ExitStack() as stack:
        for number in range(500):
            stack.enter_context(bind(tree, b"%d.sock" % number))
        (document,) = tree.ask("plugins", "--request-timeout", "1s", formats=("json",))
    assert document.code == 0
    assert {row["state"] for row in items(document)} == {"Hung"}
    assert len(items(document)) == 500


def test_the_directory_is_not_there_or_none(tree: NodeTree) -> None:
    missing = str(tree.root / "missing")
    for result in tree.ask("plugins", "--device-plugin-dir", missing):
        assert (result.code, result.out) == (3, "")
        said(result, "error", f"{missing} does not exist")
    loop = tree.root / "loop"
    loop.symlink_to(loop)
    for path, words in ((tree.checkpoint, "not a directory"), (loop, "symbolic links in a circle")):
        result = tree.run("plugins", "--device-plugin-dir", str(path))
        assert (result.code, result.out) == (3, "")
        said(result, "error", str(path), words)


def test_the_directory_without_rights(tree: NodeTree) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes root to give up rights")
    tree.device_plugins.chmod(0o700)
    result = as_nobody(tree, "plugins", "-o", "wide")
    tree.device_plugins.chmod(0o755)
    assert (result.code, result.out) == (5, "")
    said(result, "error", "permission denied", str(tree.device_plugins), "owner 0:0")
    with suppress(FileNotFoundError), serving(tree.device_plugins / "p.sock", {OPTIONS: b""}):
        (tree.device_plugins / "p.sock").chmod(0o600)
        seen = as_nobody(tree, "plugins", "-o", "wide")
    assert seen.code == 0
    assert "NoRights" in seen.out
