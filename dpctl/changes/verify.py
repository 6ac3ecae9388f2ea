"""Did it stay? `judge` looks at one reading of the Node, `verify` polls for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from dpctl.errors import DpctlError
from dpctl.model import Node
from dpctl.model.changes import AppliedChange, KeyChange, KeyOutcome, Outcome
from dpctl.quantity import count

PERIODS = 2
"""The verify window, in status periods of the node."""
_POLLS = 5
"""Looks per period."""
_OWN = "dpctl-kubelet"


def window(applied: AppliedChange, asked: float | None) -> float:
    """Seconds to look; None asked for: two periods of this node."""
    return PERIODS * applied.period if asked is None else asked


def judge(node: Node | None, applied: AppliedChange, *, final: bool) -> tuple[KeyOutcome, ...]:
    """One outcome per resource, from a Node read after the patch (a list page will do). None: the
    Node could not be read, or is gone. `final`: at the end of the window, so that what is still
    gone counts as CHANGED; before, it is UNVERIFIED."""
    by_resource: dict[str, list[KeyChange]] = {}
    for change in applied.changes:
        by_resource.setdefault(change.resource, []).append(change)
    return tuple(
        _judge_one(node, applied, resource, changes, final)
        for resource, changes in by_resource.items()
    )


def verify(
    read: Callable[[], Node | None],
    applied: AppliedChange,
    seconds: float,
    *,
    sleep: Callable[[float], object] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> tuple[KeyOutcome, ...]:
    """Poll to the end of the window; a key that was back once is CAME_BACK, however it ends."""
    back: dict[str, KeyOutcome] = {}
    end = now() + seconds
    pause = min(max(applied.period / _POLLS, 0.05), 2.0)
    while True:
        left = end - now()
        if left > 0:
            sleep(min(pause, left))
        final = now() >= end
        outcomes = judge(_read(read), applied, final=final)
        for outcome in outcomes:
            if outcome.outcome is Outcome.CAME_BACK:
                back[outcome.resource] = outcome  # the last word: who owns it by now
        if final or len(back) == len(outcomes):
            return tuple(back.get(outcome.resource, outcome) for outcome in outcomes)


def _read(read: Callable[[], Node | None]) -> Node | None:
    try:
        return read()
    except DpctlError:
        return None  # the next look may succeed; the last one counts


def _judge_one(
    node: Node | None,
    applied: AppliedChange,
    resource: str,
    changes: list[KeyChange],
    final: bool,
) -> KeyOutcome:
    if applied.dry_run:
        words = "the API server would take it (dry run: nothing was changed)"
        return KeyOutcome(resource, Outcome.DRY_RUN, words, None, None, None, ())
    if node is None:
        words = "changed, but the Node could not be read again to see whether it stayed"
        step = "dpctl resources, when the API server answers"
        return KeyOutcome(resource, Outcome.UNVERIFIED, words, step, None, None, ())
    now = (node.capacity.get(resource), node.allocatable.get(resource))
    owners = (node.owners or {}).get(resource, ())
    if node.uid != applied.uid:
        words = "the Node has been made anew since (another UID)"
        step = "dpctl resources shows what it has now"
        return KeyOutcome(resource, Outcome.UNVERIFIED, words, step, *now, owners)
    if all(_stands(node, change) for change in changes):
        outcome, said = Outcome.CHANGED if final else Outcome.UNVERIFIED, None
        if resource in applied.gone_already:
            outcome, said = Outcome.GONE_ALREADY, "somebody else had done it already"
        return KeyOutcome(resource, outcome, said, None, *now, owners)
    return _undone(applied, resource, changes, now, owners)


def _stands(node: Node, change: KeyChange) -> bool:
    found = (node.capacity if change.part == "capacity" else node.allocatable).get(change.resource)
    if found is None or change.after is None:
        return found == change.after
    return count(found) == count(change.after)


def _undone(
    applied: AppliedChange,
    resource: str,
    changes: list[KeyChange],
    now: tuple[str | None, str | None],
    owners: tuple[str, ...],
) -> KeyOutcome:
    """Who brought it back, and what to do about it."""
    removed = all(change.after is None for change in changes)
    numbers = f"{now[0] or '-'}/{now[1] or '-'}"
    kubelets = any(owner in (applied.kubelet_manager, _OWN) for owner in owners)
    if now == (None, None):
        words, step = "it is gone again", "dpctl node set advertises it anew, --keep holds it"
    elif kubelets:
        who = next(o for o in owners if o in (applied.kubelet_manager, _OWN))
        words = f"came back as {numbers}, written by {who}"
        step = _kubelet_step(resource, now)
    elif owners:
        words = f"{'came back as' if removed else 'is'} {numbers}, written by {', '.join(owners)}"
        step = f"have {', '.join(owners)} stop advertising it, then remove it again"
    else:
        words = f"{'came back as' if removed else 'is'} {numbers}, nobody owns it"
        step = "dpctl resources -o wide shows the evidence"
    return KeyOutcome(resource, Outcome.CAME_BACK, words, step, *now, owners)


def _kubelet_step(resource: str, now: tuple[str | None, str | None]) -> str:
    capacity, allocatable = count(now[0] or "0") or 0, count(now[1] or "0") or 0
    if allocatable > 0:
        return "a plugin serves it: stop that plugin, wait five minutes, then remove it again"
    if capacity > 0:
        return f"its plugin is gone for less than five minutes: dpctl node remove {resource} --wait"
    return f"the kubelet has let go of it just now: dpctl node remove {resource} again"
