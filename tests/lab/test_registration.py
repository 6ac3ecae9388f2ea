"""Register on kubelet.sock, and a start's clean-up: kubelet-facts §1.2, §3.1."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.kubelet.registration import remove_sockets
from tests.lab.parts import GPU, plain, register


@pytest.fixture(scope="module")
def empty() -> Iterator[Lab]:
    with Lab(scenario="empty") as running:
        yield running


@pytest.mark.parametrize(
    ("resource", "version", "message"),
    [
        (
            GPU,
            "v1alpha",
            'requested API version "v1alpha" is not supported by kubelet. '
            'Supported version is ["v1beta1"]',
        ),
        ("gpu", "v1beta1", 'the ResourceName "gpu" is invalid'),
        ("kubernetes.io/x", "v1beta1", 'the ResourceName "kubernetes.io/x" is invalid'),
        ("requests.a.b/x", "v1beta1", 'the ResourceName "requests.a.b/x" is invalid'),
        ('a"b', "v1beta1", 'the ResourceName "a\\"b" is invalid'),
    ],
)
def test_refused(empty: Lab, resource: str, version: str, message: str) -> None:
    assert register(empty, "x.sock", resource, version) == f"UNKNOWN {message}"


def test_nobody_serves(empty: Lab) -> None:
    began = time.monotonic()
    answer = register(empty, "nothing.sock", GPU)
    assert answer == "UNKNOWN failed to dial device plugin: context deadline exceeded"
    assert 9.5 < time.monotonic() - began < 13


def test_endpoint_is_joined_with_the_directory(empty: Lab) -> None:
    """An absolute endpoint is re-rooted, a sub-directory works, `..` is not forbidden."""
    plugin = empty.add_plugin(plain(name="joined", resource="a.example/joined"))
    empty.wait_settled()
    for endpoint in ("/joined.sock", "../device-plugins/joined.sock", "./joined.sock"):
        assert register(empty, endpoint, "a.example/joined") is None
    socket_path = empty.kubelet.state()["a.example/joined"]["socket"]
    assert socket_path == str(empty.device_plugins / "joined.sock")
    plugin.kill()


def test_options_come_from_the_plugin(empty: Lab) -> None:
    """Another service behind the endpoint: GetDevicePluginOptions fails, so does Register."""
    answer = register(empty, "kubelet.sock", "a.example/wrong")
    assert answer is not None
    assert answer.startswith(
        "UNKNOWN failed to get device plugin options: rpc error: code = Unimplemented desc = "
    )


def test_start_removes_sockets_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.sock", "kubelet.sock", "target"):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / name))
    (tmp_path / "link.sock").symlink_to("target")
    (tmp_path / "dangling.sock").symlink_to("nowhere")
    (tmp_path / "kubelet_internal_checkpoint").write_text("{}")
    (tmp_path / "DEPRECATION").touch()
    (tmp_path / "file.sock").write_text("no socket")
    (tmp_path / "sub").mkdir()
    remove_sockets(tmp_path)
    left = sorted(os.listdir(tmp_path))
    # A link met after its target has gone points nowhere: kept, as a stat error is skipped.
    assert set(left) - {"link.sock"} == {
        "DEPRECATION",
        "dangling.sock",
        "file.sock",
        "kubelet_internal_checkpoint",
        "sub",
    }
    assert not any(stat.S_ISSOCK((tmp_path / name).lstat().st_mode) for name in left)
