"""`python -m dpctl.lab.plugin`: one sample device plugin, its PluginSpec as JSON on stdin.

It serves `v1beta1.DevicePlugin` on a socket, registers, and registers again when kubelet.sock is
re-created (unless told not to), as a well-made plugin does. Every open ListAndWatch stream gets
every change: it steals nothing from anybody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc

from dpctl.lab import process, sockets
from dpctl.lab.api_errors import Json
from dpctl.lab.spec import PluginSpec, SampleDevice, device_from_json, plugin_from_json
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc
from dpctl.text import natural_key

_POLL = 0.05
"""Seconds between two looks at kubelet.sock."""
_RETRY = 0.5
_STREAMS = 16


class DevicePlugin(rpc.DevicePluginServicer):
    """The plugin's answers; its devices change under `set_devices`."""

    def __init__(self, spec: PluginSpec) -> None:
        self.spec = spec
        self._changed = threading.Condition()
        self._version = 0
        self._devices = spec.devices
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

    def GetDevicePluginOptions(self, request: Any, context: Any) -> pb.DevicePluginOptions:
        return pb.DevicePluginOptions(
            pre_start_required=self.spec.pre_start,
            get_preferred_allocation_available=self.spec.preferred,
        )

    def ListAndWatch(self, request: Any, context: Any) -> Iterator[pb.ListAndWatchResponse]:
        sent = -1

        def news() -> bool:
            return self._version != sent or not context.is_active()

        context.add_callback(self._wake)
        with self._changed:
            self.streams += 1
        try:
            while context.is_active():
                with self._changed:
                    self._changed.wait_for(news, timeout=5)
                    if self._version == sent:
                        continue
                    sent, devices = self._version, self._devices
                yield pb.ListAndWatchResponse(devices=[_device(d) for d in devices])
        finally:
            with self._changed:
                self.streams -= 1

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def GetPreferredAllocation(self, request: Any, context: Any) -> pb.PreferredAllocationResponse:
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
        paths = [spec.device_path.format(known.index(i)) for i in ids] if spec.device_path else []
        for path in dict.fromkeys(paths):
            answer.devices.add(container_path=path, host_path=path, permissions="rw")
        if spec.cdi_kind:
            for device_id in ids:
                answer.cdi_devices.add(name=f"{spec.cdi_kind}={device_id.partition('::')[0]}")
        return answer

    def PreStartContainer(self, request: Any, context: Any) -> pb.PreStartContainerResponse:
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


class Runner:
    """Serves, registers, and follows kubelet.sock."""

    def __init__(self, spec: PluginSpec, directory: Path) -> None:
        self.spec = spec
        self.plugin = DevicePlugin(spec)
        self._directory = directory
        self._server: grpc.Server | None = None
        self.registered_with: str | None = None
        """Identity of the kubelet.sock registered with."""
        self.error: str | None = None
        self.refused_by: str | None = None
        """Identity of the kubelet.sock whose kubelet answered Register with an error."""

    def run(self) -> None:
        """Until the process ends."""
        if not self.spec.register:
            self.serve()
            return
        while True:
            kubelet = self._kubelet_socket()
            if kubelet is not None and kubelet != self.registered_with:
                if self._server is not None and not self.spec.watch_kubelet:
                    return
                self.serve()
                self.register(kubelet)
            time.sleep(_POLL if self.error is None else _RETRY)

    def serve(self) -> None:
        """Serve on a new socket; an earlier one is closed first, as its file may be gone."""
        if self._server is not None:
            self._server.stop(0).wait()
        path = self._directory / self.spec.endpoint
        path.unlink(missing_ok=True)
        server = grpc.server(
            futures.ThreadPoolExecutor(_STREAMS), options=[("grpc.so_reuseport", 0)]
        )
        rpc.add_DevicePluginServicer_to_server(self.plugin, server)  # type: ignore[no-untyped-call]
        if self.spec.serve_info:
            Info.add(server, self.spec)
        server.add_insecure_port(f"unix:{quote(str(path))}")
        server.start()
        self._server = server
        process.tell({"event": "serving"})

    def register(self, kubelet: str | None = None) -> None:
        """Register on kubelet.sock; an error is told and kept."""
        target = f"unix:{quote(str(self._directory / 'kubelet.sock'))}"
        options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
        try:
            with grpc.insecure_channel(target, options) as channel:
                stub = rpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]
                stub.Register(
                    pb.RegisterRequest(
                        version="v1beta1",
                        endpoint=self.spec.endpoint,
                        resource_name=self.spec.resource,
                    ),
                    timeout=15,
                )
        except grpc.RpcError as error:
            self.error = str(error.details())
            if error.code() == grpc.StatusCode.UNKNOWN:
                self.refused_by = kubelet
            process.tell({"event": "refused", "error": self.error})
            return
        self.error = None
        self.registered_with = kubelet if kubelet is not None else self._kubelet_socket()
        process.tell({"event": "registered"})

    def stop(self) -> None:
        """A clean exit takes the socket away."""
        if self._server is not None:
            self._server.stop(0).wait(1)
        (self._directory / self.spec.endpoint).unlink(missing_ok=True)

    def _kubelet_socket(self) -> str | None:
        return sockets.identity(self._directory / "kubelet.sock")

    def command(self, op: str, arguments: Json) -> Any:
        """What the lab can ask of a plugin."""
        plugin = self.plugin
        if op == "state":
            return {
                "devices": {d.device_id: d.health for d in plugin.devices},
                "registered_with": self.registered_with,
                "serving": self._server is not None,
                "streams": plugin.streams,
                "error": self.error,
                "refused_by": self.refused_by,
            }
        if op == "set-health":
            wanted, word = arguments["device"], arguments["health"]
            if wanted not in {d.device_id for d in plugin.devices}:
                raise KeyError(wanted)
            plugin.set_devices(
                tuple(
                    SampleDevice(d.device_id, d.numa_nodes, word) if d.device_id == wanted else d
                    for d in plugin.devices
                )
            )
        elif op == "set-devices":
            plugin.set_devices(tuple(device_from_json(item) for item in arguments["devices"]))
        elif op == "allocate-error":
            plugin.allocate_error = arguments["text"]
        elif op == "register":
            self.register()
        elif op == "exit":
            self.stop()
            threading.Timer(0.02, process.leave, (0,)).start()
        else:
            raise ValueError(op)
        return None


def main() -> None:
    document = process.first_line()
    spec = plugin_from_json(document["spec"])
    process.set_command(spec.command)
    runner = Runner(spec, Path(document["directory"]))
    threading.Thread(target=process.or_leave, args=(runner.run,), daemon=True).start()
    process.serve(runner.command)


if __name__ == "__main__":
    main()
