"""`meta.json`: when, where and of what a bundle was made, and how each source fared. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dpctl.bundle.records import encode_document, root_of, time_text
from dpctl.errors import ExitCode
from dpctl.model import Source, SourceRow
from dpctl.sources.json_fields import Field

_STATES = ("read", "failed", "missing", "skipped")


class Record(NamedTuple):
    """How a source fared on the node."""

    row: SourceRow
    absent: bool = False
    """Read, and there was no such file: the kubelet has not written it."""
    modified: float | None = None
    """mtime of its file."""


class LeftOut(NamedTuple):
    """A file that the bundle does not have."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Meta:
    """None: not said."""

    collected_at: float | None = None
    kubelet_version: str | None = None
    boot_id: str | None = None
    node_name: str | None = None
    dpctl_version: str | None = None
    redacted: bool = False
    state_root: str | None = None
    pod_resources_version: str | None = None
    sources: Mapping[Source, Record] | None = None
    """None: put together by hand. Else `dpctl snapshot` wrote it, and every source that it read
    is here: a replay says what the node said, and infers nothing."""
    left_out: tuple[LeftOut, ...] = field(default=())

    def left_out_of(self, name: str) -> str | None:
        """Why the bundle lacks a file of that name, or of that folder."""
        return next(
            (x.reason for x in self.left_out if x.name == name or x.name.startswith(f"{name}/")),
            None,
        )


def encode_meta(meta: Meta) -> bytes:
    return encode_document(
        {
            "collectedAt": time_text(meta.collected_at),
            "kubeletVersion": meta.kubelet_version,
            "bootID": meta.boot_id,
            "nodeName": meta.node_name,
            "dpctlVersion": meta.dpctl_version,
            "redacted": meta.redacted,
            "stateRoot": meta.state_root,
            "podResourcesVersion": meta.pod_resources_version,
            "sources": None
            if meta.sources is None
            else [_record(record) for record in meta.sources.values()],
            "leftOut": [left._asdict() for left in meta.left_out],
        }
    )


def _record(record: Record) -> dict[str, object]:
    row = record.row
    return {
        "name": str(row.name),
        "where": row.where,
        "state": row.state,
        "reason": row.reason,
        "hint": row.hint,
        "code": row.code,
        "absent": record.absent,
        "modified": time_text(record.modified),
    }


def parse_meta(data: bytes) -> Meta:
    """Raises BadDataError naming the field."""
    root = root_of(data, "meta.json")
    sources = root.at("sources")
    return Meta(
        collected_at=root.at("collectedAt").time(),
        kubelet_version=root.at("kubeletVersion").text() or None,
        boot_id=root.at("bootID").text() or None,
        node_name=root.at("nodeName").text() or None,
        dpctl_version=root.at("dpctlVersion").text(),
        redacted=root.at("redacted").flag(),
        state_root=root.at("stateRoot").text() or None,
        pod_resources_version=root.at("podResourcesVersion").text() or None,
        sources=None if sources.value is None else _records(sources),
        left_out=tuple(
            LeftOut(item.at("name").needed_text(), item.at("reason").text() or "")
            for item in root.at("leftOut").items()
        ),
    )


def _records(field: Field) -> dict[Source, Record]:
    """Of sources that this dpctl knows: a later one may have more."""
    found: dict[Source, Record] = {}
    for item in field.items():
        name, state = item.at("name").needed_text(), item.at("state").needed_text()
        if name not in set(Source):
            continue
        if state not in _STATES:
            raise item.at("state").wrong(f"one of {', '.join(_STATES)}")
        code = item.at("code").whole() or 0
        if code not in set(ExitCode):
            raise item.at("code").wrong("an exit code of dpctl")
        row = SourceRow(
            Source(name),
            item.at("where").text() or "",
            state,
            item.at("reason").text(),
            item.at("hint").text(),
            code,
        )
        found[Source(name)] = Record(row, item.at("absent").flag(), item.at("modified").time())
    return found
