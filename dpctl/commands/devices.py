"""`dpctl devices`: one row per device, with its health, NUMA node, state and holder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dpctl.errors import DpctlError
from dpctl.inventory.rows import DeviceRow, DeviceState, GroupRow
from dpctl.model import Snapshot, Source
from dpctl.options import READS, Common, declare

_NEEDS = (Source.NODE, Source.CHECKPOINT, Source.POD_RESOURCES)
_GROUPS = ("physical", "numa", "pod")


@declare(
    *READS,
    examples="""
    dpctl devices
    # Which card is broken, and who is on it
    dpctl devices --unhealthy
    dpctl devices 'vendor.example/*' --free
    dpctl devices --held-by ml/trainer
    # Replicas by the card behind them
    dpctl devices vendor.example/gpu.shared --group-by physical
    """,
)
def command(
    common: Common,
    resources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RESOURCE]...", help="Resource names or globs; none: all."),
    ] = None,
    unhealthy: Annotated[
        bool, typer.Option("--unhealthy", help="Only devices that are Unhealthy or Missing.")
    ] = False,
    free: Annotated[
        bool, typer.Option("--free", help="Only devices that a pod could get.")
    ] = False,
    held_by: Annotated[
        str | None,
        typer.Option(
            "--held-by",
            metavar="NAMESPACE/POD",
            help="Only devices that this pod holds (or POD, or NAMESPACE/POD/CONTAINER; globs).",
        ),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            "--group-by", metavar="WHAT", help="One row per physical card, numa node or pod."
        ),
    ] = None,
) -> int | None:
    """List devices: healthy or not, on which NUMA node, held by which container.

    STATE is the first that applies: Orphaned (held only by pods that are gone), Unknown (the
    kubelet is not connected to a plugin of the resource), Unhealthy, Missing (held, and no longer
    in the plugin's list), Allocated, Reusable (held by an init container only), Free. An orphaned
    device can be given to the next pod, so FREE of `dpctl resources` counts it. A device ? is
    unhealthy and held by nobody: the Node counts it, and only the plugin itself knows its ID.
    """
    from dpctl.commands._reading import INVENTORY, Question, answer, not_found, one_of
    from dpctl.inventory.devices import Devices, group_rows, is_free
    from dpctl.text import matches_any
    from dpctl.views import DEVICES, GROUPS

    one_of("--group-by", group_by, _GROUPS)
    patterns = resources or []

    def rows(snap: Snapshot) -> Sequence[DeviceRow]:
        return [
            row
            for row in Devices(snap).rows()
            if matches_any(row.resource, patterns)
            and (not unhealthy or row.state in (DeviceState.UNHEALTHY, DeviceState.MISSING))
            and (not free or is_free(row))
            and (held_by is None or _is_held_by(row, held_by))
        ]

    def check(snap: Snapshot, _shown: Sequence[object]) -> DpctlError | None:
        from dpctl.inventory.resources import resource_rows

        if unhealthy:
            _say_unknown(snap, patterns)
        if not patterns:
            return None
        # What only a gone pod held is no resource, and its devices are shown all the same.
        known = {row.resource for row in resource_rows(snap)}
        known |= {row.resource for row in Devices(snap).rows()}
        return not_found("resource", patterns, known, snap)

    if group_by is not None:
        by = group_by

        def groups(snap: Snapshot) -> Sequence[GroupRow]:
            return group_rows(rows(snap), by)

        return answer(common, Question(GROUPS, INVENTORY, _NEEDS, groups, check))
    return answer(common, Question(DEVICES, INVENTORY, _NEEDS, rows, check))


def _say_unknown(snap: Snapshot, patterns: list[str]) -> None:
    """Nothing unhealthy is no good news of a resource whose plugin is gone."""
    from shlex import quote

    from dpctl import streams
    from dpctl.inventory.devices import Devices
    from dpctl.inventory.registered import untold
    from dpctl.text import matches_any

    joined = Devices(snap)
    unknown = {row.resource for row in joined.rows() if row.state is DeviceState.UNKNOWN}
    for resource in sorted(name for name in unknown if matches_any(name, patterns)):
        why = "the kubelet is connected to no plugin of it"
        if joined.connected(resource):
            why = untold(snap) or "the numbers of the Node do not tell"
        streams.say(
            "note",
            f"the health of {resource}'s devices is not known: {why}",
            f"dpctl resources {quote(resource)} -o wide",
        )


def _is_held_by(row: DeviceRow, pattern: str) -> bool:
    from dpctl.text import matches_any

    for holder in row.holders:
        pod = holder.pod or f"uid:{holder.uid}"
        place = f"{holder.namespace}/{pod}"
        names = (pod, place, f"{place}/{holder.container}", holder.uid or "")
        if any(matches_any(name, [pattern.removeprefix("pod/")]) for name in names):
            return True
    return False
