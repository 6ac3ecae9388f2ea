"""A kubelet's configuration, from the few settings that tests change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .api import JSON

# The memory manager wants its reservation to be the sum of the other two, exactly.
KUBE_RESERVED_MIB = 400
EVICTION_MIB = 100


@dataclass(frozen=True)
class KubeletSettings:
    """What tests change; the names on the right are those of KubeletConfiguration."""

    topology_policy: str = "none"  # topologyManagerPolicy
    topology_scope: str = "container"  # topologyManagerScope
    topology_options: Mapping[str, str] = field(default_factory=dict)
    cpu_policy: str = "none"  # cpuManagerPolicy
    cpu_options: Mapping[str, str] = field(default_factory=dict)
    memory_policy: str = "None"  # memoryManagerPolicy
    status_seconds: int = 1  # nodeStatusUpdateFrequency; upstream's default of 10 is slow to test
    extra: Mapping[str, object] = field(default_factory=dict)  # any other field

    @property
    def state_policies(self) -> tuple[object, ...]:
        """What the state files were written under; a kubelet refuses files of another policy."""
        return (self.cpu_policy, dict(self.cpu_options), self.memory_policy)

    def config(
        self, *, port: int, cgroup: str, containerd: Path, client_ca: Path, volumes: Path
    ) -> JSON:
        """The KubeletConfiguration object."""
        config: JSON = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": port,
            "readOnlyPort": 0,
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(client_ca)},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "containerRuntimeEndpoint": f"unix://{containerd}",
            "volumePluginDir": str(volumes),
            # The machine's packet filter is not for tests to change.
            "makeIPTablesUtilChains": False,
            # A full disk is the machine's business, and no reason to evict or to delete images.
            "evictionHard": {
                "memory.available": f"{EVICTION_MIB}Mi",
                "nodefs.available": "0%",
                "nodefs.inodesFree": "0%",
                "imagefs.available": "0%",
                "imagefs.inodesFree": "0%",
            },
            "imageGCHighThresholdPercent": 100,
            "kubeReserved": {"memory": f"{KUBE_RESERVED_MIB}Mi"},
            "nodeStatusUpdateFrequency": f"{self.status_seconds}s",
            # Would follow the former; this is its default otherwise.
            "nodeStatusReportFrequency": "5m",
            "topologyManagerPolicy": self.topology_policy,
            "topologyManagerScope": self.topology_scope,
            "cpuManagerPolicy": self.cpu_policy,
            "memoryManagerPolicy": self.memory_policy,
        }
        if self.topology_options:
            config["topologyManagerPolicyOptions"] = dict(self.topology_options)
        if self.cpu_options:
            config["cpuManagerPolicyOptions"] = dict(self.cpu_options)
        if self.cpu_policy == "static":
            config["reservedSystemCPUs"] = "0"
        if self.memory_policy == "Static":
            reserved = f"{KUBE_RESERVED_MIB + EVICTION_MIB}Mi"
            config["reservedMemory"] = [{"numaNode": 0, "limits": {"memory": reserved}}]
        config.update(self.extra)
        return config
