"""The lab's topology manager, and that `dpctl topology --fit` says what it will do."""

from __future__ import annotations

import json

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec, SampleDevice
from tests.lab.parts import GPU
from tests.lab.test_allocation import held
from tests.run import dpctl

NIC = "vendor.example/nic"
AFFINITY = "Pod was rejected: Resources cannot be allocated with Topology locality"


def four(lab: Lab) -> None:
    """Two GPUs and a NIC on each of two NUMA nodes."""
    gpus = tuple(SampleDevice(f"gpu-{at}", (at // 2,)) for at in range(4))
    nics = tuple(SampleDevice(f"nic-{at}", (at,)) for at in range(2))
    lab.add_plugin(PluginSpec("gpu", GPU, "gpu.sock", gpus))
    lab.add_plugin(PluginSpec("nic", NIC, "nic.sock", nics))
    lab.wait_settled()


def said(lab: Lab, *containers: dict[str, int]) -> tuple[bool, str | None]:
    """What dpctl says of a pod with these containers."""
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [
                {"name": f"c{at}", "resources": {"limits": limits}}
                for at, limits in enumerate(containers)
            ]
        },
    }
    result = dpctl("topology", "-f", "-", "-o", "json", env=lab.env, stdin=json.dumps(pod))
    assert result.code in (0, 1), result
    answer = json.loads(result.out)["items"][0]
    return answer["admitted"], answer["message"]


@pytest.mark.parametrize(
    ("policy", "scope", "containers", "admitted"),
    [
        ("best-effort", "container", [{GPU: 3}], True),
        ("restricted", "container", [{GPU: 3}], True),
        ("restricted", "container", [{GPU: 3, NIC: 1}], False),
        ("single-numa-node", "container", [{GPU: 2, NIC: 1}, {GPU: 2, NIC: 1}], True),
        ("single-numa-node", "container", [{GPU: 3}], False),
        ("single-numa-node", "pod", [{GPU: 1}, {GPU: 1}], True),
        ("single-numa-node", "pod", [{GPU: 2}, {GPU: 1}], False),
    ],
)
def test_policies(policy, scope, containers, admitted) -> None:
    options = {"topology_policy": policy, "topology_scope": scope}
    with Lab(scenario="empty", status_period=3600, **options) as lab:
        four(lab)
        verdict, message = said(lab, *containers)
        limits = {f"c{at}": each for at, each in enumerate(containers)}
        pod = lab.create_pod("ml", "p", limits, node_name="lab-0")
        assert verdict == admitted == (pod["status"]["phase"] == "Running")
        if not admitted:
            assert pod["status"]["reason"] == "TopologyAffinityError"
            assert pod["status"]["message"] == AFFINITY == f"Pod was rejected: {message}"
            assert held(lab, pod) == {}


def test_devices_come_from_the_numa_nodes_of_the_hint() -> None:
    with Lab(scenario="empty", status_period=3600, topology_policy="single-numa-node") as lab:
        four(lab)
        first = lab.create_pod("ml", "a", {"c": {GPU: 1, NIC: 1}})
        second = lab.create_pod("ml", "b", {"c": {GPU: 2, NIC: 1}})
        nodes = {"gpu-0": 0, "gpu-1": 0, "gpu-2": 1, "gpu-3": 1, "nic-0": 0, "nic-1": 1}
        for pod in (first, second):
            assert len({nodes[device] for device in held(lab, pod)["c"]}) == 1
        # A kubelet that starts again admits what runs with what it has.
        lab.kubelet.restart()
        lab.wait_settled()
        assert lab.pods()["ml/b"]["status"]["phase"] == "Running"
