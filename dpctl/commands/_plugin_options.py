"""`dpctl plugin options`: what one plugin offers."""

from __future__ import annotations

from dpctl.commands._plugin_target import GROUPS, Socket
from dpctl.options import Common, declare


@declare(
    *GROUPS,
    examples="""
    # By its socket's name, its resource, or a path
    dpctl plugin options vendor-gpu.sock
    dpctl plugin options vendor.example/gpu
    dpctl plugin options ./test.sock -o json
    """,
)
def options(common: Common, socket: Socket) -> int | None:
    """Ask a plugin what it offers.

    GetDevicePluginOptions, a harmless call. PRESTART: the kubelet calls PreStartContainer before
    every start of a container. PREFERRED: it asks the plugin which devices fit together
    (GetPreferredAllocation) before it allocates. What a plugin says when it registers does not
    count, only this answer.
    """
    from dpctl import output
    from dpctl.commands._plugin_target import find
    from dpctl.documents import Envelope
    from dpctl.inventory.by_hand_rows import OptionsRow
    from dpctl.sources.plugin_calls import get_options
    from dpctl.views.plugin import OPTIONS

    how = common.output
    asked = find(common, socket)
    found = get_options(asked.target.path, **asked.how)
    row = OptionsRow(
        socket=asked.target.path,
        resource=asked.target.resource,
        resource_inferred=asked.target.inferred,
        pre_start=found.pre_start_required,
        preferred_allocation=found.preferred_allocation,
    )
    output.write([row], OPTIONS, options=how, snapshot_meta=Envelope.of(asked.snap))
    return None
