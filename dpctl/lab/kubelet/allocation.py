"""Taking devices for a pod at its admission (kubelet-facts §6.2, step by step)."""

from __future__ import annotations

import random
from collections.abc import Collection, Set
from dataclasses import dataclass, field
from functools import partial

from dpctl import names, quantity
from dpctl.lab.api_errors import Json
from dpctl.lab.kubelet.device_manager import DeviceManager, Endpoint
from dpctl.lab.kubelet.plugin_client import CallError
from dpctl.lab.kubelet.pod_devices import NO_TOPOLOGY, Held
from dpctl.lab.kubelet.topology import ANYWHERE, TopologyManager, limits_of, pool_of
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.topology.devices import take
from dpctl.topology.hints import Hint
from dpctl.topology.requests import RefusedError
from dpctl.topology.settings import CONTAINER


@dataclass(slots=True)
class Allocator:
    manager: DeviceManager
    topology: TopologyManager
    choice: random.Random
    """Go's map order: which of equal devices are taken."""
    _reusable: dict[str, set[str]] = field(default_factory=dict)
    _hint: Hint = ANYWHERE
    """Of the container (or pod) that is being admitted."""

    def allocate_pod(self, pod: Json, running: Collection[str]) -> None:
        """All containers, init containers first. `running`: names of containers that run already.

        Raises RefusedError.
        """
        self._reusable = {}
        self.manager.pending_admission = pod["metadata"]["uid"]
        self._hint = self.topology.pod_hint(self.manager, pod)
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
        if self.topology.asks(CONTAINER):
            self._hint = self.topology.container_hint(manager, pod, container, self._reusable)
        wrote = False
        for resource, limit in limits_of(container).items():
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
        """The devices to ask the plugin for; empty: nothing to do. Raises RefusedError."""
        manager = self.manager
        with manager.lock:
            held = manager.pod_devices.container_devices(uid, container, resource)
            if held is not None and len(held) != required:
                raise RefusedError.allocating(
                    f'pod "{uid}" container "{container}" changed request for resource '
                    f'"{resource}" from {len(held)} to {required}'
                )
            if not manager.sources_ready and container in running:
                return set()
            healthy = manager.healthy.get(resource)
            if held is not None and healthy:
                if not held <= healthy:
                    raise RefusedError.allocating(
                        "previously allocated devices are no longer healthy; "
                        "cannot allocate unhealthy devices " + resource
                    )
                return set()
            taken = take(
                resource,
                pool_of(manager, resource),
                required,
                self._reusable.get(resource, set()),
                self._hint.mask,
                order=self._shuffled,
                preferred=partial(self._preferred, resource),
            )
            manager.allocated.setdefault(resource, set()).update(taken)
            return taken

    def _preferred(self, resource: str, available: Set[str], must: Set[str], size: int) -> Set[str]:
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
            raise RefusedError.allocating(
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
                raise RefusedError.allocating(f"unknown Device Plugin {resource}")
            self._running(endpoint)
            answer = endpoint.client.allocate(self._shuffled(taken))
        except (CallError, RefusedError) as error:
            with manager.lock:
                manager.allocated = manager.pod_devices.devices()
            if isinstance(error, RefusedError):
                raise
            raise RefusedError.allocating(str(error)) from None
        if not answer.container_responses:
            raise RefusedError.allocating(
                "no containers return in allocation response &AllocateResponse{}"
            )
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
            raise RefusedError.allocating(f"endpoint {endpoint.client.socket} has been stopped")

    def _shuffled(self, ids: Collection[str]) -> list[str]:
        ordered = sorted(ids)
        self.choice.shuffle(ordered)
        return ordered
