"""`dpctl diff A B`: what changed between two bundles, or since one was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dpctl import streams
from dpctl.errors import ExitCode
from dpctl.inventory.differences import DifferenceRow
from dpctl.model import Source
from dpctl.options import CLUSTER, OUTPUT, PLACES, READING, Common, declare

# Nothing of these is compared.
_LEFT = frozenset({Source.PCI, Source.HOST_PATHS, Source.UNSCHEDULED})
_NEEDS = (Source.NODE, Source.CHECKPOINT, Source.POD_RESOURCES, Source.DIRECTORY)


@declare(
    OUTPUT,
    PLACES,
    CLUSTER,
    READING,
    examples="""
    # Before and after a reboot, an upgrade, a restart of the kubelet
    dpctl snapshot before.tgz
    dpctl diff before.tgz
    # Two bundles
    dpctl diff before.tgz after.tgz
    # In a script: which devices are not what they were
    dpctl diff before.tgz -o json | jq '.items[] | select(.what == "device")'
    """,
)
def command(
    common: Common,
    a: Annotated[str, typer.Argument(metavar="BUNDLE", help="What was.")],
    b: Annotated[
        str | None, typer.Argument(metavar="[BUNDLE]", help="What is; none: this node, now.")
    ] = None,
) -> int | None:
    """List what changed from one bundle to another, or to what the node says now.

    A row is one field of one thing: keys of the Node, resources, devices and their holders,
    containers, plugins, what a kubelet would make of its state files, and sources that only one of
    the two could read. Of a thing that came or went one row is shown, with a - where it was not.
    Exit code 1 when there is any row. Names that --redact gave are those of one bundle: two
    redacted bundles differ in them.
    """
    from dpctl import output
    from dpctl.collect import EVERYTHING
    from dpctl.commands._reading import finish, look
    from dpctl.documents import Envelope
    from dpctl.env import find_env
    from dpctl.inventory.differences import snapshot_differences
    from dpctl.views.differences import DIFFERENCES

    options = common.output
    first = common.settings._replace(bundle=a)
    second = common.settings if b is None else common.settings._replace(bundle=b)
    want, said = EVERYTHING - _LEFT, set[str]()
    old = look(common, find_env(first), want, _NEEDS, said=said)
    new = look(common, find_env(second), want, _NEEDS, said=said)
    rows = snapshot_differences(old, new)
    sources = (*old.sources, *new.sources)
    envelope = Envelope(new.collected_at, sources)
    output.write(rows, DIFFERENCES, options=options, snapshot_meta=envelope)
    code = finish(common, options, new._replace(sources=sources), rows, nothing=DIFFERENCES.nothing)
    if not rows:
        return code
    streams.note(_summary(rows))
    return code or ExitCode.FOUND


def _summary(rows: Sequence[DifferenceRow]) -> str:
    counts = dict.fromkeys((row.what for row in rows), 0)
    for row in rows:
        counts[row.what] += 1
    words = ", ".join(f"{n} of {what}" for what, n in counts.items())
    return f"{len(rows)} {'difference' if len(rows) == 1 else 'differences'}: {words}"
