"""What it takes to put a change back: made of a plan, written as JSON, planned again. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dpctl import names, quantity
from dpctl.changes.evidence import Evidence, evidence_of
from dpctl.changes.removal import NATIVE, notes_of, summary, waiting_pods
from dpctl.changes.setting import KUBELETS_MANAGER, is_kubelets
from dpctl.errors import BadDataError
from dpctl.inventory.ages import status_period
from dpctl.inventory.devices import Devices
from dpctl.inventory.resources import requests, resource_rows
from dpctl.inventory.rows import ResourceRow, ResourceState
from dpctl.model import Node, Snapshot
from dpctl.model.changes import (
    Action,
    ChangePlan,
    KeyChange,
    Patch,
    PlanRow,
    UndoKey,
    UndoRecord,
    UndoState,
    Verdict,
)
from dpctl.text import shorten

VERSION = 1
_LATEST = 253_402_300_800.0
"""Seconds: the year 10000."""
_KIND = "NodeUndo"
_KEYS = {
    "resource": "resource",
    "capacity_before": "capacityBefore",
    "allocatable_before": "allocatableBefore",
    "capacity_after": "capacityAfter",
    "allocatable_after": "allocatableAfter",
    "owners": "owners",
    "kubelets": "kubelets",
}
"""Field of an `UndoKey` to its JSON key."""


def record_of(plan: ChangePlan, server: str, at: float, node: Node) -> UndoRecord:
    """State PLANNED. `node`: as the plan saw it, for who owned what."""
    parts: dict[str, dict[str, KeyChange]] = {}
    for patch in plan.patches:
        for change in patch.changes:
            parts.setdefault(change.resource, {})[change.part] = change
    keys = tuple(
        UndoKey(
            resource=resource,
            capacity_before=changes["capacity"].before,
            allocatable_before=changes["allocatable"].before,
            capacity_after=changes["capacity"].after,
            allocatable_after=changes["allocatable"].after,
            owners=None if node.owners is None else tuple(node.owners.get(resource, ())),
            kubelets=is_kubelets(node, resource),
        )
        for resource, changes in parts.items()
    )
    return UndoRecord(plan.action, plan.node, plan.uid, server, at, keys)


def encode_record(record: UndoRecord) -> bytes:
    """JSON, ASCII, one line a key."""
    document = {
        "apiVersion": "dpctl/v1",
        "kind": _KIND,
        "version": VERSION,
        "action": str(record.action),
        "node": record.node,
        "uid": record.uid,
        "server": record.server,
        "created": record.created,
        "state": str(record.state),
        "undone": list(record.undone),
        "keys": [
            {_KEYS[name]: value for name, value in key._asdict().items()} for key in record.keys
        ],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def parse_record(data: bytes, what: str) -> UndoRecord:
    """Raises BadDataError naming `what`: nothing in the file is trusted to be what it was."""
    try:
        document = json.loads(data)
        if document["kind"] != _KIND or document["version"] != VERSION:
            raise BadDataError(f"{what} is no undo file of this dpctl", "it was written by another")
        return UndoRecord(
            action=Action(document["action"]),
            node=_text(document["node"]),
            uid=_text_or_none(document["uid"]),
            server=_text(document["server"]),
            created=_time(document["created"]),
            keys=_once(tuple(_key(item) for item in document["keys"])),
            state=UndoState(document["state"]),
            undone=tuple(_text(item) for item in document["undone"]),
        )
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as e:
        reason = shorten(f"{type(e).__name__}: {e}", 120)
        raise BadDataError(
            f"{what} is no undo file ({reason})", "name one that dpctl has written"
        ) from e


def _once(keys: tuple[UndoKey, ...]) -> tuple[UndoKey, ...]:
    if len({key.resource for key in keys}) != len(keys):
        raise ValueError("a key stands there twice")
    return keys


def _time(value: Any) -> float:
    if not abs(float(value)) < _LATEST:  # nor is NaN
        raise ValueError("no time")
    return float(value)


def _key(item: Any) -> UndoKey:
    owners = item["owners"]
    if not isinstance(item["kubelets"], bool):
        raise TypeError("kubelets is no boolean")
    return UndoKey(
        _text(item["resource"]),
        _text_or_none(item["capacityBefore"]),
        _text_or_none(item["allocatableBefore"]),
        _text_or_none(item["capacityAfter"]),
        _text_or_none(item["allocatableAfter"]),
        owners=None if owners is None else tuple(_text(owner) for owner in owners),
        kubelets=item["kubelets"],
    )


def _text(value: object) -> str:
    """Any text: what a Node had (an empty name, a strange amount) is written, and read again. The
    API server judges what goes back."""
    if not isinstance(value, str):
        raise TypeError(f"{shorten(repr(value), 40)} is no text")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def plan_undo(
    snap: Snapshot, record: UndoRecord, *, restore_value: bool = False, manager: str = "dpctl"
) -> ChangePlan:
    """Same Node, key as the change left it, not served; else refused with the reason.

    A value above 0 that the kubelet had written goes back as 0 unless `restore_value`: as 4/0 it
    was 4/4 within a period with no plugin behind it (kubelet-facts §15).
    Raises BadDataError for a snapshot without a Node.
    """
    node = snap.node
    if node is None:
        raise BadDataError("no Node was read", "dpctl env shows which API server is asked")
    joined = Devices(snap)
    evidence = evidence_of(snap, joined)
    found = {row.resource: row for row in resource_rows(snap, joined)}
    asked = requests(snap)
    rows: list[PlanRow] = []
    by_manager: dict[str, list[KeyChange]] = {}
    for key in record.keys:
        if key.resource in record.undone:
            continue
        row = found.get(key.resource)
        verdict, reason, step = _verdict(node, record, key, row, asked.get(key.resource, 0))
        if verdict is Verdict.CHANGE:
            if snap.pods is None and key.capacity_before is None:
                verdict, reason, step = (
                    Verdict.REFUSE,
                    "the pods were not read",
                    "dpctl -v says why",
                )
            else:
                target = _target(key, restore_value)
                verdict, reason, step = _risky(key, target, evidence) or (verdict, reason, step)
            if verdict is Verdict.CHANGE:
                who = KUBELETS_MANAGER if key.kubelets else manager
                by_manager.setdefault(who, []).extend(_changes(node, key, target))
                if target != (key.capacity_before, key.allocatable_before):
                    reason = (
                        f"as 0: {key.capacity_before} was the kubelet's word, and no plugin is"
                        " there (--restore-value puts it back all the same)"
                    )
        rows.append(
            PlanRow(
                resource=key.resource,
                state=NATIVE if names.is_native(key.resource) else str(row.state) if row else "-",
                verdict=verdict,
                reason=reason,
                next_step=step,
                capacity=node.capacity.get(key.resource),
                allocatable=node.allocatable.get(key.resource),
                owners=None if node.owners is None else tuple(node.owners.get(key.resource, ())),
                requested=None if snap.pods is None else asked.get(key.resource, 0),
                evidence=row.evidence if row else (),
                named=True,
                forced=False,
                waiting_pods=waiting_pods(snap, key.resource),
            )
        )
    return ChangePlan(
        action=Action.UNDO,
        node=node.name,
        uid=node.uid,
        boot_id=node.boot_id if evidence.local else None,
        rows=tuple(rows),
        patches=tuple(Patch(who, tuple(changes)) for who, changes in by_manager.items()),
        notes=notes_of(snap, evidence),
        period=status_period(snap),
        kubelet_manager=node.kubelet_manager,
    )


def last_to_undo(
    node: Node, records: Iterable[tuple[str, UndoRecord]]
) -> tuple[tuple[str, UndoRecord] | None, tuple[str, ...]]:
    """Of records, the last one first: the first that took something and has not been undone; and
    the paths of those passed over, which were planned and never reached the server."""
    passed: list[str] = []
    for path, record in records:
        if record.state in (UndoState.UNDONE, UndoState.NOT_APPLIED):
            continue
        if record.state is UndoState.PLANNED and took_nothing(node, record):
            passed.append(path)
            continue
        return (path, record), tuple(passed)
    return None, tuple(passed)


def took_nothing(node: Node, record: UndoRecord) -> bool:
    """Whether every key still is as it was before: a change that never reached the server."""
    return node.uid == record.uid and all(
        node.capacity.get(k.resource) == k.capacity_before
        and node.allocatable.get(k.resource) == k.allocatable_before
        for k in record.keys
        if k.resource not in record.undone
    )


def _verdict(
    node: Node, record: UndoRecord, key: UndoKey, row: ResourceRow | None, asked: int
) -> tuple[Verdict, str, str | None]:
    if names.is_native(key.resource):
        return Verdict.REFUSE, "it is Kubernetes' own", "leave it alone"
    if node.name != record.node:
        return Verdict.REFUSE, f"the change was of Node {record.node}", f"--node {record.node}"
    if not record.uid or node.uid != record.uid:
        words = "the Node has been made anew since: its keys are not those of then"
        return Verdict.REFUSE, words, "dpctl resources shows what it has now"
    if row is not None and (row.connected or row.served):
        words = summary(row, row.state)
        return Verdict.REFUSE, words, "nothing is to be put back: the plugin tells how many"
    if row is not None and row.state is ResourceState.GRACE:
        return Verdict.REFUSE, "the kubelet tracks it, and writes it itself", "dpctl resources"
    now = (node.capacity.get(key.resource), node.allocatable.get(key.resource))
    if now == (key.capacity_before, key.allocatable_before):
        return Verdict.KEEP, "it is as it was before", None
    if not _as_left(node, key):
        owners = ", ".join((node.owners or {}).get(key.resource, ())) or "nobody known"
        words = f"it is {now[0] or '-'}/{now[1] or '-'} now, written by {owners}"
        return Verdict.REFUSE, words, "somebody has changed it since: set it by hand, if it must be"
    if key.capacity_before is None and key.allocatable_before is None and asked:
        return Verdict.REFUSE, "pods request it by now", "delete them first"
    return Verdict.CHANGE, "it is as the change left it", None


def _as_left(node: Node, key: UndoKey) -> bool:
    """The capacity decides: the kubelet writes allocatable after it."""
    return _same(node.capacity.get(key.resource), key.capacity_after) and (
        key.capacity_after is not None
        or node.allocatable.get(key.resource) is None
        or key.allocatable_after is not None
    )


def _same(now: str | None, left: str | None) -> bool:
    """`1000` is stored as `1k`."""
    if now is None or left is None or now == left:
        return now == left
    return quantity.count(now) is not None and quantity.count(now) == quantity.count(left)


def _risky(
    key: UndoKey, target: tuple[str | None, str | None], evidence: Evidence
) -> tuple[Verdict, str, str] | None:
    """The kubelet's number is not put back beside a plugin that may serve it; 0 is harmless."""
    above = any((quantity.count(text) or 0) > 0 for text in target)
    if not (key.kubelets and above and evidence.unclaimed):
        return None
    where = ", ".join(evidence.unclaimed[:3])
    words = f"a plugin listens on {where}, and which resource it serves is not known for sure"
    return Verdict.REFUSE, words, "restart that plugin, or leave out --restore-value"


def _target(key: UndoKey, restore_value: bool) -> tuple[str | None, str | None]:
    before = (key.capacity_before, key.allocatable_before)
    above = any((quantity.count(text) or 0) > 0 for text in before)
    if key.kubelets and above and not restore_value:
        return ("0" if before[0] is not None else None, "0" if before[1] is not None else None)
    return before


def _changes(
    node: Node, key: UndoKey, target: tuple[str | None, str | None]
) -> tuple[KeyChange, KeyChange]:
    name = key.resource
    return (
        KeyChange("capacity", name, node.capacity.get(name), target[0]),
        KeyChange("allocatable", name, node.allocatable.get(name), target[1]),
    )
