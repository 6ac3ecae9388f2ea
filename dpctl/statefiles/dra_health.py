"""`dra_health_state`: what DRA drivers said of their devices' health (kubelet-facts §1.1).

Bytes and model only. Plain JSON without a checksum.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpctl.errors import BadDataError
from dpctl.model.statefiles import DraDeviceHealth, DraHealthState
from dpctl.statefiles import json_document as doc
from dpctl.statefiles.go_json import go_json, go_string
from dpctl.statefiles.halves import fault_of

WHAT = "the DRA health state"
_DRIVER = ("Devices",)
_DEVICE = ("PoolName", "DeviceName", "Health", "LastUpdated", "HealthCheckTimeout", "Message")
_NANOSECONDS = 1_000_000_000
_NEVER = "0001-01-01T00:00:00Z"


def parse_dra_health_state(data: bytes, *, modified: float | None = None) -> DraHealthState:
    """Never raises: `fault` says why a file cannot be decoded. `modified`: Unix seconds."""
    try:
        return _parse(data)._replace(modified=modified)
    except BadDataError as e:
        return DraHealthState(fault=fault_of(e, data), modified=modified)


def _parse(data: bytes) -> DraHealthState:
    found: list[DraDeviceHealth] = []
    unknown: dict[str, None] = {}
    for driver, item in doc.members(WHAT, "the document", doc.load(data, WHAT)).items():
        fields, others = doc.known(WHAT, driver, item, _DRIVER)
        unknown.update(dict.fromkeys(others))
        devices = fields.get("Devices") or {}
        for key, value in doc.members(WHAT, f"{driver}.Devices", devices).items():
            device, others = _device(driver, f"{driver}.Devices.{key}", value)
            unknown.update(dict.fromkeys(others))
            found.append(device)
    return DraHealthState(tuple(found), unknown_keys=tuple(unknown))


def _device(driver: str, path: str, value: object) -> tuple[DraDeviceHealth, tuple[str, ...]]:
    fields, others = doc.known(WHAT, path, value, _DEVICE)
    timeout = doc.whole(
        WHAT, f"{path}.HealthCheckTimeout", fields.get("HealthCheckTimeout"), signed=True
    )
    updated = doc.text(WHAT, f"{path}.LastUpdated", fields.get("LastUpdated"))
    device = DraDeviceHealth(
        driver=driver,
        pool=doc.text(WHAT, f"{path}.PoolName", fields.get("PoolName")),
        device=doc.text(WHAT, f"{path}.DeviceName", fields.get("DeviceName")),
        health=doc.text(WHAT, f"{path}.Health", fields.get("Health")),
        updated=updated if updated not in ("", _NEVER) else None,
        timeout=timeout / _NANOSECONDS if timeout else None,
        message=doc.text(WHAT, f"{path}.Message", fields.get("Message")) or None,
    )
    return device, others


def encode_dra_health_state(devices: Sequence[DraDeviceHealth]) -> bytes:
    """The file as a kubelet of 1.37 writes it; of one device's entries the last counts."""
    drivers: dict[str, dict[str, object]] = {}
    for device in devices:
        key = go_string(f"{device.pool}/{device.device}")
        drivers.setdefault(go_string(device.driver), {})[key] = {
            "PoolName": device.pool,
            "DeviceName": device.device,
            "Health": device.health,
            "LastUpdated": device.updated or _NEVER,
            "HealthCheckTimeout": round((device.timeout or 0) * _NANOSECONDS),
            "Message": device.message or "",
        }
    return go_json(
        {name: {"Devices": dict(sorted(found.items()))} for name, found in sorted(drivers.items())}
    )
