"""The device manager's memory: which resources and devices there are, and since when one is gone.

Capacity for the node status and the checkpoint are made here; taking devices for a container is
`allocation`. Source: kubelet-facts §3.3, §3.4, §4.1, §5.1.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpctl.errors import BadDataError
from dpctl.lab.clock import Clock
from dpctl.lab.kubelet.plugin_client import PluginClient, RegistrationError
from dpctl.lab.kubelet.pod_devices import PodDevices
from dpctl.lab.kubelet.registration import CHECKPOINT
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.statefiles.device_checkpoint import encode_checkpoint, parse_checkpoint

GRACE = 300.0
"""Seconds a stopped endpoint is kept."""
HEALTHY = "Healthy"


@dataclass(slots=True)
class Endpoint:
    """A plugin, present or gone. `client` None: known from the checkpoint alone."""

    client: PluginClient | None
    stopped_at: float | None = None
    serving: dict[str, PluginClient] = field(default_factory=dict)
    """1.37: socket to client, of all plugins of the resource; the newest is `client`."""

    def expired(self, now: float) -> bool:
        return self.stopped_at is not None and now - self.stopped_at > GRACE


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the device manager reports for a node status."""

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    removed: frozenset[str]
    """Told once; a status that is lost on the way takes this along (§4.2)."""


@dataclass(slots=True)
class DeviceManager:
    directory: Path
    clock: Clock
    log: Callable[[str], None]
    active_pods: Callable[[], Collection[str]]
    """UIDs of pods that are not known to be over."""
    health_changed: Callable[[set[str]], None]
    """Told the UIDs of pods whose devices' health changed."""
    plugins_by_socket: bool
    lock: threading.RLock = field(default_factory=threading.RLock)
    healthy: dict[str, set[str]] = field(default_factory=dict)
    unhealthy: dict[str, set[str]] = field(default_factory=dict)
    all_devices: dict[str, dict[str, pb.Device]] = field(default_factory=dict)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    pod_devices: PodDevices = field(default_factory=PodDevices)
    allocated: dict[str, set[str]] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    """ListAndWatch messages received per resource, by this process."""
    sources_ready: bool = False
    """Off while a kubelet starts and does not know all pods: containers that run keep what they
    have (§6.2 step 4), and nobody's devices are released."""
    pending_admission: str | None = None
    """The pod being admitted now: not to be cleaned up."""

    # --- plugins

    def plugin_connected(self, resource: str, client: PluginClient) -> None:
        """It replaces the one before. Raises RegistrationError (1.37: on a socket twice)."""
        with self.lock:
            before = self.endpoints.get(resource)
            serving = before.serving if before is not None and self.plugins_by_socket else {}
            if client.socket in serving:
                raise RegistrationError(f"device plugin already connected: {client.socket}")
            self.endpoints[resource] = Endpoint(client, None, {**serving, client.socket: client})

    def plugin_disconnected(self, client: PluginClient) -> None:
        """All devices count as unhealthy, the grace begins. The checkpoint is left alone (§3.4).

        1.37: only when it was the last one; the device list stays what was sent last (§3.5).
        """
        resource = client.resource
        with self.lock:
            endpoint = self.endpoints.get(resource)
            if endpoint is None:
                return
            endpoint.serving.pop(client.socket, None)
            if self.plugins_by_socket and endpoint.serving:
                endpoint.client = next(reversed(endpoint.serving.values()))
                return
            moved = self.healthy.get(resource, set())
            self.healthy[resource] = set()
            self.unhealthy[resource] = self.unhealthy.get(resource, set()) | moved
            endpoint.stopped_at = self.clock.now()

    def devices_received(self, resource: str, devices: Sequence[pb.Device]) -> None:
        """A message replaces the set; an ID listed both ways is in both sets (§3.3)."""
        with self.lock:
            before = self.all_devices.get(resource, {})
            self.healthy[resource] = {d.ID for d in devices if d.health == HEALTHY}
            self.unhealthy[resource] = {d.ID for d in devices if d.health != HEALTHY}
            self.all_devices[resource] = {device.ID: device for device in devices}
            self.messages[resource] = self.messages.get(resource, 0) + 1
            changed = {
                device_id
                for device_id, device in self.all_devices[resource].items()
                if device_id not in before or before[device_id].health != device.health
            }
            holders = self.pod_devices.holders(resource, changed)
            self.write_checkpoint()
        if holders:
            self.health_changed(holders)

    # --- node status

    def capacity(self) -> Capacity:
        """Forgets what is over; `removed` names it this once."""
        with self.lock:
            now = self.clock.now()
            known = self.healthy.keys() | self.unhealthy.keys()
            removed = {
                name
                for name in known
                if name not in self.endpoints or self.endpoints[name].expired(now)
            }
            for name in removed:
                self.endpoints.pop(name, None)
                self.healthy.pop(name, None)
                self.unhealthy.pop(name, None)
            if removed:
                self.write_checkpoint()
            counts = {name: len(ids) for name, ids in self.healthy.items()}
            total = {
                name: counts.get(name, 0) + len(self.unhealthy.get(name, ()))
                for name in known - removed
            }
            return Capacity(total, counts, frozenset(removed))

    # --- pods

    def is_known(self, resource: str) -> bool:
        """Registered or ever allocated: else a container starts without the device (§6.2)."""
        return resource in self.healthy or resource in self.allocated

    def update_allocated(self) -> None:
        """Release, in memory, what pods that are over held. PodResources' List does this too."""
        if not self.sources_ready:
            return
        with self.lock:
            gone = self.pod_devices.pods() - set(self.active_pods())
            gone.discard(self.pending_admission or "")
            if gone:
                self.pod_devices.delete(gone)
                self.allocated = self.pod_devices.devices()

    def stored_health(self, resource: str, device_id: str) -> str | None:
        """The word last listed; a dead plugin's devices keep theirs (§8)."""
        device = self.all_devices.get(resource, {}).get(device_id)
        return None if device is None else device.health

    # --- checkpoint

    def write_checkpoint(self) -> None:
        """0600, temporary file `.<digits>`, fsync, rename (§1.1)."""
        with self.lock:
            registered = {name: tuple(ids) for name, ids in self.healthy.items()}
            data = encode_checkpoint(self.pod_devices.allocations(), registered)
            descriptor, temporary = tempfile.mkstemp(prefix=".", dir=self.directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, self.directory / CHECKPOINT)

    def read_checkpoint(self) -> None:
        """At start: names come back with no device and a stopped endpoint; a bad file is an empty
        one and a line in the log (§5.1)."""
        try:
            checkpoint = parse_checkpoint((self.directory / CHECKPOINT).read_bytes())
        except FileNotFoundError:
            return
        except (OSError, BadDataError) as error:
            self._continue_without(str(error))
            return
        if not checkpoint.verified:
            self._continue_without("checkpoint is corrupted")
            return
        with self.lock:
            self.pod_devices.restore(checkpoint.allocations)
            self.allocated = self.pod_devices.devices()
            for name in checkpoint.registered:
                self.healthy[name], self.unhealthy[name] = set(), set()
                self.endpoints[name] = Endpoint(None, stopped_at=self.clock.now())

    def _continue_without(self, why: str) -> None:
        self.log(
            "Continue after failing to read checkpoint file. Device allocation info may NOT be "
            f"up-to-date: {why}"
        )
