"""What a change of a Node is: its plan, what was applied, how it fared, and how to undo it. Data.

The same tuples serve one node and a fleet. Which key may go is decided in `changes.plan`; nothing
here reads or writes anything.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Action(StrEnum):
    REMOVE = "remove"
    """Keys that were named."""
    PRUNE = "prune"
    """Whatever may go."""
    SET = "set"
    UNDO = "undo"


class Verdict(StrEnum):
    """What a plan decides for one key."""

    CHANGE = "Change"
    """It is removed, set or put back."""
    WAIT = "Wait"
    """The kubelet would put it back; it lets go by itself (`--wait`)."""
    REFUSE = "Refuse"
    """It must not be touched; `reason` says why."""
    KEEP = "Keep"
    """Not asked for (`prune` leaves it alone), or there is nothing to do."""


class Outcome(StrEnum):
    """How one key fared in the end."""

    CHANGED = "Changed"
    """Gone (or set, or put back), and still so at the end of the verify window."""
    UNVERIFIED = "Unverified"
    """Changed, and not looked at again to the end of the window."""
    CAME_BACK = "CameBack"
    """Changed, and undone by somebody within the window."""
    NOT_APPLIED = "NotApplied"
    DRY_RUN = "DryRun"
    """The API server would take it (`--dry-run=server`), or nobody was asked (`client`)."""
    GONE_ALREADY = "GoneAlready"
    """Somebody else had done it when the patch came."""


class KeyChange(NamedTuple):
    """One entry of `status.capacity` or `status.allocatable`: from this text to that one."""

    part: str
    """`capacity` or `allocatable`."""
    resource: str
    before: str | None
    """The quantity exactly as the API server gave it; None: no such key."""
    after: str | None
    """None: the key goes."""


class Patch(NamedTuple):
    """What goes to the API server as one JSON Patch, all or nothing."""

    manager: str
    """`fieldManager` of the request."""
    changes: tuple[KeyChange, ...]


class PlanRow(NamedTuple):
    """What is planned for one key of the Node, and why."""

    resource: str
    state: str
    """Of `ResourceState`; `Native` for Kubernetes' own resources."""
    verdict: Verdict
    reason: str
    """Why, in one sentence without a full stop."""
    next_step: str | None
    """What to type or check next; None: nothing is left to do."""
    capacity: str | None
    allocatable: str | None
    """Both as the API has them; None: no such key."""
    owners: tuple[str, ...] | None
    """Managers of the capacity key; None: unknown."""
    requested: int | None
    """By non-terminal pods bound to the node; None: pods not read."""
    evidence: tuple[str, ...]
    named: bool
    """By the user: then a refusal is exit code 6."""
    forced: bool
    """Goes on although it is served or in use (`--force-in-use`)."""
    waiting_pods: tuple[str, ...]
    """`namespace/name` of unscheduled pods that request it, as far as they could be seen."""
    time_left: float | None = None
    """Seconds, an upper bound: until the kubelet lets go of a key in Grace."""


class ChangePlan(NamedTuple):
    """What is to be done to one Node, decided over one snapshot."""

    action: Action
    node: str
    uid: str | None
    """Of the Node object; the patch tests it."""
    boot_id: str | None
    """Tested as well where local evidence counts; None: it does not."""
    rows: tuple[PlanRow, ...]
    """Every extended key of the Node and every one named, in natural order."""
    patches: tuple[Patch, ...]
    """What to send, one after the other (more than one only for `undo`)."""
    notes: tuple[str, ...]
    """What holds for the whole plan: what could not be looked at."""
    period: float
    """Seconds between two looks of this kubelet at its Node, jitter included."""
    kubelet_manager: str
    """Its name in managed fields."""

    @property
    def changing(self) -> tuple[PlanRow, ...]:
        return tuple(row for row in self.rows if row.verdict is Verdict.CHANGE)

    @property
    def refused(self) -> tuple[PlanRow, ...]:
        """Named and not done: exit code 6."""
        return tuple(
            r for r in self.rows if r.named and r.verdict in (Verdict.REFUSE, Verdict.WAIT)
        )


class AppliedChange(NamedTuple):
    """What the API server took. All that `judge` needs to look at the Node again later."""

    node: str
    uid: str | None
    changes: tuple[KeyChange, ...]
    at: float
    """Unix seconds, when the answer came."""
    period: float
    kubelet_manager: str
    gone_already: tuple[str, ...] = ()
    """Resources that somebody else had removed when the patch came."""
    dry_run: bool = False


class KeyOutcome(NamedTuple):
    resource: str
    outcome: Outcome
    detail: str | None
    """Who brought it back, why it was not applied; None: nothing to tell."""
    next_step: str | None
    capacity: str | None
    """Now; None: no such key (or not looked at)."""
    allocatable: str | None
    owners: tuple[str, ...]


class UndoState(StrEnum):
    PLANNED = "planned"
    """Written before the patch: whether that was applied, the Node tells."""
    APPLIED = "applied"
    NOT_APPLIED = "notApplied"
    UNDONE = "undone"


class UndoKey(NamedTuple):
    """One resource before and after a change; None: no such key."""

    resource: str
    capacity_before: str | None
    allocatable_before: str | None
    capacity_after: str | None
    allocatable_after: str | None
    owners: tuple[str, ...] | None
    """Before; None: unknown."""
    kubelets: bool
    """The capacity was the kubelet's: it goes back under `dpctl-kubelet`."""


class UndoRecord(NamedTuple):
    """What it takes to put back one change of one Node."""

    action: Action
    node: str
    uid: str | None
    server: str
    created: float
    keys: tuple[UndoKey, ...]
    state: UndoState = UndoState.PLANNED
    undone: tuple[str, ...] = ()
    """Resources put back already."""


class ChangeRow(NamedTuple):
    """One key in a report: planned, done, looked at again. Field names are JSON names."""

    node: str
    resource: str
    state: str
    verdict: Verdict
    outcome: Outcome | None
    """Null: nothing was done to this key."""
    capacity: str | None
    allocatable: str | None
    new_capacity: str | None
    new_allocatable: str | None
    """As they are to be; null: no such key."""
    owners: tuple[str, ...] | None
    requested: int | None
    reason: str
    next_step: str | None
    evidence: tuple[str, ...]
    forced: bool
    waiting_pods: tuple[str, ...]
    time_left: float | None
    """Seconds, an upper bound."""
    action: Action
    undo_file: str | None


def change_rows(
    plan: ChangePlan, outcomes: tuple[KeyOutcome, ...] = (), undo_file: str | None = None
) -> tuple[ChangeRow, ...]:
    """The report of one node. Where something was done, its detail and next step stand for the
    plan's reason."""
    by_name = {outcome.resource: outcome for outcome in outcomes}
    rows: list[ChangeRow] = []
    new = {
        (change.part, change.resource): change.after for p in plan.patches for change in p.changes
    }
    for row in plan.rows:
        found = by_name.get(row.resource)
        rows.append(
            ChangeRow(
                node=plan.node,
                resource=row.resource,
                state=row.state,
                verdict=row.verdict,
                outcome=found.outcome if found else None,
                capacity=row.capacity,
                allocatable=row.allocatable,
                new_capacity=new.get(("capacity", row.resource), row.capacity),
                new_allocatable=new.get(("allocatable", row.resource), row.allocatable),
                owners=row.owners,
                requested=row.requested,
                reason=(found.detail if found else None) or row.reason,
                next_step=found.next_step if found else row.next_step,
                evidence=row.evidence,
                forced=row.forced,
                waiting_pods=row.waiting_pods,
                time_left=row.time_left,
                action=plan.action,
                undo_file=undo_file if found else None,
            )
        )
    return tuple(rows)
