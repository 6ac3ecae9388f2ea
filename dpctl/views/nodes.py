"""Columns of what the API server tells of Nodes, and of changes to them."""

from __future__ import annotations

from dpctl.columns import UNKNOWN, Column, View, or_unknown
from dpctl.inventory.rows import NodeResourceRow
from dpctl.text import natural_key

NODE_RESOURCES: View[NodeResourceRow] = View(
    kind="NodeResource",
    row_type=NodeResourceRow,
    name=lambda r: f"node/{r.node}/{r.resource}",
    short=lambda r: r.resource,
    key=lambda r: (r.node, r.resource),
    order=lambda r: (natural_key(r.node), natural_key(r.resource)),
    columns=(
        Column("NODE", lambda r: r.node, "node"),
        Column("RESOURCE", lambda r: r.resource, "resource"),
        Column("CAPACITY", lambda r: r.capacity, "capacity", align="right"),
        Column("ALLOCATABLE", lambda r: r.allocatable, "allocatable", align="right"),
        Column("REQUESTED", lambda r: or_unknown(r.requested), "requested", align="right"),
        Column(
            "FREE",
            lambda r: or_unknown(r.free),
            "free",
            align="right",
            emphasis=lambda r: "bad" if r.free is not None and r.free < 0 else None,
        ),
        Column("STATE", lambda r: or_unknown(r.state), "state", wide=True),
        Column("OWNER", lambda r: UNKNOWN if r.owners is None else r.owners, "owners", wide=True),
    ),
)
