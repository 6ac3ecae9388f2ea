"""`v1beta1.Registration` on device-plugins/kubelet.sock, and what a start deletes there.

Source: kubelet-facts §1.2, §3.1.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc

from dpctl import names
from dpctl.lab.kubelet.go_text import Unknown, quoted
from dpctl.lab.kubelet.plugin_client import PluginServer, RegistrationError
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc

CHECKPOINT = "kubelet_internal_checkpoint"
SOCKET = "kubelet.sock"
VERSION = "v1beta1"
_WORKERS = 64
"""A Register call may wait ten seconds for its dial."""


class Registration(rpc.RegistrationServicer):
    def __init__(self, directory: Path, plugins: PluginServer, log: Callable[[str], None]) -> None:
        self._directory = directory
        self._plugins = plugins
        self._log = log

    def Register(self, request: pb.RegisterRequest, context: Any) -> pb.Empty:
        self._log(f"Got registration request from device plugin {request.resource_name}")
        if request.version != VERSION:
            version = quoted(request.version)
            context.abort(
                grpc.StatusCode.UNKNOWN,
                f"requested API version {version} is not supported by kubelet. "
                f'Supported version is ["{VERSION}"]',
            )
        if not names.is_extended(request.resource_name):
            name = quoted(request.resource_name)
            context.abort(grpc.StatusCode.UNKNOWN, f"the ResourceName {name} is invalid")
        try:
            self._plugins.connect(request.resource_name, self._socket(request.endpoint))
        except RegistrationError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return pb.Empty()

    def _socket(self, endpoint: str) -> str:
        """Joined as Go joins: an absolute endpoint is re-rooted, `..` is resolved as text."""
        return os.path.normpath(f"{self._directory}/{endpoint}")


def remove_sockets(directory: Path) -> None:
    """What a starting kubelet deletes: every socket, links to sockets too; files and directories
    stay (§1.2)."""
    for entry in os.scandir(directory):
        if entry.name == CHECKPOINT:
            continue
        try:
            found = os.stat(entry.path)
        except OSError:
            continue
        if stat.S_ISSOCK(found.st_mode):
            os.unlink(entry.path)


def serve(directory: Path, plugins: PluginServer, log: Callable[[str], None]) -> grpc.Server:
    """Clear the directory, bind kubelet.sock and serve."""
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    remove_sockets(directory)
    server = grpc.server(futures.ThreadPoolExecutor(_WORKERS), options=[("grpc.so_reuseport", 0)])
    service = Registration(directory, plugins, log)
    rpc.add_RegistrationServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    server.add_generic_rpc_handlers((Unknown(["v1beta1.Registration"]),))
    server.add_insecure_port(f"unix:{quote(str(directory / SOCKET))}")
    server.start()
    return server
