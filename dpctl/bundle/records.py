"""A bundle's own JSON files to and from the model: `meta.json`, `proc.json`, `podnames.json`,
`podsapi.json`, `poddirs.json`, `hostpaths.json`, `cdi.json`, `device-plugins/sockets.json`. Pure.

camelCase names of the model's fields; times RFC 3339 with microseconds. Files that other programs
write (kubectl, grpcurl, knit, ls) are decoded by their sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from dpctl.errors import BadDataError
from dpctl.model import (
    CdiDevice,
    CdiSpec,
    DirectoryEntry,
    DirectoryListing,
    HostPath,
    Kubelet,
    PodName,
    Process,
    SocketState,
    SocketTable,
    UnixSocket,
)
from dpctl.model.statefiles import KubeletPod
from dpctl.sources.json_fields import Field, parse_json
from dpctl.text import shorten

_TIMES = frozenset({"modified", "started"})


@dataclass(frozen=True, slots=True)
class Meta:
    """`meta.json`: when, where and of what the bundle was made. None: not said."""

    collected_at: float | None = None
    kubelet_version: str | None = None
    boot_id: str | None = None
    node_name: str | None = None


def encode_meta(meta: Meta) -> bytes:
    return _document(
        {
            "collectedAt": _time(meta.collected_at),
            "kubeletVersion": meta.kubelet_version,
            "bootID": meta.boot_id,
            "nodeName": meta.node_name,
        }
    )


def parse_meta(data: bytes) -> Meta:
    """Raises BadDataError, as all `parse_` here, naming the field."""
    root = _root(data, "meta.json")
    return Meta(
        collected_at=root.at("collectedAt").time(),
        kubelet_version=root.at("kubeletVersion").text() or None,
        boot_id=root.at("bootID").text() or None,
        node_name=root.at("nodeName").text() or None,
    )


def encode_sockets(directory: DirectoryListing | None, table: SocketTable | None) -> bytes:
    """The listing of device-plugins/ with inodes and devices, and the kernel's socket table; None:
    could not be read."""
    return _document(
        {
            "directory": _plain(directory),
            "sockets": None if table is None else [_plain(row) for row in table.sockets],
        }
    )


def parse_sockets(data: bytes) -> tuple[DirectoryListing | None, SocketTable | None]:
    root = _root(data, "sockets.json")
    directory, sockets = root.at("directory"), root.at("sockets")
    return (
        None if directory.value is None else _listing(directory),
        None if sockets.value is None else SocketTable(tuple(map(_socket, sockets.items()))),
    )


def encode_proc(kubelets: Iterable[Kubelet] | None, processes: Mapping[int, Process]) -> bytes:
    """Kubelets (None: not looked for), and the processes behind sockets."""
    return _document(
        {
            "kubelets": None if kubelets is None else [_plain(kubelet) for kubelet in kubelets],
            "processes": [_plain(processes[pid]) for pid in sorted(processes)],
        }
    )


def parse_proc(data: bytes) -> tuple[tuple[Kubelet, ...] | None, dict[int, Process]]:
    root = _root(data, "proc.json")
    kubelets = root.at("kubelets")
    processes = (_process(item) for item in root.at("processes").items())
    return (
        None if kubelets.value is None else tuple(_kubelet(item) for item in kubelets.items()),
        {process.pid: process for process in processes},
    )


def encode_pod_names(names: Iterable[PodName]) -> bytes:
    return _document({"pods": [_plain(name) for name in names]})


def parse_pod_names(data: bytes) -> tuple[PodName, ...]:
    return tuple(
        PodName(
            uid=item.at("uid").needed_text(),
            namespace=item.at("namespace").needed_text(),
            name=item.at("name").needed_text(),
        )
        for item in _root(data, "podnames.json").at("pods").items()
    )


def encode_kubelet_pods(pods: Iterable[KubeletPod]) -> bytes:
    """What the Pods API said, as far as it names UIDs."""
    return _document({"pods": [_plain(pod) for pod in pods]})


def parse_kubelet_pods(data: bytes) -> tuple[KubeletPod, ...]:
    return tuple(
        KubeletPod(
            uid=item.at("uid").needed_text(),
            namespace=item.at("namespace").needed_text(),
            name=item.at("name").needed_text(),
            phase=item.at("phase").text(),
        )
        for item in _root(data, "podsapi.json").at("pods").items()
    )


def encode_pod_dirs(uids: Iterable[str]) -> bytes:
    """UIDs of the kubelet's `pods/` directory."""
    return _document({"uids": list(uids)})


def parse_pod_dirs(data: bytes) -> tuple[str, ...]:
    return _root(data, "poddirs.json").at("uids").texts()


def encode_host_paths(paths: Mapping[str, HostPath]) -> bytes:
    """What was at the paths that plugins asked for."""
    return _document({"paths": {path: _plain(found) for path, found in paths.items()}})


def parse_host_paths(data: bytes) -> dict[str, HostPath]:
    return {
        path: HostPath(
            kind=found.at("kind").text(),
            mode=found.at("mode").whole(),
            number=found.at("number").text(),
            linked=None if found.at("linked").value is None else found.at("linked").flag(),
            reason=found.at("reason").text(),
        )
        for path, found in _root(data, "hostpaths.json").at("paths").fields()
    }


def encode_cdi(specs: Iterable[CdiSpec]) -> bytes:
    """What the CDI directories held, without what is injected into containers."""
    return _document({"specs": [_plain(spec) for spec in specs]})


def parse_cdi(data: bytes) -> tuple[CdiSpec, ...]:
    return tuple(
        CdiSpec(
            path=item.at("path").needed_text(),
            priority=item.at("priority").needed_whole(),
            kind=item.at("kind").text() or "",
            version=item.at("version").text() or "",
            devices=tuple(
                CdiDevice(each.at("name").needed_text(), each.at("deviceNodes").texts())
                for each in item.at("devices").items()
            ),
            device_nodes=item.at("deviceNodes").texts(),
            error=item.at("error").text(),
        )
        for item in _root(data, "cdi.json").at("specs").items()
    )


def encode_socket_state(state: SocketState, detail: str | None) -> bytes:
    """How a socket behaved where no answer of its own tells (`plugins/<endpoint>/state.json`)."""
    return _document({"state": str(state), "detail": detail})


def parse_socket_state(data: bytes) -> tuple[SocketState, str | None]:
    root = _root(data, "the socket's record")
    word = root.at("state").needed_text()
    if word not in list(SocketState):
        raise BadDataError(f"state is {shorten(word, 40)!r}, no state of a socket")
    return SocketState(word), root.at("detail").text()


def endpoint_folder(endpoint: str) -> str:
    """The folder below `plugins/` for an endpoint; `a/b.sock` of a sub-directory is one, too."""
    return endpoint.replace("%", "%25").replace("/", "%2F")


def folder_endpoint(folder: str) -> str:
    return folder.replace("%2F", "/").replace("%25", "%")


# --- decoding ---


def _root(data: bytes, name: str) -> Field:
    root = Field(parse_json(data, name), "")
    if not isinstance(root.value, dict):
        raise Field(root.value, name).wrong("an object")
    return root


def _listing(field: Field) -> DirectoryListing:
    return DirectoryListing(
        path=field.at("path").needed_text(),
        entries=tuple(_entry(item) for item in field.at("entries").items()),
        inode=field.at("inode").whole(),
        device=field.at("device").whole(),
    )


def _entry(field: Field) -> DirectoryEntry:
    return DirectoryEntry(
        name=field.at("name").needed_text(),
        kind=field.at("kind").needed_text(),
        mode=field.at("mode").whole() or 0,
        uid=field.at("uid").whole() or 0,
        gid=field.at("gid").whole() or 0,
        inode=field.at("inode").whole(),
        device=field.at("device").whole(),
        modified=field.at("modified").time(),
        size=field.at("size").whole() or 0,
        link_target=field.at("linkTarget").text(),
    )


def _socket(field: Field) -> UnixSocket:
    return UnixSocket(
        inode=field.at("inode").needed_whole(),
        state=field.at("state").needed_text(),
        name=field.at("name").text(),
        file_inode=field.at("fileInode").whole(),
        device=field.at("device").whole(),
        peer=field.at("peer").whole(),
        pid=field.at("pid").whole(),
        peer_pids=tuple(item.needed_whole() for item in field.at("peerPids").items()),
        parent_inode=field.at("parentInode").whole(),
        parent_device=field.at("parentDevice").whole(),
        parent_known=field.at("parentKnown").flag(),
        other_namespace=field.at("otherNamespace").flag(),
        holders=tuple(item.needed_whole() for item in field.at("holders").items()),
    )


def _process(field: Field) -> Process:
    return Process(
        pid=field.at("pid").needed_whole(),
        command=field.at("command").text() or "",
        arguments=field.at("arguments").texts(),
        environment=field.at("environment").text_map(),
        pod_uid=field.at("podUid").text(),
        container_id=field.at("containerId").text(),
        started=field.at("started").time(),
    )


def _kubelet(field: Field) -> Kubelet:
    return Kubelet(
        pid=field.at("pid").needed_whole(),
        arguments=field.at("arguments").texts(),
        node_name=field.at("nodeName").text(),
        started=field.at("started").time(),
        config_path=field.at("configPath").text(),
        root_dir=field.at("rootDir").text(),
    )


# --- encoding ---


def _plain(value: object) -> object:
    """A record as a JSON object, its times as text."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {
            _camel(name): _time(item) if name in _TIMES else _plain(item)
            for name, item in zip(value._fields, value, strict=True)
        }
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def _document(value: object) -> bytes:
    # ASCII, so that undecodable bytes (lone surrogates) come back as they were.
    return json.dumps(value, indent=1).encode("ascii") + b"\n"
