"""ContainerAllocateResponse: what a plugin asked the runtime to give a container (kubelet-facts
§2.1); pure. A checkpoint is the only place where these bytes are read.
"""

from __future__ import annotations

from dpctl.errors import BadDataError
from dpctl.model import AllocResponse, DeviceSpec, Mount
from dpctl.statefiles.protobuf_wire import fields


def decode_alloc_response(data: bytes) -> AllocResponse:
    """The message in `data`; unknown fields are skipped, bytes that are no UTF-8 kept as lone
    surrogates. Raises BadDataError for what is no protobuf message."""
    try:
        return _decode(data)
    except BadDataError as e:
        raise BadDataError(
            f"a plugin's Allocate answer (AllocResp) cannot be decoded: {e.message}",
            "the entry's devices are still good; see `dpctl state devices -o json` for the raw"
            " bytes",
        ) from e


def _decode(data: bytes) -> AllocResponse:
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: list[Mount] = []
    devices: list[DeviceSpec] = []
    cdi_devices: list[str] = []
    for number, value in fields(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            key, text = _texts(value, 1, 2)
            envs[key] = text
        elif number == 2:
            container, host = _texts(value, 1, 2)
            mounts.append(Mount(container, host, _flag(value, 3)))
        elif number == 3:
            container, host, permissions = _texts(value, 1, 2, 3)
            devices.append(DeviceSpec(container, host, permissions))
        elif number == 4:
            key, text = _texts(value, 1, 2)
            annotations[key] = text
        elif number == 5:
            cdi_devices += _texts(value, 1)
    return AllocResponse(envs, tuple(mounts), tuple(devices), annotations, tuple(cdi_devices))


def _texts(data: bytes, *numbers: int) -> list[str]:
    """The string fields with these numbers; the last of several counts, a missing one is empty."""
    found = {
        number: value.decode("utf-8", "surrogateescape")
        for number, value in fields(data)
        if isinstance(value, bytes)
    }
    return [found.get(number, "") for number in numbers]


def _flag(data: bytes, wanted: int) -> bool:
    found = False
    for number, value in fields(data):
        if number == wanted and isinstance(value, int):
            found = value != 0
    return found
