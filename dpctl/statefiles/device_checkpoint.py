"""`kubelet_internal_checkpoint`: what the device manager remembers (kubelet-facts §5.1, §5.2).

Both forms: device IDs by NUMA node (1.20 and newer) and the flat list before. Bytes and model only;
reading the file belongs to `sources.checkpoint`, judging it to `doctor` and `state verify`.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpctl.errors import BadDataError
from dpctl.model import Allocation, AllocResponse, Checkpoint
from dpctl.statefiles import json_document as doc
from dpctl.statefiles.alloc_response import decode_alloc_response
from dpctl.statefiles.checksum import (
    NIL,
    fnv1a_32,
    spew_bytes,
    spew_list,
    spew_map,
    spew_text,
)
from dpctl.statefiles.go_json import go_json

__all__ = [
    "decode_alloc_response",
    "encode_checkpoint",
    "parse_checkpoint",
    "registered_resources",
]

WHAT = "the device checkpoint"
_LARGEST_CHECKSUM = 2**64 - 1
_NUMA_KEY = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NO_TOPOLOGY = -1

_Registered = Mapping[str, "list[str] | None"]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One PodDeviceEntry, nil kept apart from empty: the checksum sees the difference."""

    pod_uid: str
    container: str
    resource: str
    devices: dict[int, list[str] | None] | list[str] | None
    alloc_resp: bytes | None

    def allocation(self) -> Allocation:
        flat = isinstance(self.devices, list)
        by_node: dict[int, tuple[str, ...]] = {}
        if isinstance(self.devices, list):
            by_node[_NO_TOPOLOGY] = tuple(self.devices)
        elif self.devices is not None:
            by_node = {node: tuple(ids or ()) for node, ids in self.devices.items()}
        return Allocation(
            pod_uid=self.pod_uid,
            container=self.container,
            resource=self.resource,
            devices=by_node,
            alloc_resp=self.alloc_resp,
            answer=_answer(self.alloc_resp),
            flat=flat,
        )


def parse_checkpoint(data: bytes, *, modified: float | None = None) -> Checkpoint:
    """The file's contents, whether the checksum fits or not (`Checkpoint.verified` says).

    `modified`: mtime of the file, Unix seconds. Raises BadDataError for what no kubelet could
    decode: not JSON, a wrong type, AllocResp that is no base64, a key twice.
    """
    document = doc.members(WHAT, "the document", doc.load(data, WHAT))
    content = document.get("Data")
    content = {} if content is None else doc.members(WHAT, "Data", content)
    entries = _entries(content)
    registered = _registered(content)
    return Checkpoint(
        allocations=tuple(entry.allocation() for entry in entries or ()),
        registered={name: tuple(ids or ()) for name, ids in (registered or {}).items()},
        stored_checksum=_checksum(document.get("Checksum")),
        computed_checksum=fnv1a_32(hashed_text(entries, registered)),
        modified=modified,
    )


def registered_resources(data: bytes) -> tuple[str, ...]:
    """The names in RegisteredDevices, sorted; the rest of the file is not looked at, nor its
    checksum (TAB has no time for it). Raises BadDataError."""
    document = doc.members(WHAT, "the document", doc.load(data, WHAT))
    content = document.get("Data")
    content = {} if content is None else doc.members(WHAT, "Data", content)
    return tuple(sorted(_registered(content) or {}))


def encode_checkpoint(
    allocations: Sequence[Allocation], registered: Mapping[str, Sequence[str]]
) -> bytes:
    """The file as a kubelet of 1.20 or newer writes it: one line, NUMA form, a fitting checksum.

    Flat allocations are written under the node where the model keeps them (-1). Bytes that are no
    UTF-8 (lone surrogates) are stored, and hashed, as U+FFFD.
    """
    entries = [
        _Entry(
            a.pod_uid,
            a.container,
            a.resource,
            {node: list(ids) for node, ids in a.devices.items()},
            a.alloc_resp,
        )
        for a in allocations
    ]
    # The Go writer gives a nil slice when no pod holds a device: `null`, not `[]`.
    names: dict[str, list[str] | None] = {
        spew_text(name).decode(): list(ids) for name, ids in registered.items()
    }
    checksum = fnv1a_32(hashed_text(entries or None, names))
    content = {
        "PodDeviceEntries": [_entry_json(entry) for entry in entries] or None,
        "RegisteredDevices": dict(sorted(names.items())),
    }
    return go_json({"Data": content, "Checksum": checksum})


def hashed_text(entries: Sequence[_Entry] | None, registered: _Registered | None) -> bytes:
    """The text under the checksum: the Go value as go-spew shows it."""
    # One old entry makes the file an old one: then a nil device list has the old type, too.
    flat = any(isinstance(entry.devices, list) for entry in entries or ())
    parts = [b"(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)"]
    if entries is None:
        parts.append(NIL)
    else:
        parts += (b"[", b" ".join(_spew_entry(entry, flat) for entry in entries), b"]")
    parts += (b" RegisteredDevices:(map[string][]string)", _spew_registered(registered), b"}")
    return b"".join(parts)


def _spew_entry(entry: _Entry, flat: bool) -> bytes:
    devices = entry.devices
    if isinstance(devices, list):
        shown = spew_list(devices)
    elif devices is None:
        shown = NIL
    else:  # numeric order, whereas JSON sorts the keys as strings
        shown = spew_map((b"%d" % node, spew_list(devices[node])) for node in sorted(devices))
    return b"".join(
        (
            b"{PodUID:(string)",
            spew_text(entry.pod_uid),
            b" ContainerName:(string)",
            spew_text(entry.container),
            b" ResourceName:(string)",
            spew_text(entry.resource),
            b" DeviceIDs:([]string)" if flat else b" DeviceIDs:(checkpoint.DevicesPerNUMA)",
            shown,
            b" AllocResp:([]uint8)",
            spew_bytes(entry.alloc_resp),
            b"}",
        )
    )


def _spew_registered(registered: _Registered | None) -> bytes:
    if registered is None:
        return NIL
    # By bytes; names that differ only in bytes that are no UTF-8 would be one key for Go.
    names = {spew_text(name): spew_list(ids) for name, ids in registered.items()}
    return spew_map(sorted(names.items()))


def _entries(content: Mapping[str, object]) -> list[_Entry] | None:
    # A missing key is an empty list, `null` a nil one: the kubelet fills the value before it reads.
    value = content.get("PodDeviceEntries", [])
    if value is None:
        return None
    if not isinstance(value, list):
        raise doc.wrong(WHAT, "PodDeviceEntries", value, "a list")
    return [_entry(item, f"PodDeviceEntries[{index}]") for index, item in enumerate(value)]


def _entry(value: object, path: str) -> _Entry:
    item = {} if value is None else doc.members(WHAT, path, value)
    return _Entry(
        pod_uid=doc.text(WHAT, f"{path}.PodUID", item.get("PodUID")),
        container=doc.text(WHAT, f"{path}.ContainerName", item.get("ContainerName")),
        resource=doc.text(WHAT, f"{path}.ResourceName", item.get("ResourceName")),
        devices=_device_ids(item.get("DeviceIDs"), f"{path}.DeviceIDs"),
        alloc_resp=_alloc_resp(item.get("AllocResp"), f"{path}.AllocResp"),
    )


def _device_ids(value: object, path: str) -> dict[int, list[str] | None] | list[str] | None:
    if value is None:
        return None
    if isinstance(value, list):
        return doc.texts(WHAT, path, value)
    if not isinstance(value, dict):
        raise doc.wrong(WHAT, path, value, "an object (NUMA node to device IDs) or a list")
    found: dict[int, list[str] | None] = {}
    for key, ids in value.items():
        node = int(key) if _NUMA_KEY.fullmatch(key) else None
        if node is None or not -(2**63) <= node < 2**63:
            raise doc.damaged(WHAT, f"{path} has {doc.kind(key)} where a NUMA node is wanted")
        if node in found:
            raise doc.damaged(WHAT, f"{path} has NUMA node {node} twice")
        found[node] = doc.texts(WHAT, f"{path}.{node}", ids)
    return found


def _alloc_resp(value: object, path: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise doc.wrong(WHAT, path, value, "base64 text")
    try:
        # Go's decoder skips line ends and is strict about the rest.
        return binascii.a2b_base64(value.replace("\r", "").replace("\n", ""), strict_mode=True)
    except ValueError as e:
        raise doc.damaged(WHAT, f"{path} is not base64: {e}") from e


def _answer(alloc_resp: bytes | None) -> AllocResponse | None:
    if alloc_resp is None:
        return None
    try:
        return decode_alloc_response(alloc_resp)
    except BadDataError:
        return None  # the kubelet keeps these bytes unread; so may a file, whatever they are


def _registered(content: Mapping[str, object]) -> _Registered | None:
    value = content.get("RegisteredDevices", {})
    if value is None:
        return None
    names = doc.members(WHAT, "RegisteredDevices", value)
    return {name: doc.texts(WHAT, f"RegisteredDevices.{name}", ids) for name, ids in names.items()}


def _checksum(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_CHECKSUM:
        return value
    raise doc.wrong(WHAT, "Checksum", value, "a whole number of 64 bits")


def _entry_json(entry: _Entry) -> dict[str, object]:
    devices = entry.devices if isinstance(entry.devices, dict) else {}
    alloc_resp = entry.alloc_resp
    if alloc_resp is not None:
        encoded: str | None = binascii.b2a_base64(alloc_resp, newline=False).decode()
    else:
        encoded = None
    return {
        "PodUID": entry.pod_uid,
        "ContainerName": entry.container,
        "ResourceName": entry.resource,
        "DeviceIDs": dict(sorted((str(node), ids) for node, ids in devices.items())),
        "AllocResp": encoded,
    }
