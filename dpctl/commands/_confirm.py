"""The question before anything is changed."""

from __future__ import annotations

import sys

import typer

from dpctl.errors import UsageError


def confirm(question: str, yes: bool, *, only_show: str | None = "--dry-run=client") -> bool:
    """Whether to go on. `only_show`: the flag that changes nothing, for the hint; None: there is
    none. Raises UsageError where nobody can be asked."""
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "nobody can be asked here (standard input is no terminal)",
            "--yes does it without asking"
            + (f"; {only_show} only shows the plan" if only_show else ""),
        )
    return typer.confirm(question, default=False, err=True)
