"""`dpctl plugin` and peers that answer anything at all."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from tests.fakes.grpc_sockets import (
    ALLOCATE,
    OPTIONS,
    PRE_START,
    PREFERRED,
    WATCH,
    listening,
    serving,
)
from tests.fakes.node_tree import CONTROLS, NodeTree, node, said

OFFERS = pb.DevicePluginOptions(get_preferred_allocation_available=True).SerializeToString()


@pytest.fixture
def tree() -> Iterator[NodeTree]:
    with node(kubelet=False, cluster=False, plugin=False) as made:
        yield made


@pytest.fixture
def path(tree: NodeTree) -> Path:
    return tree.device_plugins / "p.sock"


def listed(*devices: pb.Device) -> bytes:
    return pb.ListAndWatchResponse(devices=devices).SerializeToString()


def once(data: bytes):
    def stream(_request: bytes, context: Any) -> Iterator[bytes]:
        yield data
        while context.is_active():
            time.sleep(0.02)

    return stream


def test_a_hundred_thousand_devices_over_the_limit(tree: NodeTree, path: Path) -> None:
    many = listed(*(pb.Device(ID=f"device-{n}-{'x' * 40}", health="ill") for n in range(100_000)))
    with serving(path, {}, {WATCH: once(many)}):
        found = tree.run("plugin", "devices", "p.sock", "--yes")
    assert found.code == 1
    assert len(found.out.splitlines()) == 100_001
    assert "larger than the 4 MiB a kubelet takes" in found.err
    assert "and 99999 more: its health word" in found.err
    assert len(found.err) < 3000


def test_controls_and_what_is_no_text(tree: NodeTree, path: Path) -> None:
    odd = listed(pb.Device(ID=CONTROLS, health="\x1b[31m"), pb.Device(ID="", health="Healthy"))
    with serving(path, {}, {WATCH: once(odd + b"\x0a\x04\x0a\x02\xff\xfe")}):
        table, document = tree.ask(
            "plugin", "devices", "p.sock", "--yes", formats=("table", "json")
        )
    assert (table.code, document.code) == (1, 1)
    assert "\\e[2J" in table.out
    assert "\\xff\\xfe" in table.out
    (row,) = json.loads(document.out)["items"]
    assert {d["device"] for d in row["devices"]} == {CONTROLS, "", "\udcff\udcfe"}


def test_a_message_that_never_ends_or_never_comes(tree: NodeTree, path: Path) -> None:
    def drips(connection: socket.socket) -> None:
        connection.recv(100)
        for _ in range(100):
            connection.sendall(b"\0\0\0\4\0\0\0\0\0")  # settings, and settings, and settings
            time.sleep(0.05)

    with listening(path, drips):
        found = tree.run("plugin", "devices", "p.sock", "--yes", "--request-timeout", "1s")
    assert found.code == 3
    said(found, "error", "p.sock")
    with listening(path := path.with_name("q.sock"), lambda _: None):
        found = tree.run("plugin", "options", str(path), "--request-timeout", "1s")
    assert found.code == 3
    said(found, "error", "q.sock")


def test_a_preference_that_is_nonsense(tree: NodeTree, path: Path) -> None:
    one = pb.ContainerPreferredAllocationResponse(deviceIDs=["a", "a", "\x1b[2J", "x" * 70_000])
    answer = pb.PreferredAllocationResponse(container_responses=[one]).SerializeToString()
    question = ("--available", "a,b,c", "--size", "2")
    with serving(path, {OPTIONS: OFFERS, PREFERRED: answer}):
        table, document = tree.ask(
            "plugin", "prefer", str(path), *question, formats=("table", "json")
        )
    assert (table.code, document.code) == (1, 1)
    assert "only available ones:        NO: \\e[2J" in table.out
    (row,) = json.loads(document.out)["items"]
    assert [c["good"] for c in row["checks"]] == [False, False, False, True]


def test_an_answer_without_a_container(tree: NodeTree, path: Path) -> None:
    with serving(path, {OPTIONS: b"", ALLOCATE: b"", PRE_START: b""}):
        found = tree.run("plugin", "allocate", str(path), "a", "--yes", "--prestart")
    assert found.code == 1
    assert "A container would get:  nothing\n" in found.out
    assert "a kubelet would refuse a pod over this answer" in found.err


def test_an_answer_that_leads_out_of_the_host(tree: NodeTree, path: Path) -> None:
    (tree.root / "dev").mkdir(exist_ok=True)
    (tree.root / "dev/out").symlink_to("/../../../../etc/passwd")
    one = pb.ContainerAllocateResponse(envs={"A\x1b[2J": "B\n"})
    for host in ("/dev/out", "../../etc/passwd", "", "/" + "x" * 5000, "/a\x1b[2J"):
        one.devices.add(container_path="/x", host_path=host, permissions="rwx")
    sent = pb.AllocateResponse(container_responses=[one]).SerializeToString()
    with serving(path, {OPTIONS: b"", ALLOCATE: sent}):
        found, document = tree.ask(
            "plugin", "allocate", str(path), "a", "--yes", formats=("table", "json")
        )
    assert (found.code, document.code) == (1, 1)
    (row,) = json.loads(document.out)["items"]
    assert [d["exists"] for d in row["answer"]["deviceNodes"]] == [False] * 5
    assert "A\\e[2J" in found.out


def test_no_plugin_at_all(tree: NodeTree, path: Path) -> None:
    with serving(path, {"/a.B/C": b""}):
        for command in (("options",), ("devices", "--yes"), ("allocate", "x", "--yes")):
            name, *more = command
            found = tree.run("plugin", name, str(path), *more)
            assert found.code == 4, found
            said(found, "error", "no device plugin")
