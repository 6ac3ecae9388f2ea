"""PodResources on the kubelet's socket: List, Get, GetAllocatableResources.

Only calls that read (kubelet-facts §2.3, §7). Converting messages: `podresources_messages`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from dpctl.errors import DpctlError, PeerError
from dpctl.model import Allocatable, PodHolding, PodResources
from dpctl.sources.channel import (
    CallFailed,
    GrpcSocket,
    connect_error,
    open_channel,
    translate_error,
)
from dpctl.sources.files import Keep
from dpctl.sources.podresources_messages import (
    parse_allocatable_binpb,
    parse_allocatable_json,
    parse_get_binpb,
    parse_list_binpb,
    parse_list_json,
)

__all__ = [
    "fetch_allocatable",
    "fetch_list",
    "get_allocatable",
    "get_pod",
    "list_pod_resources",
    "parse_allocatable_binpb",
    "parse_allocatable_json",
    "parse_list_binpb",
    "parse_list_json",
]

_V1 = "/v1.PodResourcesLister"
_V1ALPHA1 = "/v1alpha1.PodResourcesLister"
_OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
_INFO = "/pluginregistration.Registration/GetInfo"
_PODS = "pods-api.sock"
_SHORT = 2.0


def list_pod_resources(
    socket: str,
    *,
    timeout: float,
    max_message_size: int,
    keep: Callable[[str, bytes], None] | None = None,
) -> PodResources:
    """`List`, by v1 or else v1alpha1. `timeout` is seconds per call, sizes are bytes; `keep` takes
    the version and the answer as it came.

    Raises UnreachableError, DeniedError, PeerError, BadDataError.
    """
    version, data = fetch_list(socket, timeout=timeout, max_message_size=max_message_size)
    if keep is not None:
        keep(version, data)
    return parse_list_binpb(data, version=version)


def get_pod(
    socket: str, namespace: str, name: str, *, timeout: float, max_message_size: int
) -> PodHolding:
    """One pod: `Get`, or `List` and a look for the pod where Get fails for whatever reason.

    Kubelets word it differently (UNIMPLEMENTED, UNKNOWN "API Get method disabled", UNKNOWN "not
    found" for a finished pod that List may still have), so every error of the method counts.
    """
    from dpctl.pb.podresources.v1 import podresources_pb2 as pb

    request = pb.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace)
    with open_channel(socket, max_message_size=max_message_size) as peer:
        method = f"{_V1}/Get"
        try:
            answer = peer.call(method, request.SerializeToString(), timeout=timeout)
            return parse_get_binpb(answer)
        except CallFailed as e:
            # The connection failed, not the method: List would only fail once more.
            if e.code == "UNAVAILABLE" and connect_error(peer.address) is not None:
                raise translate_error(peer, e, method, timeout) from e
            version, data = _list(peer, timeout)
    for pod in parse_list_binpb(data, version=version).pods:
        if pod.namespace == namespace and pod.name == name:
            return pod
    raise PeerError(
        f"the kubelet has no pod {namespace}/{name}",
        "it runs on another node, has finished, or is spelled otherwise: `dpctl pods -A`",
    )


def get_allocatable(
    socket: str, *, timeout: float, max_message_size: int, keep: Keep | None = None
) -> Allocatable:
    """`GetAllocatableResources`. Could crash a kubelet of 1.21: whether to ask at all is decided
    before. Raises as `list_pod_resources`."""
    data = fetch_allocatable(socket, timeout=timeout, max_message_size=max_message_size)
    if keep is not None:
        keep(data)
    return parse_allocatable_binpb(data)


def fetch_list(socket: str, *, timeout: float, max_message_size: int) -> tuple[str, bytes]:
    """The API's version (`v1`, `v1alpha1`) and the answer's bytes, as a bundle keeps them."""
    with open_channel(socket, max_message_size=max_message_size) as peer:
        return _list(peer, timeout)


def fetch_allocatable(socket: str, *, timeout: float, max_message_size: int) -> bytes:
    """The bytes of an AllocatableResourcesResponse."""
    method = f"{_V1}/GetAllocatableResources"
    with open_channel(socket, max_message_size=max_message_size) as peer:
        try:
            return peer.call(method, timeout=timeout)
        except CallFailed as e:
            if e.code == "UNIMPLEMENTED" and _serves_pod_resources(peer):
                raise PeerError(
                    "this kubelet has no GetAllocatableResources (1.20 and older have not)",
                    "`--no-allocatable` does without it",
                ) from e
            if e.code == "UNIMPLEMENTED":
                raise _wrong_socket(peer, e) from e
            error = translate_error(peer, e, method, timeout)
            if "disabled" in e.details.lower():
                error.hint = (
                    "the feature gate KubeletPodResourcesGetAllocatable is off (1.21 to 1.27);"
                    " `--no-allocatable` does without it"
                )
            raise error from e


def _list(peer: GrpcSocket, timeout: float) -> tuple[str, bytes]:
    for version, service in (("v1", _V1), ("v1alpha1", _V1ALPHA1)):
        method = f"{service}/List"
        try:
            return version, peer.call(method, timeout=timeout)
        except CallFailed as e:
            if e.code != "UNIMPLEMENTED":
                raise translate_error(peer, e, method, timeout) from e
            failed = e
    raise _wrong_socket(peer, failed)


def _serves_pod_resources(peer: GrpcSocket) -> bool:
    try:
        peer.call(f"{_V1}/List", timeout=_SHORT)
    except CallFailed as e:
        return e.code != "UNIMPLEMENTED"
    return True


def _wrong_socket(peer: GrpcSocket, failed: CallFailed) -> DpctlError:
    """gRPC, but no PodResources: says which socket this is, and which is the right one."""
    message = f"{peer.path} does not serve PodResources ({failed.details[:200]})"
    directory, name = os.path.split(os.path.abspath(peer.path))
    wanted = os.path.join(os.path.dirname(directory), "pod-resources", "kubelet.sock")
    right = "you want the kubelet's pod-resources/kubelet.sock: `--pod-resources-socket"
    if name == "kubelet.sock" and os.path.basename(directory) != "pod-resources":
        return PeerError(
            f"{message}: it is the registration socket of device plugins",
            f"{right} {wanted}` (beside device-plugins unless the kubelet has a --root-dir)",
        )
    if name == _PODS:
        return PeerError(f"{message}: it is the Pods API's socket", f"{right} {wanted}`")
    if name != "kubelet.sock":
        for method, words in (
            (_OPTIONS, "it is a device plugin's own socket"),
            (_INFO, "it is a plugin's registration socket"),
        ):
            try:
                peer.call(method, timeout=_SHORT)
            except CallFailed:
                continue
            return PeerError(f"{message}: {words}", f"{right} PATH`")
    return PeerError(message, f"{right} PATH`; `dpctl env` shows what was found")
