"""CDI specifications: which devices `/etc/cdi` and `/var/run/cdi` offer to the container runtime.

The rules are those of the CDI specification and of the library that containerd and CRI-O read it
with: files `*.json` and `*.yaml` of the directory itself, in either syntax; one broken file counts
for nothing and the others do. Which file answers for a name is the inventory's to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from dpctl.env import resolve_inside
from dpctl.errors import BadDataError, DpctlError, UnreachableError
from dpctl.model import CdiDevice, CdiSpec
from dpctl.names import is_cdi_device, is_cdi_kind
from dpctl.sources.files import file_error, read_bounded
from dpctl.sources.yaml_document import parse_document
from dpctl.text import shorten

CDI_DIRECTORIES = ("/etc/cdi", "/var/run/cdi")
"""In ascending priority."""
_LARGEST_FILE = 2 << 20
_MOST_BYTES = 16 << 20
_MOST_FILES = 1000
_MOST_NAMES = 100_000
_SUFFIXES = (".json", ".yaml")

_VERSIONS = (
    "0.1.0",
    "0.2.0",
    "0.3.0",
    "0.4.0",
    "0.5.0",
    "0.6.0",
    "0.7.0",
    "0.8.0",
    "1.0.0",
    "1.1.0",
)


def read_cdi(host_root: str) -> tuple[CdiSpec, ...]:
    """Every specification, a broken one with its error; in order of directory and name.

    A directory that is not there is empty. Raises DpctlError for one that may not be read.
    """
    found: list[CdiSpec] = []
    left = _MOST_BYTES
    for priority, directory in enumerate(CDI_DIRECTORIES):
        for name in _names(host_root, directory):
            path = f"{directory}/{name}"
            try:
                if len(found) >= _MOST_FILES or left <= 0:
                    raise BadDataError("not read: the files before it are too many or too large")
                where = _inside(host_root, path)
                data = read_bounded(where, min(left, _LARGEST_FILE))
                left -= len(data)
                found.append(parse_cdi_spec(data, path, priority))
            except DpctlError as e:
                found.append(
                    CdiSpec(path, priority, error=shorten(e.message.removeprefix(f"{path}: "), 300))
                )
    return tuple(found)


def parse_cdi_spec(data: bytes, path: str, priority: int) -> CdiSpec:
    """Raises BadDataError for what a runtime does not load. Fields of later versions pass."""
    spec = _mapping(parse_document(data, path), "the file")
    version, kind = _text(spec, "cdiVersion").removeprefix("v"), _text(spec, "kind")
    if version not in _VERSIONS:
        raise BadDataError(
            f"cdiVersion {shorten(version, 40)!r} is none of {_VERSIONS[0]} to {_VERSIONS[-1]}"
        )
    if not is_cdi_kind(kind):
        raise BadDataError(f"kind {shorten(kind, 80)!r} is no vendor/class")
    devices: dict[str, CdiDevice] = {}
    for item in _list(spec, "devices"):
        device = _mapping(item, "a device")
        name = _text(device, "name")
        if not is_cdi_device(name):
            raise BadDataError(f"{shorten(name, 80)!r} is no device name")
        if name in devices:
            raise BadDataError(f"device {name} is there twice")
        edits = _edits(device)
        if not any(edits.values()):
            raise BadDataError(f"device {name} has empty containerEdits")
        devices[name] = CdiDevice(name, _device_nodes(edits))
    if not devices:
        raise BadDataError("it has no devices")
    needed = max(_needed_versions(spec, kind), key=_VERSIONS.index)
    if _VERSIONS.index(needed) > _VERSIONS.index(version):
        raise BadDataError(f"it uses what CDI {needed} brought, and says {version}")
    return CdiSpec(
        path, priority, kind, version, tuple(devices.values()), _device_nodes(_edits(spec))
    )


def _device_nodes(edits: Mapping[str, Any]) -> tuple[str, ...]:
    paths = []
    for item in _list(edits, "deviceNodes"):
        node = _mapping(item, "a device node")
        inside = _text(node, "path")
        # With type and number the runtime makes the node without looking at the host's.
        if node.get("type") != "p" and not (node.get("type") and node.get("major")):
            paths.append(_text(node, "hostPath") or inside)
    return tuple(dict.fromkeys(paths))


def _needed_versions(spec: Mapping[str, Any], kind: str) -> Iterator[str]:
    """What the features in use ask for, as the library counts."""
    yield _VERSIONS[0]
    if spec.get("annotations") or "." in kind.partition("/")[2]:
        yield "0.6.0"
    for part in (spec, *(_mapping(item, "a device") for item in _list(spec, "devices"))):
        edits = _edits(part)
        if part is not spec:
            if part.get("annotations"):
                yield "0.6.0"
            if not _text(part, "name")[:1].isalpha():
                yield "0.5.0"
        if edits.get("intelRdt") or edits.get("additionalGids"):
            yield "0.7.0"
        if any(_mapping(n, "a device node").get("hostPath") for n in _list(edits, "deviceNodes")):
            yield "0.5.0"
        if any(_mapping(m, "a mount").get("type") for m in _list(edits, "mounts")):
            yield "0.4.0"


def _edits(part: Mapping[str, Any]) -> Mapping[str, Any]:
    found = part.get("containerEdits")
    return {} if found is None else _mapping(found, "containerEdits")


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadDataError(f"{what} is no mapping")
    return value


def _list(part: Mapping[str, Any], key: str) -> list[Any]:
    found = part.get(key)
    if found is not None and not isinstance(found, list):
        raise BadDataError(f"{key} is no list")
    return found or []


def _text(part: Mapping[str, Any], key: str) -> str:
    """YAML has `name: 0` for a number, which the library reads as text."""
    found = part.get(key)
    if isinstance(found, str | int | float):
        return str(found)
    if found is not None:
        raise BadDataError(f"{key} is no text")
    return ""


def _names(root: str, directory: str) -> list[str]:
    where = _inside(root, directory)
    try:
        with os.scandir(where) as entries:
            names = [
                entry.name
                for entry in islice(entries, _MOST_NAMES)
                if entry.name.endswith(_SUFFIXES) and not entry.is_dir(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as e:
        raise file_error(e, where) from e
    return sorted(names)


def _inside(root: str, path: str) -> str:
    try:
        return resolve_inside(root, path)
    except OSError as e:
        raise UnreachableError(f"{e.strerror or e}") from e
