"""Columns of `dpctl diff`."""

from __future__ import annotations

from dpctl.columns import Column, View
from dpctl.inventory.differences import WHATS, DifferenceRow
from dpctl.text import natural_key

DIFFERENCES: View[DifferenceRow] = View(
    kind="Difference",
    nothing="No differences found",
    row_type=DifferenceRow,
    name=lambda r: f"{r.what}/{r.name}",
    short=lambda r: r.name,
    key=lambda r: (r.what, r.name, r.field),
    order=lambda r: (WHATS.index(r.what) if r.what in WHATS else len(WHATS), natural_key(r.name)),
    columns=(
        Column("WHAT", lambda r: r.what, "what"),
        Column("NAME", lambda r: r.name, "name"),
        Column("FIELD", lambda r: r.field, "field"),
        Column("A", lambda r: r.a, "a"),
        Column("B", lambda r: r.b, "b"),
    ),
)
