"""The lab node's own /: kubelet directories, its configuration, and a /sys with two NUMA nodes."""

from __future__ import annotations

import json
from pathlib import Path

from dpctl.lab.api_errors import Json
from dpctl.lab.scenario import VIRTUAL_FUNCTIONS
from dpctl.lab.spec import LabSpec

CPUS = 16
MEMORY_KIB = 64 * 1024 * 1024
_CPU_LISTS = ("0-7", "8-15")
DISTANCES = {0: (10, 21), 1: (21, 10)}

KUBELET_ROOT = Path("var/lib/kubelet")
DEVICE_PLUGINS = KUBELET_ROOT / "device-plugins"


def kubelet_config(spec: LabSpec) -> Json:
    """KubeletConfiguration of the lab's kubelet."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "nodeStatusUpdateFrequency": f"{spec.status_period:g}s",
        "topologyManagerPolicy": spec.topology_policy,
        "topologyManagerScope": spec.topology_scope,
        "cpuManagerPolicy": "none",
        "memoryManagerPolicy": "None",
    }


def build(root: Path, spec: LabSpec) -> None:
    """Make the tree below `root`. As any user: nothing here needs rights."""
    for directory in ("var/log/pods", "dev", "opt/vendor/lib", "etc/kubernetes"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    kubelet = root / KUBELET_ROOT
    for name, mode in (("device-plugins", 0o755), ("pod-resources", 0o750), ("pods", 0o750)):
        (kubelet / name).mkdir(parents=True, exist_ok=True)
        (kubelet / name).chmod(mode)
    (kubelet / "plugins_registry").mkdir(mode=0o750, exist_ok=True)
    _write(kubelet / "config.yaml", json.dumps(kubelet_config(spec), indent=1) + "\n")
    # Policy none: the text and number a real kubelet writes (kubelet-facts §5.4, §5.5).
    _state(
        kubelet / "cpu_manager_state",
        '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
    )
    _state(
        kubelet / "memory_manager_state",
        '{"policyName":"None","machineState":{},"entries":{},"checksum":4236770233}',
    )
    for number in range(8):
        _write(root / "dev" / f"vendor{number}", "")
    _write(root / "dev" / "fuse", "")
    _numa(root / "sys/devices/system/node")
    _cpus(root / "sys/devices/system/cpu")
    _pci(root / "sys")


def _numa(directory: Path) -> None:
    _write(directory / "online", "0-1\n")
    _write(directory / "possible", "0-1\n")
    for name in ("has_cpu", "has_memory", "has_normal_memory"):
        _write(directory / name, "0-1\n")
    per_node = MEMORY_KIB // len(_CPU_LISTS)
    for node, cpus in enumerate(_CPU_LISTS):
        here = directory / f"node{node}"
        _write(here / "cpulist", f"{cpus}\n")
        _write(here / "distance", " ".join(map(str, DISTANCES[node])) + "\n")
        lines = {"MemTotal": per_node, "MemFree": per_node // 2, "MemUsed": per_node // 2}
        text = "".join(f"Node {node} {key}:{kib:>16} kB\n" for key, kib in lines.items())
        _write(here / "meminfo", text + f"Node {node} HugePages_Total:     0\n")
        for size in ("2048kB", "1048576kB"):
            pages = here / "hugepages" / f"hugepages-{size}"
            _write(pages / "nr_hugepages", "0\n")
            _write(pages / "free_hugepages", "0\n")
            _write(pages / "surplus_hugepages", "0\n")
        first, _, last = cpus.partition("-")
        for cpu in range(int(first), int(last) + 1):
            (here / f"cpu{cpu}").symlink_to(f"../../cpu/cpu{cpu}")


def _cpus(directory: Path) -> None:
    _write(directory / "online", f"0-{CPUS - 1}\n")
    for cpu in range(CPUS):
        (directory / f"cpu{cpu}").mkdir(parents=True)


def _pci(sys_root: Path) -> None:
    """Virtual functions as sysfs has them: a link in bus/pci/devices to the device's directory."""
    links = sys_root / "bus/pci/devices"
    links.mkdir(parents=True)
    for address, numa_node in VIRTUAL_FUNCTIONS.items():
        bus = f"pci{address[:7]}"
        device = sys_root / "devices" / bus / address
        _write(device / "numa_node", f"{numa_node}\n")
        _write(device / "vendor", "0x15b3\n")
        _write(device / "device", "0x101e\n")
        _write(device / "class", "0x020000\n")
        (links / address).symlink_to(f"../../../devices/{bus}/{address}")


def _state(path: Path, text: str) -> None:
    _write(path, text)
    path.chmod(0o600)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
