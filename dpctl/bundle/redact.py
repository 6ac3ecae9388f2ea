"""`--redact`: a node's evidence without the names of pods, namespaces and nodes, addresses, and
values of environments. Pure.

First every name is collected, then every file is written anew with words in their place; a file
that cannot be (it is damaged, and a name stands in it) is left out. Checksums are computed anew
where they fitted, and stay wrong where they did not.
"""

from __future__ import annotations

import json
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from typing import Any

from dpctl.bundle import manifests
from dpctl.bundle.names import Names
from dpctl.bundle.records import encode_openers, parse_openers
from dpctl.bundle.redact_snapshot import redacted_snapshot
from dpctl.errors import BadDataError
from dpctl.model import AllocResponse, Snapshot, Source
from dpctl.sources import evidence as kept
from dpctl.sources import recorded_names as recorded
from dpctl.sources.evidence import Evidence
from dpctl.statefiles.device_checkpoint import parse_checkpoint
from dpctl.statefiles.go_json import go_json

_WHY = "a name stands in it, and it cannot be written anew: it is damaged"


def redacted(evidence: Evidence, *, nodes: tuple[str, ...] = ()) -> Evidence:
    """`nodes`: what the machine itself is called."""
    names = names_of(evidence, nodes)
    found = Evidence()
    found.pod_resources_version = evidence.pod_resources_version
    found.left_out = {name: names.free(why) for name, why in evidence.left_out.items()}
    found.snapshot = redacted_snapshot(evidence.snapshot, names)
    for name, data in evidence.files.items():
        change = _CHANGES.get(name)
        if name.startswith("sys/"):
            found.files[name] = data  # numbers, and addresses on the PCI bus
            continue
        try:
            if change is None:
                raise BadDataError("nothing is known of this file")
            found.files[name] = change(data, names)
        except (BadDataError, ValueError, RecursionError):
            if names.free(_shown(data)) == _shown(data):
                found.files[name] = data
            else:
                found.left_out[name] = _WHY
    return found


def names_of(evidence: Evidence, nodes: tuple[str, ...]) -> Names:
    names, snap = Names(), evidence.snapshot
    names.keep(_kept(snap))
    pods = snap.pods or ()
    listed = snap.pod_resources.pods if snap.pod_resources else ()
    claims = [claim for pod in listed for c in pod.containers for claim in c.claims]
    prepared = snap.dra_state.claims if snap.dra_state else ()
    node = _known(evidence, kept.NODE)
    machines = {name for text in (*nodes, *manifests.node_addresses(node)) for name in _hosts(text)}
    machines |= {name for k in snap.kubelets or () for name in _hosts(k.node_name or "")}
    names.add("node", {*machines, *(p.node_name for p in pods), snap.node and snap.node.name})
    found: list[tuple[str, str]] = [(pod.namespace, pod.name) for pod in pods]
    found += [(pod.namespace, pod.name) for pod in listed]
    found += [(pod.namespace, pod.name) for pod in snap.pod_names or ()]
    found += [(pod.namespace, pod.name) for pod in snap.kubelet_pods or ()]
    claimed = [(claim.namespace, claim.name) for claim in claims]
    claimed += [(claim.namespace, claim.name) for claim in prepared]
    names.add("pod", {name for _, name in found})
    names.add("namespace", {namespace for namespace, _ in (*found, *claimed)})
    names.add("claim", {name for _, name in claimed})
    names.add("owner", {(pod.owner or "").partition("/")[2] for pod in pods})
    names.add("server", {host for row in snap.sources for host in _server(row.where)})
    values = {v for answer in _answers(snap) for v in answer.envs.values()}
    values |= set(manifests.environment_values(_known(evidence, kept.PODS)))
    names.add_values(values)
    return names


def _answers(snap: Snapshot) -> Iterator[AllocResponse]:
    for allocation in snap.checkpoint.allocations if snap.checkpoint else ():
        if allocation.answer is not None:
            yield allocation.answer


def _kept(snap: Snapshot) -> Iterator[str]:
    """Device IDs, resource names and UIDs: they stay, though a plugin gives them as values."""
    for resource, ids in (snap.checkpoint.registered if snap.checkpoint else {}).items():
        yield resource
        yield from ids
    for allocation in snap.checkpoint.allocations if snap.checkpoint else ():
        yield allocation.pod_uid
        yield from allocation.device_nodes()
    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        for container in pod.containers:
            yield from (device.device_id for device in container.devices)


def _hosts(text: str) -> Iterator[str]:
    """A host name, and its first part where it has several; not an address."""
    if text and not text.replace(".", "").isdigit() and ":" not in text:
        yield text
        yield text.partition(".")[0]


def _server(where: str) -> Iterator[str]:
    scheme, found, rest = where.partition("://")
    if found and scheme in ("http", "https") and not rest.startswith("["):
        host = rest.partition("/")[0].rpartition(":")[0] or rest
        if not host.replace(".", "").isdigit() and host != "localhost":
            yield host


# --- file by file ---


def _checkpoint(data: bytes, names: Names) -> bytes:
    old = parse_checkpoint(data)
    document = json.loads(data)
    content = document.get("Data") or {}
    for entry in content.get("PodDeviceEntries") or ():
        if not entry:
            continue
        if entry.get("ContainerName"):
            entry["ContainerName"] = names.text(entry["ContainerName"])
        entry["DeviceIDs"] = _devices(entry.get("DeviceIDs"), names)
        if entry.get("AllocResp"):
            entry["AllocResp"] = _answer(entry["AllocResp"], names)
    content["RegisteredDevices"] = _devices(content.get("RegisteredDevices"), names)
    if old.verified:
        document["Checksum"] = parse_checkpoint(go_json(document)).computed_checksum
    return go_json(document)


def _devices(value: object, names: Names) -> object:
    if isinstance(value, dict):
        return {key: _devices(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [names.device(item) if isinstance(item, str) else item for item in value]
    return value


def _answer(text: str, names: Names) -> str | None:
    """None for bytes that are no answer: nobody knows what is in them."""
    try:
        raw = a2b_base64(text.replace("\r", "").replace("\n", ""), strict_mode=True)
        changed = recorded.rename_allocation(raw, names)
    except (Error, BadDataError):
        return None
    return b2a_base64(changed, newline=False).decode()


def _state(source: Source) -> Callable[[bytes, Names], bytes]:
    def change(data: bytes, names: Names) -> bytes:
        from dpctl.sources.state_files import STATE_FILES

        old: Any = STATE_FILES[source].parse(data, None)
        document = json.loads(data)
        if not isinstance(document, dict):
            raise BadDataError("no object")
        changed = {key: _half(value, names) for key, value in document.items()}
        if changed == document:
            return data
        new: Any = STATE_FILES[source].parse(go_json(changed), None)
        # Under several forms a number may fit by one alone: that one counts.
        for one in getattr(old, "checksums", ()):
            for other in new.checksums:
                if one.fits and (other.form, other.key) == (one.form, one.key):
                    changed[one.key] = other.computed
        return go_json(changed)

    return change


def _half(value: object, names: Names) -> object:
    """The text that most of these files hold is JSON once more."""
    if not isinstance(value, str) or not value.startswith("{"):
        return names.tree(value)
    inner = json.loads(value)
    changed = names.tree(inner)
    return value if changed == inner else go_json(changed).decode()


def _openers(data: bytes, names: Names) -> bytes:
    from dpctl.bundle.redact_snapshot import redacted_process

    return encode_openers(
        {
            names.text(path): opened._replace(
                processes=tuple(redacted_process(p, names) for p in opened.processes),
                failed=opened.failed
                and opened.failed._replace(
                    where=names.text(opened.failed.where),
                    reason=names.free(opened.failed.reason or ""),
                    hint=names.free(opened.failed.hint or "") or None,
                ),
            )
            for path, opened in parse_openers(data).items()
        }
    )


def _log(data: bytes, names: Names) -> bytes:
    return names.free(_shown(data)).encode("utf-8", "surrogateescape")


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _known(evidence: Evidence, name: str) -> object:
    """None: not read, or no JSON."""
    try:
        return _json(evidence.files.get(name, b"null"))
    except (BadDataError, ValueError, RecursionError):
        return None


def _json(data: bytes) -> object:
    found: object = json.loads(data)
    return found


def _dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


_CHANGES: dict[str, Callable[[bytes, Names], bytes]] = {
    kept.CHECKPOINT: _checkpoint,
    kept.LIST: recorded.rename_list,
    kept.ALLOCATABLE: recorded.rename_allocatable,
    kept.NODE: lambda data, names: _dumped(manifests.redacted_node(_json(data), names)),
    kept.PODS: lambda data, names: _dumped(manifests.redacted_pods(_json(data), names)),
    kept.DEVICE_CLASSES: lambda data, _: _dumped(manifests.redacted_device_classes(_json(data))),
    kept.LOG: _log,
    kept.OPENERS: _openers,
    **{kept.state_file(s): _state(s) for s in Source if s.endswith("_state")},
}
