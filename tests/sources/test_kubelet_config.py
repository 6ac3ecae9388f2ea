from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.env import Env, Settings, find_env
from dpctl.errors import BadDataError, UnreachableError
from dpctl.sources.kubelet_config import (
    fields_of_flags,
    parse_kubelet_config,
    read_kubelet_config,
)

YAML = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
topologyManagerPolicy: best-effort
topologyManagerPolicyOptions:
  prefer-closest-numa-nodes: "true"
cpuManagerPolicy: static
reservedSystemCPUs: "0"
nodeStatusUpdateFrequency: 10s
nodeStatusReportFrequency: 5m0s
featureGates:
  A: true
  B: false
"""


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return find_env(Settings(host_root=str(tmp_path / "host")), {"HOME": "/none"}, scan=False)


def put(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_yaml_json_and_configz_are_the_same() -> None:
    config = parse_kubelet_config(YAML.encode())
    assert config["topologyManagerPolicy"] == "best-effort"
    assert config["featureGates"] == {"A": True, "B": False}
    assert parse_kubelet_config(json.dumps(config).encode()) == config
    assert parse_kubelet_config(json.dumps({"kubeletconfig": config}).encode()) == config
    assert parse_kubelet_config(b"{cpuManagerPolicy: static}") == {"cpuManagerPolicy": "static"}
    assert parse_kubelet_config(b"") == {}


def test_flags_win(env: Env, tmp_path: Path) -> None:
    path = put(tmp_path / "config.yaml", YAML)
    arguments = [
        "/usr/bin/kubelet",
        "--config=/whatever",
        "--topology-manager-policy=restricted",
        "--topology-manager-scope",
        "pod",
        "--topology-manager-policy-options=max-allowable-numa-nodes=9",
        "--cpu-manager-policy-options=full-pcpus-only=true,align-by-socket=false",
        "--memory-manager-policy=Static",
        "--reserved-cpus=0-1",
        "--node-status-update-frequency=4s",
        "--feature-gates=B=true,C=false",
    ]
    config = read_kubelet_config(env, path, arguments)
    assert config["topologyManagerPolicy"] == "restricted"
    assert config["topologyManagerScope"] == "pod"
    assert config["topologyManagerPolicyOptions"] == {"max-allowable-numa-nodes": "9"}
    assert config["cpuManagerPolicyOptions"] == {
        "full-pcpus-only": "true",
        "align-by-socket": "false",
    }
    assert config["cpuManagerPolicy"] == "static"
    assert config["memoryManagerPolicy"] == "Static"
    assert config["reservedSystemCPUs"] == "0-1"
    assert config["nodeStatusUpdateFrequency"] == "4s"
    assert config["nodeStatusReportFrequency"] == "5m0s"
    assert config["featureGates"] == {"A": True, "B": True, "C": False}


def test_which_fields_come_from_flags() -> None:
    arguments = ["kubelet", "--reserved-cpus", "0", "--feature_gates=A=true", "--v=4"]
    assert fields_of_flags(arguments) == {
        "reservedSystemCPUs": "reserved-cpus",
        "featureGates": "feature-gates",
    }
    assert fields_of_flags(()) == {}


def test_drop_ins_in_order_of_their_names(env: Env, tmp_path: Path) -> None:
    """Found the way the file was found: below the host root, or a kubelet's own root."""
    host = tmp_path / "elsewhere"
    path = put(host / "etc/config.yaml", YAML)
    put(host / "etc/kubelet.d/20.conf", "topologyManagerPolicy: single-numa-node\n")
    put(host / "etc/kubelet.d/10.conf", "topologyManagerPolicy: x\nfeatureGates:\n  B: true\n")
    put(host / "etc/kubelet.d/30.yaml", "topologyManagerPolicy: not-read\n")
    arguments = ["kubelet", "--config=/etc/config.yaml", "--config-dir=/etc/kubelet.d"]
    config = read_kubelet_config(env, path, arguments)
    assert config["topologyManagerPolicy"] == "single-numa-node"
    assert config["featureGates"] == {"A": True, "B": True}
    only_flags = read_kubelet_config(env, path, [*arguments, "--topology-manager-policy=none"])
    assert only_flags["topologyManagerPolicy"] == "none"
    put(host / "etc/kubelet.d/15.conf", "[")
    with pytest.raises(BadDataError, match=r"15\.conf: line"):
        read_kubelet_config(env, path, arguments)


def test_no_file(env: Env) -> None:
    with pytest.raises(UnreachableError, match="no kubelet configuration") as caught:
        read_kubelet_config(env, None)
    assert "config.yaml" in (caught.value.hint or "")
    assert read_kubelet_config(env, None, ["kubelet", "--cpu-manager-policy=static"]) == {
        "cpuManagerPolicy": "static"
    }
    assert read_kubelet_config(env, None, ["kubelet"]) == {}
    with pytest.raises(UnreachableError, match="does not exist"):
        read_kubelet_config(env, "/nonexistent/config.yaml", ["kubelet"])


def test_the_file_that_env_found(env: Env, tmp_path: Path) -> None:
    put(tmp_path / "host/var/lib/kubelet/config.yaml", YAML)
    found = find_env(Settings(host_root=str(tmp_path / "host")), {"HOME": "/none"}, scan=False)
    assert read_kubelet_config(found, None)["cpuManagerPolicy"] == "static"


BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: [\n", "line 2"),
        (b"a: b\n\xff", "not UTF-8"),
        (b"- a\n", "not a KubeletConfiguration"),
        (b"kind: Pod\n", "kind is 'Pod'"),
        (b'{"kind": 3}', "kind is"),
        (BOMB.encode(), "alias"),
        (b"a: !!python/object/apply:os.system [id]\n", "python"),
        (b"[" * 20_000, "cfg"),
        (b'{"a":' * 20_000, "cfg"),
        (b'{"a": ' + b"9" * 5000 + b"}", "cfg"),
        (b"a: b\x00c\n", "cfg"),
    ],
)
def test_bad_data(data: bytes, words: str) -> None:
    with pytest.raises(BadDataError) as caught:
        parse_kubelet_config(data, "cfg")
    assert words in caught.value.message


def test_only_what_json_knows_comes_out() -> None:
    text = b"a: 2001-01-01\nb: !!binary aGk=\nc: .nan\nd: !!set {x}\n1: 2\ntrue: .inf\n"
    json.dumps(parse_kubelet_config(text), allow_nan=False)


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(str.encode)
    | _JSON.map(lambda value: json.dumps(value).encode())
)
def test_any_data(data: bytes) -> None:
    with contextlib.suppress(BadDataError):
        json.dumps(parse_kubelet_config(data), allow_nan=False)
