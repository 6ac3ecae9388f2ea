"""`dpctl node undo`: put back what a change of this Node took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.commands._change_options import (
    CHANGES_GROUPS,
    DryRun,
    FieldManager,
    Verify,
    Yes,
    check_dry_run,
)
from dpctl.commands._changing import Session, finish, stopped
from dpctl.commands._fleet_report import counted
from dpctl.errors import FoundError
from dpctl.model import Node, Snapshot
from dpctl.model.changes import ChangePlan
from dpctl.options import Common, declare

if TYPE_CHECKING:
    from dpctl.model.changes import UndoRecord


@declare(
    *CHANGES_GROUPS,
    examples="""
    # What the last change of this node would be without
    dpctl node undo --dry-run=client
    dpctl node undo
    # A change of another day
    dpctl node undo /var/lib/dpctl/undo/000001-lab-0-prune.json
    """,
)
def undo(
    common: Common,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="An undo file; none: that of the last change.",
            show_default=False,
        ),
    ] = None,
    restore_value: Annotated[
        bool,
        typer.Option(
            "--restore-value", help="The kubelet's numbers above 0, too; pods will be sent to them."
        ),
    ] = False,
    dry_run: DryRun = "none",
    yes: Yes = False,
    verify: Verify = None,
    field_manager: FieldManager = "dpctl",
) -> int | None:
    """Put back what the last change of this Node took away or set.

    Only on the same Node object, only keys that are still as the change left them, and none that a
    plugin serves by now. What was the kubelet's goes back under the name dpctl-kubelet, the rest
    under dpctl. A number above 0 that the kubelet had written goes back as 0, since there is no
    plugin behind it: --restore-value puts back the number itself.

    Undo files stay for 90 days, and the newest hundred for good; of the others those go with the
    next change whose change has been undone or was never made. A file named with --undo-file is
    yours.
    """
    from dpctl.changes.undo_record import plan_undo

    check_dry_run(dry_run)
    session = Session(common)
    node = session.look().node
    assert node is not None
    path, record = _record(session, node, file)

    def planner(snap: Snapshot) -> ChangePlan:
        return plan_undo(snap, record, restore_value=restore_value, manager=field_manager)

    assert session.snap is not None
    plan = planner(session.snap)
    streams.say("note", f"undoing {record.action} of {_when(record)} ({path})")
    session.show(plan)
    question = f"Put back {counted(len(plan.changing), 'key')} on node/{plan.node}?"
    code = stopped(session, plan, question, idle=not plan.changing, dry_run=dry_run, yes=yes)
    if code is not None:
        return code
    return finish(session, plan, planner, verify, None, record=(path, record))


def _record(session: Session, node: Node, file: str | None) -> tuple[str, UndoRecord]:
    """The file named, else the last change that took something. Raises FoundError for none."""
    import os

    from dpctl.changes.undo_file import read_undo, undo_directory, undo_records
    from dpctl.changes.undo_record import last_to_undo

    if file is not None:
        return file, read_undo(file)
    directory = undo_directory(session.env, dict(os.environ))
    found, passed = last_to_undo(node, undo_records(directory, node.name))
    for path in passed:
        streams.say("note", f"{path} was planned and never carried out: passed over")
    if found is not None:
        return found
    raise FoundError(
        f"there is no change of node/{node.name} to undo in {directory}",
        "name the file: dpctl node undo FILE; it was told when the change was made",
    )


def _when(record: UndoRecord) -> str:
    from dpctl.documents import rfc3339

    return rfc3339(round(record.created)) or "an unknown time"
