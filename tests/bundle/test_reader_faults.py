"""`--from` a bundle of many nodes, with broken files, or none at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpctl.bundle import read_bundle_file
from dpctl.bundle.meta import Meta, encode_meta
from dpctl.errors import BadDataError, ExitCode, UnreachableError
from dpctl.model import Source
from tests.bundle.helpers import CAPTURES, env_of, put, read, row

# --- which node ---


def nodes(*names: str) -> dict[str, Any]:
    return {"kind": "List", "items": [{"metadata": {"name": name}} for name in names]}


def pod_list(*bound: str | None) -> dict[str, Any]:
    return {
        "kind": "List",
        "items": [
            {
                "metadata": {"namespace": "a", "name": f"p{i}", "uid": f"u{i}"},
                "spec": {"nodeName": name} if name else {},
            }
            for i, name in enumerate(bound)
        ],
    }


def test_the_bundles_node_among_many(tmp_path: Path) -> None:
    put(tmp_path, "api/node.json", nodes("n1", "n2"))
    put(tmp_path, "api/pods.json", pod_list("n1", "n2", None, "n2"))
    nobody = read(tmp_path)
    assert row(nobody, "node").state == row(nobody, "pods").state == "failed"
    assert "holds 2 Nodes" in (row(nobody, "node").reason or "")
    assert "--node" in (row(nobody, "pods").hint or "")
    named = read(tmp_path, node_name="n1")
    assert named.node is not None
    assert named.node.name == "n1"
    assert [p.name for p in named.pods or ()] == ["p0"]
    put(tmp_path, "meta.json", encode_meta(Meta(node_name="n2")))
    meant = read(tmp_path)
    assert meant.node is not None
    assert meant.node.name == "n2"
    assert [p.name for p in meant.pods or ()] == ["p1", "p3"]


def test_pods_follow_the_node_object_even_where_it_is_not_wanted(tmp_path: Path) -> None:
    put(tmp_path, "api/node.json", nodes("n1"))
    put(tmp_path, "api/pods.json", pod_list("n1", "n2"))
    found = read(tmp_path, [Source.PODS])
    assert [p.name for p in found.pods or ()] == ["p0"]


def test_a_node_flag_that_does_not_fit(tmp_path: Path) -> None:
    put(tmp_path, "api/node.json", nodes("n1"))
    found = read(tmp_path, node_name="other")
    assert found.node is None
    assert row(found, "node").reason == "it holds Node n1, not other"


# --- broken ones ---


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("api/node.json", "node"),
        ("api/pods.json", "pods"),
        ("api/deviceclasses.json", "deviceclasses"),
        ("podresources/list.json", "podresources"),
        ("podresources/list.binpb", "podresources"),
        ("podresources/allocatable.json", "allocatable"),
        ("podresources/allocatable.binpb", "allocatable"),
        ("device-plugins/ls.txt", "device-plugins"),
        ("device-plugins/sockets.json", "sockets"),
        ("device-plugins/kubelet_internal_checkpoint", "checkpoint"),
        ("kubelet/config.json", "kubelet"),
        ("podnames.json", "podnames"),
        ("hostpaths.json", "hostpaths"),
        ("cdi.json", "cdi"),
        ("sys/devices/system/node/node0/cpulist", "numa"),
    ],
)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"\xff\xfe\x00nonsense{[" * 10),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("/etc/hostname"),
        lambda path: os.mkfifo(path),
    ],
    ids=["garbage", "directory", "link", "pipe"],
)
def test_one_broken_file_is_one_failed_source(
    tmp_path: Path, name: str, source: str, spoil: Callable[[Path], object]
) -> None:
    shutil.copytree(CAPTURES / "1-healthy", tmp_path / "b")
    before = {r.name for r in read(tmp_path / "b").sources if r.read}
    path = tmp_path / "b" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".json") and (other := path.with_suffix(".binpb")).exists():
        other.unlink()
    spoil(path)
    found = read(tmp_path / "b")
    failed = [r for r in found.sources if r.state == "failed"]
    if not (source == "numa" and path.is_dir()):
        assert [r.name for r in failed] == [source]
        assert failed[0].code == ExitCode.BAD_DATA
        assert failed[0].reason
        assert name in failed[0].where or (source == "numa" and "sys/devices" in failed[0].where)
    assert {r.name for r in found.sources if r.read} >= before - {source}


def test_no_bundle_at_all(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError):
        read(tmp_path / "nowhere")
    with pytest.raises(BadDataError):
        read(tmp_path)


def test_one_file_by_name() -> None:
    env = env_of(CAPTURES / "1-healthy")
    assert b"policyName" in (read_bundle_file(env, "kubelet/cpu_manager_state") or b"")
    assert read_bundle_file(env, "kubelet/nothing") is None
