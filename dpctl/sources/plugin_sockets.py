"""The sockets of device-plugins/: who serves, and with which options.

Two harmless calls and no other: GetDevicePluginOptions and GetInfo (List, where a socket serves
something else). Never ListAndWatch, which takes updates away from the kubelet (kubelet-facts §0.1),
nor Allocate, PreStartContainer, Register, NotifyRegistrationStatus. kubelet.sock is never probed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from dpctl.errors import BadDataError, DpctlError
from dpctl.model import (
    DirectoryEntry,
    DirectoryListing,
    ListedDevice,
    PluginOptions,
    PluginSocket,
    RegistrySocket,
    SocketState,
)
from dpctl.sources.channel import CallFailed, GrpcSocket, connect_error, load_grpc, open_channel
from dpctl.sources.directory import kernel_device, list_directory, parse_ls
from dpctl.sources.greeting import Greeting, greet, state_of_failure
from dpctl.sources.json_fields import Field, parse_json
from dpctl.sources.podresources_messages import topology_json
from dpctl.text import shorten

__all__ = [
    "ask_side_by_side",
    "call_info",
    "kernel_device",
    "list_directory",
    "parse_devices_json",
    "parse_info_json",
    "parse_ls",
    "parse_options_json",
    "probe_sockets",
    "service_words",
    "state_of",
]

KUBELET_SOCKET = "kubelet.sock"
OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
_INFO = "/pluginregistration.Registration/GetInfo"
_LIST = "/v1.PodResourcesLister/List"
# Options are a handful of bytes, GetInfo a few names: more is an attack or an accident.
_LARGEST_ANSWER = 1 << 16
_WORKERS = 32
# All sockets of a directory together, in deadlines of one.
_PATIENCE = 5
_QUOTED = 200
_Answer = TypeVar("_Answer")


def probe_sockets(listing: DirectoryListing, *, timeout: float) -> tuple[PluginSocket, ...]:
    """Every socket file of the listing but kubelet.sock, by name, after one harmless call.

    `timeout`: seconds per socket; all of them take at most five times as long. Never raises for a
    socket: its state says.
    """
    own = listing.entry(KUBELET_SOCKET)
    own_inode = own.inode if own is not None else None
    entries = [
        entry
        for entry in listing.entries
        if entry.kind == "socket"
        and entry.name != KUBELET_SOCKET
        and (entry.inode is None or entry.inode != own_inode)  # another name for it
    ]
    answers = ask_side_by_side(listing.path, entries, _ask_plugin, timeout=timeout)
    return tuple(
        PluginSocket(entry.name, answer.state or SocketState.UNKNOWN, None, None, answer.detail)
        if isinstance(answer, Greeting)
        else answer
        for entry, answer in zip(entries, answers, strict=True)
    )


def ask_side_by_side(
    directory: str,
    entries: Sequence[DirectoryEntry],
    ask: Callable[[GrpcSocket, DirectoryEntry, float], _Answer],
    *,
    timeout: float,
) -> list[_Answer | Greeting]:
    """`ask(peer, entry, seconds)` for every socket that speaks HTTP/2; a Greeting says why not."""
    until = time.monotonic() + _PATIENCE * timeout
    paths = {entry.name: os.path.join(directory, entry.name) for entry in entries}
    greetings = greet(list(paths.values()), timeout=timeout, until=until)
    found: dict[str, _Answer | Greeting] = {
        entry.name: greetings[paths[entry.name]] for entry in entries
    }
    good = [entry for entry in entries if greetings[paths[entry.name]].state is None]

    def one(entry: DirectoryEntry) -> _Answer | Greeting:
        left = min(timeout, until - time.monotonic())
        if left <= 0:
            words = "not spoken to: the sockets before it used up the time"
            return Greeting(SocketState.UNKNOWN, words)
        try:
            with open_channel(
                paths[entry.name], max_message_size=_LARGEST_ANSWER, follow=False
            ) as peer:
                return ask(peer, entry, left)
        except DpctlError as e:  # it was there a moment ago
            return Greeting(state_of_failure(e), e.message)

    if good:
        from concurrent.futures import ThreadPoolExecutor

        load_grpc()  # once, not in 32 threads
        pool = ThreadPoolExecutor(min(_WORKERS, len(good)))
        try:
            answers = list(pool.map(one, good))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C waits for no plugin
        found.update((entry.name, answer) for entry, answer in zip(good, answers, strict=True))
    return [found[entry.name] for entry in entries]


def _ask_plugin(peer: GrpcSocket, entry: DirectoryEntry, seconds: float) -> PluginSocket:
    from google.protobuf.message import DecodeError

    from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb

    until = time.monotonic() + seconds
    options: PluginOptions | None = None
    state, detail = SocketState.SERVING, None
    try:
        answer = pb.DevicePluginOptions.FromString(peer.call(OPTIONS, timeout=seconds))
        options = PluginOptions(
            answer.pre_start_required, answer.get_preferred_allocation_available
        )
    except DecodeError as e:
        detail = f"its answer to GetDevicePluginOptions cannot be decoded: {e}"
    except CallFailed as e:
        state, detail = state_of(peer, e)
    info = None
    if state in (SocketState.SERVING, SocketState.WRONG_SERVICE):
        info = _info_or_none(peer, entry, until)
    if state is SocketState.WRONG_SERVICE:
        detail = f"gRPC, but no device plugin: {service_words(peer, info, until)} ({detail})"
    return PluginSocket(entry.name, state, options, info, detail)


def state_of(peer: GrpcSocket, failed: CallFailed) -> tuple[SocketState, str]:
    """What a failed call says of a socket that had answered in HTTP/2.

    UNIMPLEMENTED alone proves that it is no plugin: a kubelet registers none that lacks the call.
    Whoever broke off, or is behind a proxy that did, may be one."""
    words = shorten(f"{failed.code}: {failed.details}", _QUOTED)
    if failed.code == "UNIMPLEMENTED":
        if failed.made_here:
            return SocketState.NOT_GRPC, words  # some other HTTP/2 server: its 404
        return SocketState.WRONG_SERVICE, shorten(failed.details, _QUOTED)
    if failed.code == "DEADLINE_EXCEEDED":
        return SocketState.HUNG, "it speaks HTTP/2 but did not answer the call in time"
    if failed.code == "UNAVAILABLE":
        error = connect_error(peer.address)
        if error is not None and error.errno == errno.ECONNREFUSED:  # not a full queue
            return SocketState.DEAD, f"it died during the call: {words}"
    if failed.made_here and not failed.too_large:
        return SocketState.UNKNOWN, f"it broke off during the call, or speaks no gRPC: {words}"
    # The method is there, so it is a plugin; what it answered is for the person.
    return SocketState.SERVING, words


def _info_or_none(peer: GrpcSocket, entry: DirectoryEntry, until: float) -> RegistrySocket | None:
    """Its answer to GetInfo; None where there is none (most plugins do not serve it)."""
    try:
        return call_info(peer, entry, max(until - time.monotonic(), 0.05))
    except (CallFailed, BadDataError):
        return None


def call_info(peer: GrpcSocket, entry: DirectoryEntry, seconds: float) -> RegistrySocket:
    """GetInfo. Raises CallFailed, BadDataError."""
    from google.protobuf.message import DecodeError

    from dpctl.pb.pluginregistration.v1 import pluginregistration_pb2 as pb

    try:
        info = pb.PluginInfo.FromString(peer.call(_INFO, timeout=seconds))
    except DecodeError as e:
        raise BadDataError(f"its answer to GetInfo cannot be decoded: {e}") from e
    return RegistrySocket(
        path=entry.name,
        state=SocketState.SERVING,
        type=info.type,
        name=info.name,
        service_endpoint=info.endpoint,
        versions=tuple(info.supported_versions),
        modified=entry.modified,
        inode=entry.inode,
        device=entry.device,
    )


def service_words(peer: GrpcSocket, info: RegistrySocket | None, until: float) -> str:
    """What a gRPC server that is no device plugin seems to be."""
    if info is not None:
        return f"a registration socket of {info.type} {shorten(info.name or '', _QUOTED)}"
    try:
        peer.call(_LIST, timeout=max(until - time.monotonic(), 0.05))
    except CallFailed as e:
        if not e.too_large:
            return "another service"
    return "PodResources of a kubelet"


# -- recorded answers ------------------------------------------------------------------------------


def parse_options_json(data: bytes) -> PluginOptions:
    """A recorded answer to GetDevicePluginOptions (`{}`: both false). Raises BadDataError."""
    top = Field(parse_json(data, "the plugin's options"), "")
    return PluginOptions(
        _two(top, "pre_start_required", "preStartRequired").flag(),
        _two(top, "get_preferred_allocation_available", "getPreferredAllocationAvailable").flag(),
    )


def parse_devices_json(data: bytes) -> tuple[ListedDevice, ...]:
    """A recorded ListAndWatch message, as sent, duplicates too. Raises BadDataError."""
    top = Field(parse_json(data, "the plugin's devices"), "")
    if top.members() and top.at("devices").value is None:
        raise BadDataError("the plugin's devices: the document has no devices")
    return tuple(
        ListedDevice(
            _two(device, "ID", "id").text() or "",
            device.at("health").text() or "",
            _real_nodes(topology_json(device)),
        )
        for device in top.at("devices").items()
    )


def parse_info_json(data: bytes, path: str) -> RegistrySocket:
    """A recorded answer to GetInfo of the socket `path`. Raises BadDataError."""
    top = Field(parse_json(data, "the plugin's registration"), "")
    return RegistrySocket(
        path=path,
        state=SocketState.SERVING,
        type=top.at("type").text() or "",
        name=top.at("name").text() or "",
        service_endpoint=top.at("endpoint").text() or "",
        versions=_two(top, "supported_versions", "supportedVersions").texts(),
    )


def _real_nodes(nodes: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """-1, passed through from sysfs, is no topology (kubelet-facts §12)."""
    return tuple(n for n in nodes if n >= 0) or None if nodes else nodes


def _two(holder: Field, name: str, other: str) -> Field:
    found = holder.at(name)
    return found if found.value is not None else holder.at(other)
