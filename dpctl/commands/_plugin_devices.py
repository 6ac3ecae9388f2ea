"""`dpctl plugin devices`: a plugin's own list, which nobody else shows in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.commands._plugin_target import DOCUMENTS, GROUPS, Asked, Socket, Yes
from dpctl.errors import ExitCode
from dpctl.model import Source
from dpctl.options import Common, declare

if TYPE_CHECKING:
    from dpctl.documents import Envelope
    from dpctl.inventory.by_hand_rows import DeviceListRow, ListedRow
    from dpctl.model.plugin_calls import DeviceMessage

_MOST_FINDINGS = 20


@declare(
    *GROUPS,
    examples="""
    # Every device that the plugin lists, the unhealthy ones too
    dpctl plugin devices vendor.example/gpu
    # ... and what changes from now on
    dpctl plugin devices vendor.example/gpu --watch
    # A plugin that no kubelet is connected to: nothing is asked
    dpctl plugin devices ./test.sock -o json
    """,
)
def devices(
    common: Common,
    socket: Socket,
    watch: Annotated[
        bool, typer.Option("-w", "--watch", help="Stay, and show differences as they come.")
    ] = False,
    yes: Yes = False,
) -> int | None:
    """Show a plugin's own list of devices.

    ListAndWatch, the one call with every device, its health and its NUMA nodes as the plugin says
    them: nobody else knows the IDs of unhealthy devices that no pod holds. It has a price: many
    plugins hand each update to only one of those that listen, so that the kubelet may miss one
    while dpctl listens, and the first one after it has left. Therefore it is opened at once only
    where the kernel's socket table shows that the kubelet is not connected to the plugin; else
    dpctl says so and asks (--yes: it only says so). `dpctl devices` takes nothing from anybody.

    What is odd is said: a message near or above the 4 MiB that a kubelet takes, IDs that are listed
    twice, empty or unprintable, NUMA nodes that this machine lacks, a topology without nodes. Exit
    code 1 when a kubelet could not take the message.
    """
    from dpctl.commands._plugin_target import find, may_listen
    from dpctl.documents import Envelope

    options = common.output
    asked = find(common, socket, (Source.NUMA,))
    if not may_listen(asked, yes, for_long=watch):
        streams.plain("the plugin was not asked")
        return ExitCode.NOT_APPLIED
    from dpctl.writes.plugin_calls import watch_devices

    messages = watch_devices(asked.target.path, **asked.how)
    if watch:
        from dpctl import watching
        from dpctl.views.plugin import LISTED_DEVICES

        watching.follow(_readings(asked, messages), LISTED_DEVICES, options=options)
        return None
    message = next(messages)
    messages.close()  # hangs up
    return _show(common, asked, message, Envelope.of(asked.snap))


def _show(common: Common, asked: Asked, message: DeviceMessage, envelope: Envelope) -> int:
    from dpctl import output
    from dpctl.inventory.listed import device_list
    from dpctl.views.plugin import DEVICE_LIST, LISTED_DEVICES

    options = common.output
    row = device_list(message, asked.snap.numa, asked.target)
    if options.format in DOCUMENTS:
        output.write([row], DEVICE_LIST, options=options, snapshot_meta=envelope)
    else:
        output.write(row.devices, LISTED_DEVICES, options=options, snapshot_meta=envelope)
    _say(row, set())
    return ExitCode.OK if row.accepted else ExitCode.FOUND


def _readings(
    asked: Asked, messages: Iterator[DeviceMessage]
) -> Iterator[tuple[tuple[ListedRow, ...], Envelope]]:
    import time

    from dpctl.documents import Envelope
    from dpctl.inventory.listed import device_list

    said: set[str] = set()
    for message in messages:
        row = device_list(message, asked.snap.numa, asked.target)
        yield row.devices, Envelope(time.time(), asked.snap.sources)
        _say(row, said)


def _say(row: DeviceListRow, said: set[str]) -> None:
    """The message as a whole; under --watch what has been said stays said."""
    from dpctl.inventory.listed import summary

    streams.note(summary(row))
    new = [finding for finding in row.findings if finding not in said]
    said.update(new)
    for finding in new[:_MOST_FINDINGS]:
        streams.warn(finding)
    if len(new) > _MOST_FINDINGS:
        streams.warn(f"and {len(new) - _MOST_FINDINGS} more like these: -o json has them all")
