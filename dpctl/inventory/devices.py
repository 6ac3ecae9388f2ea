"""Snapshot → one row per device; and the counts of a resource, which are counts of its devices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpctl.inventory.connections import Connections
from dpctl.inventory.holders import Key, holders, is_active
from dpctl.inventory.pods import Pods
from dpctl.inventory.registered import has_none_left, untold
from dpctl.inventory.rows import DeviceRow, DeviceState, GroupRow, Holder
from dpctl.model import HealthWord, Snapshot, Source
from dpctl.quantity import count
from dpctl.text import natural_key


class Devices:
    """The joins over one snapshot that resources, devices and containers share; made once."""

    def __init__(self, snap: Snapshot) -> None:
        self.snap = snap
        self.pods = Pods(snap)
        self.connections = Connections(snap)
        self.holders: dict[Key, tuple[Holder, ...]] = holders(snap, self.pods)
        self._connected: dict[str, bool | None] = {}
        self._registered: dict[str, frozenset[str] | None] = {}
        self._lost_ids: dict[str, frozenset[str]] = {}
        self.offered: dict[str, set[str]] = self.connections.offered
        """IDs that GetAllocatableResources offers, by resource."""
        self.held = {r for (r, _), found in self.holders.items() if any(map(is_active, found))}
        """Resources that an active pod holds something of."""
        self._ids: dict[str, dict[str, set[Source]]] = {}
        self._numa: dict[Key, tuple[int, ...] | None] = {}
        self._below_zero: set[Key] = set()
        self._words: dict[Key, HealthWord] = {}
        self._listed: dict[Key, bool] = {}
        self._collect()

    def _collect(self) -> None:
        snap = self.snap
        for resource, ids in (snap.checkpoint.registered if snap.checkpoint else {}).items():
            for device_id in ids:
                self._know(resource, device_id, Source.CHECKPOINT)
        for (resource, device_id), found in self.holders.items():
            for holder in found:
                for source in holder.sources:
                    self._know(resource, device_id, Source(source))
        # Later sources overwrite: what the plugin says now wins over what stood at allocation time.
        for entry in snap.checkpoint.allocations if snap.checkpoint else ():
            for device_id, nodes in entry.device_nodes().items():
                self._numa[entry.resource, device_id] = nodes
        for pod in snap.pod_resources.pods if snap.pod_resources else ():
            for container in pod.containers:
                for device in container.devices:
                    key = (device.resource, device.device_id)
                    if device.numa_nodes is not None or key not in self._numa:
                        self._numa[key] = device.numa_nodes
        if snap.pod_resources is not None and snap.pod_resources.version != "v1":
            self._forget_untold_topology()
        for device in snap.allocatable.devices if snap.allocatable else ():
            self._know(device.resource, device.device_id, Source.ALLOCATABLE)
            self._numa[device.resource, device.device_id] = device.numa_nodes
            if device.below_zero:
                self._below_zero.add((device.resource, device.device_id))
        self._collect_recorded()
        for bound in snap.pods or ():
            if not bound.terminal:
                for status in bound.containers:
                    for word in status.health:
                        self._words[word.resource, word.device_id] = word

    def _collect_recorded(self) -> None:
        """A bundle may hold what a plugin listed: then unhealthy devices have names."""
        endpoints = {c.endpoint: key for key, c in self.connections.candidates.items()}
        for plugin in self.snap.plugins or ():
            service = self.connections.services.get(endpoints.get(plugin.endpoint, ""))
            if service is None:
                continue
            for listed in plugin.recorded_devices or ():
                key = (service.resource, listed.device_id)
                self._know(*key, Source.PLUGINS)
                self._numa[key] = listed.numa_nodes
                self._listed[key] = listed.health == "Healthy"  # the last of duplicates wins

    def _forget_untold_topology(self) -> None:
        """v1alpha1 tells no topology: without another source it is unknown, not absent."""
        told = {
            (entry.resource, device_id)
            for entry in (self.snap.checkpoint.allocations if self.snap.checkpoint else ())
            for device_id in entry.device_nodes()
        }
        for key in [k for k, nodes in self._numa.items() if nodes is None and k not in told]:
            del self._numa[key]

    def _know(self, resource: str, device_id: str, source: Source) -> None:
        self._ids.setdefault(resource, {}).setdefault(device_id, set()).add(source)

    # -- counts ------------------------------------------------------------------------------------

    def connected(self, resource: str) -> bool | None:
        if resource not in self._connected:
            self._connected[resource] = self.connections.connected(resource).value
        return self._connected[resource]

    def healthy(self, resource: str) -> frozenset[str] | None:
        """IDs that the kubelet has registered while connected; else none. None: not known."""
        connected = self.connected(resource)
        if connected is None:
            return None
        return self.registered(resource) if connected else frozenset()

    def registered(self, resource: str) -> frozenset[str] | None:
        """The same whether connected or not: of a plugin that is gone, those that it had."""
        if resource not in self._registered:
            ids = None
            if untold(self.snap) is None:
                none = self.connected(resource) and has_none_left(self.snap, resource, self.offered)
                known = self.connections.registered
                ids = frozenset() if none else known.get(resource, frozenset())
            self._registered[resource] = ids
        return self._registered[resource]

    def lost(self, resource: str) -> frozenset[str]:
        """IDs held by active pods, or in a checkpoint that is behind, and not among the healthy."""
        if resource not in self._lost_ids:
            held = self.allocated(resource) or frozenset()
            written = self.snap.checkpoint.registered if self.snap.checkpoint else {}
            known = held.union(written.get(resource, ()))
            self._lost_ids[resource] = known - (self.healthy(resource) or frozenset())
        return self._lost_ids[resource]

    def allocated(self, resource: str) -> frozenset[str] | None:
        """IDs held by active pods; None: neither PodResources nor the checkpoint was read."""
        if self.snap.pod_resources is None and self.snap.checkpoint is None:
            return None
        return frozenset(
            device_id
            for device_id in self._ids.get(resource, ())
            if any(is_active(h) for h in self.holders.get((resource, device_id), ()))
        )

    def free(self, resource: str) -> int | None:
        """Healthy and not allocated, by ID; 0 when not connected."""
        healthy, allocated = self.healthy(resource), self.allocated(resource)
        return None if healthy is None or allocated is None else len(healthy - allocated)

    def capacity(self, resource: str) -> int | None:
        node = self.snap.node
        return count(node.capacity.get(resource)) if node else None

    def numa_counts(self, resource: str) -> dict[str, int] | None:
        """NUMA node (as text: a JSON key) to devices; empty: none has topology; None: unknown.
        Without the kubelet's list only devices that pods hold are known: a count of them would be
        taken for all.

        While connected, of those devices only that the total counts: not what a pod still holds
        and the plugin no longer lists.
        """
        if self.connected(resource) and self.healthy(resource) is None:
            return None
        counts: dict[int, int] = {}
        known = False
        for device_id in self._ids.get(resource, ()):
            if self.connected(resource) and not self._counts(resource, device_id):
                continue
            if (resource, device_id) in self._numa:
                known = True
                for numa_node in self._numa[resource, device_id] or ():
                    counts[numa_node] = counts.get(numa_node, 0) + 1
            elif self.snap.allocatable is None:
                return None
        if not known and self._ids.get(resource):
            return None
        return {str(numa_node): counts[numa_node] for numa_node in sorted(counts)}

    def _counts(self, resource: str, device_id: str) -> bool:
        healthy = self.healthy(resource)
        if healthy is None or device_id in healthy:
            return healthy is not None
        named = device_id in self.lost(resource) or (resource, device_id) in self._listed
        return named and self._lost(resource, device_id, healthy) is DeviceState.UNHEALTHY

    def ids(self, resource: str) -> list[str]:
        """Every ID that some source knows, in natural order."""
        return sorted(self._ids.get(resource, ()), key=natural_key)

    def numa_nodes(self, resource: str, device_id: str) -> tuple[int, ...] | None:
        return self._numa.get((resource, device_id))

    def is_numa_known(self, resource: str, device_id: str) -> bool:
        """Whether some source told of the device's NUMA nodes, if only that it has none."""
        return (resource, device_id) in self._numa

    def is_below_zero(self, resource: str, device_id: str) -> bool:
        """Whether the plugin gives a NUMA node below 0 (`model.Device.below_zero`)."""
        return (resource, device_id) in self._below_zero

    def unseen(self, resource: str) -> int:
        """Unhealthy devices that nobody holds: the Node counts them, no harmless source has IDs."""
        capacity = self.capacity(resource)
        if capacity is None or not self.connected(resource) or self.healthy(resource) is None:
            return 0
        named = sum(self._counts(resource, device_id) for device_id in self._ids.get(resource, ()))
        return max(capacity - named, 0)

    # -- rows --------------------------------------------------------------------------------------

    def rows(self) -> tuple[DeviceRow, ...]:
        found: list[DeviceRow] = []
        resources = set(self._ids)
        if self.snap.node is not None:
            resources.update(r for r in self.snap.node.capacity if self.connected_known(r))
        for resource in sorted(resources, key=natural_key):
            found.extend(self._row(resource, device_id) for device_id in self.ids(resource))
            found.extend(self._unseen_row(resource))
        return tuple(found)

    def connected_known(self, resource: str) -> bool:
        return resource in self.connections.tracked and self.connected(resource) is True

    def _row(self, resource: str, device_id: str) -> DeviceRow:
        key = (resource, device_id)
        found = self.holders.get(key, ())
        word = self._words.get(key)
        state = self._state(resource, device_id, found)
        return DeviceRow(
            device=device_id,
            count=1,
            resource=resource,
            health=self._health(resource, device_id, state),
            health_message=word.message if word else None,
            numa_nodes=self._numa.get(key),
            numa_known=key in self._numa,
            state=state,
            holders=found,
            base=base_device(device_id),
            address=pci_address(device_id),
            sources=tuple(sorted(self._ids[resource][device_id])),
        )

    def _state(self, resource: str, device_id: str, found: Sequence[Holder]) -> DeviceState:
        active = [h for h in found if is_active(h)]
        if found and not active:
            return DeviceState.ORPHANED
        healthy = self.healthy(resource)
        if healthy is None or not self.connected(resource):
            return DeviceState.UNKNOWN
        if device_id not in healthy:
            return self._lost(resource, device_id, healthy)
        if any(h.kind != "init" for h in active):
            return DeviceState.ALLOCATED
        return DeviceState.REUSABLE if active else DeviceState.FREE

    def _lost(self, resource: str, device_id: str, healthy: frozenset[str]) -> DeviceState:
        """Not among the healthy: unhealthy, or no longer in the plugin's list at all."""
        word = self._words.get((resource, device_id))
        if self._listed.get((resource, device_id)) is False:
            return DeviceState.UNHEALTHY
        capacity = self.capacity(resource)
        if word is not None and word.health == "Unhealthy":
            return DeviceState.UNHEALTHY
        if capacity is not None:
            if capacity == len(healthy):
                return DeviceState.MISSING
            if capacity >= len(healthy) + len(self.lost(resource)):
                return DeviceState.UNHEALTHY  # the count has room for every one of them
        return DeviceState.UNKNOWN

    def _health(self, resource: str, device_id: str, state: DeviceState) -> str | None:
        if not self.connected(resource):
            return None
        if device_id in (self.healthy(resource) or ()):
            return "Healthy"
        return "Unhealthy" if state is DeviceState.UNHEALTHY else None

    def _unseen_row(self, resource: str) -> list[DeviceRow]:
        unseen = self.unseen(resource)
        if not unseen:
            return []
        return [
            DeviceRow(
                device=None,
                count=unseen,
                resource=resource,
                health="Unhealthy",
                health_message=None,
                numa_nodes=None,
                numa_known=False,
                state=DeviceState.UNHEALTHY,
                holders=(),
                base=None,
                address=None,
                sources=(str(Source.NODE),),
            )
        ]


_PCI = re.compile(r"(?:^|[^0-9a-fA-F])([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7])$")
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_REPLICA = re.compile(rf"(.+)::\d+|(.+)-_-\d+|((?:GPU-|MIG-)?{_UUID})-\d+", re.DOTALL)


def base_device(device_id: str) -> str | None:
    """The physical card of a replica: `GPU-<uuid>::3`, `<id>-_-7` and `GPU-<uuid>-2` name it.
    None: the ID names no other device."""
    match = _REPLICA.fullmatch(device_id) if len(device_id) <= 512 else None
    return next((g for g in match.groups() if g), None) if match else None


def pci_address(device_id: str) -> str | None:
    """The PCI address that the ID is or ends in; None otherwise."""
    match = _PCI.search(device_id[-32:])
    return match.group(1).lower() if match else None


def group_rows(rows: Sequence[DeviceRow], by: str) -> tuple[GroupRow, ...]:
    """Rows taken together by `physical` card, `numa` node or `pod`, per resource."""
    groups: dict[tuple[str, str], list[DeviceRow]] = {}
    for row in rows:
        for name in _group_names(row, by):
            groups.setdefault((name, row.resource), []).append(row)
    return tuple(
        GroupRow(
            group=name,
            resource=resource,
            devices=sum(r.count for r in members),
            healthy=sum(r.count for r in members if r.health == "Healthy"),
            allocated=sum(any(is_active(h) for h in r.holders) for r in members),
            free=sum(r.count for r in members if is_free(r)),
            device_ids=tuple(r.device for r in members if r.device is not None),
        )
        for (name, resource), members in sorted(
            groups.items(), key=lambda item: (natural_key(item[0][0]), natural_key(item[0][1]))
        )
    )


def is_free(row: DeviceRow) -> bool:
    """A pod could get it: healthy, and held by no active container. That is an orphaned one, too:
    the kubelet frees it when it next allocates (kubelet-facts §6.2)."""
    return row.health == "Healthy" and not any(is_active(h) for h in row.holders)


def _group_names(row: DeviceRow, by: str) -> list[str]:
    if by == "physical":
        return ["?" if row.device is None else row.base or row.device]
    if by == "numa":
        if not row.numa_known:
            return ["?"]
        return [str(n) for n in row.numa_nodes] if row.numa_nodes else ["-"]
    pods = dict.fromkeys(f"{h.namespace}/{h.pod}" if h.pod else f"uid:{h.uid}" for h in row.holders)
    return list(pods) or ["-"]
