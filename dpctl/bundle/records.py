"""A bundle's own JSON files to and from the model: `proc.json`, `podnames.json`, `podsapi.json`,
`poddirs.json`, `hostpaths.json`, `cdi.json`, `device-plugins/sockets.json` (`meta.json`: `meta`).
Pure.

camelCase names of the model's fields; times RFC 3339 with microseconds. Files that other programs
write (kubectl, grpcurl, knit, ls) are decoded by their sources.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from dpctl.errors import BadDataError, ExitCode
from dpctl.model import (
    CdiDevice,
    CdiSpec,
    DirectoryEntry,
    DirectoryListing,
    HostPath,
    Kubelet,
    PluginOptions,
    PodName,
    Process,
    RegistrySocket,
    SocketState,
    SocketTable,
    SourceRow,
    UnixSocket,
)
from dpctl.model.statefiles import KubeletPod
from dpctl.sources.json_fields import Field, parse_json, parse_time
from dpctl.text import shorten

_TIMES = frozenset({"modified", "started"})


def encode_sockets(directory: DirectoryListing | None, table: SocketTable | None) -> bytes:
    """The listing of device-plugins/ with inodes and devices, and the kernel's socket table; None:
    could not be read."""
    return encode_document(
        {
            "directory": _plain(directory),
            "sockets": None if table is None else [_plain(row) for row in table.sockets],
        }
    )


def parse_sockets(data: bytes) -> tuple[DirectoryListing | None, SocketTable | None]:
    root = root_of(data, "sockets.json")
    directory, sockets = root.at("directory"), root.at("sockets")
    return (
        None if directory.value is None else _listing(directory),
        None if sockets.value is None else SocketTable(tuple(map(_socket, sockets.items()))),
    )


def encode_proc(kubelets: Iterable[Kubelet] | None, processes: Mapping[int, Process]) -> bytes:
    """Kubelets (None: not looked for), and the processes behind sockets."""
    return encode_document(
        {
            "kubelets": None if kubelets is None else [_plain(kubelet) for kubelet in kubelets],
            "processes": [_plain(processes[pid]) for pid in sorted(processes)],
        }
    )


def parse_proc(data: bytes) -> tuple[tuple[Kubelet, ...] | None, dict[int, Process]]:
    root = root_of(data, "proc.json")
    kubelets = root.at("kubelets")
    processes = (_process(item) for item in root.at("processes").items())
    return (
        None if kubelets.value is None else tuple(_kubelet(item) for item in kubelets.items()),
        {process.pid: process for process in processes},
    )


def encode_pod_names(names: Iterable[PodName]) -> bytes:
    return encode_document({"pods": [_plain(name) for name in names]})


def parse_pod_names(data: bytes) -> tuple[PodName, ...]:
    return tuple(
        PodName(
            uid=item.at("uid").needed_text(),
            namespace=item.at("namespace").needed_text(),
            name=item.at("name").needed_text(),
        )
        for item in root_of(data, "podnames.json").at("pods").items()
    )


def encode_kubelet_pods(pods: Iterable[KubeletPod]) -> bytes:
    """What the Pods API said, as far as it names UIDs."""
    return encode_document({"pods": [_plain(pod) for pod in pods]})


def parse_kubelet_pods(data: bytes) -> tuple[KubeletPod, ...]:
    return tuple(
        KubeletPod(
            uid=item.at("uid").needed_text(),
            namespace=item.at("namespace").needed_text(),
            name=item.at("name").needed_text(),
            phase=item.at("phase").text(),
        )
        for item in root_of(data, "podsapi.json").at("pods").items()
    )


def encode_pod_dirs(uids: Iterable[str]) -> bytes:
    """UIDs of the kubelet's `pods/` directory."""
    return encode_document({"uids": list(uids)})


def parse_pod_dirs(data: bytes) -> tuple[str, ...]:
    return root_of(data, "poddirs.json").at("uids").texts()


class Opened(NamedTuple):
    """What was found of one device node."""

    processes: tuple[Process, ...] = ()
    denied: int = 0
    """Processes that could not be looked at."""
    failed: SourceRow | None = None


def encode_openers(found: Mapping[str, Opened]) -> bytes:
    """Device node to the processes that have it open (`openers.json`)."""
    processes = {p.pid: p for opened in found.values() for p in opened.processes}
    return encode_document(
        {
            "devices": {
                path: {
                    "pids": [process.pid for process in opened.processes],
                    "denied": opened.denied,
                    "reason": opened.failed.reason if opened.failed else None,
                    "hint": opened.failed.hint if opened.failed else None,
                    "code": opened.failed.code if opened.failed else 0,
                }
                for path, opened in found.items()
            },
            "processes": [_plain(processes[pid]) for pid in sorted(processes)],
        }
    )


def parse_openers(data: bytes) -> dict[str, Opened]:
    root = root_of(data, "openers.json")
    processes = {p.pid: p for p in map(_process, root.at("processes").items())}
    found: dict[str, Opened] = {}
    for path, item in root.at("devices").fields():
        pids = [pid.needed_whole() for pid in item.at("pids").items()]
        reason, code = item.at("reason").text(), item.at("code").whole() or 0
        failed = None
        if reason is not None:
            if code not in set(ExitCode):
                raise item.at("code").wrong("an exit code of dpctl")
            failed = SourceRow("openers", path, "failed", reason, item.at("hint").text(), code)
        found[path] = Opened(
            tuple(processes[pid] for pid in pids if pid in processes),
            item.at("denied").whole() or 0,
            failed,
        )
    return found


def encode_host_paths(paths: Mapping[str, HostPath]) -> bytes:
    """What was at the paths that plugins asked for."""
    return encode_document({"paths": {path: _plain(found) for path, found in paths.items()}})


def parse_host_paths(data: bytes) -> dict[str, HostPath]:
    return {
        path: HostPath(
            kind=found.at("kind").text(),
            mode=found.at("mode").whole(),
            number=found.at("number").text(),
            linked=None if found.at("linked").value is None else found.at("linked").flag(),
            reason=found.at("reason").text(),
        )
        for path, found in root_of(data, "hostpaths.json").at("paths").fields()
    }


def encode_cdi(specs: Iterable[CdiSpec]) -> bytes:
    """What the CDI directories held, without what is injected into containers."""
    return encode_document({"specs": [_plain(spec) for spec in specs]})


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
        for item in root_of(data, "cdi.json").at("specs").items()
    )


def encode_socket_state(state: SocketState, detail: str | None) -> bytes:
    """How a socket behaved where no answer of its own tells (`plugins/<endpoint>/state.json`)."""
    return encode_document({"state": str(state), "detail": detail})


def parse_socket_state(data: bytes) -> tuple[SocketState, str | None]:
    root = root_of(data, "the socket's record")
    word = root.at("state").needed_text()
    if word not in list(SocketState):
        raise BadDataError(f"state is {shorten(word, 40)!r}, no state of a socket")
    return SocketState(word), root.at("detail").text()


def encode_registration(socket: RegistrySocket) -> bytes:
    """An answer to GetInfo (where there was none, how the socket behaved), and its file."""
    said: dict[str, object] = {
        "type": socket.type,
        "name": socket.name,
        "endpoint": socket.service_endpoint,
        "supportedVersions": list(socket.versions),
    }
    if socket.type is None:
        said = {"state": str(socket.state), "detail": socket.detail}
    file = {
        "modified": time_text(socket.modified),
        "inode": socket.inode,
        "device": socket.device,
    }
    return encode_document({**said, **file})


def with_file(socket: RegistrySocket, root: Field) -> RegistrySocket:
    """With what its record says of the socket's file; nothing in a record of GetInfo alone."""
    return socket._replace(
        modified=root.at("modified").time(),
        inode=root.at("inode").whole(),
        device=root.at("device").whole(),
    )


def encode_options(options: PluginOptions) -> bytes:
    return encode_document(
        {
            "preStartRequired": options.pre_start_required,
            "getPreferredAllocationAvailable": options.preferred_allocation,
        }
    )


def endpoint_folder(endpoint: str) -> str:
    """The folder below `plugins/` for an endpoint; `a/b.sock` of a sub-directory is one, too."""
    return endpoint.replace("%", "%25").replace("/", "%2F")


def folder_endpoint(folder: str) -> str:
    return folder.replace("%2F", "/").replace("%25", "%")


# --- decoding ---


def root_of(data: bytes, name: str) -> Field:
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
            _camel(name): time_text(item) if name in _TIMES else _plain(item)
            for name, item in zip(value._fields, value, strict=True)
        }
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def time_text(seconds: float | None) -> str | None:
    """RFC 3339 with microseconds; with nanoseconds where only they bring the same number back."""
    if seconds is None:
        return None
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    if parse_time(text) == seconds:
        return text
    whole = math.floor(seconds)
    fraction = f"{round((seconds - whole) * 1e9):09d}"
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{fraction}+00:00"


def encode_document(value: object) -> bytes:
    # ASCII, so that undecodable bytes (lone surrogates) come back as they were.
    return json.dumps(value, indent=1).encode("ascii") + b"\n"
