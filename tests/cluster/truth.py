"""What a node says, taken from it without dpctl: the oracle that commands are held against.

Nothing of dpctl is used here but the generated messages of the kubelet's API.
"""

from __future__ import annotations

import json
import socket
import stat
from pathlib import Path
from typing import Any, NamedTuple

from .api import JSON
from .bench import Bench, is_native
from .listing import Holding, pod_resources

DONE = ("Succeeded", "Failed")


class Truth(NamedTuple):
    """Raw answers in a form that can be compared."""

    keys: dict[str, tuple[str | None, str | None]]
    """Extended resource -> capacity and allocatable on the Node."""
    registered: dict[str, frozenset[str]]
    """Resource -> device IDs in the checkpoint's RegisteredDevices."""
    healthy: dict[str, frozenset[str]]
    """Resource -> device IDs that the kubelet has registered. Its file may lack the last change: it
    gathers and writes in two steps, and several plugins may register at once."""
    held: dict[tuple[str, str], frozenset[tuple[str, str]]]
    """Resource and device ID -> pod UIDs and containers of the checkpoint."""
    active: frozenset[str]
    """UIDs of the node's pods that are not over."""
    listed: dict[Holding, frozenset[str]]
    """Device IDs in the answer to List."""
    numa: dict[tuple[str, str], frozenset[int]]
    """Resource and device ID -> NUMA nodes in the answers to GetAllocatableResources and List. Some
    kubelets leave devices without topology out of the former."""
    sockets: dict[str, bool]
    """Socket files of device-plugins but the kubelet's -> whether somebody accepts."""

    def used(self, resource: str) -> set[str]:
        """IDs that pods which are not over hold."""
        return {
            device
            for (name, device), holders in self.held.items()
            if name == resource and any(uid in self.active for uid, _ in holders)
        }


def tell(bench: Bench) -> Truth:
    """Look at everything once."""
    node = bench.node
    status = node.get()["status"]
    capacity, allocatable = status["capacity"], status["allocatable"]
    names = [name for name in {**capacity, **allocatable} if not is_native(name)]
    query = f"?fieldSelector=spec.nodeName%3D{node.name}"
    pods = node.plane.api().get(f"/api/v1/pods{query}")["items"]
    data = bench.checkpoint()["Data"] if bench.checkpoint_file.exists() else {}
    told = pod_resources(node.kubelet_dir / "pod-resources" / "kubelet.sock")
    registered = {k: frozenset(v) for k, v in (data.get("RegisteredDevices") or {}).items()}
    return Truth(
        {name: (capacity.get(name), allocatable.get(name)) for name in sorted(names)},
        registered,
        _healthy(registered, told.offered, allocatable),
        _held(data.get("PodDeviceEntries") or []),
        frozenset(p["metadata"]["uid"] for p in pods if p["status"].get("phase") not in DONE),
        told.listed,
        told.numa,
        _sockets(node.kubelet_dir / "device-plugins"),
    )


def _healthy(
    registered: dict[str, frozenset[str]], offered: dict[str, frozenset[str]], shown: JSON
) -> dict[str, frozenset[str]]:
    """The kubelet's answer where the Node has its number; else with what only the file has."""
    found = {}
    for name in {*registered, *offered}:
        file, answer = registered.get(name, frozenset()), offered.get(name, frozenset())
        agreed = answer and str(len(answer)) == shown.get(name)
        found[name] = answer if agreed else file | answer
    return found


def _held(entries: list[Any]) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    held: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for entry in entries:
        for ids in entry["DeviceIDs"].values():
            for device in ids:
                holders = held.setdefault((entry["ResourceName"], device), set())
                holders.add((entry["PodUID"], entry["ContainerName"]))
    return {key: frozenset(value) for key, value in held.items()}


def _sockets(folder: Path) -> dict[str, bool]:
    return {
        path.name: _accepts(path)
        for path in sorted(folder.iterdir())
        if path.name != "kubelet.sock" and stat.S_ISSOCK(path.stat().st_mode)
    }


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def parse(text: str) -> list[dict[str, Any]]:
    """The items of a JSON document."""
    found: list[dict[str, Any]] = json.loads(text)["items"]
    return found
