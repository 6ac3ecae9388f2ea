"""The kubelet's own pods, `v1alpha1.Pods` on pods-api/pods-api.sock (kubelet-facts §2.8).

One `ListPods` a run at most: each call writes a line into the kubelet's log. Only what names a UID
is decoded of the pods.
"""

from __future__ import annotations

import os

from dpctl.errors import BadDataError, PeerError
from dpctl.model.statefiles import KubeletPod
from dpctl.sources.channel import CallFailed, open_channel, translate_error
from dpctl.statefiles.protobuf_wire import fields

_LIST = "/v1alpha1.Pods/ListPods"
# Field numbers of core/v1: Pod, ObjectMeta, PodStatus.
_METADATA, _STATUS = 1, 3
_NAME, _NAMESPACE, _UID = 1, 3, 5
_PHASE = 1


def pods_api_socket(kubelet_root: str) -> str:
    return os.path.join(kubelet_root, "pods-api", "pods-api.sock")


def list_kubelet_pods(
    socket: str, *, timeout: float, max_message_size: int
) -> tuple[KubeletPod, ...]:
    """Every pod that the kubelet knows, finished ones too.

    Raises UnreachableError (no socket: the gate PodsAPI is off, or a kubelet before 1.36),
    DeniedError, PeerError, BadDataError.
    """
    with open_channel(socket, max_message_size=max_message_size) as peer:
        try:
            data = peer.call(_LIST, timeout=timeout)
        except CallFailed as e:
            if e.code == "FAILED_PRECONDITION":
                raise PeerError(
                    f"the kubelet is not ready to list its pods: {e.details[:200]}",
                    "ask again in a moment",
                ) from e
            raise translate_error(peer, e, _LIST, timeout) from e
    return parse_kubelet_pods(data)


def parse_kubelet_pods(data: bytes) -> tuple[KubeletPod, ...]:
    """A ListPodsResponse. Raises BadDataError."""
    try:
        pods = [_pod(value) for number, value in fields(data) if number == 1 and _is(value)]
    except BadDataError as e:
        raise BadDataError(f"the Pods API's answer cannot be decoded: {e.message}") from e
    return tuple(sorted(pods))


def _pod(data: object) -> KubeletPod:
    assert isinstance(data, bytes)
    metadata, status = b"", b""
    for number, value in fields(data):
        if number == _METADATA and isinstance(value, bytes):
            metadata += value  # as protobuf merges what comes twice
        elif number == _STATUS and isinstance(value, bytes):
            status += value
    texts = _texts(metadata)
    return KubeletPod(
        uid=texts.get(_UID, ""),
        namespace=texts.get(_NAMESPACE, ""),
        name=texts.get(_NAME, ""),
        phase=_texts(status).get(_PHASE) or None,
    )


def _texts(data: bytes) -> dict[int, str]:
    return {
        number: value.decode("utf-8", "surrogateescape")
        for number, value in fields(data)
        if isinstance(value, bytes)
    }


def _is(value: object) -> bool:
    return isinstance(value, bytes)
