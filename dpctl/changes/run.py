"""One change from its plan to its end: undo file, last look, patch, verification.

The order is the contract's (steps 5 to 7) and what makes a crash at any moment harmless: the undo
file is on disk before anything is sent, and whether the patch came after it, the Node tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dpctl.changes.apply import DoubtfulError, UncertainError, apply_plan
from dpctl.changes.undo_clearing import clear_undo
from dpctl.changes.undo_file import rewrite_undo, write_undo
from dpctl.changes.undo_record import record_of
from dpctl.changes.verify import judge, verify, window
from dpctl.errors import BadDataError, DpctlError, NotAppliedError
from dpctl.model import Node, Snapshot
from dpctl.model.changes import (
    AppliedChange,
    ChangePlan,
    KeyOutcome,
    PlanRow,
    UndoRecord,
    UndoState,
    Verdict,
)
from dpctl.text import named

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api


class Work(NamedTuple):
    """What carrying out a plan takes besides the plan."""

    api: Api
    look: Callable[[], Snapshot]
    """Reads everything anew, the machine's own tables last."""
    plan: Callable[[Snapshot], ChangePlan]
    """The same question asked of another snapshot."""
    verify_seconds: float | None = None
    """None: two status periods."""
    undo_directory: str = ""
    undo_file: str | None = None
    """A path of the user's own for the record."""
    record: tuple[str, UndoRecord] | None = None
    """UNDO: what is put back, and where that stands."""
    tell: Callable[[str], None] = lambda text: None
    sleep: Callable[[float], object] = time.sleep
    now: Callable[[], float] = time.monotonic


class Done(NamedTuple):
    outcomes: tuple[KeyOutcome, ...]
    undo_file: str | None
    interrupted: bool = False
    """By Ctrl-C, after the change and before its verification had ended."""


def carry_out(plan: ChangePlan, node: Node, work: Work) -> Done:
    """Do what `plan`, made over `node`, says. Raises NotAppliedError and what `apply_plan` raises;
    then nothing was changed (UncertainError, DoubtfulError: it is not known). KeyboardInterrupt
    before the change stands; what is known of it is told then."""
    if work.record is not None:
        path, record = work.record
    else:
        record = record_of(plan, work.api.server, time.time(), node)
        path = write_undo(record, work.undo_directory, work.undo_file)
        work.tell(f"what goes is kept in {path}")
    applied: list[AppliedChange] = []
    sending = False
    try:
        gone = last_look(plan, work)
        sending = True
        for patch in plan.patches:  # several only where several managers own what is put back
            left = patch._replace(changes=tuple(c for c in patch.changes if c.resource not in gone))
            if left.changes:
                applied.append(apply_plan(work.api, plan._replace(patches=(left,))))
            names = tuple(dict.fromkeys(change.resource for change in patch.changes))
            record = _progress(record, names, undoing=work.record is not None)
            with suppress(DpctlError):  # applied it is, and what is PLANNED can be undone as well
                rewrite_undo(path, record)
    except KeyboardInterrupt:
        known = f"what came of the change is not known: dpctl resources; dpctl node undo {path}"
        work.tell(f"interrupted: {known if sending else 'nothing was changed'}")
        raise
    except (UncertainError, DoubtfulError):
        raise  # the record stays PLANNED: what came of it the Node tells
    except DpctlError:
        if not applied and work.record is None:
            with suppress(DpctlError):  # as PLANNED it says no wrong either
                rewrite_undo(path, record._replace(state=UndoState.NOT_APPLIED))
        raise
    whole = AppliedChange(
        node=plan.node,
        uid=plan.uid,
        changes=tuple(change for patch in plan.patches for change in patch.changes),
        at=applied[0].at if applied else time.time(),
        period=plan.period,
        kubelet_manager=plan.kubelet_manager,
        gone_already=(*gone, *(name for each in applied for name in each.gone_already)),
    )
    try:
        if work.undo_directory:
            clear_undo(work.undo_directory)
        return Done(_verified(whole, work), path)
    except KeyboardInterrupt:
        words = "changed, and interrupted before it was seen whether it stays"
        step = "dpctl resources shows what is there; dpctl node undo puts it back"
        unseen = judge(None, whole, final=False)
        outcomes = tuple(each._replace(detail=words, next_step=step) for each in unseen)
        return Done(outcomes, path, interrupted=True)


def last_look(plan: ChangePlan, work: Work) -> tuple[str, ...]:
    """Everything once more, at once before the patch. The keys that were to go and are gone by now.
    Raises NotAppliedError when any other key's case has changed: a person has agreed to something
    else then."""
    try:
        again = work.plan(work.look())
    except BadDataError as error:
        raise NotAppliedError(f"nothing was changed: {error.message}", error.hint) from error
    found = difference(plan, again)
    if found is not None:
        raise NotAppliedError(
            f"nothing was changed: {found}", "run the same again to see how things stand now"
        )
    return gone_meanwhile(plan, again)


def difference(plan: ChangePlan, again: ChangePlan) -> str | None:
    """Why the plan does not hold any more; None: it does. Pure."""
    if again.uid != plan.uid:
        return f"Node {plan.node} has been made anew meanwhile"
    if again.boot_id != plan.boot_id:
        return f"the evidence on Node {plan.node} is not what it was: {'; '.join(again.notes)}"
    now = {row.resource: row for row in again.rows}
    gone = gone_meanwhile(plan, again)
    for row in plan.changing:
        if row.resource in gone:
            continue
        found = now.get(row.resource)
        why = found.reason if found is not None else "the Node has no such key any more"
        if found is not None and found.verdict is Verdict.CHANGE:
            why = _other_case(row, found)
        if why:
            return f"{named(row.resource)} is another case by now: {why}"
    changes = (change for patch in plan.patches for change in patch.changes)
    before = {change for change in changes if change.resource not in gone}
    after = {change for patch in again.patches for change in patch.changes}
    for change in sorted(before - after, key=lambda c: (c.resource, c.part)):
        name = named(change.resource)
        return f"{change.part} of {name} is not {change.before or 'absent'} any more"
    return None


def gone_meanwhile(plan: ChangePlan, again: ChangePlan) -> tuple[str, ...]:
    """Keys that were to go and that somebody has removed: the Node is as wished. Pure."""
    changes = [change for patch in plan.patches for change in patch.changes]
    stay = {change.resource for change in changes if change.after is not None}
    # `prune` has a row for every key of the Node; `remove` keeps what is not there.
    there = {
        row.resource
        for row in again.rows
        if row.verdict is not Verdict.KEEP
        or row.capacity is not None
        or row.allocatable is not None
    }
    return tuple(dict.fromkeys(c.resource for c in changes if c.resource not in stay | there))


def _other_case(agreed: PlanRow, now: PlanRow) -> str:
    """What a person who saw the plan has not agreed to; empty: nothing. What is forced is taken
    whatever its plugin does."""
    if agreed.state != now.state and not (agreed.forced and now.forced):
        return f"it is {now.state}, no longer {agreed.state}: {now.reason}"
    if set(agreed.owners or ()) != set(now.owners or ()):
        return f"it belongs to {', '.join(now.owners or ()) or 'nobody known'} now"
    return ""


def _progress(record: UndoRecord, names: tuple[str, ...], *, undoing: bool) -> UndoRecord:
    if not undoing:
        return record._replace(state=UndoState.APPLIED)
    undone = tuple(dict.fromkeys((*record.undone, *names)))
    everything = {key.resource for key in record.keys} <= set(undone)
    state = UndoState.UNDONE if everything else UndoState.APPLIED
    return record._replace(state=state, undone=undone)


def _verified(applied: AppliedChange, work: Work) -> tuple[KeyOutcome, ...]:
    seconds = window(applied, work.verify_seconds)
    if seconds > 0:
        work.tell(f"looking for {seconds:.0f} s whether it stays")
    return verify(
        lambda: work.api.get_node(applied.node), applied, seconds, sleep=work.sleep, now=work.now
    )


def restricted(plan: ChangePlan, names: tuple[str, ...]) -> ChangePlan:
    """Only what a person has agreed to: a key that became removable meanwhile stays. Pure."""
    rows = tuple(
        row
        if row.resource in names or row.verdict is not Verdict.CHANGE
        else row._replace(verdict=Verdict.KEEP, reason="it was no case for removal when you agreed")
        for row in plan.rows
    )
    patches = tuple(
        patch._replace(changes=tuple(c for c in patch.changes if c.resource in names))
        for patch in plan.patches
    )
    return plan._replace(rows=rows, patches=tuple(p for p in patches if p.changes))
