"""`dpctl plugin allocate`: Allocate by hand, and the answer against the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.commands._plugin_target import GROUPS, Asked, Socket, Yes
from dpctl.errors import DpctlError, ExitCode, UsageError
from dpctl.model import Source
from dpctl.options import Common, declare

if TYPE_CHECKING:
    from dpctl.inventory.by_hand_rows import AllocationRow

_MORE = frozenset({Source.POD_RESOURCES, Source.CDI})
_PRE_START_SECONDS = 30.0
"""What the kubelet gives PreStartContainer (kubelet-facts §2.1)."""
_MOST_CAUTIONS = 10


@declare(
    *GROUPS,
    examples="""
    # What would a container get for this device, and is it there?
    dpctl plugin allocate vendor.example/gpu gpu-3
    # Two devices, with the call before the container's start
    dpctl plugin allocate ./test.sock card-0 card-1 --prestart --yes -o json
    """,
)
def allocate(
    common: Common,
    socket: Socket,
    devices: Annotated[
        list[str], typer.Argument(metavar="DEVICE...", help="Device IDs.", show_default=False)
    ],
    pre_start: Annotated[
        bool, typer.Option("--prestart", help="Call PreStartContainer after it.")
    ] = False,
    yes: Yes = False,
) -> int | None:
    """Have a plugin allocate devices, and check its answer.

    Allocate runs the plugin's own code as for a pod: it may set a device up, or take it away from
    whoever has it. Therefore it asks first, and says who holds the devices. The kubelet is not
    asked and does not know of it: nothing is recorded, and it may give the same devices to a pod.

    The answer is shown as a container would get it, each device node, mount and CDI name against
    this machine. Exit code 1 when something of it is wrong, or when a kubelet would refuse the
    answer. --prestart calls PreStartContainer as well, for which a kubelet waits 30 seconds.
    """
    from dpctl import output
    from dpctl.commands._confirm import confirm
    from dpctl.commands._plugin_target import find
    from dpctl.documents import Envelope
    from dpctl.inventory.by_hand import cautions
    from dpctl.views.plugin import ALLOCATION

    options = common.output
    if "" in devices or len(set(devices)) < len(devices):
        raise UsageError("a device ID is empty or given twice", "name each device once")
    asked = find(common, socket, _MORE)
    said = cautions(asked.snap, asked.target, devices)
    for caution in said[:_MOST_CAUTIONS]:
        streams.warn(caution)
    if len(said) > _MOST_CAUTIONS:
        streams.warn(f"and {len(said) - _MOST_CAUTIONS} more like these")
    what = devices[0] if len(devices) == 1 else f"{len(devices)} devices"
    if not confirm(f"Allocate {what} of {asked.name}, past the kubelet?", yes, only_show=None):
        streams.plain("nothing was allocated")
        return ExitCode.NOT_APPLIED
    row, failed = _call(asked, tuple(devices), pre_start)
    if options.format == "table":
        from dpctl.outputs.describe import describe_text

        output.write_text(describe_text(_text(row)))
    else:
        output.write([row], ALLOCATION, options=options, snapshot_meta=Envelope.of(asked.snap))
    streams.note(
        "the kubelet does not know of this: it has recorded nothing, and may give these devices "
        "to a pod; no API takes an Allocate back"
    )
    if failed is not None:
        raise failed
    if row.refused is not None:
        streams.warn(
            f"a kubelet would refuse a pod over this answer: {row.refused}",
            "the plugin must answer for each container of the request, with texts in UTF-8",
        )
    return ExitCode.FOUND if row.problems or row.refused else ExitCode.OK


def _call(
    asked: Asked, devices: tuple[str, ...], pre_start: bool
) -> tuple[AllocationRow, DpctlError | None]:
    """What came of it, and how PreStartContainer failed: what was allocated is shown all the
    same."""
    from dpctl.inventory.by_hand import allocation_row
    from dpctl.sources.hostpaths import read_host_paths
    from dpctl.writes import plugin_calls

    path, snap = asked.target.path, asked.snap
    given = plugin_calls.allocate(path, devices, **asked.how)
    failed: DpctlError | None = None
    if pre_start:
        how = {**asked.how, "timeout": max(asked.how["timeout"], _PRE_START_SECONDS)}
        try:
            plugin_calls.pre_start(path, devices, **how)
        except DpctlError as error:
            failed = error
    first = given.containers[0] if given.containers else None
    root = asked.env.host_root.value or "/"
    paths = read_host_paths(root, None, snap.cdi or (), first)
    called = pre_start and failed is None
    row = allocation_row(asked.target, devices, given, paths, snap.cdi, pre_started=called)
    return row, failed


def _text(row: AllocationRow) -> list[tuple[str, object]]:
    from dpctl.commands._answer_text import answer_entries
    from dpctl.outputs.describe import Part

    entries: list[tuple[str, object]] = [
        ("Socket", row.socket),
        ("Resource", row.resource or "?"),
        ("Devices", row.devices),
        ("PreStartContainer", "answered" if row.pre_started else "-"),
    ]
    gets = answer_entries(row.answer, row.cdi)
    entries.append(("A container would get", Part.of(gets) if gets else "nothing"))
    return entries
