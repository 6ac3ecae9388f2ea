"""The question before anything is changed."""

from __future__ import annotations

import sys

from dpctl.errors import UsageError

_LONGEST = 1000


def confirm(
    question: str, yes: bool, *, only_show: str | None = "--dry-run=client", shows: str = "plan"
) -> bool:
    """Whether to go on: y or yes, all else is no. `only_show`: the flag that changes nothing, for
    the hint, and what it shows; None: there is none. Raises UsageError: nobody can be asked."""
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "nobody can be asked here (standard input is no terminal)",
            "--yes does it without asking"
            + (f"; {only_show} only shows the {shows}" if only_show else ""),
        )
    from dpctl.text import escape, shorten

    # Names in it come from outside.
    # Not typer.confirm: readline's prompt puts a space into standard output, before the rows.
    sys.stderr.write(f"{escape(shorten(question, _LONGEST))} [y/N]: ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")
