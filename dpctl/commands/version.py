"""`dpctl version`: which dpctl this is, and on what it runs. Reads nothing of the node."""

from __future__ import annotations

from typing import Annotated

import typer

from dpctl.options import Common, declare


@declare(
    examples="""
    dpctl version
    dpctl version --short
    """
)
def command(
    common: Common,
    short: Annotated[bool, typer.Option("--short", help="The number alone.")] = False,
) -> int | None:
    """Print the version.

    `dpctl --version` prints the number alone, faster.
    """
    import platform

    from dpctl import __version__, output

    if short:
        output.write_text(__version__)
        return None
    where = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    output.write_text(f"dpctl {__version__}\n{where}")
    return None
