"""A KubeletConfiguration's fields as settings."""

from __future__ import annotations

import pytest

from dpctl.topology.merge import Policy
from dpctl.topology.settings import Settings, settings_of


def test_defaults():
    assert settings_of({}) == Settings()


def test_everything():
    found = settings_of(
        {
            "topologyManagerPolicy": "restricted",
            "topologyManagerScope": "pod",
            "topologyManagerPolicyOptions": {
                "prefer-closest-numa-nodes": "true",
                "max-allowable-numa-nodes": "12",
            },
            "cpuManagerPolicy": "static",
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true", "align-by-socket": "false"},
            "reservedSystemCPUs": "0,4-5",
            "kubeReserved": {"cpu": "500m", "memory": "1Gi"},
            "systemReserved": {"cpu": "1"},
            "memoryManagerPolicy": "Static",
            "featureGates": {"PodLevelResourceManagers": True},
        }
    )
    assert (found.policy, found.scope, found.prefer_closest) == (Policy.RESTRICTED, "pod", True)
    assert found.most_nodes == 12
    assert found.static_cpus
    assert found.cpu_options.full_pcpus_only
    assert not found.cpu_options.align_by_socket
    assert found.reserved_cpus == (0, 4, 5)
    assert found.reserved_cpu_count == 2  # rounded up
    assert found.static_memory
    assert found.pod_level_managers


@pytest.mark.parametrize(
    "config",
    [
        {"topologyManagerPolicy": "strict"},
        {"topologyManagerScope": "node"},
        {"reservedSystemCPUs": "0-"},
        {"kubeReserved": {"cpu": "lots"}},
        {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "many"}},
    ],
)
def test_nonsense(config):
    with pytest.raises(ValueError):
        settings_of(config)
