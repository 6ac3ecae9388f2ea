"""`dpctl node remove` and `dpctl node prune`, for one Node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

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
from dpctl.commands._fleet_report import counted
from dpctl.commands._selection import AllNodes, Fields, Labels
from dpctl.errors import UsageError
from dpctl.model import Snapshot
from dpctl.model.changes import Action, ChangePlan
from dpctl.options import Common, declare, duration

if TYPE_CHECKING:
    from dpctl.changes.removal import Removal

_WAIT_TIMEOUT = 600.0
_INCLUDED = ("ghost", "malformed", "foreign")

Wait = Annotated[
    bool,
    typer.Option("--wait", help="Wait until the kubelet has let go of keys in Grace."),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="DURATION", parser=duration, help="Of the whole --wait (10m)."
    ),
]


@declare(
    *CHANGES_GROUPS,
    examples="""
    # What would happen, and why
    dpctl node remove old.example/retired --dry-run=client
    # On the node: everything is checked first
    dpctl node remove old.example/retired
    # The plugin was stopped a moment ago: wait until the kubelet lets go
    dpctl node remove fabric.example/rdma --wait --yes
    # From a workstation, on your word that its plugin is gone for good
    dpctl node remove old.example/retired --node lab-0 --assume-gone
    # ... from every Node of a pool, and once more to go on after Ctrl-C
    dpctl node remove old.example/retired --assume-gone -l pool=gpu --resume journal
    """,
)
def remove(
    common: Common,
    names: Annotated[
        list[str], typer.Argument(metavar="RESOURCE...", help="Keys, in full.", show_default=False)
    ],
    dry_run: DryRun = "none",
    yes: Yes = False,
    wait: Wait = False,
    timeout: Timeout = None,
    verify: Verify = None,
    force_in_use: Annotated[
        bool,
        typer.Option(
            "--force-in-use", help="Also what a plugin serves or a pod uses; it may come back."
        ),
    ] = False,
    assume_gone: Annotated[
        bool,
        typer.Option(
            "--assume-gone",
            help="Take it on your word that the plugin of a 0/0 key is gone for good.",
        ),
    ] = False,
    field_manager: FieldManager = "dpctl",
    undo_file: UndoFile = None,
    all_nodes: AllNodes = False,
    labels: Labels = None,
    fields: Fields = None,
    parallel: Parallel = 16,
    resume: Resume = None,
) -> int | None:
    """Remove extended resources from the Node object, and see that they stay away.

    Takes what is Stale, Ghost, Malformed or Foreign (dpctl resources --help says what that is).
    Refused is what a plugin serves, what a pod uses, what cannot be told for lack of evidence, and
    always what is Kubernetes' own. A key in Grace would come back: --wait waits until the kubelet
    has let go of it.

    One patch removes capacity and allocatable of all keys, and only if nobody has changed them
    since they were read. What goes is kept in a file first: dpctl node undo puts it back. Then the
    Node is looked at for two status periods; a key that comes back is exit code 6, with who wrote
    it. A key that the Node has not is gone already: exit code 0.
    """
    from dpctl.changes.removal import Removal

    wanted = Removal(
        Action.REMOVE,
        names=tuple(names),
        force_in_use=force_in_use,
        assume_gone=assume_gone,
        waits=wait,
        manager=field_manager,
    )
    many = Many(all_nodes, labels, fields, parallel, resume)
    return _run(common, wanted, dry_run, yes, wait, timeout, verify, undo_file, many)


@declare(
    *CHANGES_GROUPS,
    examples="""
    # What may go, what may not, and why
    dpctl node prune --dry-run=client
    dpctl node prune
    # Dead names of one vendor
    dpctl node prune --match 'old.example/*' --yes
    # Also keys above 0 with nobody behind them
    dpctl node prune --include ghost
    """,
)
def prune(
    common: Common,
    match: Annotated[
        list[str] | None,
        typer.Option("--match", metavar="GLOB", help="Only these keys; may be repeated."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="STATE[,STATE]",
            help="Also ghost, malformed or foreign keys; Stale ones go in any case.",
        ),
    ] = None,
    dry_run: DryRun = "none",
    yes: Yes = False,
    wait: Wait = False,
    timeout: Timeout = None,
    verify: Verify = None,
    field_manager: FieldManager = "dpctl",
    undo_file: UndoFile = None,
    all_nodes: AllNodes = False,
    labels: Labels = None,
    fields: Fields = None,
    parallel: Parallel = 16,
    resume: Resume = None,
) -> int | None:
    """Find the keys that nothing backs any more, and remove them.

    Takes what is Stale: 0/0, left behind by a plugin that is gone for good. Ghost, Malformed and
    Foreign keys only with --include. It works on the node itself, as root and in the host's network
    namespace: from anywhere else it cannot be told what is gone. Finding nothing is exit code 0.
    """
    from dpctl.changes.removal import Removal

    chosen = frozenset(word for text in include or () for word in text.split(","))
    unknown = sorted(chosen - set(_INCLUDED))
    if unknown:
        raise UsageError(f"--include {unknown[0]!r}: not one of {', '.join(_INCLUDED)}")
    wanted = Removal(
        Action.PRUNE,
        match=tuple(match or ()),
        include=chosen,
        waits=wait,
        manager=field_manager,
    )
    many = Many(all_nodes, labels, fields, parallel, resume)
    return _run(common, wanted, dry_run, yes, wait, timeout, verify, undo_file, many)


def _run(
    common: Common,
    wanted: Removal,
    dry_run: str,
    yes: bool,
    wait: bool,
    timeout: float | None,
    verify: float | None,
    undo_file: str | None,
    many: Many,
) -> int:
    from dpctl.changes.removal import plan_removal
    from dpctl.changes.run import restricted
    from dpctl.changes.waiting import waits

    check_dry_run(dry_run)
    if timeout is not None and not wait:
        raise UsageError("--timeout is of --wait", "add --wait")

    def planner(snap: Snapshot) -> ChangePlan:
        return plan_removal(snap, wanted)

    if many.meant:
        _check_names(wanted.names, ())
        if wait:
            raise UsageError(
                "--wait is for the node itself: from here nobody can tell what a kubelet tracks",
                "run dpctl on the node, or leave out --wait",
            )
        asked = {"names": wanted.names, "match": wanted.match, "include": sorted(wanted.include)}
        flags = {"assumeGone": wanted.assume_gone, "forceInUse": wanted.force_in_use}
        ask = Asked(wanted.action, {**asked, **flags}, many, dry_run, yes, verify, undo_file)
        return change_many(common, ask, planner)
    many.check_unused()
    session = Session(common)
    node = session.look().node
    assert session.snap is not None
    assert node is not None
    _check_names(wanted.names, {**node.capacity, **node.allocatable})
    plan = planner(session.snap)
    session.show(plan)
    names = tuple(row.resource for row in plan.changing)
    waited = waits(plan) if wait else ()
    question = _question(plan, names, waited)
    idle = not (names or waited)
    code = stopped(session, plan, question, idle=idle, dry_run=dry_run, yes=yes)
    if code is not None:
        return code
    if waited:
        plan = restricted(_wait(session, planner, plan, timeout), (*names, *waited))
    return finish(session, plan, planner, verify, undo_file)


def _check_names(names: Sequence[str], known: Collection[str]) -> None:
    """Raises UsageError for a glob. `known`: keys of the Node, which may hold anything."""
    from dpctl.text import is_glob

    for name in names:
        if is_glob(name) and name not in known:
            raise UsageError(
                f"{name!r} is no name: remove takes keys in full",
                f"dpctl node prune --match {name!r} takes what may go",
            )


def _question(plan: ChangePlan, names: tuple[str, ...], waited: tuple[str, ...]) -> str:
    parts = []
    if names:
        parts.append(f"remove {len(names)} of these keys from node/{plan.node}")
    if waited:
        keys = counted(len(waited), "key")
        parts.append(f"wait for {len(waited)} more" if names else f"wait for {keys}")
    forced = sum(row.forced for row in plan.rows)
    danger = f", {forced} of them IN USE" if forced else ""
    text = " and ".join(parts)
    return f"{text[:1].upper()}{text[1:]}{danger}?"


def _wait(
    session: Session, planner: Planner, plan: ChangePlan, timeout: float | None
) -> ChangePlan:
    from dpctl.changes.waiting import wait_for_kubelet

    return wait_for_kubelet(
        lambda: planner(session.look()),
        plan,
        timeout or _WAIT_TIMEOUT,
        tell=lambda text: streams.say("note", text),
    )
