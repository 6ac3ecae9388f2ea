"""What stands in the sample lab: plugins, pods and the Node's left-overs. Data, no behaviour.

One resource per state that dpctl knows, so that `dpctl resources` in the lab shows them all.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpctl.lab.api_errors import Json
from dpctl.lab.spec import PluginSpec, SampleDevice

GPU = "vendor.example/gpu"
SHARED = "vendor.example/gpu.shared"
SRIOV = "net.example/sriov"
FUSE = "edge.example/fuse"
FPGA = "empty.example/fpga"
CRASHED = "fabric.example/rdma"
MISSED = "video.example/encoder"
FOREIGN = "kkloud.io/widget"
GHOST = "ghost.example/tpu"
STALE = "old.example/retired"
MALFORMED = "nodomain"

_CARDS = ("GPU-5a1c0d3e-7b42-4f19-9c6e-1d2f3a4b5c6d", "GPU-e8f7d6c5-b4a3-4291-8071-6f5e4d3c2b1a")
VIRTUAL_FUNCTIONS = {
    "0000:3b:00.2": 0,
    "0000:3b:00.3": 0,
    "0000:3b:00.4": 0,
    "0000:af:00.2": 1,
    "0000:af:00.3": 1,
    "0000:af:00.4": 1,
}
"""PCI address to NUMA node."""


@dataclass(frozen=True, slots=True)
class Scenario:
    plugins: tuple[PluginSpec, ...] = ()
    missed: tuple[str, ...] = ()
    """Plugins that were there before the kubelet's last start and did not notice it."""
    crashed: tuple[str, ...] = ()
    """Plugins that die, socket left behind, once the kubelet has their devices."""
    pods: tuple[Json, ...] = ()
    """Created one after the other, each settled before the next."""
    finished: tuple[str, ...] = ()
    """Names of pods that run to their end once started."""
    kubelet_keys: tuple[tuple[str, str], ...] = ()
    """Extended resources that the kubelet wrote on the Node long ago."""
    patched_keys: tuple[tuple[str, str], ...] = ()
    """Capacity keys that somebody patched by hand."""
    device_classes: tuple[Json, ...] = ()
    other_nodes: tuple[str, ...] = ()
    """Nodes of the cluster that are Node objects only."""


def pod(
    namespace: str,
    name: str,
    containers: dict[str, dict[str, int]],
    *,
    init: dict[str, dict[str, int]] | None = None,
    sidecars: dict[str, dict[str, int]] | None = None,
    node_name: str | None = None,
) -> Json:
    """A pod whose containers (name to limits) run for ever; sidecars start before `init`."""
    spec: Json = {"containers": [_container(*item) for item in containers.items()]}
    first = [
        _container(*item) | {"restartPolicy": "Always"} for item in (sidecars or {}).items()
    ] + [_container(*item) for item in (init or {}).items()]
    if first:
        spec["initContainers"] = first
    if node_name is not None:
        spec["nodeName"] = node_name
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


def _container(name: str, limits: dict[str, int]) -> Json:
    container: Json = {"name": name, "image": "lab/pause:1"}
    if limits:
        container["resources"] = {"limits": {key: str(value) for key, value in limits.items()}}
    return container


def sample(node_name: str) -> Scenario:
    return Scenario(
        plugins=_plugins(),
        missed=("encoder",),
        crashed=("rdma",),
        pods=(
            pod("ml", "trainer", {"main": {GPU: 2, SRIOV: 1}}, init={"warmup": {GPU: 1}}),
            pod("ml", "notebook", {"app": {SHARED: 1}}, sidecars={"proxy": {FUSE: 1}}),
            pod("default", "plain", {"web": {}}),
            pod("batch", "nightly", {"job": {FUSE: 1}}),
            pod("batch", "greedy", {"main": {GPU: 9}}, node_name=node_name),
            pod("batch", "waiting", {"main": {GPU: 6}}),
        ),
        finished=("nightly",),
        kubelet_keys=((GHOST, "4"), (STALE, "0")),
        patched_keys=((FOREIGN, "3"), (MALFORMED, "2")),
        device_classes=(
            {
                "metadata": {"name": "npu.dra.example"},
                "spec": {"extendedResourceName": "dra.example/npu"},
            },
        ),
        other_nodes=("lab-1",),
    )


def _plugins() -> tuple[PluginSpec, ...]:
    return (
        PluginSpec(
            "gpu",
            GPU,
            "vendor-gpu.sock",
            tuple(
                SampleDevice(f"gpu-{n}", (n // 4,), "Unhealthy" if n == 6 else "Healthy")
                for n in range(8)
            ),
            preferred=True,
            shown="argument",
            command="gpu-plugin",
            variable="VENDOR_VISIBLE_DEVICES",
            device_path="/dev/vendor{}",
            mounts=(("/usr/lib/vendor", "/opt/vendor/lib"),),
            annotations={"vendor.example/allocated": "true"},
        ),
        PluginSpec(
            "shared",
            SHARED,
            "gpu-shared.sock",
            tuple(
                SampleDevice(f"{card}::{n}", (numa_node,))
                for numa_node, card in enumerate(_CARDS)
                for n in range(4)
            ),
            preferred=True,
            pre_start=True,
            shown="environment",
            command="gpu-sharing",
            variable="VENDOR_VISIBLE_DEVICES",
            cdi_kind="vendor.example/gpu",
        ),
        PluginSpec(
            "sriov",
            SRIOV,
            "net.example_sriov.sock",
            (
                *(SampleDevice(vf, (node,)) for vf, node in VIRTUAL_FUNCTIONS.items()),
                SampleDevice("bond0", (0, 1)),
            ),
            shown="nowhere",
            command="sriovdp",
            variable="PCIDEVICE_NET_EXAMPLE_SRIOV",
        ),
        PluginSpec(
            "fuse",
            FUSE,
            "gdp-ZWRnZS5leGFtcGxlL2Z1c2U=.sock",
            tuple(SampleDevice(f"fuse-{n}") for n in range(3)),
            serve_info=True,
            command="generic-plugin",
            variable="FUSE_DEVICES",
            device_path="/dev/fuse",
        ),
        PluginSpec("fpga", FPGA, "fpga.sock", shown="argument", command="fpga-plugin"),
        PluginSpec(
            "rdma",
            CRASHED,
            "rdma.sock",
            tuple(SampleDevice(f"rdma-{n}", (n,)) for n in range(2)),
            shown="argument",
            command="rdma-plugin",
        ),
        PluginSpec(
            "encoder",
            MISSED,
            "encoder.sock",
            tuple(SampleDevice(f"enc-{n}", (0,)) for n in range(2)),
            watch_kubelet=False,
            shown="argument",
            command="encoder-plugin",
        ),
    )
