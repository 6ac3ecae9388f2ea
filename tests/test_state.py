"""`dpctl state`, `verify` and `diff`, as a person runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpctl.bundle.records import (
    encode_kubelet_pods,
    encode_pod_dirs,
    parse_kubelet_pods,
    parse_pod_dirs,
)
from dpctl.lab.fixture import Lab
from dpctl.model.statefiles import KubeletPod
from tests.run import DATA, dpctl, golden

HEALTHY = DATA / "captures/1-healthy"
TRAINER = "0e50da47-7552-404a-9a56-ae097e637b54"
CONFIG = {
    "kind": "KubeletConfiguration",
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [
        {"numaNode": 0, "limits": {"memory": "612Mi"}},
        {"numaNode": 1, "limits": {"memory": "512Mi"}},
    ],
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The healthy capture, to be changed, with the settings of its kubelet."""
    target = tmp_path / "bundle"
    shutil.copytree(HEALTHY, target)
    (target / "kubelet/config.json").write_text(json.dumps(CONFIG))
    return target


def items(bundle: Path, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    result = dpctl("state", *arguments, "--from", str(bundle), "-o", "json")
    assert result.code == code, result
    found: list[dict[str, Any]] = json.loads(result.out)["items"]
    return found


def verify(bundle: Path, *arguments: str, code: int = 0) -> dict[str, dict[str, Any]]:
    options = (
        arguments
        if "--kubelet-version" in arguments
        else (
            *arguments,
            "--kubelet-version",
            "v1.36.3",
        )
    )
    return {item["file"]: item for item in items(bundle, "verify", *options, code=code)}


def test_a_real_nodes_files_are_good(bundle: Path) -> None:
    rows = verify(bundle)
    assert {row["verdict"] for row in rows.values()} == {"Good"}
    assert not [row["notes"] for row in rows.values() if row["notes"]]
    assert (rows["cpu_manager_state"]["version"], rows["cpu_manager_state"]["form"]) == ("v2", "v2")


def test_the_version_is_asked_for(bundle: Path) -> None:
    result = dpctl("state", "verify", "--from", str(bundle))
    assert (result.code, result.out) == (2, "")
    assert "the Node says v0.0.0" in result.err
    assert "--kubelet-version v1.37.2" in result.err
    (bundle / "meta.json").write_text('{"kubeletVersion": "v1.34.4"}')
    assert dpctl("state", "verify", "--from", str(bundle)).code == 0
    result = dpctl("state", "verify", "--from", str(bundle), "--kubelet-version", "v0.0.0")
    assert result.code == 2


def test_a_refusal_names_the_words_and_the_way_out(bundle: Path) -> None:
    file = bundle / "kubelet/cpu_manager_state"
    file.write_bytes(file.read_bytes().replace(b'"1"', b'"3"', 1))
    result = dpctl("state", "verify", "--from", str(bundle), "--kubelet-version", "1.36.3")
    assert result.code == 1
    assert "Refused" in result.out
    assert "checksum 3279989552 (computed" in result.out
    assert (
        "error: kubelet v1.36.3 would not start with cpu_manager_state: it would say `could not"
        " restore state from checkpoint:"
    ) in result.err
    assert "drain the node (kubectl drain NODE), stop the kubelet, move" in result.err


def test_a_changed_policy(bundle: Path) -> None:
    (bundle / "kubelet/config.json").write_text(json.dumps({**CONFIG, "cpuManagerPolicy": "none"}))
    row = verify(bundle, "cpu", code=1)["cpu_manager_state"]
    assert row["rule"] == "policy"
    assert row["remedy"].startswith("either set cpuManagerPolicy back to static; or, to change it,")
    (row,) = items(bundle, "diff", "cpu", code=1)
    assert (row["what"], row["inFile"], row["live"]) == ("policy", "static", "none")


@pytest.mark.parametrize("damage", [b"", b'{"policyName":"sta', b"\0" * 64])
def test_a_damaged_file_is_said(bundle: Path, damage: bytes) -> None:
    (bundle / "kubelet/memory_manager_state").write_bytes(damage)
    rows = items(bundle, "memory", code=7)
    assert [row["entry"] for row in rows] == ["fault"]
    assert verify(bundle, code=1)["memory_manager_state"]["rule"] == "decode"


def test_a_damaged_device_checkpoint_stops_nobody(bundle: Path) -> None:
    (bundle / "device-plugins/kubelet_internal_checkpoint").write_bytes(b"{")
    row = verify(bundle, code=1)["kubelet_internal_checkpoint"]
    assert (row["verdict"], row["rule"]) == ("Ignored", "decode")
    assert len(verify(bundle, "devices", code=1)) == 1


def test_a_newer_format_is_shown_as_far_as_it_can_be_read(bundle: Path) -> None:
    file = bundle / "kubelet/cpu_manager_state"
    file.write_text(json.dumps({**json.loads(file.read_text()), "cores": {}}))
    rows = items(bundle, "cpu")
    assert rows[0]["value"] == "format newer than known: cores"
    assert any(row["pod"] == "trainer" for row in rows)


def test_the_kubelets_own_names_come_first(bundle: Path) -> None:
    pods = [KubeletPod(TRAINER, "other", "renamed", "Running")]
    (bundle / "podsapi.json").write_bytes(encode_kubelet_pods(pods))
    (held, _) = [row for row in items(bundle, "cpu") if row["entry"] == "CPUs"]
    assert (held["namespace"], held["pod"], held["active"]) == ("other", "renamed", True)
    # Who is not among them is gone, whatever others say.
    rows = [row for row in items(bundle, "devices") if row["pod"] == "notebook"]
    assert {row["active"] for row in rows} == {False}


def test_without_the_api_server_logs_and_directories_tell(bundle: Path) -> None:
    (bundle / "api/pods.json").unlink()
    (bundle / "api/node.json").unlink()
    (bundle / "podnames.json").write_text(
        json.dumps({"pods": [{"uid": TRAINER, "namespace": "ml", "name": "trainer"}]})
    )
    (bundle / "poddirs.json").write_bytes(encode_pod_dirs(["somebody-else"]))
    (held, _) = [row for row in items(bundle, "cpu") if row["entry"] == "CPUs"]
    assert (held["pod"], held["active"]) == ("trainer", False)


def test_bundle_records_round_trip() -> None:
    pods = (KubeletPod("u", "ns", "n", "Failed"), KubeletPod("v", "ns", "m\udcff", None))
    assert parse_kubelet_pods(encode_kubelet_pods(pods)) == pods
    assert parse_pod_dirs(encode_pod_dirs(("a", "b"))) == ("a", "b")


def test_diff_of_a_healthy_node_is_empty(bundle: Path) -> None:
    result = dpctl("state", "diff", "--from", str(bundle))
    assert (result.code, result.out) == (0, "")
    assert "No differences found" in result.err


def test_diff_tells_leftovers_from_mismatches() -> None:
    rows = items(DATA / "captures/3-after-kubelet-restart", "diff", code=1)
    leftovers = {(r["file"], r["pod"]) for r in rows if r["state"] == "Leftover"}
    assert ("kubelet_internal_checkpoint", "trainer") in leftovers
    assert "Mismatch" not in {row["state"] for row in rows}


def test_diff_of_what_was_changed_by_hand(bundle: Path) -> None:
    file = bundle / "kubelet/cpu_manager_state"
    file.write_bytes(file.read_bytes().replace(b'"main":"1"', b'"main":"0"'))
    rows = items(bundle, "diff", "cpu", code=1)
    assert [(r["container"], r["inFile"], r["live"], r["state"]) for r in rows] == [
        ("main", "0", "1", "Mismatch")
    ]


def test_raw_answers_are_in_the_document(bundle: Path) -> None:
    rows = [row for row in items(bundle, "devices") if row["entry"] == "devices"]
    assert all(row["allocResp"] for row in rows)


@pytest.mark.parametrize("moment", ["1-healthy", "3-after-kubelet-restart"])
def test_golden_verdicts(moment: str) -> None:
    result = dpctl(
        *("state", "verify", "--from", str(DATA / "captures" / moment)),
        *("--kubelet-version", "v1.37.2", "-o", "wide"),
    )
    golden(f"captures/{moment}/state-verify.wide", result.out)


@pytest.mark.parametrize("word", ["gpu", "CPU", "kubelet_internal_checkpoint"])
def test_an_unknown_file(bundle: Path, word: str) -> None:
    result = dpctl("state", word, "--from", str(bundle))
    assert result.code == 2
    assert "devices, cpu, memory, dra, pods" in result.err


def test_in_the_lab(lab: Lab) -> None:
    result = dpctl("state", "verify", "--kubelet-version", "v1.37.2", "-o", "json", env=lab.env)
    assert result.code == 0, result
    rows = {item["file"]: item for item in json.loads(result.out)["items"]}
    assert rows["cpu_manager_state"]["verdict"] == "Good"
    assert rows["dra_manager_state"]["verdict"] == "Absent"
    result = dpctl("state", "cpu", "--no-headers", env=lab.env)
    assert result.out.split() == [
        *("cpu_manager_state", "policy", "-", "-", "-", "-", "none"),
        *("cpu_manager_state", "shared", "CPUs", "-", "-", "-", "-", "-"),
    ]
