"""Columns of what plugins and rejected pods left behind, and what became of it."""

from __future__ import annotations

from dpctl.columns import Column, Emphasis, View, age_text
from dpctl.model.changes import Outcome, Verdict
from dpctl.model.leftovers import PodChangeRow, SocketChangeRow
from dpctl.text import natural_key

_OUTCOME_EMPHASIS: dict[Outcome | None, Emphasis] = {
    Outcome.CHANGED: "good",
    Outcome.NOT_APPLIED: "bad",
}
_VERDICT_EMPHASIS: dict[Verdict, Emphasis] = {Verdict.CHANGE: "warn", Verdict.REFUSE: "bad"}

SOCKET_CHANGES: View[SocketChangeRow] = View(
    kind="SocketChange",
    row_type=SocketChangeRow,
    name=lambda r: f"socket/{r.endpoint}",
    short=lambda r: r.endpoint,
    columns=(
        Column("ENDPOINT", lambda r: r.endpoint, "endpoint"),
        Column("STATE", lambda r: r.state, "state"),
        Column("AGE", lambda r: age_text(r.age), "age"),
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
        Column("REASON", lambda r: r.reason, "reason"),
        Column("NEXT", lambda r: r.next_step, "nextStep", wide=True),
    ),
)

POD_CHANGES: View[PodChangeRow] = View(
    kind="PodChange",
    row_type=PodChangeRow,
    name=lambda r: f"pod/{r.namespace}/{r.pod}",
    short=lambda r: f"{r.namespace}/{r.pod}",
    order=lambda r: (natural_key(r.namespace), natural_key(r.pod)),
    columns=(
        Column("NAMESPACE", lambda r: r.namespace, "namespace"),
        Column("POD", lambda r: r.pod, "pod"),
        Column("REASON", lambda r: r.reason, "reason"),
        Column("OWNER", lambda r: r.owner, "owner"),
        Column(
            "OUTCOME",
            lambda r: r.outcome,
            "outcome",
            wide=True,
            emphasis=lambda r: _OUTCOME_EMPHASIS.get(r.outcome),
        ),
        Column("MESSAGE", lambda r: r.message, "message"),
        Column("DETAIL", lambda r: r.detail, "detail", wide=True),
    ),
)
