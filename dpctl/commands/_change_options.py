"""Options of the commands that change something. They load nothing of what a change is: the parser
of `dpctl pods` has those of `pods prune` in it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from dpctl.errors import UsageError
from dpctl.options import CLUSTER, OUTPUT, PLACES, READING, duration

CHANGES_GROUPS = (OUTPUT, PLACES, CLUSTER, READING)
DRY_RUN = ("none", "client", "server")


def _window(text: str) -> float:
    return 0.0 if text in ("0", "0s") else duration(text)


DryRun = Annotated[
    str,
    typer.Option(
        "--dry-run",
        metavar="none|client|server",
        help="client: only plan; server: have the API server check it; nothing is changed.",
    ),
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
Verify = Annotated[
    float | None,
    typer.Option(
        "--verify",
        metavar="DURATION",
        parser=_window,
        help="How long to look whether it stays; 0: not at all. (two status periods)",
    ),
]
FieldManager = Annotated[
    str,
    typer.Option("--field-manager", metavar="NAME", help="Who the change is said to be by."),
]
UndoFile = Annotated[
    str | None,
    typer.Option(
        "--undo-file", metavar="FILE", help="Where to keep what goes, instead of dpctl's own place."
    ),
]


def check_dry_run(value: str) -> None:
    """Raises UsageError."""
    if value not in DRY_RUN:
        raise UsageError(f"--dry-run {value!r}: not one of {', '.join(DRY_RUN)}")
