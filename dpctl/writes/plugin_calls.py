"""The calls to a plugin that take something away or change something.

ListAndWatch may take updates from the kubelet (kubelet-facts §0.1), Allocate and PreStartContainer
run the plugin's own code as for a pod. Whoever calls has asked the person before.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing

from dpctl.errors import PeerError, UnreachableError
from dpctl.model.plugin_calls import AllocateAnswer, DeviceMessage
from dpctl.sources.channel import CallFailed, open_channel
from dpctl.sources.plugin_calls import call, plugin_error
from dpctl.sources.plugin_messages import (
    encode_allocate,
    encode_pre_start,
    parse_allocate_binpb,
    parse_devices_binpb,
)

LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"
ALLOCATE = "/v1beta1.DevicePlugin/Allocate"
PRE_START = "/v1beta1.DevicePlugin/PreStartContainer"


def watch_devices(
    path: str, *, follow: bool, timeout: float, max_message_size: int
) -> Generator[DeviceMessage]:
    """ListAndWatch: every message as it comes, the first one within `timeout` seconds; closing the
    iterator hangs up.

    Raises UnreachableError, DeniedError, PeerError (also when the plugin ends the stream: it should
    never), BadDataError for a message that is none.
    """
    seen = False
    with open_channel(path, max_message_size=max_message_size, follow=follow) as peer:
        try:
            with closing(peer.stream(LIST_AND_WATCH, first_within=timeout)) as messages:
                for data in messages:
                    seen = True
                    yield parse_devices_binpb(data)
        except CallFailed as e:
            if e.code == "DEADLINE_EXCEEDED" and not seen:
                raise UnreachableError(
                    f"{path} sent no list within {timeout:g} s after ListAndWatch was opened",
                    "a kubelet would wait, without the resource on its Node; `--request-timeout` "
                    "waits longer",
                ) from e
            raise plugin_error(peer, e, LIST_AND_WATCH, timeout) from e
    after = "" if seen else " without a list"
    raise PeerError(
        f"the plugin at {path} ended ListAndWatch by itself{after}",
        "a kubelet takes that for the plugin's end: its devices count as unhealthy until it "
        "registers again",
    )


def allocate(
    path: str, ids: Sequence[str], *, follow: bool, timeout: float, max_message_size: int
) -> AllocateAnswer:
    """Allocate for one container. Raises UnreachableError (the plugin may have carried it out all
    the same), DeniedError, PeerError, BadDataError."""
    request = encode_allocate(ids)
    with open_channel(path, max_message_size=max_message_size, follow=follow) as peer:
        try:
            return parse_allocate_binpb(call(peer, ALLOCATE, request, timeout))
        except UnreachableError as e:
            if isinstance(e.__cause__, CallFailed) and e.__cause__.code == "DEADLINE_EXCEEDED":
                e.hint = (
                    "it may have carried Allocate out all the same, or still be at it: a kubelet "
                    "waits without a limit; `--request-timeout` waits longer"
                )
            raise


def pre_start(
    path: str, ids: Sequence[str], *, follow: bool, timeout: float, max_message_size: int
) -> None:
    """PreStartContainer. Raises as `allocate`."""
    request = encode_pre_start(ids)
    with open_channel(path, max_message_size=max_message_size, follow=follow) as peer:
        call(peer, PRE_START, request, timeout)
