"""`dpctl lab`: a whole small node without Kubernetes, up, down, or for the time of one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dpctl.options import Common, declare

Directory = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="DIR",
        help="The lab's directory (dpctl-lab-UID in XDG_RUNTIME_DIR or /tmp).",
    ),
]
Period = Annotated[
    float,
    typer.Option(
        "--status-period",
        metavar="SECONDS",
        min=0.05,
        max=3600,
        help="Time between two node status updates; a real kubelet takes 10.",
    ),
]

Policy = Annotated[
    Literal["none", "best-effort", "restricted", "single-numa-node"],
    typer.Option(
        "--topology-policy",
        metavar="POLICY",
        help="The kubelet's topologyManagerPolicy: none, best-effort, restricted or "
        "single-numa-node.",
    ),
]
Scope = Annotated[
    Literal["container", "pod"],
    typer.Option(
        "--topology-scope",
        metavar="SCOPE",
        help="The kubelet's topologyManagerScope: container or pod.",
    ),
]


@declare(
    examples="""
    # Start it, and let this shell look at it
    eval "$(dpctl lab up)"
    dpctl resources
    """
)
def up(
    common: Common,
    directory: Directory = None,
    status_period: Period = 1.0,
    topology_policy: Policy = "none",
    topology_scope: Scope = "container",
) -> int | None:
    """Start the lab in the background and print what to set.

    An emulated kubelet, sample plugins and a Node and Pod API, as processes of yours: no root, no
    Kubernetes. A resource stands there for most of the states that dpctl knows. It runs until
    `dpctl lab down`.
    """
    import shlex

    from dpctl.lab import up as lab
    from dpctl.lab.spec import LabSpec

    where = _directory(directory)
    found = lab.running(where)
    if found is None:
        spec = LabSpec(
            status_period=status_period,
            topology_policy=topology_policy,
            topology_scope=topology_scope,
        )
        found = lab.start(where, spec)
        typer.echo(f"the lab is up in {where} (supervisor: process {found.pid})", err=True)
    else:
        typer.echo(f"a lab runs already in {where} (process {found.pid})", err=True)
    for name, value in found.env.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
    return None


@declare(examples="dpctl lab down")
def down(common: Common, directory: Directory = None) -> int | None:
    """End the lab and remove its directory."""
    from dpctl.lab import up as lab

    where = _directory(directory)
    ended = lab.stop(where)
    typer.echo("the lab is down" if ended else f"no lab runs in {where}", err=True)
    return None


@declare(
    examples="""
    # A lab for the time of one command
    dpctl lab run -- dpctl resources
    # ... or of a shell
    dpctl lab run -- bash
    """
)
def run(
    common: Common,
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...")],
    directory: Directory = None,
    status_period: Period = 1.0,
    topology_policy: Policy = "none",
    topology_scope: Scope = "container",
) -> int | None:
    """Start a lab, run a command that sees it, and end the lab with it.

    The exit code is the command's. Each run has a lab of its own.
    """
    from dpctl.lab import up as lab
    from dpctl.lab.spec import LabSpec

    spec = LabSpec(
        status_period=status_period,
        topology_policy=topology_policy,
        topology_scope=topology_scope,
        watch_parent=True,
    )
    return lab.run(command, spec, directory)


def _directory(given: Path | None) -> Path:
    import os

    from dpctl.lab.directory import absolute, default_directory

    return absolute(given or default_directory(dict(os.environ)))


SUBCOMMANDS = {"up": up, "down": down, "run": run}
