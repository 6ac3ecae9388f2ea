"""`dpctl node set`: once, for one Node or many, or kept for as long as the process runs."""

from __future__ import annotations

from typing import Annotated

import typer

from dpctl import streams
from dpctl.commands._change_options import (
    CHANGES_GROUPS,
    DryRun,
    FieldManager,
    UndoFile,
    Verify,
    Yes,
    check_dry_run,
)
from dpctl.commands._changing import Planner, Session, finish, stopped
from dpctl.commands._fleet import Asked, Many, Parallel, Resume, change_many
from dpctl.commands._selection import AllNodes, Fields, Labels
from dpctl.errors import ExitCode, UsageError
from dpctl.model import Snapshot
from dpctl.model.changes import Action, ChangePlan
from dpctl.options import Common, declare

_KEEP_INTERVAL = 5.0


@declare(
    *CHANGES_GROUPS,
    examples="""
    # Four dongles that no plugin knows of
    dpctl node set vendor.example/dongle=4 --node lab-0
    # ... and hold them there (as a service: see the manual)
    dpctl node set vendor.example/dongle=4 --keep --yes
    # A Ghost: stop scheduling to it at once
    dpctl node set ghost.example/tpu=0
    """,
)
def set_count(
    common: Common,
    setting: Annotated[
        str, typer.Argument(metavar="RESOURCE=N", help="A whole number.", show_default=False)
    ],
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Stay, and advertise it again whenever it is lost."),
    ] = False,
    dry_run: DryRun = "none",
    yes: Yes = False,
    verify: Verify = None,
    field_manager: FieldManager = "dpctl",
    undo_file: UndoFile = None,
    all_nodes: AllNodes = False,
    labels: Labels = None,
    fields: Fields = None,
    parallel: Parallel = 16,
    resume: Resume = None,
) -> int | None:
    """Advertise a number of an extended resource that no plugin serves.

    The kubelet leaves such keys alone, copies capacity to allocatable, and loses them when the Node
    object is made anew. --keep stays in the foreground and puts the number back whenever it is
    lost; it ends when a plugin or somebody else takes the name over, and on SIGTERM with exit code
    0, leaving the number there.

    RESOURCE=0 on a Ghost (above 0, and nobody behind it) is the mildest cure: no more pods are
    sent, and those already bound are rejected rather than started without a device. dpctl node
    prune can take the key later, dpctl node undo puts it back.
    """
    from dpctl.changes.setting import parse_setting, plan_set

    check_dry_run(dry_run)
    resource, count = parse_setting(setting)
    if keep and dry_run != "none":
        raise UsageError("--keep and --dry-run exclude each other", "leave one of them out")

    def planner(snap: Snapshot) -> ChangePlan:
        return plan_set(snap, resource, count, manager=field_manager)

    many = Many(all_nodes, labels, fields, parallel, resume)
    if many.meant:
        if keep:
            raise UsageError("--keep is for one Node", "run it on each node, as a service")
        question = {"resource": resource, "count": count}
        asked = Asked(Action.SET, question, many, dry_run, yes, verify, undo_file)
        return change_many(common, asked, planner)
    many.check_unused()
    session = Session(common)
    plan = planner(session.look())
    session.show(plan)
    text = f"Set {resource} to {count} on node/{plan.node}?"
    idle = bool(plan.refused) or not (plan.changing or keep)
    ended = stopped(session, plan, text, idle=idle, dry_run=dry_run, yes=yes)
    if ended is not None:
        return ended
    code = finish(session, plan, planner, verify, undo_file)
    if not keep or code:
        return code

    def again(snap: Snapshot) -> ChangePlan:
        return plan_set(snap, resource, count, manager=field_manager, ours=True)

    return _keep(session, plan.node, resource, count, again)


def _keep(session: Session, node: str, resource: str, count: int, planner: Planner) -> int:
    import signal
    from threading import Event

    from dpctl.changes.keeping import Holding, keep

    stop = Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    holding = Holding(
        api=session.api,
        node=node,
        resource=resource,
        count=count,
        look=session.last_look,
        plan=planner,
        tell=lambda text: streams.say("note", text),
        interval=_KEEP_INTERVAL,
    )
    streams.say("note", f"keeping {resource}={count} on node/{node}; Ctrl-C or SIGTERM ends it")
    try:
        keep(holding, stop)
    finally:
        signal.signal(signal.SIGTERM, before)
    streams.say("note", f"{resource} stays {count} on node/{node}, and is not kept any longer")
    return ExitCode.OK
