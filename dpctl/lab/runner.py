"""A sample plugin's socket: served, registered, and registered again when kubelet.sock is made anew
(unless its spec says not to), as a well-made plugin does.

What a plugin can be told while it runs (`command`) is here, too; how that reaches it is `plugin`'s
(the lab) and `serve`'s (a real kubelet).
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc

from dpctl.lab import sockets
from dpctl.lab.api_errors import Json
from dpctl.lab.sample_plugin import DevicePlugin, Info, silent
from dpctl.lab.spec import PluginSpec, SampleDevice, device_from_json
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc

_POLL = 0.05
"""Seconds between two looks at kubelet.sock."""
_RETRY = 0.5
_LONGEST_RETRY = 10.0
"""Seconds before a kubelet that has refused is asked again: the first pause, and the longest."""
_FINAL = re.compile(r'the ResourceName ".*" is invalid|requested API version .* is not supported')
"""How a kubelet begins its answer to what it will never take (kubelet-facts §3.1)."""
_STREAMS = 16


class Runner:
    """Serves, registers, and follows kubelet.sock."""

    def __init__(
        self,
        spec: PluginSpec,
        directory: Path,
        tell: Callable[[Json], None],
        calls: Callable[[Json], None] = silent,
        *,
        careful: bool = False,
    ) -> None:
        """`tell`: hears of `serving`, `registered`, `refused` (`final`: this kubelet is not asked
        again); `calls`: of every call.
        `careful`: of what has the socket's name only our own and a dead socket are taken away."""
        self.spec = spec
        self._careful = careful
        self._own: str | None = None
        """Identity of our socket file."""
        self._left: list[grpc.Server] = []
        """Lost their socket's name to somebody else: never stopped, as gRPC would unlink that."""
        self._registering: grpc.Channel | None = None
        self.plugin = DevicePlugin(spec, calls)
        self._directory = directory
        self._tell = tell
        self._server: grpc.Server | None = None
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._down = False
        """Taken down on cue: it does not come back by itself."""
        self.registered_with: str | None = None
        """Identity of the kubelet.sock registered with."""
        self.error: str | None = None
        self.refused_by: str | None = None
        """Identity of the kubelet.sock whose kubelet answered Register with an error."""
        self._tried: str | None = None
        """Identity of the kubelet.sock that the two below are about."""
        self._pause = _RETRY
        self._again = 0.0
        """Not asked before this moment of the monotonic clock."""

    def run(self) -> None:
        """Until `stop`, or the end of the process."""
        if not self.spec.register:
            self.serve()
            return
        while not self._stopping.is_set():
            kubelet = self._kubelet_socket()
            with self._lock:
                if kubelet is not None and kubelet != self.registered_with and not self._down:
                    if self._server is not None and not self.spec.watch_kubelet:
                        return
                    self._try(kubelet)
            self._stopping.wait(_POLL)

    def _try(self, kubelet: str) -> None:
        """Register with this kubelet, if it is time. One that refused is asked again after a pause
        that doubles; a new one at once, and on a new socket: it may have taken the old one away."""
        new = kubelet != self._tried
        if new:
            self._tried, self._pause, self._again = kubelet, _RETRY, 0.0
        if time.monotonic() < self._again:
            return
        taken = self._taken() if self._careful else None
        if taken is not None:
            self._refused(taken)
        elif not self._stopping.is_set():
            own = self._is_own(self._directory / self.spec.endpoint)
            if new or self._server is None or not own:
                self.serve()
            self.register(kubelet)

    def serve(self) -> None:
        """Serve on a new socket; an earlier one is closed first, as its file may be gone."""
        self._close(None)
        path = self._directory / self.spec.endpoint
        path.unlink(missing_ok=True)
        server = grpc.server(
            futures.ThreadPoolExecutor(_STREAMS), options=[("grpc.so_reuseport", 0)]
        )
        rpc.add_DevicePluginServicer_to_server(self.plugin, server)  # type: ignore[no-untyped-call]
        if self.spec.serve_info:
            Info.add(server, self.spec)
        server.add_insecure_port(f"unix:{quote(os.fsencode(path))}")
        server.start()
        self._server = server
        self._own = sockets.identity(path, follow=False)
        self._tell({"event": "serving"})

    def register(self, kubelet: str | None = None) -> None:
        """Register on kubelet.sock; an error is told and kept."""
        target = f"unix:{quote(os.fsencode(self._directory / 'kubelet.sock'))}"
        options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
        try:
            with grpc.insecure_channel(target, options) as channel:
                self._registering = channel
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
            if error.code() == grpc.StatusCode.UNKNOWN:
                self.refused_by = kubelet
            self._refused(str(error.details()))
            return
        except ValueError:
            if not self._stopping.is_set():
                raise
            return  # `stop` closed the channel before the call
        finally:
            self._registering = None
        self.error = None
        self.registered_with = kubelet if kubelet is not None else self._kubelet_socket()
        self._tell({"event": "registered"})

    def stop(self) -> None:
        """A clean exit takes the socket away."""
        self._stopping.set()
        self.plugin.close()
        registering = self._registering
        if registering is not None:
            registering.close()  # a kubelet may take ten seconds to answer
        self.take_down()

    def take_down(self) -> None:
        """No longer there: as a plugin that ended, in a process that goes on."""
        with self._lock:
            self._down = True
            self._close(1)
            path = self._directory / self.spec.endpoint
            if not self._careful or self._is_own(path):
                path.unlink(missing_ok=True)

    def _close(self, timeout: float | None) -> None:
        """No longer served. Stopping, gRPC unlinks whatever socket has the name by now."""
        server, self._server = self._server, None
        if server is None:
            return
        path = self._directory / self.spec.endpoint
        if self._careful and sockets.is_socket(path) and not self._is_own(path):
            self._left.append(server)
            self.plugin.end_streams()
        else:
            server.stop(0).wait(timeout)

    def _is_own(self, path: Path) -> bool:
        return self._own is not None and sockets.identity(path, follow=False) == self._own

    def bring_up(self) -> None:
        """Serve and register again."""
        with self._lock:
            self._down = False
            self.registered_with = self._tried = None

    def _refused(self, why: str) -> None:
        self.error = why
        final = _FINAL.match(why) is not None
        self._again = math.inf if final else time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_RETRY)
        if not self._stopping.is_set():
            self._tell({"event": "refused", "error": why, "final": final})

    def _taken(self) -> str | None:
        """What of somebody else has the socket's name; None: nothing but a dead socket."""
        path, name = self._directory / self.spec.endpoint, self.spec.endpoint
        gone = sockets.identity(path, follow=False) is None
        if gone or self._is_own(path) or sockets.is_dead(path):
            return None
        if sockets.is_socket(path):
            return f"another plugin listens on {name}"
        return f"{name} is there and is no socket: it is left alone"

    def _kubelet_socket(self) -> str | None:
        return sockets.identity(self._directory / "kubelet.sock")

    def command(self, op: str, arguments: Json) -> Any:
        """What a plugin can be told. Raises KeyError, ValueError, TypeError."""
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
        elif op == "hang":
            plugin.hang(arguments["method"], hangs=arguments.get("hangs", True))
        elif op == "end-streams":
            plugin.end_streams()
        elif op == "down":
            self.take_down()
        elif op == "up":
            self.bring_up()
        elif op == "register":
            self.register()
        else:
            raise ValueError(op)
        return None
