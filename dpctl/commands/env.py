"""`dpctl env`: every path and endpoint, and where it came from. Looks, reads nothing else."""

from __future__ import annotations

from dpctl.options import CLUSTER, OUTPUT, PLACES, READING, Common, declare


@declare(
    OUTPUT,
    PLACES,
    CLUSTER,
    READING,
    examples="""
    dpctl env

    # What was looked at, and whether it is there
    dpctl env -o wide

    # In a container with the host's / mounted
    dpctl env --host-root /host
    """,
)
def command(common: Common) -> int | None:
    """Show every path and endpoint that dpctl uses, and where it came from.

    Flags go before the environment, the environment before the configuration file, that before
    what a running kubelet says, then known layouts (k3s, RKE2, k0s, microk8s…), then defaults.
    """
    from dpctl import output
    from dpctl.documents import Envelope
    from dpctl.env import find_env
    from dpctl.views import ENVIRONMENT

    options = common.output
    rows = find_env(common.settings).rows()
    output.write(rows, ENVIRONMENT, options=options, snapshot_meta=Envelope())
    return None
