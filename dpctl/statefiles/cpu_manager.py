"""`cpu_manager_state`, v1 to v4: what the CPU manager remembers (kubelet-facts §5.4).

Bytes and model only: which of the halves and forms a kubelet reads, and what it makes of the
content, belongs to `inventory.state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dpctl import cpuset
from dpctl.errors import BadDataError
from dpctl.model.statefiles import (
    BadCpuList,
    CpuAssignments,
    CpuManagerState,
    StateChecksum,
)
from dpctl.statefiles import json_document as doc
from dpctl.statefiles.checksum import NIL, fnv1a_32, spew_map, spew_text
from dpctl.statefiles.cpu_lists import parse_cpu_list, spew_cpu_set
from dpctl.statefiles.go_json import go_json, go_string
from dpctl.statefiles.halves import (
    Data,
    GoError,
    data_half,
    fault_of,
    inner_checksums,
    inner_half,
    struct_checksums,
    text_checksum,
)

WHAT = "the CPU manager's state"
_NAME = b"CPUManagerCheckpoint"
_CONTENT = ("policyName", "defaultCpuSet", "entries", "podEntries", "baselines")
_OUTER = ("policyName", "defaultCpuSet", "entries", "podEntries")
_KEYS = (*_OUTER, "checksum", "data", "dataChecksum")

_Texts = Mapping[str, str]


class _Raw(NamedTuple):
    """The keys of one half as written: the checksum is over the lists' texts, nil is not empty."""

    policy: str
    default: str
    entries: Mapping[str, _Texts | None] | None
    flat: _Texts | None
    """v1's entries."""
    pods: _Texts | None
    baselines: Mapping[str, _Texts | None] | None


def parse_cpu_manager_state(data: bytes, *, modified: float | None = None) -> CpuManagerState:
    """The file's contents, whether its numbers fit or not. Never raises: `fault` says why a file
    cannot be decoded. `modified`: mtime of the file, Unix seconds."""
    try:
        return _parse(data)._replace(modified=modified)
    except BadDataError as e:
        return CpuManagerState(None, fault=fault_of(e, data), modified=modified)


def _parse(data: bytes) -> CpuManagerState:
    document = doc.members(WHAT, "the document", doc.load(data, WHAT))
    keys, unknown = doc.known(WHAT, "the document", document, _KEYS)
    outer = _raw({key: value for key, value in keys.items() if key in _OUTER}, WHAT)
    stored = doc.whole(WHAT, "checksum", keys.get("checksum"))
    inner = inner_half(WHAT, keys)
    checksums = _checksums(outer, stored, inner)
    state = CpuManagerState(
        version=_version(outer, inner, checksums, with_pods="podEntries" in keys),
        outer=_assignments(outer),
        container_ids={key: parse_cpu_list(text)[0] for key, text in (outer.flat or {}).items()},
        checksums=checksums,
        unknown_keys=unknown,
    )
    if not inner.counts:
        return state
    found, fault = data_half(f"{WHAT}: data", inner.text, _data)
    if found is None:
        return state._replace(data_fault=fault)
    content, others = found
    newer = (*unknown, *(f"data.{key}" for key in others))
    return state._replace(data=content, unknown_keys=newer)


def _version(
    outer: _Raw, inner: Data, checksums: tuple[StateChecksum, ...], *, with_pods: bool
) -> int:
    if inner.counts:
        return 4
    if with_pods:
        return 3
    if outer.flat:
        return 1
    # Without entries v1, v2 and v3 look alike; the number tells.
    fitting = [int(one.form[1]) for one in checksums if one.fits]
    return fitting[0] if fitting else 2


def _data(value: object) -> tuple[CpuAssignments, tuple[str, ...]]:
    keys, others = doc.known(f"{WHAT}: data", "the text", value, _CONTENT)
    raw = _raw(keys, f"{WHAT}: data")
    if raw.flat:
        # The first of them, as Go reports the first one it meets.
        raise GoError(
            f"{WHAT}: data has v1's entries",
            "json: cannot unmarshal string into Go struct field"
            " CPUManagerCheckpointData.entries of type map[string]string",
        )
    content = _assignments(raw)
    bad = next((one for one in content.unparsable if one.where == "pod"), None)
    if bad is not None:
        raise GoError(
            f"{WHAT}: data has podEntries that are no CPU list: {bad.error}",
            f"failed to parse cpuset: {bad.error}",
        )
    return content, others


# --- reading ---


def _raw(keys: Mapping[str, object], what: str) -> _Raw:
    flat = _is_flat(keys.get("entries"))
    return _Raw(
        policy=doc.text(what, "policyName", keys.get("policyName")),
        default=doc.text(what, "defaultCpuSet", keys.get("defaultCpuSet")),
        entries={} if flat else _nested(what, "entries", keys.get("entries", {})),
        flat=_texts(what, "entries", keys.get("entries", {})) if flat else None,
        pods=_wrapped(what, "podEntries", keys.get("podEntries", {}), "cpuSet"),
        baselines=_baselines(what, keys.get("baselines", {})),
    )


def _is_flat(entries: object) -> bool:
    """v1: container ID to CPUs. Empty ones can be of any version."""
    return isinstance(entries, dict) and any(isinstance(item, str) for item in entries.values())


def _texts(what: str, path: str, value: object) -> dict[str, str]:
    items = doc.members(what, path, value).items()
    return {key: doc.text(what, f"{path}.{key}", item) for key, item in items}


def _nested(what: str, path: str, value: object) -> dict[str, _Texts | None] | None:
    if value is None:
        return None
    return {
        pod: None if item is None else _texts(what, f"{path}.{pod}", item)
        for pod, item in doc.members(what, path, value).items()
    }


def _wrapped(what: str, path: str, value: object, key: str) -> dict[str, str] | None:
    """Lists that stand in an object of one key."""
    if value is None:
        return None
    found: dict[str, str] = {}
    for name, item in doc.members(what, path, value).items():
        fields, _ = doc.known(what, f"{path}.{name}", item, (key,))
        found[name] = doc.text(what, f"{path}.{name}.{key}", fields.get(key))
    return found


def _baselines(what: str, value: object) -> dict[str, _Texts | None] | None:
    if value is None:
        return None
    return {
        pod: _wrapped(what, f"baselines.{pod}", item, "baseline")
        for pod, item in doc.members(what, "baselines", value).items()
    }


def _assignments(raw: _Raw) -> CpuAssignments:
    bad: list[BadCpuList] = []

    def cpus(where: str, text: str, pod: str | None, container: str | None) -> tuple[int, ...]:
        found, error = parse_cpu_list(text)
        if error is not None:
            bad.append(BadCpuList(where, text, error, pod, container))
        return found

    def by_container(
        where: str, entries: Mapping[str, _Texts | None] | None
    ) -> dict[str, dict[str, tuple[int, ...]]]:
        return {
            pod: {name: cpus(where, text, pod, name) for name, text in (lists or {}).items()}
            for pod, lists in (entries or {}).items()
        }

    return CpuAssignments(
        policy=raw.policy,
        default_cpus=cpus("default", raw.default, None, None),
        containers=by_container("container", raw.entries),
        pods={pod: cpus("pod", text, pod, None) for pod, text in (raw.pods or {}).items()},
        baselines=by_container("baseline", raw.baselines),
        unparsable=tuple(bad),
    )


# --- checksums ---


def _checksums(raw: _Raw, stored: int, inner: Data) -> tuple[StateChecksum, ...]:
    found = inner_checksums("v4", inner)
    for form in ("v2", "v3", "v1"):
        text = _hashed(raw, form)
        if text is not None:
            found += struct_checksums(form, _NAME, text, stored)
    return tuple(found)


def _hashed(raw: _Raw, form: str) -> bytes | None:
    """The Go value as go-spew shows it, behind the type's name; None: Go cannot read it so."""
    parts = [
        b"){PolicyName:(string)" + spew_text(raw.policy),
        b" DefaultCPUSet:(string)" + spew_text(raw.default),
    ]
    if form == "v1":
        if raw.entries:
            return None
        entries = raw.flat if raw.flat is not None or raw.entries is None else {}
        parts.append(b" Entries:(map[string]string)" + _spew_texts(entries))
    else:
        if raw.flat:
            return None
        parts.append(b" Entries:(map[string]map[string]string)" + _spew_nested(raw.entries))
    if form == "v3":
        pods = _spew_pods(raw.pods)
        if pods is None:
            return None
        parts.append(b" PodEntries:(state.PodCPUAssignments)" + pods)
    return b"".join((*parts, b" Checksum:(checksum.Checksum)0}"))


def _spew_texts(texts: _Texts | None) -> bytes:
    if texts is None:
        return NIL
    return spew_map(sorted((spew_text(key), spew_text(text)) for key, text in texts.items()))


def _spew_nested(entries: Mapping[str, _Texts | None] | None) -> bytes:
    if entries is None:
        return NIL
    return spew_map(sorted((spew_text(key), _spew_texts(item)) for key, item in entries.items()))


def _spew_pods(pods: _Texts | None) -> bytes | None:
    if pods is None:
        return NIL
    found: list[tuple[bytes, bytes]] = []
    for pod, text in pods.items():
        cpus, error = parse_cpu_list(text)
        if error is not None:
            return None
        found.append((spew_text(pod), b"{CPUSet:" + spew_cpu_set(cpus) + b"}"))
    return spew_map(sorted(found))


# --- writing ---


def encode_cpu_manager_state(
    content: CpuAssignments,
    version: int = 4,
    *,
    container_ids: Mapping[str, tuple[int, ...]] | None = None,
) -> bytes:
    """The file as a kubelet writes it: v2 (to 1.35), v3 (1.36 with PodLevelResourceManagers), v4
    (1.37), and v1 with `container_ids` (to 1.17).

    What a version does not hold is left out, as a kubelet of that version does.
    """
    rendered = _render(content)
    if version == 1:
        flat = {go_string(key): cpuset.render(cpus) for key, cpus in (container_ids or {}).items()}
        raw = _Raw(go_string(content.policy), cpuset.render(content.default_cpus), {}, flat, {}, {})
        outer: dict[str, object] = {"policyName": raw.policy, "defaultCpuSet": raw.default}
        if flat:
            outer["entries"] = dict(sorted(flat.items()))
        return _document(raw, "v1", outer)
    raw = _raw(rendered, WHAT)
    outer = {key: rendered[key] for key in _OUTER[:3] if key in rendered}
    if version == 3:
        if "podEntries" in rendered:
            outer["podEntries"] = rendered["podEntries"]
        return _document(raw, "v3", outer)
    if version == 2:
        return _document(raw, "v2", outer)
    text = go_json(rendered).decode()
    inner = {"data": text, "dataChecksum": text_checksum(text)}
    return _document(raw, "v2", outer, inner)


def _document(
    raw: _Raw, form: str, outer: Mapping[str, object], inner: Mapping[str, object] | None = None
) -> bytes:
    text = _hashed(raw, form)
    assert text is not None
    number = fnv1a_32(b"(*state." + _NAME + text)
    return go_json({**outer, "checksum": number, **(inner or {})})


def _render(content: CpuAssignments) -> dict[str, object]:
    """The keys of v4's text, in its order; empty maps are left out."""
    found: dict[str, object] = {
        "policyName": go_string(content.policy),
        "defaultCpuSet": cpuset.render(content.default_cpus),
    }
    entries = {
        go_string(pod): dict(
            sorted((go_string(name), cpuset.render(cpus)) for name, cpus in lists.items())
        )
        for pod, lists in content.containers.items()
    }
    pods = {
        go_string(pod): {"cpuSet": cpuset.render(cpus)} if cpus else {}
        for pod, cpus in content.pods.items()
    }
    baselines = {
        go_string(pod): {
            go_string(n): {"baseline": cpuset.render(cpus)} for n, cpus in sorted(lists.items())
        }
        for pod, lists in content.baselines.items()
    }
    for key, value in (("entries", entries), ("podEntries", pods), ("baselines", baselines)):
        if value:
            found[key] = dict(sorted(value.items()))
    return found
