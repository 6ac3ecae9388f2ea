"""Taking devices for a pod at its admission (kubelet-facts §6.2, step by step)."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field

from dpctl import names, quantity
from dpctl.lab.api_errors import Json
from dpctl.lab.kubelet.device_manager import DeviceManager, Endpoint
from dpctl.lab.kubelet.plugin_client import CallError
from dpctl.lab.kubelet.pod_devices import NO_TOPOLOGY, Held
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb


class AllocationError(Exception):
    """Why admission fails, in the kubelet's words."""


@dataclass(slots=True)
class Allocator:
    manager: DeviceManager
    choice: random.Random
    """Go's map order: which of equal devices are taken."""
    _reusable: dict[str, set[str]] = field(default_factory=dict)

    def allocate_pod(self, pod: Json, running: Collection[str]) -> None:
        """All containers, init containers first. `running`: names of containers that run already.

        Raises AllocationError.
        """
        self._reusable = {}
        self.manager.pending_admission = pod["metadata"]["uid"]
        for container in pod["spec"].get("initContainers") or []:
            self._container(pod, container, running)
            taken = self.manager.pod_devices.container(pod["metadata"]["uid"], container["name"])
            for resource, held in taken.items():
                if container.get("restartPolicy") == "Always":
                    self._reusable.get(resource, set()).difference_update(held.ids())
                else:
                    self._reusable.setdefault(resource, set()).update(held.ids())
        for container in pod["spec"]["containers"]:
            self._container(pod, container, running)
            taken = self.manager.pod_devices.container(pod["metadata"]["uid"], container["name"])
            for resource, held in taken.items():
                self._reusable.get(resource, set()).difference_update(held.ids())

    def _container(self, pod: Json, container: Json, running: Collection[str]) -> None:
        manager, uid = self.manager, pod["metadata"]["uid"]
        limits = (container.get("resources") or {}).get("limits") or {}
        wrote = False
        for resource, limit in limits.items():
            needed = quantity.count(str(limit)) or 0
            if names.is_native(resource) or not manager.is_known(resource):
                continue  # silently: the container starts without devices
            manager.update_allocated()
            taken = self._choose(uid, container["name"], resource, needed, running)
            if not taken:
                continue
            self._call(uid, container["name"], resource, taken)
            wrote = True
        if wrote:
            manager.write_checkpoint()

    def _choose(
        self, uid: str, container: str, resource: str, required: int, running: Collection[str]
    ) -> set[str]:
        """The devices to ask the plugin for; empty: nothing to do. Raises AllocationError."""
        manager = self.manager
        with manager.lock:
            held = manager.pod_devices.container_devices(uid, container, resource)
            needed = required
            if held is not None:
                needed = required - len(held)
                if needed:
                    raise AllocationError(
                        f'pod "{uid}" container "{container}" changed request for resource '
                        f'"{resource}" from {len(held)} to {required}'
                    )
            if not manager.sources_ready and container in running:
                return set()
            healthy = manager.healthy.get(resource)
            if healthy is None:
                raise AllocationError(f"cannot allocate unregistered device {resource}")
            if not healthy:
                raise AllocationError(
                    "no healthy devices present; cannot allocate unhealthy devices " + resource
                )
            if held is not None and not held <= healthy:
                raise AllocationError(
                    "previously allocated devices are no longer healthy; "
                    "cannot allocate unhealthy devices " + resource
                )
            if needed <= 0:
                return set()
            return self._take(resource, required, healthy)

    def _take(self, resource: str, required: int, healthy: set[str]) -> set[str]:
        in_use = self.manager.allocated.setdefault(resource, set())
        taken: set[str] = set()

        def take(candidates: Collection[str]) -> bool:
            for device_id in self._shuffled(set(candidates) - taken):
                if len(taken) == required:
                    break
                taken.add(device_id)
                in_use.add(device_id)
            return len(taken) == required

        if take(self._reusable.get(resource, set())):
            return taken
        available = healthy - in_use
        missing = required - len(taken)
        if len(available) < missing:
            raise AllocationError(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {missing}, Available: {len(available)}"
            )
        wanted = self._preferred(resource, available | taken, set(taken), required)
        if take(wanted & available) or take(available):
            return taken
        raise AllocationError(
            "unexpectedly allocated less resources than required. "
            f"Requested: {required}, Got: {len(taken)}"
        )

    def _preferred(self, resource: str, available: set[str], must: set[str], size: int) -> set[str]:
        endpoint = self.manager.endpoints.get(resource)
        if endpoint is None or endpoint.client is None:
            return set()
        if not endpoint.client.options.get_preferred_allocation_available:
            return set()
        self._running(endpoint)
        # Without the lock, as the kubelet does: a plugin that hangs here must not stop the others.
        self.manager.lock.release()
        try:
            return set(endpoint.client.preferred(self._shuffled(available), list(must), size))
        except CallError as error:
            raise AllocationError(
                f"device plugin GetPreferredAllocation rpc failed with err: {error}"
            ) from None
        finally:
            self.manager.lock.acquire()

    def _call(self, uid: str, container: str, resource: str, taken: set[str]) -> None:
        manager = self.manager
        with manager.lock:
            endpoint = manager.endpoints.get(resource)
        try:
            if endpoint is None or endpoint.client is None:
                raise AllocationError(f"unknown Device Plugin {resource}")
            self._running(endpoint)
            answer = endpoint.client.allocate(self._shuffled(taken))
        except (CallError, AllocationError) as error:
            with manager.lock:
                manager.allocated = manager.pod_devices.devices()
            raise AllocationError(str(error)) from None
        if not answer.container_responses:
            raise AllocationError("no containers return in allocation response &AllocateResponse{}")
        with manager.lock:
            by_numa: dict[int, list[str]] = {}
            for device_id in self._shuffled(taken):
                device = manager.all_devices.get(resource, {}).get(device_id, pb.Device())
                for node in [n.ID for n in device.topology.nodes] or [NO_TOPOLOGY]:
                    by_numa.setdefault(node, []).append(device_id)
            response = answer.container_responses[0].SerializeToString(deterministic=True)
            manager.pod_devices.insert(uid, container, resource, Held(by_numa, response))

    def _running(self, endpoint: Endpoint) -> None:
        if endpoint.stopped_at is not None and endpoint.client is not None:
            raise AllocationError(f"endpoint {endpoint.client.socket} has been stopped")

    def _shuffled(self, ids: Collection[str]) -> list[str]:
        ordered = sorted(ids)
        self.choice.shuffle(ordered)
        return ordered
