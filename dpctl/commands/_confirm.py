"""The question before anything is changed."""

from __future__ import annotations

import sys

import typer

from dpctl.errors import UsageError


def confirm(question: str, yes: bool, *, only_show: str = "--dry-run=client") -> bool:
    """Whether to go on. `only_show`: the flag that changes nothing, for the hint. Raises UsageError
    where nobody can be asked."""
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "nobody can be asked here (standard input is no terminal)",
            f"--yes does it without asking; {only_show} only shows the plan",
        )
    return typer.confirm(question, default=False, err=True)
