"""`dpctl resources`: one row per extended resource of the node, with its state and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dpctl.errors import DpctlError, FoundError, UsageError
from dpctl.inventory.rows import ResourceRow, ResourceState
from dpctl.model import Snapshot, Source
from dpctl.options import READS, Common, declare

_REMOVABLE = (ResourceState.STALE, ResourceState.GHOST, ResourceState.MALFORMED)


@declare(
    *READS,
    examples="""
    # Everything that is advertised here
    dpctl resources
    # One vendor, with the evidence for each state
    dpctl resources 'vendor.example/*' -o wide
    # In a script: fail unless eight healthy GPUs are offered
    dpctl resources --expect vendor.example/gpu=8 -q
    # What a plugin left behind
    dpctl resources --stale
    # A captured node
    dpctl resources --from bundle.tgz
    """,
)
def command(
    common: Common,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RESOURCE]...", help="Names or globs; none: all."),
    ] = None,
    stale: Annotated[
        bool,
        typer.Option("--stale", help="Only what nothing backs any more: Stale, Ghost, Malformed."),
    ] = False,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            "--expect",
            metavar="RESOURCE=N",
            help="Exit 1 unless exactly N devices are healthy; may be repeated.",
        ),
    ] = None,
) -> int | None:
    """List the extended resources of the node: who serves them, how many, and is everybody agreed.

    DEVICES is healthy/total, ALLOCATED what pods hold, FREE what is left, NUMA how many devices are
    on each NUMA node, PLUGIN the socket that serves it (~ when inferred), NODE capacity/allocatable
    of the Node object. A ? is a value that could not be read, a - one that does not exist; -o wide
    and -o json give the evidence for each state.

    The states, in the order in which they are tried:

    Malformed: no plugin can register this name; somebody wrote it on the Node.

    Empty: the plugin is connected and lists no device.

    Mismatch: connected, and the Node has not said what the kubelet knows for two periods.

    Degraded: connected, fewer devices healthy than there are.

    Ready: connected, all healthy.

    Unregistered: the plugin lives and the kubelet is not connected to it; restart the plugin.

    Grace: the plugin is gone: start it again. The kubelet keeps the key for five minutes.

    DRA: a DeviceClass serves the name, no device plugin does.

    Absent: not on the Node, but a pod here requests or holds it.

    Foreign: somebody else than the kubelet made the key, an operator or a controller.

    Stale: 0 and 0, left behind: its plugin has been gone for longer than that.

    Ghost: above 0, and nobody behind it: pods are sent to nothing.

    Unknown: a source is missing that would tell; the evidence says which.
    """
    from dpctl.commands._reading import INVENTORY, Question, answer, not_found
    from dpctl.inventory.resources import resource_rows
    from dpctl.text import matches_any
    from dpctl.views import RESOURCES

    wanted = [_expectation(text) for text in expect or ()]
    patterns = names or []

    def rows(snap: Snapshot) -> Sequence[ResourceRow]:
        return [
            row
            for row in resource_rows(snap)
            if matches_any(row.resource, patterns) and (not stale or row.state in _REMOVABLE)
        ]

    def check(snap: Snapshot, shown: Sequence[ResourceRow]) -> DpctlError | None:
        if not wanted and not patterns:
            return None  # nothing was named: the join is not made a second time
        everything = resource_rows(snap)
        unmet = [text for r, n in wanted if (text := _unmet(everything, r, n)) is not None]
        if unmet:
            return FoundError("; ".join(unmet), "dpctl resources -o wide shows why")
        return not_found("resource", patterns, {row.resource for row in everything}, snap)

    needs = (Source.NODE, Source.CHECKPOINT, Source.POD_RESOURCES)
    return answer(common, Question(RESOURCES, INVENTORY, needs, rows, check))


def _expectation(text: str) -> tuple[str, int]:
    name, equals, number = text.rpartition("=")
    if not equals or not name or not (number.isascii() and number.isdigit()) or len(number) > 9:
        raise UsageError(
            f"--expect {text!r} is not RESOURCE=N", "for example: --expect nvidia.com/gpu=8"
        )
    return name, int(number)


def _unmet(rows: Sequence[ResourceRow], resource: str, number: int) -> str | None:
    """The sentence about an expectation that does not hold. Without local evidence the Node's
    allocatable stands in for the healthy devices."""
    from dpctl.quantity import count

    row = next((r for r in rows if r.resource == resource), None)
    if row is None:
        return None if number == 0 else f"{resource}: expected {number}, not there"
    healthy = row.healthy if row.healthy is not None else count(row.allocatable)
    if healthy == number:
        return None
    seen = "an unknown number" if healthy is None else str(healthy)
    return f"{resource}: expected {number}, found {seen} ({row.state})"
