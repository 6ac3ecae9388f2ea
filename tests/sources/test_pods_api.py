from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import BadDataError, DpctlError, PeerError
from dpctl.model import Source
from dpctl.model.statefiles import KubeletPod
from dpctl.pb.pods.v1alpha1 import pods_pb2 as pb
from dpctl.pb.pods.v1alpha1 import pods_pb2_grpc as rpc
from dpctl.sources.pods_api import list_kubelet_pods, parse_kubelet_pods, pods_api_socket
from dpctl.sources.state_files import read_pod_dirs, read_state


def field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def pod(uid: str, namespace: str, name: str, phase: str = "") -> bytes:
    """A core/v1 Pod on the wire, with fields that dpctl does not look at."""
    metadata = (
        field(1, name.encode())
        + field(2, b"generated-")
        + field(3, namespace.encode())
        + field(5, uid.encode())
        + field(12, field(1, b"key") + field(2, b"value"))
    )
    status = field(1, phase.encode()) + field(4, b"reason") if phase else b""
    return field(1, metadata) + field(2, b"\x18\x01") + field(3, status)


PODS = [
    pod("u2", "default", "b", "Succeeded"),
    pod("u1", "kube-system", "static-é", "Running"),
    pod("u3", "ml", "new"),
]
FOUND = (
    KubeletPod("u1", "kube-system", "static-é", "Running"),
    KubeletPod("u2", "default", "b", "Succeeded"),
    KubeletPod("u3", "ml", "new", None),
)


class Pods(rpc.PodsServicer):
    def __init__(self, error: tuple[grpc.StatusCode, str] | None) -> None:
        self.error = error
        self.calls = 0

    def ListPods(self, request: Any, context: Any) -> Any:
        self.calls += 1
        if self.error is not None:
            context.abort(*self.error)
        return pb.ListPodsResponse(pods=PODS)


@contextmanager
def serving(root: Path, error: tuple[grpc.StatusCode, str] | None = None) -> Iterator[Pods]:
    socket = Path(pods_api_socket(str(root)))
    socket.parent.mkdir()
    servicer = Pods(error)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    rpc.add_PodsServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield servicer
    finally:
        server.stop(0).wait()


def test_list(tmp_path: Path) -> None:
    with serving(tmp_path) as servicer:
        found = list_kubelet_pods(
            pods_api_socket(str(tmp_path)), timeout=5, max_message_size=1 << 20
        )
        assert found == FOUND
        assert servicer.calls == 1
    assert [one.terminal for one in found] == [False, True, False]


def test_a_kubelet_that_is_starting(tmp_path: Path) -> None:
    error = (grpc.StatusCode.FAILED_PRECONDITION, "Kubelet is initializing")
    with serving(tmp_path, error), pytest.raises(PeerError, match="is initializing"):
        list_kubelet_pods(pods_api_socket(str(tmp_path)), timeout=5, max_message_size=1 << 20)


def test_no_socket(tmp_path: Path) -> None:
    with pytest.raises(DpctlError):
        list_kubelet_pods(pods_api_socket(str(tmp_path)), timeout=1, max_message_size=1 << 20)


def test_bad_answers() -> None:
    with pytest.raises(BadDataError, match="Pods API's answer"):
        parse_kubelet_pods(b"\x0a\x05ab")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(BadDataError):
        parse_kubelet_pods(data)


def test_state_files_of_a_root(tmp_path: Path) -> None:
    state = read_state(str(tmp_path), Source.CPU_STATE)
    assert (state.absent, state.fault) == (True, None)
    (tmp_path / "cpu_manager_state").write_bytes(b"")
    state = read_state(str(tmp_path), Source.CPU_STATE)
    assert not state.absent
    assert state.fault is not None
    assert state.modified == (tmp_path / "cpu_manager_state").stat().st_mtime
    (tmp_path / "pods" / "u1").mkdir(parents=True)
    (tmp_path / "pods" / "a-file").touch()
    assert read_pod_dirs(str(tmp_path)) == ("u1",)
    with pytest.raises(DpctlError):
        read_state(str(tmp_path / "nowhere"), Source.CPU_STATE)
    with pytest.raises(DpctlError):
        read_pod_dirs(str(tmp_path / "nowhere"))
