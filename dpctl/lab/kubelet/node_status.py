"""The Node object as the kubelet writes it, once a period (kubelet-facts §4.2, executed there)."""

from __future__ import annotations

import copy
import os
import platform
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from dpctl import names, quantity
from dpctl.lab.api_errors import Json
from dpctl.lab.clock import timestamp
from dpctl.lab.kubelet.api_client import ApiClient, RequestError
from dpctl.lab.kubelet.device_manager import Capacity
from dpctl.lab.merge_patch import diff
from dpctl.lab.node_tree import CPUS, MEMORY_KIB

NATIVE = {
    "cpu": str(CPUS),
    "memory": f"{MEMORY_KIB}Ki",
    "pods": "110",
    "ephemeral-storage": "200Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
}
_TRIES = 5
_CONDITIONS = (
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class NodeStatus:
    """Writes one Node's status."""

    def __init__(
        self,
        api: ApiClient,
        name: str,
        version: str,
        capacity: Callable[[], Capacity],
        log: Callable[[str], None],
    ) -> None:
        self._api = api
        self._name = name
        self._version = version
        self._capacity = capacity
        self._log = log
        self._one = threading.Lock()

    def register(self) -> None:
        """Create the Node unless it is there."""
        try:
            self._api.get_node(self._name)
        except RequestError as error:
            if error.code != 404:
                raise
            labels = {
                "kubernetes.io/hostname": self._name,
                "kubernetes.io/os": "linux",
                "pool": "gpu",
            }
            node: Json = {"metadata": {"name": self._name, "labels": labels}, "spec": {}}
            # With the devices known by now: such keys have no owner (§15).
            node["status"] = self.build(node, self._capacity())
            self._api.create_node(node)

    def sync(self) -> bool:
        """One round: up to five tries, each builds the status anew, so that a try that fails takes
        the note of a removed resource along (§4.2, the lost patch). Whether one went through."""
        with self._one:
            for _ in range(_TRIES):
                try:
                    self._try()
                except RequestError as error:
                    self._log(f"Error updating node status, will retry: {error}")
                else:
                    return True
        return False

    def _try(self) -> None:
        old = self._api.get_node(self._name)
        new = self.build(old, self._capacity())
        changes = diff(_comparable(old), _comparable(new))
        if not changes:
            return
        heartbeat = timestamp()
        for condition in new["conditions"]:
            condition["lastHeartbeatTime"] = heartbeat
        self._api.patch_node_status(self._name, {"status": diff(old.get("status", {}), new)})

    def build(self, node: Json, reported: Capacity) -> Json:
        """The new status of a node whose last known state is `node`. Pure."""
        status: Json = copy.deepcopy(node.get("status") or {})
        capacity = status.setdefault("capacity", {})
        allocatable = status.setdefault("allocatable", {})
        capacity.update(NATIVE)
        capacity.update({name: str(count) for name, count in reported.capacity.items()})
        # Set to 0, never deleted: the key tells that a device plugin was behind it.
        capacity.update(dict.fromkeys(reported.removed, "0"))
        for name in list(allocatable):
            if name not in capacity and names.is_extended(name):
                del allocatable[name]
        allocatable.update(capacity)  # nothing is reserved here
        allocatable.update({name: str(count) for name, count in reported.allocatable.items()})
        status["conditions"] = _conditions(status.get("conditions") or [])
        status["addresses"] = [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": self._name},
        ]
        status["nodeInfo"] = self._info()
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
        return status

    def _info(self) -> Json:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {
            "architecture": "amd64" if platform.machine() == "x86_64" else platform.machine(),
            "bootID": boot_id,
            "containerRuntimeVersion": "lab://0",
            "kernelVersion": os.uname().release,
            "kubeProxyVersion": "",
            "kubeletVersion": self._version,
            "machineID": "0" * 32,
            "operatingSystem": "linux",
            "osImage": "dpctl lab",
            "systemUUID": "00000000-0000-0000-0000-000000000000",
        }


def _conditions(old: list[Json]) -> list[Json]:
    known = {condition.get("type"): condition for condition in old}
    built = []
    for kind, status, reason, message in _CONDITIONS:
        before = known.get(kind, {})
        moved = before.get("status") != status
        built.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": before.get("lastHeartbeatTime") or timestamp(),
                "lastTransitionTime": timestamp() if moved else before["lastTransitionTime"],
            }
        )
    return built


def _comparable(node: Json) -> Json:
    """Amounts as numbers: `1k` and `1000` are the same."""
    status = dict(node.get("status", node))
    for part in ("capacity", "allocatable"):
        status[part] = {name: _amount(value) for name, value in status.get(part, {}).items()}
    return status


@lru_cache(4096)
def _amount(text: str) -> str:
    return str(quantity.parse(text))
