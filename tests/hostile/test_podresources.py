"""A kubelet's socket that lies, hangs, breaks off or is something else."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from tests.fakes.grpc_sockets import LIST, dead, fail, listening, serving, slow
from tests.fakes.node_tree import (
    CONTROLS,
    RESOURCE,
    NodeTree,
    as_nobody,
    items,
    kubelet_answers,
    listed,
    node,
    said,
)

Fault = Callable[[NodeTree], AbstractContextManager[object]]
REGISTER = "/v1beta1.Registration/Register"


@pytest.fixture(scope="module")
def tree() -> Iterator[NodeTree]:
    """Healthy but for the kubelet's PodResources socket, which each test makes."""
    with node(kubelet=False) as made:
        yield made


@contextmanager
def answering(tree: NodeTree, **answers: bytes) -> Iterator[None]:
    methods = {**kubelet_answers(), LIST: answers["LIST"]}
    with at_socket(tree, serving(tree.pod_resources, methods)):
        yield


@contextmanager
def at_socket(tree: NodeTree, server: AbstractContextManager[object]) -> Iterator[None]:
    """The file goes with the server."""
    try:
        with server:
            yield
    finally:
        tree.pod_resources.unlink(missing_ok=True)


def breaks_off(connection: socket.socket) -> None:
    """Greets as an HTTP/2 server does, takes the call, and dies."""
    connection.recv(1024)
    connection.sendall(b"\0\0\0\4\0\0\0\0\0")
    time.sleep(0.1)
    connection.recv(4096)
    connection.close()


@contextmanager
def left_behind(tree: NodeTree) -> Iterator[None]:
    dead(tree.pod_resources)
    try:
        yield
    finally:
        tree.pod_resources.unlink()


@contextmanager
def plain_file(tree: NodeTree) -> Iterator[None]:
    tree.pod_resources.write_text("x")
    try:
        yield
    finally:
        tree.pod_resources.unlink()


@contextmanager
def missing(tree: NodeTree) -> Iterator[None]:
    yield


FAULTS: dict[str, tuple[Fault, int, str]] = {
    "garbage": (lambda t: answering(t, LIST=b"\xff" * 1000), 7, "decode"),
    "another service": (lambda t: at_socket(t, serving(t.pod_resources, {"/a.B/C": b""})), 4,
                        "does not serve PodResources"),
    "hangs": (lambda t: at_socket(t, serving(t.pod_resources, {LIST: slow(30)})), 3,
              "did not answer"),
    "takes no connection": (
        # grpc's own clock decides whether it says "no connection" or "no answer".
        lambda t: at_socket(t, listening(t.pod_resources, backlog=0)), 3, ""),
    "dies": (lambda t: at_socket(t, listening(t.pod_resources, breaks_off)), 3, "broke off"),
    "dead": (left_behind, 3, "nobody listens"),
    "speaks ill": (
        lambda t: at_socket(t, serving(t.pod_resources, {LIST: fail("INTERNAL", CONTROLS)})), 4,
        "INTERNAL"),
    "refuses": (
        lambda t: at_socket(t, serving(t.pod_resources, {LIST: fail("PERMISSION_DENIED", "no")})),
        5, "PERMISSION_DENIED"),
    "regular file": (plain_file, 3, "is a regular file, not a socket"),
    "missing": (missing, 3, "does not exist"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_the_rest_goes_on(tree: NodeTree, fault: str) -> None:
    make, code, words = FAULTS[fault]
    where = str(tree.pod_resources)
    # Silence is waited for to the end; an answer may take a while on a busy machine.
    silent = fault in ("hangs", "takes no connection")
    patience = ("--request-timeout", "1s" if silent else "30s")
    alone = ("--device-plugin-dir", str(tree.nothing))
    with make(tree):
        lines = [
            ("who", "gpu-0", "-o", "wide", "--strict", *patience),
            *(("pods", "-o", output, *patience, *alone) for output in ("table", "json")),
        ]
        strict, *pods = tree.ask_all(lines)
    assert (strict.code, RESOURCE in strict.out) == (code, True)
    said(strict, "warning", "podresources not read", words)
    for result in pods:
        assert (result.code, result.out) == (code, ""), result.err
        said(result, "error", "podresources", where, words)


def test_the_registration_socket_for_the_kubelets(tree: NodeTree) -> None:
    given = tree.device_plugins / "kubelet.sock"
    with serving(given, {REGISTER: b""}) as recorder, answering(tree, LIST=b""):
        flags = ("--pod-resources-socket", str(given), "--device-plugin-dir", str(tree.nothing))
        results = tree.ask("pods", *flags)
    given.unlink(missing_ok=True)
    for result in results:
        assert (result.code, result.out) == (4, "")
        said(result, "error", "registration socket of device plugins")
        assert f"--pod-resources-socket {tree.pod_resources}" in result.err
    assert REGISTER not in recorder.methods


def test_long_paths(tree: NodeTree) -> None:
    deep = tree.root / "/".join(["d" * 60] * 4)
    deep.mkdir(parents=True)
    long = deep / "kubelet.sock"
    alone = ("--device-plugin-dir", str(tree.nothing))
    with serving(long, kubelet_answers()):
        for result in tree.ask("pods", "--pod-resources-socket", str(long), *alone):
            assert result.code == 0  # a name of more than 107 bytes is no obstacle
            assert "gpu-0" in result.out
    for path in ("/" + "x" * 300, "/" + "x/" * 3000, "/a\x1bb"):
        result = tree.run("pods", "--pod-resources-socket", path, *alone)
        assert (result.code, result.out) == (3, "")
        assert len(result.err) < 15000


def test_without_rights(tree: NodeTree) -> None:
    if os.geteuid() != 0:
        pytest.skip("takes root to give up rights")
    where = str(tree.pod_resources)
    with answering(tree, LIST=kubelet_answers()[LIST]):  # type: ignore[arg-type]
        tree.pod_resources.chmod(0o600)
        alone = as_nobody(tree, "pods", "--device-plugin-dir", str(tree.nothing))
        tree.pod_resources.parent.chmod(0o700)
        tree.checkpoint.chmod(0o600)
        both = [as_nobody(tree, "pods", "-o", output) for output in ("table", "json")]
        tree.pod_resources.parent.chmod(0o755)
        tree.checkpoint.chmod(0o644)
        partial = as_nobody(tree, "pods")
        strict = as_nobody(tree, "pods", "--strict")
    assert (alone.code, alone.out) == (5, "")
    said(alone, "error", "permission denied", where, "owner 0:0")
    assert "run it as root" in alone.err
    for result in both:
        assert (result.code, result.out) == (5, "")
        assert where in result.err
        assert str(tree.checkpoint) in result.err
    assert (partial.code, strict.code) == (0, 5)
    assert partial.out == strict.out != ""
    said(partial, "warning", "podresources not read: permission denied", where)


# --- answers that are large, or mean harm ---------------------------------------------------------


def large() -> bytes:
    """30 MiB in few devices."""
    pods = [listed(*(f"{n}-{k}-" + "x" * 65000 for k in range(10))) for n in range(48)]
    return pb.ListPodResourcesResponse(pod_resources=pods).SerializeToString()


def test_thirty_mebibytes(tree: NodeTree) -> None:
    data = large()
    assert len(data) > 29 << 20
    alone = ("--device-plugin-dir", str(tree.nothing))
    with answering(tree, LIST=data):
        for result in tree.ask("pods", *alone):
            assert result.code == 0
            assert len(result.out) > 29 << 20
        few = ("pods", "--max-message-size", "1Mi")
        refused = tree.ask_all([(*few, *alone), (*few, "-o", "json", *alone), few])
    for result in refused[:2]:
        assert (result.code, result.out) == (4, "")
        said(result, "error", "podresources", "MiB, dpctl takes 1 MiB")
    assert refused[2].code == 0
    for result in refused:
        assert "--max-message-size" in result.err


def test_a_thousand_pods_and_a_hundred_thousand_devices(tree: NodeTree) -> None:
    pods = [
        pb.PodResources(
            name=f"pod-{n}",
            namespace="ns",
            containers=[
                pb.ContainerResources(
                    name="main",
                    devices=[
                        pb.ContainerDevices(
                            resource_name=RESOURCE, device_ids=[f"d-{n}-{k}" for k in range(100)]
                        )
                    ],
                )
            ],
        )
        for n in range(1000)
    ]
    data = pb.ListPodResourcesResponse(pod_resources=pods).SerializeToString()
    with answering(tree, LIST=data):
        lines = [
            ("pods",),
            ("who", "d-*", "-o", "json"),
            ("devices", "--no-allocatable", "-o", "wide"),
        ]
        table, document, devices = tree.ask_all(lines)
    assert (table.code, document.code, devices.code) == (0, 0, 0)
    assert table.out.count("\nns ") == 1000
    assert len(items(document)) == 100_000
    assert devices.out.count("\nd-") == 100_000


def test_names_that_mean_harm(tree: NodeTree) -> None:
    hostile = CONTROLS.replace("\x85", "").replace("\x9b", "")
    evil = listed(f"id{hostile}", resource=f"r/{hostile}", container=f"c{hostile}")
    evil.name, evil.namespace = f"p{hostile}", f"n{hostile}"
    data = pb.ListPodResourcesResponse(pod_resources=[evil]).SerializeToString()
    with ExitStack() as stack:
        stack.enter_context(answering(tree, LIST=data))
        pods = tree.ask("pods")
        names = tree.run("pods", "-q")
        one = tree.run("pods", f"n{hostile}/p*".replace("\0", "?"), "-o", "wide")
        described = tree.run("pods", "n*")
    assert [result.code for result in (*pods, names, one, described)] == [0] * 6
    for result in (*pods[:2], names):
        assert "p\\0\\e[2J\\e]0;x\\x07\\r\\n\\t" in result.out
    (row,) = (row for row in items(pods[2]) if row["pod"] != "trainer")
    assert (row["namespace"], row["pod"]) == (f"n{hostile}", f"p{hostile}")
    assert (row["container"], row["resource"]) == (f"c{hostile}", f"r/{hostile}")
    assert [device["id"] for device in row["devices"]] == [f"id{hostile}"]
