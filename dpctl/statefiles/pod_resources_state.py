"""`allocated_pods_state` and `actuated_pods_state`: requests and limits as granted, and as the
runtime has them (in-place resize; kubelet-facts §5.7).

Bytes and model only; both files have one format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpctl.errors import BadDataError
from dpctl.model.statefiles import PodResourcesState, RecordedPod, RecordedResources, StateChecksum
from dpctl.statefiles import json_document as doc
from dpctl.statefiles.go_json import go_json, go_string
from dpctl.statefiles.halves import data_half, fault_of, text_checksum

WHAT = "the pods' resources"
_DATA = f"{WHAT}: data"
_KEYS = ("data", "checksum")
_POD = ("ContainerResources", "PodLevelResources", "EmptyDirVolumeLimits")
_RESOURCES = ("limits", "requests", "claims")


def parse_pod_resources_state(data: bytes, *, modified: float | None = None) -> PodResourcesState:
    """The file's contents, whether its number fits or not. Never raises: `fault` says why a file
    cannot be decoded. `modified`: mtime of the file, Unix seconds."""
    try:
        return _parse(data)._replace(modified=modified)
    except BadDataError as e:
        return PodResourcesState(fault=fault_of(e, data), modified=modified)


def _parse(data: bytes) -> PodResourcesState:
    document = doc.members(WHAT, "the document", doc.load(data, WHAT))
    keys, unknown = doc.known(WHAT, "the document", document, _KEYS)
    text = doc.text(WHAT, "data", keys.get("data"))
    stored = doc.whole(WHAT, "checksum", keys.get("checksum"))
    number = StateChecksum("", "checksum", stored, text_checksum(text))
    found, fault = data_half(_DATA, text, _inner)
    if found is None:
        return PodResourcesState(checksums=(number,), data_fault=fault, unknown_keys=unknown)
    pods, others = found
    newer = (*unknown, *dict.fromkeys(f"data.{key}" for key in others))
    return PodResourcesState(pods, (number,), unknown_keys=newer)


def _inner(value: object) -> tuple[tuple[RecordedPod, ...], tuple[str, ...]]:
    keys, others = doc.known(_DATA, "the text", value, ("entries",))
    unknown = list(others)
    pods: list[RecordedPod] = []
    for uid, item in doc.members(_DATA, "entries", keys.get("entries") or {}).items():
        path = f"entries.{uid}"
        fields, others = doc.known(_DATA, path, item, _POD)
        unknown += others
        containers = fields.get("ContainerResources") or {}
        pod_level = fields.get("PodLevelResources")
        volumes = fields.get("EmptyDirVolumeLimits")
        pods.append(
            RecordedPod(
                uid,
                {
                    name: _resources(f"{path}.{name}", one)
                    for name, one in doc.members(_DATA, path, containers).items()
                },
                None if pod_level is None else _resources(path, pod_level),
                None if volumes is None else _volumes(path, volumes),
            )
        )
    return tuple(pods), tuple(unknown)


def _resources(path: str, value: object) -> RecordedResources:
    fields, _ = doc.known(_DATA, path, value, _RESOURCES)
    return RecordedResources(
        _quantities(f"{path}.requests", fields.get("requests")),
        _quantities(f"{path}.limits", fields.get("limits")),
    )


def _quantities(path: str, value: object) -> dict[str, str]:
    items = doc.members(_DATA, path, value or {}).items()
    return {name: _quantity(f"{path}.{name}", item) for name, item in items}


def _quantity(path: str, value: object) -> str:
    """Go reads plain numbers, too, and null as 0."""
    if value is None:
        return "0"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return doc.text(_DATA, path, value)


def _volumes(path: str, value: object) -> dict[str, str | None]:
    items = doc.members(_DATA, f"{path}.EmptyDirVolumeLimits", value).items()
    return {name: None if item is None else _quantity(path, item) for name, item in items}


def encode_pod_resources_state(pods: Sequence[RecordedPod], *, minor: int = 37) -> bytes:
    """The file as a kubelet of that minor writes it: 1.37 adds EmptyDirVolumeLimits."""
    entries: dict[str, object] = {}
    for pod in pods:
        entry: dict[str, object] = {
            "ContainerResources": {
                name: _resources_json(one)
                for name, one in sorted((go_string(n), r) for n, r in pod.containers.items())
            },
            "PodLevelResources": None if pod.pod_level is None else _resources_json(pod.pod_level),
        }
        if minor >= 37:
            limits = pod.empty_dirs
            entry["EmptyDirVolumeLimits"] = None if limits is None else _sorted(limits)
        entries[go_string(pod.uid)] = entry
    text = go_json({"entries": dict(sorted(entries.items()))} if entries else {}).decode()
    return go_json({"data": text, "checksum": text_checksum(text)})


def _resources_json(resources: RecordedResources) -> dict[str, object]:
    found = {"limits": resources.limits, "requests": resources.requests}
    return {key: _sorted(quantities) for key, quantities in found.items() if quantities}


def _sorted(items: Mapping[str, str | None]) -> dict[str, str | None]:
    return dict(sorted((go_string(name), value) for name, value in items.items()))
