"""How much of a resource a pod asks for, by the scheduler's arithmetic; pure.

What pods hold is not known here: `requested` and `allocated` are different numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpctl import quantity
from dpctl.model import Pod
from dpctl.names import is_native

# What `spec.resources` of a pod may hold; anything else there is ignored by the scheduler.
_POD_LEVEL = ("cpu", "memory")
_POD_LEVEL_PREFIX = "hugepages-"


def effective_request(pod: Pod, resource: str) -> int:
    """The scheduler's effective request, in whole units of `resource` (bytes, CPUs, devices).

    App containers and sidecars run together; an init container runs beside the sidecars started
    before it, and the larger of the two counts (Kubernetes 1.29 and later). A pod-level request
    replaces the sum for cpu, memory and hugepages; overhead comes on top. Extended resources are
    rounded up per container, as the kubelet takes them (kubelet-facts §6.2); native ones once, at
    the end.

    Raises ValueError for text that is no quantity (`node_json` lets none through).
    """
    running = Fraction(0)
    sidecars = Fraction(0)
    starting = Fraction(0)
    for container in pod.containers:
        amount = _amount(container.requests, resource)
        if container.kind == "sidecar":
            sidecars += amount
            running += amount
            starting = max(starting, sidecars)
        elif container.kind == "init":
            starting = max(starting, sidecars + amount)
        else:
            running += amount
    total = max(running, starting)
    if resource in pod.pod_requests and _is_pod_level(resource):
        total = _amount(pod.pod_requests, resource)
    return _round_up(total + _amount(pod.overhead, resource))


def requested_names(pod: Pod) -> set[str]:
    """Extended and malformed names that a pod asks for."""
    found = {name for container in pod.containers for name in container.requests}
    return {name for name in found | set(pod.pod_requests) if not is_native(name)}


def _is_pod_level(resource: str) -> bool:
    return resource in _POD_LEVEL or resource.startswith(_POD_LEVEL_PREFIX)


def _amount(quantities: Mapping[str, str], resource: str) -> Fraction:
    text = quantities.get(resource)
    if text is None:
        return Fraction(0)
    value = quantity.parse(text)
    return value if is_native(resource) else Fraction(_round_up(value))


def _round_up(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
