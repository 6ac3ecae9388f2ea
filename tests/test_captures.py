"""What a real kubelet said in three moments, printed: golden files, and facts checked by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpctl.statefiles.device_checkpoint import encode_checkpoint, parse_checkpoint
from tests import build
from tests.run import DATA, dpctl, golden

CAPTURES = ("1-healthy", "2-plugin-dead-in-grace", "3-after-kubelet-restart")
COMMANDS = ("resources", "devices", "pods", "plugins", "state", "topology")


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", ["table", "wide", "json"])
def test_golden(capture: str, command: str, form: str) -> None:
    result = dpctl(command, "--from", str(DATA / "captures" / capture), "-o", form)
    assert result.code == 0
    # The path of this checkout is in `sources` and nowhere else.
    golden(f"captures/{capture}/{command}.{form}", result.out.replace(str(DATA), "DATA"))


def items(capture: str, command: str, *more: str) -> list[dict[str, Any]]:
    result = dpctl(command, "--from", str(DATA / "captures" / capture), "-o", "json", *more)
    assert result.code == 0, result.err
    found: list[dict[str, Any]] = json.loads(result.out)["items"]
    return found


def states(capture: str) -> dict[str, str]:
    return {item["resource"]: item["state"] for item in items(capture, "resources")}


def test_healthy() -> None:
    assert states("1-healthy") == {
        "edge.example/fuse": "Ready",
        "empty.example/fpga": "Empty",
        "example.com/resource": "Stale",
        "fabric.example/rdma": "Degraded",
        "kkloud.io/widget": "Foreign",
        "kubernetes.io/foo": "Malformed",
        "nodomain": "Malformed",
        "vendor.example/gpu": "Ready",
        "vendor.example/nic": "Stale",
    }
    rdma = next(
        i for i in items("1-healthy", "resources") if i["resource"] == "fabric.example/rdma"
    )
    assert (rdma["healthy"], rdma["total"]) == (4, 5)


def test_healthy_devices() -> None:
    devices = {(i["resource"], i["device"]): i for i in items("1-healthy", "devices")}
    assert devices["fabric.example/rdma", "bond0"]["numaNodes"] == [0, 1]
    gpu = devices["vendor.example/gpu", "gpu-2"]
    assert gpu["state"] == "Allocated"
    assert [(h["pod"], h["container"], h["kind"]) for h in gpu["holders"]] == [
        ("trainer", "main", "app"),
        ("trainer", "warmup", "init"),
    ]
    # Five are counted and four have a name: the fifth is unhealthy and nobody holds it.
    assert devices["fabric.example/rdma", None]["count"] == 1
    assert sum(i["count"] for i in devices.values() if i["resource"] == "fabric.example/rdma") == 5


def test_plugin_dead() -> None:
    before, after = states("1-healthy"), states("2-plugin-dead-in-grace")
    assert {r for r in before if before[r] != after[r]} == {"fabric.example/rdma"}
    assert after["fabric.example/rdma"] == "Grace"


def test_after_kubelet_restart() -> None:
    found = states("3-after-kubelet-restart")
    grace = {"edge.example/fuse", "empty.example/fpga", "fabric.example/rdma", "vendor.example/gpu"}
    assert {r for r, state in found.items() if state == "Grace"} == grace
    assert found["kkloud.io/widget"] == "Foreign"
    for item in items("3-after-kubelet-restart", "resources"):
        if item["resource"] in grace:
            assert (item["capacity"], item["allocatable"]) == ("0", "0")
            assert any("older than kubelet.sock" in text for text in item["evidence"])
            assert any("may be Unregistered" in text for text in item["evidence"])


def test_a_failed_pods_devices_are_orphaned() -> None:
    devices = items("3-after-kubelet-restart", "devices", "vendor.example/gpu")
    orphaned = {i["device"]: i["holders"][0]["pod"] for i in devices if i["state"] == "Orphaned"}
    assert orphaned == {"gpu-2": "trainer", "gpu-3": "trainer"}


def test_devices_of_a_key_that_only_a_gone_pod_held(tmp_path: Path) -> None:
    """The key has been removed: no resource any more, and the device is still in the checkpoint."""
    target = tmp_path / "bundle"
    shutil.copytree(DATA / "captures/1-healthy", target)
    path, gone = target / "device-plugins/kubelet_internal_checkpoint", "gone.example/nic"
    there = parse_checkpoint(path.read_bytes())
    entry = build.allocation("uid-gone", "c", gone, {-1: ["nic-0"]})
    path.write_bytes(encode_checkpoint((*there.allocations, entry), there.registered))
    found = dpctl("devices", gone, "--from", str(target), "-o", "json")
    assert (found.code, json.loads(found.out)["items"][0]["state"]) == (0, "Orphaned"), found
    found = dpctl("resources", "--from", str(target), "-q")
    assert (found.code, gone in found.out) == (0, False), found


def test_rejected_pods() -> None:
    found = items("3-after-kubelet-restart", "pods", "--failed")
    assert [(i["namespace"], i["pod"], i["reason"]) for i in found] == [
        ("batch", "greedy", "UnexpectedAdmissionError"),
        ("ml", "trainer", "UnexpectedAdmissionError"),
    ]


@pytest.mark.parametrize("pod", ["ml/trainer", "trainer", "pod/trainer"])
def test_one_pod(pod: str) -> None:
    result = dpctl("pods", "--from", str(DATA / "captures/1-healthy"), pod)
    assert result.code == 0
    golden("captures/1-healthy/pod-trainer.txt", result.out)


def test_json_list_and_binpb_are_read_alike(tmp_path: Any) -> None:
    """The answer's bytes and the same answer rendered give the same rows."""
    outputs = []
    for suffix in ("json", "binpb"):
        target = tmp_path / suffix
        shutil.copytree(DATA / "captures/1-healthy", target)
        for other in ("json", "binpb"):
            if other != suffix:
                (target / f"podresources/list.{other}").unlink()
                (target / f"podresources/allocatable.{other}").unlink()
        result = dpctl("devices", "--from", str(target), "-o", "json")
        outputs.append(json.loads(result.out)["items"])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("expectation", "code"),
    [
        ("vendor.example/gpu=4", 0),
        ("vendor.example/gpu=5", 1),
        ("fabric.example/rdma=4", 0),
        ("nobody.example/x=0", 0),
        ("nobody.example/x=1", 1),
        ("nonsense", 2),
    ],
)
def test_expect(expectation: str, code: int) -> None:
    result = dpctl("resources", "--from", str(DATA / "captures/1-healthy"), "--expect", expectation)
    assert result.code == code
    assert ("expected" in result.err) is (code == 1)


def test_stale_only() -> None:
    found = items("1-healthy", "resources", "--stale")
    assert [i["resource"] for i in found] == [
        "example.com/resource",
        "kubernetes.io/foo",
        "nodomain",
        "vendor.example/nic",
    ]


def test_strict_fails_for_what_is_missing() -> None:
    result = dpctl("resources", "--from", str(DATA / "captures/1-healthy"), "--strict")
    assert result.code == 3
    assert "RESOURCE" in result.out


@pytest.mark.parametrize("command", ["resources", "devices", "plugins", "pods"])
def test_a_full_name_that_is_not_there_is_said(command: str) -> None:
    capture = str(DATA / "captures/1-healthy")
    result = dpctl(command, "--from", capture, "nosuch")
    assert result.code == 1
    assert '"nosuch"' in result.err
    result = dpctl(command, "--from", capture, "nosuch*")
    assert (result.code, result.out) == (0, "")
    assert "No resources found" in result.err


def test_who() -> None:
    capture = str(DATA / "captures/1-healthy")
    result = dpctl("who", "gpu-2", "--from", capture, "--no-headers")
    assert result.code == 0
    assert [line.split()[4:6] for line in result.out.splitlines()] == [
        ["trainer", "main"],
        ["trainer", "warmup"],
    ]
    result = dpctl("who", "gpu-1", "--from", capture)
    assert result.code == 1
    assert "nobody holds" in result.err
