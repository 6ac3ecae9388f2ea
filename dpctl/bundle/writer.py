"""A node's evidence as the files of a bundle. Pure: what is written where is `disk`'s to know.

The order is that of importance: what is too much is left out from the end, and `meta.json` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpctl.bundle import records
from dpctl.bundle.meta import LeftOut, Meta, Record, encode_meta
from dpctl.model import Snapshot, Source, SourceRow
from dpctl.sources.evidence import Evidence

MOST_FILES = 60_000
TOTAL = 256 << 20
"""Bytes of all files together; `files.open_bundle` takes twice as much."""
LARGEST_FILE = 64 << 20
"""What a reader takes without --max-message-size."""


@dataclass(frozen=True, slots=True)
class Limits:
    file: int = LARGEST_FILE
    total: int = TOTAL
    files: int = MOST_FILES


def bundle_files(
    evidence: Evidence,
    *,
    version: str,
    redacted: bool = False,
    limits: Limits = Limits(),  # a constant
) -> tuple[dict[str, bytes], tuple[LeftOut, ...]]:
    """Name in the layout to content, `meta.json` first, and what was left out."""
    kept: dict[str, bytes] = {}
    left: list[LeftOut] = []
    total = 0
    for name, data in _files(evidence):
        if len(data) > limits.file:
            left.append(LeftOut(name, f"it has {len(data)} bytes, more than {limits.file}"))
        elif total + len(data) > limits.total:
            left.append(LeftOut(name, f"the bundle would have more than {limits.total} bytes"))
        elif len(kept) >= limits.files:
            left.append(LeftOut(name, f"the bundle would have more than {limits.files} files"))
        elif any(len(part.encode("utf-8", "surrogateescape")) > 255 for part in name.split("/")):
            left.append(LeftOut(name, "its name is too long"))
        else:
            kept[name] = data
            total += len(data)
    left += [LeftOut(name, why) for name, why in evidence.left_out.items()]
    meta = encode_meta(_meta(evidence, version, redacted, tuple(_summed(left))))
    return {"meta.json": meta, **kept}, tuple(_summed(left))


def _summed(left: list[LeftOut]) -> list[LeftOut]:
    """Some thousand files of a tree are one sentence."""
    if len(left) <= 20:
        return left
    by_folder: dict[tuple[str, str], int] = {}
    for name, reason in left:
        key = (name.rpartition("/")[0].split("/devices/")[0], reason)
        by_folder[key] = by_folder.get(key, 0) + 1
    return [LeftOut(f"{folder}/", f"{n} files: {why}") for (folder, why), n in by_folder.items()]


def _files(evidence: Evidence) -> Iterator[tuple[str, bytes]]:
    snap, raw = evidence.snapshot, evidence.files
    small = {name: data for name, data in raw.items() if not name.startswith("sys/")}
    yield from sorted(small.items())
    yield "device-plugins/sockets.json", records.encode_sockets(snap.directory, snap.sockets)
    yield "proc.json", records.encode_proc(snap.kubelets, snap.processes)
    for plugin in snap.plugins or ():
        folder = f"plugins/{records.endpoint_folder(plugin.endpoint)}"
        state = records.encode_socket_state(plugin.state, plugin.detail)
        yield f"{folder}/state.json", state
        if plugin.options is not None:
            yield f"{folder}/options.json", records.encode_options(plugin.options)
        if plugin.info is not None:
            yield f"{folder}/info.json", records.encode_registration(plugin.info)
    for socket in snap.registry or ():
        yield f"plugins_registry/{socket.path}.json", records.encode_registration(socket)
    if snap.pod_names is not None:
        yield "podnames.json", records.encode_pod_names(snap.pod_names)
    if snap.kubelet_pods is not None:
        yield "podsapi.json", records.encode_kubelet_pods(snap.kubelet_pods)
    if snap.pod_dirs is not None:
        yield "poddirs.json", records.encode_pod_dirs(snap.pod_dirs)
    if snap.host_paths is not None:
        yield "hostpaths.json", records.encode_host_paths(snap.host_paths)
    if snap.cdi is not None:
        yield "cdi.json", records.encode_cdi(snap.cdi)
    if snap.kubelet_config is not None:
        yield "kubelet/config.json", records.encode_document(dict(snap.kubelet_config))
    yield from ((name, data) for name, data in sorted(raw.items()) if name not in small)


def _meta(evidence: Evidence, version: str, redacted: bool, left: tuple[LeftOut, ...]) -> Meta:
    snap = evidence.snapshot
    return Meta(
        collected_at=snap.collected_at,
        kubelet_version=snap.kubelet_version,
        boot_id=snap.boot_id,
        node_name=snap.node.name if snap.node else None,
        dpctl_version=version,
        redacted=redacted,
        state_root=snap.state_root,
        pod_resources_version=evidence.pod_resources_version,
        sources={Source(row.name): _record(snap, row) for row in snap.sources},
        left_out=left,
    )


def _record(snap: Snapshot, row: SourceRow) -> Record:
    file: object = None
    if row.name == Source.CHECKPOINT:
        file = snap.checkpoint
    elif row.name in _STATE_FIELDS:
        file = getattr(snap, _STATE_FIELDS[Source(row.name)])
    state = "read" if row.state == "damaged" else row.state
    return Record(
        row._replace(state=state),
        absent=getattr(file, "absent", False),
        modified=getattr(file, "modified", None),
    )


_STATE_FIELDS: Mapping[Source, str] = {
    Source.CPU_STATE: "cpu_state",
    Source.MEMORY_STATE: "memory_state",
    Source.DRA_STATE: "dra_state",
    Source.DRA_HEALTH: "dra_health",
    Source.ALLOCATED_PODS: "allocated_pods",
    Source.ACTUATED_PODS: "actuated_pods",
}
