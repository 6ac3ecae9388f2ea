"""Columns of `dpctl state`: entries of the state files, their verdicts, and differences."""

from __future__ import annotations

from dpctl.columns import UNKNOWN, Column, Emphasis, View
from dpctl.inventory.state.rows import (
    StateCheckRow,
    StateDifferenceRow,
    StateRow,
    StateVerdict,
)
from dpctl.text import natural_key

_FILES = (
    "kubelet_internal_checkpoint",
    "cpu_manager_state",
    "memory_manager_state",
    "dra_manager_state",
    "dra_health_state",
    "allocated_pods_state",
    "actuated_pods_state",
)
_ENTRIES = ("fault", "newer", "policy", "shared CPUs", "NUMA node", "registered")
_EMPHASIS: dict[str, Emphasis] = {
    StateVerdict.GOOD: "good",
    StateVerdict.REFUSED: "bad",
    StateVerdict.IGNORED: "bad",
    StateVerdict.LOSES: "warn",
    StateVerdict.UNKNOWN: "warn",
}


def _position(name: str, names: tuple[str, ...]) -> int:
    return names.index(name) if name in names else len(names)


def _pod(row: StateRow | StateDifferenceRow) -> object:
    if row.pod is not None:
        return row.pod
    return f"uid:{row.uid}" if row.uid else None


def _namespace(row: StateRow | StateDifferenceRow) -> object:
    return UNKNOWN if row.namespace is None and row.uid else row.namespace


def _who(row: StateRow | StateDifferenceRow) -> str:
    return f"{row.namespace or ''}/{row.pod or row.uid or ''}"


def _numbers(row: StateCheckRow) -> object:
    """What is stored under each key, with the best of what it may be held against."""
    found: dict[str, str] = {}
    for one in row.checksums:
        if one.key not in found or one.fits:
            verdict = "fits" if one.fits else f"computed {one.computed}"
            found[one.key] = f"{one.key} {one.stored} ({verdict})"
    return tuple(found.values()) or None


STATE: View[StateRow] = View(
    kind="StateEntry",
    row_type=StateRow,
    name=lambda r: f"state/{r.file}/{r.entry}",
    short=lambda r: r.file,
    key=lambda r: (r.file, r.entry, r.uid, r.container, r.resource, r.numa_nodes, r.value),
    order=lambda r: (
        _position(r.file, _FILES),
        _position(r.entry, _ENTRIES),
        natural_key(_who(r)),
        natural_key(r.container or ""),
        r.entry,
        r.numa_nodes or (),
        natural_key(r.resource or ""),
        r.value or "",
    ),
    columns=(
        Column("FILE", lambda r: r.file, "file"),
        Column(
            "ENTRY",
            lambda r: r.entry,
            "entry",
            emphasis=lambda r: "bad" if r.entry == "fault" else None,
        ),
        Column("NAMESPACE", _namespace, "namespace"),
        Column("POD", _pod, "pod"),
        Column("CONTAINER", lambda r: r.container, "container"),
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("VALUE", lambda r: r.value, "value"),
        Column("NUMA", lambda r: r.numa_nodes, "numaNodes", wide=True),
        Column(
            "ACTIVE",
            lambda r: UNKNOWN if r.active is None and r.uid else r.active,
            "active",
            wide=True,
        ),
        Column("UID", lambda r: r.uid, "uid", wide=True),
        Column("FORMAT", lambda r: r.version, "version", wide=True),
    ),
)

STATE_CHECKS: View[StateCheckRow] = View(
    kind="StateCheck",
    row_type=StateCheckRow,
    name=lambda r: f"state/{r.file}",
    short=lambda r: r.file,
    key=lambda r: r.file,
    order=lambda r: _position(r.file, _FILES),
    columns=(
        Column("FILE", lambda r: r.file, "file"),
        Column("FORMAT", lambda r: r.version, "version"),
        Column(
            "VERDICT", lambda r: r.verdict, "verdict", emphasis=lambda r: _EMPHASIS.get(r.verdict)
        ),
        Column("CHECKSUM", _numbers, "checksums"),
        Column("WHY", lambda r: "; ".join((r.reason, *r.notes)), "reason"),
        Column("RULE", lambda r: r.rule, "rule", wide=True),
        Column("READ AS", lambda r: r.form, "form", wide=True),
        Column("KUBELET SAYS", lambda r: r.says, "says", wide=True),
        Column("WAY OUT", lambda r: r.remedy, "remedy", wide=True),
        Column("PATH", lambda r: r.path, "path", wide=True),
    ),
)

STATE_DIFFERENCES: View[StateDifferenceRow] = View(
    kind="StateDifference",
    nothing="No differences found",
    row_type=StateDifferenceRow,
    name=lambda r: f"state/{r.file}/{r.what}",
    short=lambda r: r.file,
    key=lambda r: (r.file, r.uid, r.namespace, r.pod, r.container, r.what),
    order=lambda r: (
        _position(r.file, _FILES),
        natural_key(_who(r)),
        natural_key(r.container or ""),
        natural_key(r.what),
    ),
    columns=(
        Column("FILE", lambda r: r.file, "file"),
        Column("NAMESPACE", _namespace, "namespace"),
        Column("POD", _pod, "pod"),
        Column("CONTAINER", lambda r: r.container, "container"),
        Column("WHAT", lambda r: r.what, "what"),
        Column("IN FILE", lambda r: r.in_file, "inFile"),
        Column("LIVE", lambda r: r.live, "live"),
        Column(
            "STATE",
            lambda r: r.state,
            "state",
            emphasis=lambda r: "bad" if r.state == "Mismatch" else "warn",
        ),
        Column("MEANING", lambda r: r.meaning, "meaning", wide=True),
        Column("UID", lambda r: r.uid, "uid", wide=True),
    ),
)
