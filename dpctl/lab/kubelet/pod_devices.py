"""Which container holds which devices: the device manager's own record. Pure.

Source: kubelet-facts §5.1, §6.2, §7; the forms follow the kubelet's `podDevices`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dpctl.model import Allocation

NO_TOPOLOGY = -1


@dataclass(slots=True)
class Held:
    """One container's devices of one resource."""

    by_numa: dict[int, list[str]]
    alloc_resp: bytes

    def ids(self) -> set[str]:
        return {device_id for ids in self.by_numa.values() for device_id in ids}

    def nodes_of(self, device_id: str) -> tuple[int, ...]:
        """NUMA nodes; empty: no topology."""
        return tuple(n for n, ids in self.by_numa.items() if n != NO_TOPOLOGY and device_id in ids)


class PodDevices:
    def __init__(self) -> None:
        self._held: dict[str, dict[str, dict[str, Held]]] = {}

    def insert(self, pod_uid: str, container: str, resource: str, held: Held) -> None:
        self._held.setdefault(pod_uid, {}).setdefault(container, {})[resource] = held

    def container_devices(self, pod_uid: str, container: str, resource: str) -> set[str] | None:
        """IDs; None: nothing is on record."""
        held = self._held.get(pod_uid, {}).get(container, {}).get(resource)
        return None if held is None else held.ids()

    def pod_devices(self, pod_uid: str, resource: str) -> set[str]:
        """IDs that all containers of a pod have together."""
        return {
            device_id
            for container in self._held.get(pod_uid, {})
            for device_id in self.container_devices(pod_uid, container, resource) or ()
        }

    def container(self, pod_uid: str, container: str) -> dict[str, Held]:
        return dict(self._held.get(pod_uid, {}).get(container, {}))

    def pods(self) -> set[str]:
        return set(self._held)

    def delete(self, pod_uids: Collection[str]) -> None:
        for pod_uid in pod_uids:
            self._held.pop(pod_uid, None)

    def devices(self) -> dict[str, set[str]]:
        """Resource to all IDs held."""
        found: dict[str, set[str]] = {}
        for _, _, resource, held in self._walk():
            found.setdefault(resource, set()).update(held.ids())
        return found

    def holders(self, resource: str, ids: Collection[str]) -> set[str]:
        """Pods that hold one of the devices."""
        return {
            pod_uid
            for pod_uid, _, name, held in self._walk()
            if name == resource and not held.ids().isdisjoint(ids)
        }

    def allocations(self) -> list[Allocation]:
        """For the checkpoint."""
        return [
            Allocation(
                pod_uid,
                container,
                resource,
                {node: tuple(ids) for node, ids in held.by_numa.items()},
                held.alloc_resp,
            )
            for pod_uid, container, resource, held in self._walk()
        ]

    def restore(self, allocations: Sequence[Allocation]) -> None:
        for one in allocations:
            held = Held({n: list(ids) for n, ids in one.devices.items()}, one.alloc_resp or b"")
            self.insert(one.pod_uid, one.container, one.resource, held)

    def _walk(self) -> Iterator[tuple[str, str, str, Held]]:
        for pod_uid, containers in self._held.items():
            for container, resources in containers.items():
                for resource, held in resources.items():
                    yield pod_uid, container, resource, held
