"""What a pod asks for as the kubelet's managers count it, and how a refusal reads. Pure.

The scheduler counts otherwise (`inventory.requests`): here devices come from limits, and CPUs and
memory are exclusive for Guaranteed pods only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from dpctl import quantity
from dpctl.model import Pod, PodContainer

MEMORY = "memory"
CPU = "cpu"
_COMPUTE = (CPU, MEMORY)


class RefusedError(Exception):
    """The pod is refused: `reason` and `message` as the pod's status has them."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    @classmethod
    def allocating(cls, error: str) -> RefusedError:
        """A provider's error while it allocates, which the kubelet did not expect."""
        return cls(
            "UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected"
        )

    @classmethod
    def affinity(cls) -> RefusedError:
        return cls("TopologyAffinityError", "Resources cannot be allocated with Topology locality")


def is_hugepages(resource: str) -> bool:
    return resource.startswith("hugepages-")


def is_pinned_memory(resource: str) -> bool:
    """Whether the memory manager has a say in it."""
    return resource == MEMORY or is_hugepages(resource)


def amount_text(resource: str, amount: int) -> str:
    """`2`, or `16Gi` where it is bytes."""
    return quantity.size_text(amount) if is_pinned_memory(resource) else str(amount)


def whole(text: str | None) -> int:
    """A quantity rounded up, 0 for none."""
    return quantity.count(text) or 0


def is_guaranteed(pod: Pod) -> bool:
    """Quality of service: every container has CPU and memory limits, and requests equal to them."""
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    for container in pod.containers:
        for name in _COMPUTE:
            asked, most = (_amount(side, name) for side in (container.requests, container.limits))
            if not most:
                return False
            requests[name] = requests.get(name, Fraction(0)) + asked
            limits[name] = limits.get(name, Fraction(0)) + most
    return bool(pod.containers) and requests == limits


def has_pod_level(pod: Pod) -> bool:
    """Whether the pod itself has requests: then CPUs and memory are pinned for none of its
    containers (unless PodLevelResourceManagers is on)."""
    return bool(pod.pod_requests)


def exclusive_cpus(pod: Pod, container: PodContainer) -> int:
    """CPUs that the static CPU manager would give the container alone; 0: the shared pool."""
    if has_pod_level(pod) or not is_guaranteed(pod):
        return 0
    asked = _amount(container.requests, CPU)
    return int(asked) if asked.denominator == 1 else 0


def pinned_memory(pod: Pod, container: PodContainer) -> dict[str, int]:
    """Bytes by type that the static memory manager would pin; empty: none."""
    if has_pod_level(pod) or not is_guaranteed(pod):
        return {}
    return {r: whole(text) for r, text in container.requests.items() if is_pinned_memory(r)}


def pod_cpus(pod: Pod) -> int:
    return _effective(pod, lambda container: exclusive_cpus(pod, container))


def pod_memory(pod: Pod) -> dict[str, int]:
    """Of types that an app container asks for (the kubelet forgets those that only init
    containers do)."""
    types = {r for c in pod.containers if c.kind == "app" for r in pinned_memory(pod, c)}
    return {r: _effective(pod, lambda c, r=r: pinned_memory(pod, c).get(r, 0)) for r in types}  # type: ignore[misc]


def pod_devices(pod: Pod, resource: str) -> int:
    return _effective(pod, lambda container: whole(container.limits.get(resource)))


def _effective(pod: Pod, amount: Callable[[PodContainer], int]) -> int:
    """App containers and sidecars together, or an init container beside the sidecars started
    before it, whichever is more."""
    running = sidecars = starting = 0
    for container in pod.containers:
        asked = amount(container)
        if container.kind == "sidecar":
            sidecars += asked
            running += asked
        elif container.kind == "init":
            starting = max(starting, sidecars + asked)
        else:
            running += asked
    return max(running, starting)


def _amount(quantities: Mapping[str, str], resource: str) -> Fraction:
    text = quantities.get(resource)
    return Fraction(0) if text is None else quantity.parse(text)
