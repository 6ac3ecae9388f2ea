"""A sample device plugin's answers: what `dpctl plugin serve` and the lab's plugins are made of.

Well-made unless its spec says otherwise: every open ListAndWatch stream gets every change, so it
takes nothing from anybody. Sockets and registration are `runner`'s.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from dpctl.lab.api_errors import Json
from dpctl.lab.spec import PluginSpec, SampleDevice
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc
from dpctl.text import natural_key

METHODS = (
    "GetDevicePluginOptions",
    "ListAndWatch",
    "GetPreferredAllocation",
    "Allocate",
    "PreStartContainer",
)
_GLANCE = 0.5
"""Seconds between two looks of a stream that waits on the shared channel."""


def silent(_: Json) -> None:
    """Of a plugin whose calls nobody wants to hear of."""


class DevicePlugin(rpc.DevicePluginServicer):
    """The plugin's answers; its devices change under `set_devices`."""

    def __init__(self, spec: PluginSpec, tell: Callable[[Json], None] = silent) -> None:
        self.spec = spec
        self._tell = tell
        self._changed = threading.Condition()
        self._version = 0
        self._ended = 0
        """How often the streams have been ended on cue."""
        self._devices = spec.devices
        self._shared: queue.SimpleQueue[tuple[SampleDevice, ...]] = queue.SimpleQueue()
        self._hanging: set[str] = set()
        self._closed = False
        self.streams = 0
        self.allocate_error = spec.allocate_error

    @property
    def devices(self) -> tuple[SampleDevice, ...]:
        with self._changed:
            return self._devices

    def set_devices(self, devices: tuple[SampleDevice, ...]) -> None:
        with self._changed:
            self._devices = devices
            self._version += 1
            self._changed.notify_all()
        if self.spec.shared_updates:
            self._shared.put(devices)

    def hang(self, method: str, *, hangs: bool) -> None:
        """Whether calls of this method get no answer. Raises ValueError: no such method."""
        if method not in METHODS:
            raise ValueError(f"{method!r} is not one of {', '.join(METHODS)}")
        with self._changed:
            (self._hanging.add if hangs else self._hanging.discard)(method)
            self._changed.notify_all()

    def end_streams(self) -> None:
        """Every open ListAndWatch ends, as when a plugin's goroutine returns."""
        with self._changed:
            self._ended += 1
            self._changed.notify_all()

    def close(self) -> None:
        """No call waits any longer: the process ends."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _begin(self, context: Any, method: str, **details: Any) -> None:
        """Every call: told, and kept waiting where it hangs."""
        self._tell({"event": "call", "method": method, **details})

        def free() -> bool:
            return method not in self._hanging or self._closed or not context.is_active()

        with self._changed:
            waits = not free()
        if waits:
            context.add_callback(self._wake)
            with self._changed:
                self._changed.wait_for(free)

    def GetDevicePluginOptions(self, request: Any, context: Any) -> pb.DevicePluginOptions:
        self._begin(context, "GetDevicePluginOptions")
        return pb.DevicePluginOptions(
            pre_start_required=self.spec.pre_start,
            get_preferred_allocation_available=self.spec.preferred,
        )

    def ListAndWatch(self, request: Any, context: Any) -> Iterator[pb.ListAndWatchResponse]:
        self._begin(context, "ListAndWatch")
        context.add_callback(self._wake)
        with self._changed:
            self.streams += 1
        try:
            lists = self._from_shared() if self.spec.shared_updates else self._from_all(context)
            for devices in lists:
                yield pb.ListAndWatchResponse(devices=[_device(d) for d in devices])
        finally:
            with self._changed:
                self.streams -= 1
            self._tell({"event": "stream-ended"})

    def _from_all(self, context: Any) -> Iterator[tuple[SampleDevice, ...]]:
        """The list now, and after every change."""
        sent, ended = -1, self._ended

        def over() -> bool:
            return self._ended != ended or self._closed or not context.is_active()

        def news() -> bool:
            return self._version != sent or over()

        while True:
            with self._changed:
                self._changed.wait_for(news, timeout=5)
                if over():
                    return
                if self._version == sent:
                    continue
                sent, devices = self._version, self._devices
            yield devices

    def _from_shared(self) -> Iterator[tuple[SampleDevice, ...]]:
        """The list now, then what it gets of the one channel that all streams read. As in many
        plugins, a client that has left is not noticed before an update has been taken for it."""
        ended = self._ended
        yield self.devices
        while self._ended == ended and not self._closed:
            try:
                yield self._shared.get(timeout=_GLANCE)
            except queue.Empty:
                continue

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def GetPreferredAllocation(self, request: Any, context: Any) -> pb.PreferredAllocationResponse:
        self._begin(context, "GetPreferredAllocation")
        if not self.spec.preferred:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "not offered by this plugin")
        answers = [
            pb.ContainerPreferredAllocationResponse(
                deviceIDs=preferred(
                    self.devices,
                    list(one.available_deviceIDs),
                    list(one.must_include_deviceIDs),
                    one.allocation_size,
                )
            )
            for one in request.container_requests
        ]
        return pb.PreferredAllocationResponse(container_responses=answers)

    def Allocate(self, request: Any, context: Any) -> pb.AllocateResponse:
        asked = [device_id for one in request.container_requests for device_id in one.devices_ids]
        self._begin(context, "Allocate", devices=asked)
        if self.allocate_error:
            context.abort(grpc.StatusCode.UNKNOWN, self.allocate_error)
        known = [device.device_id for device in self.devices]
        answers = []
        for one in request.container_requests:
            ids = sorted(one.devices_ids, key=natural_key)
            for device_id in ids:
                if device_id not in known:
                    context.abort(grpc.StatusCode.UNKNOWN, f"unknown device {device_id}")
            answers.append(self._allocated(ids, known))
        return pb.AllocateResponse(container_responses=answers)

    def _allocated(self, ids: list[str], known: list[str]) -> pb.ContainerAllocateResponse:
        spec = self.spec
        answer = pb.ContainerAllocateResponse(
            envs={spec.variable: ",".join(ids)},
            mounts=[
                pb.Mount(container_path=inside, host_path=outside, read_only=True)
                for inside, outside in spec.mounts
            ],
            annotations=dict(spec.annotations),
        )
        pattern = spec.device_path
        paths = [pattern.replace("{}", str(known.index(i))) for i in ids] if pattern else []
        for path in dict.fromkeys(paths):
            answer.devices.add(container_path=path, host_path=path, permissions="rw")
        if spec.cdi_kind:
            for device_id in ids:
                answer.cdi_devices.add(name=f"{spec.cdi_kind}={device_id.partition('::')[0]}")
        return answer

    def PreStartContainer(self, request: Any, context: Any) -> pb.PreStartContainerResponse:
        self._begin(context, "PreStartContainer", devices=list(request.devices_ids))
        return pb.PreStartContainerResponse()


def _device(device: SampleDevice) -> pb.Device:
    sent = pb.Device(ID=device.device_id, health=device.health)
    if device.numa_nodes is not None:
        sent.topology.SetInParent()  # `topology: {}` differs from none
        for node in device.numa_nodes:
            sent.topology.nodes.add(ID=node)
    return sent


def preferred(
    devices: tuple[SampleDevice, ...], available: list[str], must: list[str], size: int
) -> list[str]:
    """`size` of the available IDs with all of `must`: those beside them first, then the NUMA node
    with the most, natural order within."""
    numa = {d.device_id: min(d.numa_nodes or (-1,)) for d in devices}
    chosen = sorted(set(must), key=natural_key)
    rest = sorted(set(available) - set(must), key=natural_key)
    near = {numa.get(device_id, -1) for device_id in chosen}
    count = {n: sum(numa.get(i, -1) == n for i in rest) for n in set(numa.values()) | {-1}}

    def order(device_id: str) -> tuple[bool, int, int]:
        node = numa.get(device_id, -1)
        return node not in near, -count[node], node

    rest.sort(key=order)
    return [*chosen, *rest][:size]


class Info:
    """GetInfo on the plugin's own socket. Filled with its base where it is served, so that most
    plugins do not load that schema."""

    @staticmethod
    def add(server: grpc.Server, spec: PluginSpec) -> None:
        from dpctl.pb.pluginregistration.v1 import pluginregistration_pb2 as info_pb
        from dpctl.pb.pluginregistration.v1 import pluginregistration_pb2_grpc as info_rpc

        class Registration(info_rpc.RegistrationServicer):
            def GetInfo(self, request: Any, context: Any) -> info_pb.PluginInfo:
                return info_pb.PluginInfo(
                    type="DevicePlugin", name=spec.resource, supported_versions=["v1beta1"]
                )

            def NotifyRegistrationStatus(
                self, request: Any, context: Any
            ) -> info_pb.RegistrationStatusResponse:
                return info_pb.RegistrationStatusResponse()

        info_rpc.add_RegistrationServicer_to_server(Registration(), server)  # type: ignore[no-untyped-call]
