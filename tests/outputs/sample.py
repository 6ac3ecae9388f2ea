"""A row type with one of everything, a view over it, and rows that mean no good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dpctl.columns import UNKNOWN, Column, Emphasis, Time, View, age_text
from dpctl.documents import Envelope
from dpctl.model import SourceRow


class Health(StrEnum):
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


@dataclass(frozen=True, slots=True)
class Part:
    """One of its pieces."""

    part_id: str
    bytes_free: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device of the tests."""

    name: str
    health: Health
    numa_nodes: tuple[int, ...] | None
    """Ascending; null: no topology."""
    total: int
    capacity: str | None
    free: bool | None
    annotations: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    seen_at: float | None = None
    changed: Time | None = None
    age: float | None = None
    cost: float = field(default=0.0, metadata={"json": None})


def emphasis(row: Gpu) -> Emphasis | None:
    return "bad" if row.health is Health.UNHEALTHY else "good"


GPUS: View[Gpu] = View(
    kind="Gpu",
    row_type=Gpu,
    name=lambda r: f"gpu/{r.name}",
    short=lambda r: r.name,
    columns=(
        Column("NAME", lambda r: r.name, "name"),
        Column("HEALTH", lambda r: r.health, "health", emphasis=emphasis),
        Column("NUMA", lambda r: r.numa_nodes, "numaNodes"),
        Column("TOTAL", lambda r: r.total, "total", align="right"),
        Column("CAPACITY", lambda r: r.capacity or UNKNOWN, "capacity"),
        Column("FREE", lambda r: r.free, "free"),
        Column("AGE", lambda r: age_text(r.age), "age"),
        Column("ANNOTATIONS", lambda r: r.annotations, "annotations", wide=True),
        Column("PARTS", lambda r: tuple(p.part_id for p in r.parts), "parts", wide=True),
    ),
)

HOSTILE = "gpu\x1b[2J\n\u202eevil\udcff\x00"

ROWS = (
    Gpu("gpu-10", Health.HEALTHY, (0, 1), 12, "1k", True, {"vendor.example/x": "1,5"}, age=90),
    Gpu("gpu-2", Health.UNHEALTHY, (0,), 0, "4", False, age=300, seen_at=1796044335.0),
    Gpu(HOSTILE, Health.HEALTHY, None, 3, None, None, parts=(Part("p,1", 0), Part('q"2', None))),
    Gpu("显卡-0", Health.HEALTHY, (), 7, "16", True, changed=1796044335.25),
)

META = Envelope(
    1796044335.0,
    (
        SourceRow("podresources", "/pod-resources/kubelet.sock", "read", seconds=0.012),
        SourceRow(
            "checkpoint", "/device-plugins", "failed", "no such file", "look at --kubelet-root", 3
        ),
    ),
)
