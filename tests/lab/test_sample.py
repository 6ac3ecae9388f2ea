"""What the sample lab holds: one resource per state, and pods of every kind."""

from __future__ import annotations

import json
from pathlib import Path

from dpctl.lab import scenario
from dpctl.lab.fixture import Lab
from tests.lab.parts import Resources, amounts, checkpoint


def test_node(lab: Lab) -> None:
    status = lab.node()["status"]
    pairs = {
        name: (status["capacity"].get(name), status["allocatable"].get(name))
        for name in status["capacity"]
        if "/" in name or name == scenario.MALFORMED
    }
    assert pairs == {
        scenario.GPU: ("8", "7"),
        scenario.SHARED: ("8", "8"),
        scenario.SRIOV: ("7", "7"),
        scenario.FUSE: ("3", "3"),
        scenario.FPGA: ("0", "0"),
        scenario.CRASHED: ("2", "0"),
        scenario.MISSED: ("0", "0"),
        scenario.FOREIGN: ("3", "3"),
        scenario.GHOST: ("4", "4"),
        scenario.STALE: ("0", "0"),
        scenario.MALFORMED: ("2", "2"),
    }
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert status["nodeInfo"]["bootID"] == boot_id


def test_pods(lab: Lab) -> None:
    pods = lab.pods()
    assert {name: pod["status"]["phase"] for name, pod in pods.items()} == {
        "ml/trainer": "Running",
        "ml/notebook": "Running",
        "default/plain": "Running",
        "batch/nightly": "Succeeded",
        "batch/greedy": "Failed",
        "batch/waiting": "Pending",
    }
    assert "Requested: 9, Available: 5" in pods["batch/greedy"]["status"]["message"]
    with Resources(lab) as resources:
        assert set(resources.pods()) == {"ml/trainer", "ml/notebook", "default/plain"}


def test_checkpoint(lab: Lab) -> None:
    found = checkpoint(lab)
    assert found.verified
    uids = {pod["metadata"]["uid"]: name for name, pod in lab.pods().items()}
    holders = sorted((uids[one.pod_uid], one.container) for one in found.allocations)
    assert holders == [
        ("batch/nightly", "job"),
        ("ml/notebook", "app"),
        ("ml/notebook", "proxy"),
        ("ml/trainer", "main"),
        ("ml/trainer", "main"),
        ("ml/trainer", "warmup"),
    ]
    assert scenario.MISSED in found.registered
    assert scenario.GHOST not in found.registered


def test_files(lab: Lab) -> None:
    sockets = {p.name for p in lab.device_plugins.iterdir() if p.is_socket()}
    assert "rdma.sock" in sockets  # crashed
    assert "encoder.sock" not in sockets  # serving, its file gone
    assert lab.plugin("encoder").state()["serving"]
    assert lab.plugin("rdma").pid is None
    node = lab.root / "sys/devices/system/node"
    assert (node / "online").read_text() == "0-1\n"
    assert (node / "node1/cpulist").read_text() == "8-15\n"
    functions = lab.root / "sys/bus/pci/devices"
    assert (functions / "0000:af:00.2/numa_node").read_text() == "1\n"
    logs = {p.name.rpartition("_")[0] for p in (lab.root / "var/log/pods").iterdir()}
    assert {"ml_trainer", "ml_notebook", "default_plain", "batch_nightly"} <= logs


def test_contexts(lab: Lab) -> None:
    config = json.loads((lab.directory / "kubeconfig").read_text())
    assert config["current-context"] == "lab"
    assert [c["name"] for c in config["contexts"]] == [
        "lab",
        "lab-viewer",
        "lab-nobody",
        "lab-node",
    ]
    path = f"/api/v1/nodes/{lab.node_name}"
    codes = {name: lab.api("GET", path, context=name)[0] for name in lab.tokens}
    assert codes == {"lab": 200, "lab-viewer": 200, "lab-nobody": 403, "lab-node": 200}
    assert amounts(lab, "cpu") == ("16", "16")


def test_choices_are_the_same_each_time(lab: Lab, new_lab: type[Lab]) -> None:
    def held(one: Lab) -> set[tuple[str, str, str]]:
        with Resources(one) as resources:
            return {
                (pod, container, device_id)
                for pod, containers in resources.pods().items()
                for container, entries in containers.items()
                for _, device_id, _ in entries
            }

    assert held(new_lab()) == held(lab)
