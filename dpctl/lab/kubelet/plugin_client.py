"""The kubelet's side of one plugin: dial, ListAndWatch, calls, and the end of it all.

Clients are keyed by the resource name alone (1.25 to 1.36), or by name and socket (1.37), so a
second plugin for a resource and a failed registration go wrong exactly as there (kubelet-facts
§3.5).
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from urllib.parse import quote

import grpc

from dpctl.lab.kubelet.go_text import go_error
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc

DIAL_LIMIT = 10.0
"""Seconds a plugin has to answer the kubelet's dial (kubelet-facts §3.1)."""
RECEIVE_LIMIT = 4 * 1024 * 1024
"""grpc-go's default, so the kubelet's."""


class RegistrationError(Exception):
    """What the plugin's Register call fails with."""


class CallError(Exception):
    """A plugin's answer to Allocate or GetPreferredAllocation, in grpc-go's words."""


class Handler(Protocol):
    """The device manager, as plugins' clients see it."""

    def plugin_connected(self, resource: str, client: PluginClient) -> None:
        """Raises RegistrationError."""

    def plugin_disconnected(self, client: PluginClient) -> None: ...

    def devices_received(self, resource: str, devices: Sequence[pb.Device]) -> None: ...


class PluginClient:
    def __init__(self, resource: str, socket: str, log: Callable[[str], None]) -> None:
        self.resource = resource
        self.socket = socket
        self.options = pb.DevicePluginOptions()
        self._log = log
        self._channel: grpc.Channel | None = None
        self._stub: Any = None

    def connect(self) -> None:
        """Dial and ask for the options. Raises RegistrationError."""
        channel = grpc.insecure_channel(
            f"unix:{quote(self.socket)}",
            options=[
                ("grpc.default_authority", "localhost"),
                ("grpc.max_receive_message_length", RECEIVE_LIMIT),
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.enable_http_proxy", 0),
                # A plugin that is a moment late is tried again soon, as grpc-go does.
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 500),
            ],
        )
        try:
            grpc.channel_ready_future(channel).result(timeout=DIAL_LIMIT)
        except grpc.FutureTimeoutError:
            channel.close()
            raise RegistrationError(
                "failed to dial device plugin: context deadline exceeded"
            ) from None
        self._channel = channel
        self._stub = rpc.DevicePluginStub(channel)  # type: ignore[no-untyped-call]
        try:
            self.options = self._stub.GetDevicePluginOptions(pb.Empty(), timeout=DIAL_LIMIT)
        except grpc.RpcError as error:
            self.close()
            raise RegistrationError(
                f"failed to get device plugin options: {go_error(error)}"
            ) from None

    def listen(self, received: Callable[[Sequence[pb.Device]], None]) -> None:
        """ListAndWatch until it ends, for whatever reason; no deadline, no reconnect (§3.3)."""
        try:
            for answer in self._stub.ListAndWatch(pb.Empty()):
                received(answer.devices)
        except (grpc.RpcError, ValueError) as error:  # ValueError: closed under our hands
            words = go_error(error) if isinstance(error, grpc.RpcError) else str(error)
            self._log(f"ListAndWatch ended unexpectedly for device plugin {self.resource}: {words}")

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def allocate(self, ids: Sequence[str]) -> pb.AllocateResponse:
        """No deadline: a hanging plugin blocks the kubelet (§6.2). Raises CallError."""
        request = pb.AllocateRequest(
            container_requests=[pb.ContainerAllocateRequest(devices_ids=ids)]
        )
        try:
            answer: pb.AllocateResponse = self._stub.Allocate(request)
        except (grpc.RpcError, ValueError) as error:
            raise CallError(self._words(error)) from None
        return answer

    def preferred(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> Sequence[str]:
        """GetPreferredAllocation for one container. Raises CallError."""
        request = pb.PreferredAllocationRequest(
            container_requests=[
                pb.ContainerPreferredAllocationRequest(
                    available_deviceIDs=available,
                    must_include_deviceIDs=must_include,
                    allocation_size=size,
                )
            ]
        )
        try:
            answer: pb.PreferredAllocationResponse = self._stub.GetPreferredAllocation(request)
        except (grpc.RpcError, ValueError) as error:
            raise CallError(self._words(error)) from None
        return list(answer.container_responses[0].deviceIDs) if answer.container_responses else []

    def pre_start(self, ids: Sequence[str]) -> None:
        """PreStartContainer, 30 s. Raises CallError."""
        try:
            self._stub.PreStartContainer(pb.PreStartContainerRequest(devices_ids=ids), timeout=30)
        except (grpc.RpcError, ValueError) as error:
            raise CallError(self._words(error)) from None

    def _words(self, error: Exception) -> str:
        if not isinstance(error, grpc.RpcError):
            return f"rpc error: code = Canceled desc = {error}"
        if error.code() == grpc.StatusCode.UNAVAILABLE and (why := _refusal(self.socket)):
            # grpc-go names the file, grpc's C core the address; operators search for the former.
            return (
                'rpc error: code = Unavailable desc = connection error: desc = "transport: Error '
                f'while dialing: dial unix {self.socket}: connect: {why}"'
            )
        return go_error(error)


def _refusal(path: str) -> str | None:
    """Why nobody answers on a socket, in Go's words; None: somebody does."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            return os.strerror(error.errno or errno.EINVAL).lower()
    return None


class PluginServer:
    """The kubelet's book of plugins: one client per resource name, or per name and socket."""

    def __init__(self, handler: Handler, log: Callable[[str], None], *, by_socket: bool) -> None:
        self._handler = handler
        self._log = log
        self._by_socket = by_socket
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], PluginClient] = {}

    def connect(self, resource: str, socket: str) -> None:
        """Take a plugin on. Raises RegistrationError."""
        client = PluginClient(resource, socket, self._log)
        key = self._key(client)
        with self._lock:
            self._clients[key] = client
        try:
            client.connect()
            self._handler.plugin_connected(resource, client)
        except RegistrationError as error:
            # By key: the record of a plugin that is still running goes too (§3.5).
            with self._lock:
                self._clients.pop(key, None)
            client.close()
            self._log(f"Failed to connect to new client {resource}: {error}")
            raise
        threading.Thread(target=self._run, args=(client,), daemon=True).start()

    def connected(self) -> dict[str, str]:
        """Resource to the socket of the client on record, the newest where there are several."""
        with self._lock:
            return {client.resource: client.socket for client in self._clients.values()}

    def _run(self, client: PluginClient) -> None:
        resource = client.resource
        client.listen(lambda devices: self._handler.devices_received(resource, devices))
        with self._lock:
            current = self._clients.pop(self._key(client), None)
        if current is None:
            return  # nobody on record: this end goes unnoticed (§3.5)
        current.close()
        self._handler.plugin_disconnected(current)

    def _key(self, client: PluginClient) -> tuple[str, str]:
        return client.resource, client.socket if self._by_socket else ""
