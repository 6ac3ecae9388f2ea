"""The lab kubelet's topology manager: its settings, and the hint of a pod or container, by the same
arithmetic that `dpctl topology --fit` uses. The device manager is its only provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from dpctl import names
from dpctl.lab.api_errors import Json
from dpctl.lab.kubelet.device_manager import DeviceManager
from dpctl.model import Pod, PodContainer
from dpctl.topology.devices import Pool, device_hints
from dpctl.topology.hints import Hint
from dpctl.topology.merge import Policy, merge
from dpctl.topology.requests import RefusedError, pod_devices, whole
from dpctl.topology.settings import POD, Settings

ANYWHERE = Hint(None, False)
"""Under policy none."""


class TopologyManager(NamedTuple):
    settings: Settings
    distances: Mapping[int, tuple[int, ...]]
    """Of the machine's NUMA nodes."""
    minor: int | None

    def asks(self, scope: str) -> bool:
        return self.settings.policy is not Policy.NONE and self.settings.scope == scope

    def pod_hint(self, manager: DeviceManager, pod: Json) -> Hint:
        """Under scope pod. Raises RefusedError."""
        if not self.asks(POD):
            return ANYWHERE
        asked, uid = _asked(pod), pod["metadata"]["uid"]
        requests = {r: pod_devices(asked, r) for c in asked.containers for r in c.limits}
        return self._merged(
            manager, requests, {r: manager.pod_devices.pod_devices(uid, r) for r in requests}, {}
        )

    def container_hint(
        self,
        manager: DeviceManager,
        pod: Json,
        container: Json,
        reusable: Mapping[str, Set[str]],
    ) -> Hint:
        """Under scope container. Raises RefusedError."""
        uid, name = pod["metadata"]["uid"], container["name"]
        requests = {r: whole(str(amount)) for r, amount in limits_of(container).items()}
        held = {r: manager.pod_devices.container_devices(uid, name, r) or set() for r in requests}
        return self._merged(manager, requests, held, reusable)

    def _merged(
        self,
        manager: DeviceManager,
        requests: Mapping[str, int],
        held: Mapping[str, Set[str]],
        reusable: Mapping[str, Set[str]],
    ) -> Hint:
        hints: dict[str, tuple[Hint, ...] | None] = {}
        with manager.lock:
            manager.update_allocated()
            for resource, count in requests.items():
                if names.is_native(resource) or not manager.is_known(resource):
                    continue
                pool, reused = pool_of(manager, resource), reusable.get(resource, set())
                if held[resource]:  # a restart: the hints of what it has
                    pool, reused = Pool(pool.nodes, held[resource]), frozenset()
                fits = not held[resource] or len(held[resource]) == count
                found = device_hints(pool, count, reused, list(self.distances), self.minor)
                hints[resource] = found if fits or found is None else ()
        closest = self.distances if self.settings.prefer_closest else None
        merged = merge([hints], self.settings.policy, list(self.distances), closest)
        if not merged.admitted:
            raise RefusedError.affinity()
        return merged.hint


def pool_of(manager: DeviceManager, resource: str) -> Pool:
    """The device manager's memory of a resource; its lock is held."""
    return Pool(
        {
            device_id: tuple(node.ID for node in device.topology.nodes)
            if device.HasField("topology")
            else None
            for device_id, device in manager.all_devices.get(resource, {}).items()
        },
        manager.healthy.get(resource),
        manager.allocated.get(resource, set()),
    )


def limits_of(container: Json) -> Json:
    limits: Json = (container.get("resources") or {}).get("limits") or {}
    return limits


def _asked(pod: Json) -> Pod:
    """As much of the pod as its requests hang on."""
    meta, spec = pod["metadata"], pod["spec"]
    containers = [
        _container(c, "sidecar" if c.get("restartPolicy") == "Always" else "init")
        for c in spec.get("initContainers") or []
    ]
    containers += [_container(c, "app") for c in spec["containers"]]
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        config_hash=None,
        node_name=None,
        phase="Pending",
        reason=None,
        message=None,
        deleted=False,
        containers=tuple(containers),
        pod_requests={},
        overhead={},
        owner=None,
    )


def _container(container: Json, kind: str) -> PodContainer:
    limits = {resource: str(amount) for resource, amount in limits_of(container).items()}
    return PodContainer(container["name"], kind, limits, limits, None, None, ())
