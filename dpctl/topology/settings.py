"""The managers' settings out of a KubeletConfiguration (kubelet-facts §9.1). Pure.

A field that is absent has the kubelet's default; a value that no kubelet would start with is a
ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from dpctl import cpuset, quantity
from dpctl.topology.cpus import CpuOptions
from dpctl.topology.merge import Policy

CONTAINER, POD = "container", "pod"
SCOPES = (CONTAINER, POD)
_DEFAULT_MOST_NODES = 8
_TRUE = ("1", "t", "T", "true", "TRUE", "True")


class Settings(NamedTuple):
    """What decides an admission. The defaults are a kubelet's."""

    policy: Policy = Policy.NONE
    scope: str = CONTAINER
    prefer_closest: bool = False
    most_nodes: int = _DEFAULT_MOST_NODES
    """max-allowable-numa-nodes."""
    static_cpus: bool = False
    cpu_options: CpuOptions = CpuOptions()
    reserved_cpus: tuple[int, ...] | None = None
    """reservedSystemCPUs; None: not given."""
    reserved_cpu_count: int = 0
    """Else so many, from systemReserved and kubeReserved, rounded up."""
    static_memory: bool = False
    pod_level_managers: bool = False
    """Gate PodLevelResourceManagers."""


def settings_of(config: Mapping[str, object]) -> Settings:
    """The settings in force. Raises ValueError for a policy, scope or list that is none."""
    options = _texts(config.get("topologyManagerPolicyOptions"))
    cpu_options = _texts(config.get("cpuManagerPolicyOptions"))
    gates = config.get("featureGates")
    reserved = config.get("reservedSystemCPUs")
    return Settings(
        policy=policy_of(_text(config, "topologyManagerPolicy", Policy.NONE)),
        scope=_one_of(_text(config, "topologyManagerScope", CONTAINER), SCOPES),
        prefer_closest=_flag(options, "prefer-closest-numa-nodes"),
        most_nodes=int(options.get("max-allowable-numa-nodes") or _DEFAULT_MOST_NODES),
        static_cpus=_text(config, "cpuManagerPolicy", "none") == "static",
        cpu_options=CpuOptions(
            full_pcpus_only=_flag(cpu_options, "full-pcpus-only"),
            distribute_across_numa=_flag(cpu_options, "distribute-cpus-across-numa"),
            align_by_socket=_flag(cpu_options, "align-by-socket"),
            distribute_across_cores=_flag(cpu_options, "distribute-cpus-across-cores"),
            strict_reservation=_flag(cpu_options, "strict-cpu-reservation"),
        ),
        reserved_cpus=cpuset.parse(str(reserved)) if reserved else None,
        reserved_cpu_count=_reserved_count(config),
        static_memory=_text(config, "memoryManagerPolicy", "None") == "Static",
        pod_level_managers=isinstance(gates, Mapping)
        and gates.get("PodLevelResourceManagers") is True,
    )


def policy_of(text: str) -> Policy:
    """Raises ValueError."""
    _one_of(text, tuple(Policy))
    return Policy(text)


def _one_of(text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ValueError(f"{text[:80]!r} is not one of {', '.join(known)}")
    return text


def _text(config: Mapping[str, object], field: str, default: str) -> str:
    value = config.get(field)
    return str(value) if value else default


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(given) for name, given in value.items()}


def _flag(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "") in _TRUE


def _reserved_count(config: Mapping[str, object]) -> int:
    total = Fraction(0)
    for field in ("systemReserved", "kubeReserved"):
        text = _texts(config.get(field)).get("cpu")
        total += quantity.parse(text) if text else 0
    return -(-total.numerator // total.denominator)
