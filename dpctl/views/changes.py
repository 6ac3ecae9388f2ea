"""Columns of a change of a Node: what is planned for each key, and how it fared."""

from __future__ import annotations

from dpctl.columns import UNKNOWN, Column, Emphasis, View, or_unknown
from dpctl.model.changes import ChangeRow, Outcome, Verdict
from dpctl.text import natural_key

_VERDICT_EMPHASIS: dict[Verdict, Emphasis] = {
    Verdict.CHANGE: "good",
    Verdict.REFUSE: "bad",
    Verdict.WAIT: "warn",
}
_OUTCOME_EMPHASIS: dict[Outcome | None, Emphasis] = {
    Outcome.CHANGED: "good",
    Outcome.CAME_BACK: "bad",
    Outcome.NOT_APPLIED: "bad",
    Outcome.UNVERIFIED: "warn",
}


def _change_numbers(row: ChangeRow) -> object:
    """Of what is set or put back, what it will be, too; what is removed has nothing after it."""
    now = _pair(row.capacity, row.allocatable)
    new = _pair(row.new_capacity, row.new_allocatable)
    return now if new in (None, now) else f"{now or '-'} → {new}"


def _pair(capacity: str | None, allocatable: str | None) -> str | None:
    if capacity is None and allocatable is None:
        return None
    return f"{capacity or '-'}/{allocatable or '-'}"


def _change_reason(row: ChangeRow) -> str:
    waiting = f"; {', '.join(row.waiting_pods)} waits for it" if row.waiting_pods else ""
    return f"{row.reason}{waiting}"


CHANGES: View[ChangeRow] = View(
    kind="NodeChange",
    row_type=ChangeRow,
    name=lambda r: f"node/{r.node}/{r.resource}",
    short=lambda r: r.resource,
    key=lambda r: (r.node, r.resource),
    order=lambda r: (natural_key(r.node), natural_key(r.resource)),
    columns=(
        Column("NODE", lambda r: r.node, "node", wide=True),
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("STATE", lambda r: r.state, "state"),
        Column("VALUE", _change_numbers, "capacity"),
        Column(
            "VERDICT",
            lambda r: r.verdict,
            "verdict",
            emphasis=lambda r: _VERDICT_EMPHASIS.get(r.verdict),
        ),
        Column(
            "OUTCOME",
            lambda r: r.outcome,
            "outcome",
            wide=True,
            emphasis=lambda r: _OUTCOME_EMPHASIS.get(r.outcome),
        ),
        Column("OWNER", lambda r: UNKNOWN if r.owners is None else r.owners, "owners", wide=True),
        Column(
            "REQUESTED", lambda r: or_unknown(r.requested), "requested", wide=True, align="right"
        ),
        Column("REASON", _change_reason, "reason"),
        Column("EVIDENCE", lambda r: "; ".join(r.evidence) or None, "evidence", wide=True),
        Column("NEXT", lambda r: r.next_step, "nextStep", wide=True),
    ),
)
