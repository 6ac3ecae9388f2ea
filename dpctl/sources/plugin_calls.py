"""One plugin asked by hand: GetDevicePluginOptions and GetPreferredAllocation, which read.

The calls that take something away or change something are in `writes.plugin_calls`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from dpctl.errors import DpctlError, PeerError, UnreachableError
from dpctl.model import PluginOptions, SocketState
from dpctl.sources.channel import CallFailed, GrpcSocket, open_channel, translate_error
from dpctl.sources.plugin_messages import (
    encode_preferred,
    parse_options_binpb,
    parse_preferred_binpb,
)
from dpctl.sources.plugin_sockets import OPTIONS, service_words, state_of

PREFERRED = "/v1beta1.DevicePlugin/GetPreferredAllocation"
_SHORT = 2.0


def get_options(path: str, *, follow: bool, timeout: float, max_message_size: int) -> PluginOptions:
    """GetDevicePluginOptions. `follow`: whether a symbolic link may stand there, as for a path that
    a person typed. Raises UnreachableError, DeniedError, PeerError, BadDataError."""
    with open_channel(path, max_message_size=max_message_size, follow=follow) as peer:
        return parse_options_binpb(call(peer, OPTIONS, b"", timeout))


def get_preferred(
    path: str,
    available: Sequence[str],
    must: Sequence[str],
    size: int,
    *,
    follow: bool,
    timeout: float,
    max_message_size: int,
) -> tuple[str, ...] | None:
    """GetPreferredAllocation for one container: the plugin's IDs as it gives them, unchecked; None:
    it answered for no container. Raises as `get_options`."""
    request = encode_preferred(available, must, size)
    with open_channel(path, max_message_size=max_message_size, follow=follow) as peer:
        return parse_preferred_binpb(call(peer, PREFERRED, request, timeout))


def call(peer: GrpcSocket, method: str, request: bytes, timeout: float) -> bytes:
    """One call to a plugin, its failure in words. Raises DpctlError."""
    try:
        return peer.call(method, request, timeout=timeout)
    except CallFailed as e:
        raise plugin_error(peer, e, method, timeout) from e


def plugin_error(peer: GrpcSocket, failed: CallFailed, method: str, timeout: float) -> DpctlError:
    """A failed call of a device plugin in words: also what it is if it is none. Only within
    `open_channel`."""
    name = method.rpartition("/")[2]
    state, words = state_of(peer, failed)
    if state is SocketState.WRONG_SERVICE:
        if method != OPTIONS and _answers_options(peer):
            return PeerError(
                f"the plugin at {peer.path} does not implement {name} ({words})",
                "`dpctl plugin options` shows what it offers",
            )
        what = service_words(peer, None, time.monotonic() + _SHORT)
        return PeerError(
            f"{peer.path} speaks gRPC, but is no device plugin: {what} ({words})",
            "`dpctl plugins` lists the sockets of the plugins here",
        )
    if state in (SocketState.NOT_GRPC, SocketState.UNKNOWN) and failed.code != "UNAVAILABLE":
        return UnreachableError(
            f"{peer.path} speaks HTTP/2, but no gRPC ({words})",
            "another program listens there: `ss -xlp`",
        )
    error = translate_error(peer, failed, method, timeout)
    if isinstance(error, PeerError) and error.hint is None:
        error.hint = "those are the plugin's own words: look into its log"
    return error


def _answers_options(peer: GrpcSocket) -> bool:
    try:
        peer.call(OPTIONS, timeout=_SHORT)
    except CallFailed:
        return False
    return True
