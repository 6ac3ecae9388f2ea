"""`dra_manager_state`: the claims that are prepared on a node (kubelet-facts §5.6).

Bytes and model only. `Data` is a text here, an object in the device checkpoint.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from dpctl.errors import BadDataError
from dpctl.model.statefiles import (
    DraManagerState,
    PreparedClaim,
    PreparedDevice,
    PreparedDriver,
    StateChecksum,
)
from dpctl.statefiles import json_document as doc
from dpctl.statefiles.checksum import spew_text
from dpctl.statefiles.go_json import go_json, go_string
from dpctl.statefiles.halves import data_half, fault_of

WHAT = "the DRA manager's state"
_DATA = f"{WHAT}: Data"
VERSION = "checkpoint.dra.kubelet.k8s.io/v1"
_KIND = "DRACheckpoint"
_KEYS = ("Data", "Checksum")
_INNER = ("kind", "apiVersion", "ClaimInfoStateList")
_CLAIM = ("ClaimUID", "ClaimName", "Namespace", "PodUIDs", "DriverState")
_DRIVER = ("Devices", "skipNodeOperations")
_DEVICE = ("PoolName", "DeviceName", "ShareID", "RequestNames", "CDIDeviceIDs")


def parse_dra_manager_state(data: bytes, *, modified: float | None = None) -> DraManagerState:
    """The file's contents, whether its number fits or not. Never raises: `fault` says why a file
    cannot be decoded. `modified`: mtime of the file, Unix seconds."""
    try:
        return _parse(data)._replace(modified=modified)
    except BadDataError as e:
        return DraManagerState(None, fault=fault_of(e, data), modified=modified)


def _parse(data: bytes) -> DraManagerState:
    document = doc.members(WHAT, "the document", doc.load(data, WHAT))
    keys, unknown = doc.known(WHAT, "the document", document, _KEYS)
    text = doc.text(WHAT, "Data", keys.get("Data"))
    stored = doc.whole(WHAT, "Checksum", keys.get("Checksum"))
    number = StateChecksum("", "Checksum", stored, zlib.crc32(spew_text(text)))
    found, fault = data_half(_DATA, text, _inner)
    if found is None:
        return DraManagerState(None, checksums=(number,), data_fault=fault, unknown_keys=unknown)
    version, claims, others = found
    newer = (*unknown, *(f"Data.{key}" for key in others))
    return DraManagerState(version, claims, (number,), unknown_keys=newer)


def _inner(value: object) -> tuple[str, tuple[PreparedClaim, ...], tuple[str, ...]]:
    keys, others = doc.known(_DATA, "the text", value, _INNER)
    claims = _list("ClaimInfoStateList", keys.get("ClaimInfoStateList"))
    version = doc.text(_DATA, "apiVersion", keys.get("apiVersion"))
    found = (_claim(f"ClaimInfoStateList[{index}]", item) for index, item in enumerate(claims))
    return version, tuple(found), others


def _claim(path: str, value: object) -> PreparedClaim:
    fields, _ = doc.known(_DATA, path, value, _CLAIM)
    pods = fields.get("PodUIDs") or {}
    drivers = fields.get("DriverState") or {}
    return PreparedClaim(
        uid=doc.text(_DATA, f"{path}.ClaimUID", fields.get("ClaimUID")),
        name=doc.text(_DATA, f"{path}.ClaimName", fields.get("ClaimName")),
        namespace=doc.text(_DATA, f"{path}.Namespace", fields.get("Namespace")),
        pod_uids=tuple(sorted(doc.members(_DATA, f"{path}.PodUIDs", pods))),
        drivers={
            name: _driver(f"{path}.DriverState.{name}", item)
            for name, item in doc.members(_DATA, f"{path}.DriverState", drivers).items()
        },
    )


def _driver(path: str, value: object) -> PreparedDriver:
    fields, _ = doc.known(_DATA, path, value, _DRIVER)
    devices = _list(f"{path}.Devices", fields.get("Devices"))
    skip = doc.texts(_DATA, f"{path}.skipNodeOperations", fields.get("skipNodeOperations"))
    return PreparedDriver(
        tuple(_device(f"{path}.Devices[{index}]", item) for index, item in enumerate(devices)),
        tuple(skip or ()),
    )


def _device(path: str, value: object) -> PreparedDevice:
    fields, _ = doc.known(_DATA, path, value, _DEVICE)
    share = fields.get("ShareID")
    return PreparedDevice(
        pool=doc.text(_DATA, f"{path}.PoolName", fields.get("PoolName")),
        device=doc.text(_DATA, f"{path}.DeviceName", fields.get("DeviceName")),
        share_id=None if share is None else doc.text(_DATA, f"{path}.ShareID", share),
        requests=tuple(doc.texts(_DATA, f"{path}.RequestNames", fields.get("RequestNames")) or ()),
        cdi_devices=tuple(
            doc.texts(_DATA, f"{path}.CDIDeviceIDs", fields.get("CDIDeviceIDs")) or ()
        ),
    )


def _list(path: str, value: object) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise doc.wrong(_DATA, path, value, "a list")
    return value


def encode_dra_manager_state(claims: Sequence[PreparedClaim]) -> bytes:
    """The file as a kubelet of 1.34 or newer writes it."""
    inner = {
        "kind": _KIND,
        "apiVersion": VERSION,
        "ClaimInfoStateList": [_claim_json(claim) for claim in claims] or None,
    }
    text = go_json(inner)
    return go_json({"Data": text.decode(), "Checksum": zlib.crc32(text)})


def _claim_json(claim: PreparedClaim) -> dict[str, object]:
    return {
        "ClaimUID": claim.uid,
        "ClaimName": claim.name,
        "Namespace": claim.namespace,
        "PodUIDs": {uid: {} for uid in sorted(map(go_string, claim.pod_uids))},
        "DriverState": {
            name: _driver_json(driver)
            for name, driver in sorted((go_string(n), d) for n, d in claim.drivers.items())
        },
    }


def _driver_json(driver: PreparedDriver) -> dict[str, object]:
    found: dict[str, object] = {
        "Devices": [
            {
                "PoolName": device.pool,
                "DeviceName": device.device,
                "ShareID": device.share_id,
                "RequestNames": list(device.requests) or None,
                "CDIDeviceIDs": list(device.cdi_devices) or None,
            }
            for device in driver.devices
        ]
        or None
    }
    if driver.skip_node_operations:
        found["skipNodeOperations"] = list(driver.skip_node_operations)
    return found
