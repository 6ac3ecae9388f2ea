"""Columns of a change of many Nodes: the rows with their Node, and the sums."""

from __future__ import annotations

from dpctl.columns import Column, View
from dpctl.model.changes import ChangeRow
from dpctl.model.fleet import FleetKind, FleetSum
from dpctl.text import natural_key
from dpctl.views.changes import CHANGES

_SHOWN = ("NODE", "OUTCOME")

FLEET_CHANGES: View[ChangeRow] = CHANGES._replace(
    columns=tuple(
        column._replace(wide=False) if column.title in _SHOWN else column
        for column in CHANGES.columns
    )
)


def _value(row: FleetKind) -> object:
    if row.capacity is None and row.allocatable is None:
        return None
    return f"{row.capacity or '-'}/{row.allocatable or '-'}"


FLEET_KINDS: View[FleetKind] = View(
    kind="NodeChangeKind",
    row_type=FleetKind,
    name=lambda r: r.resource,
    order=lambda r: (natural_key(r.resource), r.verdict, -r.nodes, r.reason),
    columns=(
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("STATE", lambda r: r.state, "state"),
        Column("VALUE", _value, "capacity"),
        Column("VERDICT", lambda r: r.verdict, "verdict"),
        Column("NODES", lambda r: r.nodes, "nodes", align="right"),
        Column("REASON", lambda r: r.reason, "reason"),
    ),
)

FLEET_SUMS: View[FleetSum] = View(
    kind="NodeChangeSum",
    row_type=FleetSum,
    name=lambda r: r.outcome,
    columns=(
        Column("OUTCOME", lambda r: r.outcome, "outcome"),
        Column("NODES", lambda r: r.nodes, "nodes", align="right"),
        Column("KEYS", lambda r: r.keys, "keys", align="right"),
    ),
)
