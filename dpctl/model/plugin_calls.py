"""What one plugin answers when it is asked by hand. Named tuples, no behaviour."""

from __future__ import annotations

from typing import NamedTuple

from dpctl.model.host import ListedDevice
from dpctl.model.kubelet import AllocResponse

RECEIVE_LIMIT = 4 << 20
"""Bytes of a message that a kubelet takes: grpc-go's default (kubelet-facts §3.3)."""


class DeviceMessage(NamedTuple):
    """One ListAndWatch message."""

    devices: tuple[ListedDevice, ...]
    """As sent: order, duplicates and NUMA nodes below 0 too."""
    size: int
    """Bytes on the wire."""
    sound: bool = True
    """Texts are UTF-8. Otherwise a kubelet cannot decode the message and drops the stream."""


class AllocateAnswer(NamedTuple):
    """The answer to Allocate with one container's request."""

    containers: tuple[AllocResponse, ...]
    """The kubelet uses the first one alone, and refuses an answer without (kubelet-facts §6.2)."""
    raw: bytes
    sound: bool = True
    """False: a kubelet cannot decode it, as a text in it is no UTF-8."""
