"""`dpctl schema KIND`: the JSON Schema of what `-o json` prints. Reads nothing of the node."""

from __future__ import annotations

from typing import Annotated

import typer

from dpctl.options import OUTPUT, Common, declare


@declare(
    OUTPUT,
    examples="""
    # Which kinds there are
    dpctl schema

    dpctl schema Resource
    dpctl schema devicelist -o yaml
    """,
)
def command(
    common: Common,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="Without one, the kinds are listed.", show_default=False
        ),
    ] = None,
) -> int | None:
    """Print the JSON Schema of the documents that -o json and -o yaml give.

    Kinds are those of the documents; the List at the end may be left out, and case does not count.
    """
    from dpctl import output
    from dpctl.errors import UsageError
    from dpctl.schema import json_schema
    from dpctl.views.kinds import VIEWS

    options = common.output
    views = {view.kind.lower(): view for view in VIEWS}
    if kind is None:
        output.write_text("\n".join(view.kind for view in VIEWS))
        return None
    found = views.get(kind.lower()) or views.get(kind.lower().removesuffix("list"))
    if found is None or found.row_type is None:
        raise UsageError(
            f"unknown kind {kind!r}", f"one of: {', '.join(view.kind for view in VIEWS)}"
        )
    output.write_document(json_schema(found.row_type, found.kind), options=options)
    return None
