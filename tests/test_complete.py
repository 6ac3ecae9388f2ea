"""Values for TAB: from files and directories that may hold anything."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl import complete
from dpctl._words import WORDS
from dpctl.lab.fixture import Lab
from dpctl.model import Allocation
from dpctl.statefiles.device_checkpoint import encode_checkpoint
from tests.run import TESTS, Result, dpctl

PLUGINS = "var/lib/kubelet/device-plugins"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host's root with a checkpoint, pods and sockets, in force for this process."""
    plugins = tmp_path / PLUGINS
    plugins.mkdir(parents=True)
    allocation = Allocation("uid", "c", "vendor.example/gpu", {0: ("gpu-3",), 1: ("gpu-4",)}, None)
    registered = {"vendor.example/gpu": ["gpu-10", "gpu-2"], "other.example/nic": ["0000:3b:00.0"]}
    checkpoint = encode_checkpoint([allocation], registered)
    (plugins / "kubelet_internal_checkpoint").write_bytes(checkpoint)
    for name in ("gpu.sock", "kubelet.sock"):
        # Bound by its name alone: the whole path may be too long for a socket.
        with socket.socket(socket.AF_UNIX) as listener, chdir(plugins):
            listener.bind(name)
    (plugins / "notes.txt").touch()
    for name in ("kube-system_proxy-x1_u1", "training_job-0_u2", "training_job-1_u3", "lost+found"):
        (tmp_path / "var/log/pods" / name).mkdir(parents=True)
    monkeypatch.setenv("DPCTL_HOST_ROOT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DPCTL_FROM", "DPCTL_DEVICE_PLUGIN_DIR", "DPCTL_KUBELET_ROOT", "NODE_NAME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "prefix", "values"),
    [
        ("resources", "", ["other.example/nic", "vendor.example/gpu"]),
        ("resources", "v", ["vendor.example/gpu"]),
        ("devices", "", ["0000:3b:00.0", "gpu-2", "gpu-3", "gpu-4", "gpu-10"]),
        ("pods", "", ["job-0", "job-1", "proxy-x1"]),
        ("namespaces", "", ["kube-system", "training"]),
        ("endpoints", "", ["gpu.sock"]),
        ("sockets", "", ["gpu.sock", "other.example/nic", "vendor.example/gpu"]),
        ("nothing", "", []),
        ("pods", "zzz", []),
    ],
)
@pytest.mark.usefixtures("host")
def test_values(kind: str, prefix: str, values: list[str]) -> None:
    assert complete.values(kind, prefix) == values


@pytest.mark.usefixtures("host")
def test_the_node_is_the_one_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "worker-0")
    assert complete.values("nodes", "w") == ["worker-0"]


def test_nodes_come_from_the_api_server(lab: Lab) -> None:
    """The name that is known here, and those of the API."""
    result = dpctl("__complete", "nodes", env={**lab.env, "NODE_NAME": "another"})
    assert (result.code, result.err) == (0, "")
    assert {"another", lab.node_name} <= set(result.out.split())


def test_an_api_server_that_is_silent_is_given_up(host: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        config = host / "config"
        config.write_text(KUBECONFIG.format(port=port))
        env = {"DPCTL_HOST_ROOT": str(host), "KUBECONFIG": str(config), "NODE_NAME": "worker-0"}
        start = time.monotonic()
        assert dpctl("__complete", "nodes", env=env) == Result(0, "worker-0\n", "")
        assert time.monotonic() - start < 8  # one second, and a busy machine


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
"""


def test_as_a_process(host: Path) -> None:
    env = {"DPCTL_HOST_ROOT": str(host)}
    assert dpctl("__complete", "resources", "v", env=env) == Result(0, "vendor.example/gpu\n", "")
    assert dpctl("__complete", "resources", env=env).out.count("\n") == 2
    assert dpctl("__complete", env=env) == Result(0, "", "")


def write_checkpoint(host: Path, data: bytes) -> None:
    (host / PLUGINS / "kubelet_internal_checkpoint").write_bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"{",
        b"[" * 100_000,
        b"null",
        b"[1]",
        b'{"Data": 1}',
        b'{"Data": {"RegisteredDevices": [1], "PodDeviceEntries": {"a": 1}}}',
        b'{"Data": {"RegisteredDevices": {"a": 1}, "PodDeviceEntries": [1, {"DeviceIDs": 1}]}}',
        b'{"Data": {"PodDeviceEntries": [{"DeviceIDs": {"0": [1, null, {}]}}]}}',
        b'{"Data": {"n": ' + b"9" * 5000 + b"}}",
        b"\xff\xfe\xfd",
    ],
    ids=range(12),
)
def test_a_broken_checkpoint_offers_nothing(host: Path, data: bytes) -> None:
    write_checkpoint(host, data)
    assert complete.values("devices", "") == []
    names = complete.values("resources", "")
    assert names in ([], ["a"])


def test_a_broken_checkpoint_is_no_error(host: Path) -> None:
    write_checkpoint(host, b"{")
    result = dpctl("__complete", "devices", env={"DPCTL_HOST_ROOT": str(host)})
    assert result == Result(0, "", "")


def test_a_fifo_in_its_place_does_not_hang(host: Path) -> None:
    path = host / PLUGINS / "kubelet_internal_checkpoint"
    path.unlink()
    os.mkfifo(path)
    assert complete.values("devices", "") == []


def test_a_bad_configuration_is_no_error(host: Path) -> None:
    config = host / ".config/dpctl/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[[[")
    env = {"DPCTL_HOST_ROOT": str(host), "HOME": str(host)}
    assert dpctl("__complete", "pods", env=env) == Result(0, "", "")


def test_the_old_flat_form(host: Path) -> None:
    entry = {"DeviceIDs": ["a-2", "a-1"], "ResourceName": "x.y/z"}
    write_checkpoint(host, json.dumps({"Data": {"PodDeviceEntries": [entry]}}).encode())
    assert complete.values("devices", "") == ["a-1", "a-2"]


@given(st.lists(st.text(max_size=20), max_size=10))
def test_only_what_a_line_can_hold_is_offered(ids: list[str]) -> None:
    odd = ["a\nb", "\x1b[0m", "\u202e", "-rf", "", "x" * 1000]
    data: dict[str, object] = {"RegisteredDevices": {"r": [*ids, *odd]}}
    found = complete.usable(complete.announced_devices(data), "")
    assert set(found) <= set(ids)
    assert all(value.isprintable() and value and value[0] != "-" for value in found)
    assert {i for i in ids if i.isascii() and i.isalnum()} <= set(found)


def answer(*words: str) -> tuple[list[str], int]:
    """What kubectl is told, descriptions left out."""
    found, directive = complete.complete_words(words[:-1], words[-1])
    return [line.partition("\t")[0] for line in found], directive


@pytest.mark.usefixtures("host")
def test_words_for_kubectl() -> None:
    assert answer("res") == (["resources"], 4)
    assert answer("config", "") == (["view", "set", "unset"], 4)
    assert answer("resources", "o") == (["other.example/nic"], 4)
    assert answer("resources", "vendor.example/gpu", "o") == (["other.example/nic"], 4)
    assert answer("resources", "--col") == (["--color"], 4)
    assert answer("resources", "--color", "a") == (["auto", "always"], 4)
    assert answer("resources", "--color=ne") == (["--color=never"], 4)
    assert answer("pods", "-n", "t") == (["training"], 4)
    assert answer("pods", "-n", "training", "job-1") == (["job-1"], 4)
    assert answer("-n", "x", "pods", "job-1") == (["job-1"], 4)
    assert answer("pods", "--", "--job") == ([], 4)
    assert answer("env", "--from", "x") == ([], 0)
    assert answer("env", "--host-root", "x") == ([], 16)
    assert answer("completion", "z") == (["zsh"], 4)
    assert answer("completion", "zsh", "z") == ([], 4)
    assert answer("version", "") == ([], 4)
    assert answer("nothing", "x") == ([], 4)


@given(st.lists(st.sampled_from([*WORDS, "--from", "-n", "--", "-", "--x=1", "x", ""]), min_size=1))
def test_any_line_has_an_answer(words: list[str]) -> None:
    _, directive = complete.complete_words(words[:-1], words[-1])
    assert directive in (0, 4, 16)


def test_the_entry_point_for_kubectl(host: Path) -> None:
    code = "import sys; from dpctl.complete import kubectl_complete as k; sys.exit(k())"
    done = subprocess.run(
        [sys.executable, "-c", code, "resour"],
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        env={**os.environ, "DPCTL_HOST_ROOT": str(host)},
    )
    name, summary = "resources", WORDS["resources"][0]
    assert (done.returncode, done.stdout) == (0, f"{name}\t{summary}\n:4\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_values_are_utf_8_whatever_the_locale_says(host: Path, encoding: str) -> None:
    write_checkpoint(host, encode_checkpoint([], {"v.example/x": ["gpu-é", "gpu-$(id)"]}))
    environ = {**os.environ, "DPCTL_HOST_ROOT": str(host), "PYTHONIOENCODING": encoding}
    code = "import sys; from dpctl.complete import kubectl_complete as k; sys.exit(k())"
    for arguments, out in (
        (["-m", "dpctl", "__complete", "devices", "gpu-"], "gpu-$(id)\ngpu-é\n"),
        (["-c", code, "who", "gpu-"], "gpu-é\n:4\n"),  # what a shell would run is not for kubectl
    ):
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, cwd=TESTS.parent, env=environ
        )
        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, out, b"")
