"""One pod in full: what its plugins asked for, against a host of files, and the same replayed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpctl.bundle.records import encode_cdi, encode_host_paths
from dpctl.model import Allocation
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.sources.cdi import read_cdi
from dpctl.sources.checkpoint import read_checkpoint
from dpctl.sources.hostpaths import read_host_paths
from dpctl.statefiles.device_checkpoint import encode_checkpoint
from tests.fakes.node_tree import CONTROLS, RESOURCE, NodeTree, items, node
from tests.run import dpctl, golden

NIC = "vendor.example/nic"


def cdi(kind: str, *names: str, nodes: tuple[str, ...] = ()) -> bytes:
    edits = {"env": ["A=1"], "deviceNodes": [{"path": path} for path in nodes]}
    devices = [{"name": name, "containerEdits": edits} for name in names]
    return json.dumps({"cdiVersion": "0.6.0", "kind": kind, "devices": devices}).encode()


GPU_ANSWER = pb.ContainerAllocateResponse(
    envs={"VISIBLE": "gpu-0"},
    mounts=[
        pb.Mount(container_path="/opt/lib", host_path="/usr/lib/vendor", read_only=True),
        pb.Mount(container_path="/opt/gone", host_path="/opt/gone"),
    ],
    devices=[
        pb.DeviceSpec(container_path="/dev/vendor0", host_path="/dev/vendor0", permissions="rw"),
        pb.DeviceSpec(container_path="/dev/vendor1", host_path="/dev/vendor1", permissions="rw"),
        pb.DeviceSpec(container_path="/dev/snd", host_path="/dev/snd", permissions="rw"),
        pb.DeviceSpec(container_path="/dev/up", host_path="/dev/up", permissions="rw"),
    ],
    annotations={"cdi.k8s.io/vendor": f"{RESOURCE}=1", "shared": "gpu"},
    cdi_devices=[
        pb.CDIDevice(name=f"{RESOURCE}={name}") for name in ("0", "2", "gone", "twice", "a b")
    ],
)
NIC_ANSWER = pb.ContainerAllocateResponse(envs={"VISIBLE": "nic-0"}, annotations={"shared": "nic"})


@pytest.fixture
def tree() -> Iterator[NodeTree]:
    with node(cluster=False, plugin=False) as made:
        held = [
            Allocation(
                "uid-1", "main", name, {0: (device,)}, answer.SerializeToString(deterministic=True)
            )
            for name, device, answer in ((RESOURCE, "gpu-0", GPU_ANSWER), (NIC, "n", NIC_ANSWER))
        ]
        made.checkpoint.write_bytes(encode_checkpoint(held, {RESOURCE: ["gpu-0"], NIC: ["n"]}))
        for directory in ("etc/cdi", "run/cdi", "usr/lib/vendor", "dev/snd", "etc/real"):
            (made.root / directory).mkdir(parents=True)
        (made.root / "var/run").symlink_to("/run")
        (made.root / "dev/vendor1").write_text("no device")
        (made.root / "dev/up").symlink_to("../../../../../../../../dev/null")
        put = made.root / "etc/cdi"
        (put / "a.json").write_bytes(cdi(RESOURCE, "0", "1", "twice"))
        (put / "b.json").write_bytes(cdi(RESOURCE, "twice"))
        (put / "broken.yaml").write_text("cdiVersion: 0.6.0\nkind: gpu\n")
        (made.root / "run/cdi/c.json").write_bytes(cdi(RESOURCE, "0"))
        (made.root / "run/cdi/d.json").write_bytes(cdi(RESOURCE, "2", nodes=("/dev/lost",)))
        yield made


def test_every_verdict(tree: NodeTree) -> None:
    result = tree.run("pods", "ml/trainer")
    assert result.code == 0
    golden("node/pod-asked.txt", result.out)


def bundled(tree: NodeTree, path: Path) -> Path:
    """What the host says, by the bundle's own records."""
    root = str(tree.root)
    checkpoint, specs = read_checkpoint(str(tree.device_plugins)), read_cdi(root)
    (path / "device-plugins").mkdir(parents=True)
    (path / "device-plugins/kubelet_internal_checkpoint").write_bytes(tree.checkpoint.read_bytes())
    (path / "cdi.json").write_bytes(encode_cdi(specs))
    found = read_host_paths(root, checkpoint, specs)
    (path / "hostpaths.json").write_bytes(encode_host_paths(found))
    return path


def test_a_bundle_says_what_the_host_said(tree: NodeTree, tmp_path: Path) -> None:
    path = bundled(tree, tmp_path / "bundle")
    live = items(tree.run("pods", "ml/trainer", "-o", "json"))
    replayed = items(dpctl("pods", "uid-1", "--from", str(path), "-o", "json"))
    asked = [{key: row[key] for key in ("answer", "cdi", "cdiDevices")} for row in live]
    assert asked == [{key: row[key] for key in ("answer", "cdi", "cdiDevices")} for row in replayed]
    assert [len(row["cdi"]) for row in asked] == [6, 0]
    assert [row["answer"]["clashes"][0]["resources"] for row in asked] == [[NIC], [RESOURCE]]


def test_directories_that_mean_harm(tree: NodeTree) -> None:
    directory = tree.root / "etc/cdi"
    os.mkfifo(directory / "fifo.json")
    (directory / f"{CONTROLS.replace('/', '')[1:20]}.json").write_text(f'{{"kind": "{CONTROLS}"')
    (directory / "loop.json").symlink_to("loop.json")
    (directory / "deep.json").write_bytes(b"[" * 1_000_000)
    with (directory / "huge.yaml").open("wb") as file:
        file.truncate(1 << 40)
    (directory / "out.json").symlink_to("/proc/self/environ")
    for result in tree.ask("pods", "ml/trainer"):
        assert (result.code, RESOURCE in result.out) == (0, True)


def test_a_directory_that_is_a_loop_is_named(tree: NodeTree) -> None:
    (tree.root / "run/cdi").rename(tree.root / "run/old")
    (tree.root / "run/cdi").symlink_to("cdi")
    result = tree.run("pods", "ml/trainer")
    assert result.code == 0
    assert "cdi not read" in result.err
    assert f"{RESOURCE}=0: not checked" in result.out
