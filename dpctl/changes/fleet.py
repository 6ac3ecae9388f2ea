"""One change of many Nodes: planned over list pages, shown as sums, carried out in parallel with a
bound, looked at again together. The same planner, patch and judgement as for one Node.

There is no local evidence here: the pods and the Node are all that can be looked at, and every plan
says so. Nothing prints; `commands` tells.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dpctl.changes.apply import DoubtfulError, UncertainError, apply_plan, stands
from dpctl.changes.fleet_pods import Pods, PodsLook
from dpctl.changes.undo_file import next_number, rewrite_undo, write_undo
from dpctl.changes.undo_record import record_of
from dpctl.errors import DpctlError, UnreachableError
from dpctl.model import Node, Snapshot
from dpctl.model.changes import (
    AppliedChange,
    ChangePlan,
    KeyOutcome,
    Outcome,
    UndoState,
)

if TYPE_CHECKING:
    from dpctl.changes.journal import Journal
    from dpctl.sources.apiserver import Api, Selection

_LEAST_FAILURES = 8
"""So many requests in a row that found no server, and the rest is not tried."""


class FleetWork(NamedTuple):
    """What a change of many Nodes takes."""

    api: Api
    selection: Selection
    plan: Callable[[Snapshot], ChangePlan]
    """The question, asked of one Node."""
    undo_directory: str
    parallel: int
    dry_run: bool = False
    """Of the server."""
    journal: Journal | None = None


class NodeResult(NamedTuple):
    """One Node after its turn."""

    plan: ChangePlan
    applied: AppliedChange | None
    """None: nothing was changed; `outcomes` says why."""
    doubtful: bool = False
    """`applied` may not have been: the answer was lost, and so was the Node."""
    outcomes: tuple[KeyOutcome, ...] = ()
    undo_file: str | None = None
    unreachable: str | None = None
    """How the API server could not be reached."""


def without_plan(result: NodeResult) -> NodeResult:
    """What is left when the rows are not wanted any more."""
    return result._replace(plan=result.plan._replace(rows=(), patches=(), notes=()))


class Survey:
    """What all plans come to: which Nodes are to be changed, and how (as digests: what was shown is
    what is done, and a fleet of any size fits)."""

    def __init__(self) -> None:
        self.nodes = 0
        self.keys = 0
        self.forced = 0
        self.refused = 0
        """Named keys that must not be touched."""
        self.todo: dict[str, bytes] = {}
        self.made: dict[str, tuple[AppliedChange, str | None]] = {}
        """By an earlier run, not looked at to the end; with the undo file."""
        self.finished = 0
        """Nodes that an earlier run has done with."""
        self.notes: dict[str, None] = {}


def survey(work: FleetWork, pods: PodsLook, see: Callable[[ChangePlan], None]) -> Survey:
    """Plan every selected Node; `see` gets each plan. Raises what listing raises."""
    found = Survey()
    states = work.journal.states if work.journal is not None else {}
    for page in work.api.node_pages(work.selection):
        listed = pods.fresh()
        for node in page:
            found.nodes += 1
            state = states.get(node.name)
            if state is not None and state.begun is not None:
                made = was_made(node, state.begun)
                if made and state.outcomes:
                    found.finished += 1
                    continue
                unseen = state.applied and not state.outcomes and node.uid == state.begun.uid
                if made or unseen:
                    found.made[node.name] = (state.begun, state.undo_file)
                    continue
                # What has come back, or is another Node by now, is a case like any other.
            plan = work.plan(snapshot_of(node, listed))
            see(plan)
            found.notes.update(dict.fromkeys(plan.notes))
            found.refused += len(plan.refused)
            if plan.patches:
                found.keys += len(plan.changing)
                found.forced += sum(row.forced for row in plan.changing)
                found.todo[node.name] = digest(plan)
    return found


def was_made(node: Node, begun: AppliedChange) -> bool:
    """Whether a change that an earlier run had begun stands on the Node. Pure."""
    return node.uid == begun.uid and stands(node, begun.changes, after=True)


def snapshot_of(node: Node, pods: Pods) -> Snapshot:
    """All that is known of one Node of many."""
    return Snapshot(
        collected_at=time.time(),
        sources=(),
        node=node,
        pods=pods.by_node.get(node.name, ()),
        unscheduled=pods.unscheduled,
    )


def digest(plan: ChangePlan) -> bytes:
    """What a plan would do, and to which Node. Pure."""
    return hashlib.sha256(repr((plan.node, plan.uid, plan.patches)).encode()).digest()[:16]


class Run:
    """Carries out what a survey found. `stop` ends it between two Nodes: what was begun is
    finished, the rest is left."""

    def __init__(self, work: FleetWork, found: Survey, pods: PodsLook) -> None:
        self.work = work
        self.stop = threading.Event()
        self.lost: str | None = None
        """Why the run gave up: the API server is gone."""
        self.tried: set[str] = set()
        self._found = found
        self._pods = pods
        self._lock = threading.Lock()
        self._numbers = itertools.count(next_number(work.undo_directory))
        self._failures = 0
        self._crashes: list[BaseException] = []

    def carry_out(self, tell: Callable[[NodeResult], None]) -> None:
        """`tell` is called once a Node, by one thread at a time. Raises what listing raises, when
        what was begun is finished."""
        slots = threading.BoundedSemaphore(2 * self.work.parallel)

        def turn(node: Node) -> None:
            try:
                if self.stop.is_set():
                    return
                result = self._one(node)
                with self._lock:
                    self.tried.add(node.name)
                    self._count(result)
                    tell(result)
            except BaseException as error:  # raised again by the caller's thread
                self._crashes.append(error)
                self.stop.set()
            finally:
                slots.release()

        with ThreadPoolExecutor(self.work.parallel) as threads:
            for page in self.work.api.node_pages(self.work.selection):
                for node in page:
                    if node.name not in self._found.todo:
                        continue  # it was no case when the plan was shown
                    slots.acquire()
                    if self.stop.is_set():
                        slots.release()
                        break
                    threads.submit(turn, node)
                if self.stop.is_set():
                    break
        if self._crashes:
            raise self._crashes[0]

    def _count(self, result: NodeResult) -> None:
        self._failures = self._failures + 1 if result.unreachable else 0
        if self._failures >= max(_LEAST_FAILURES, self.work.parallel):
            self.lost = result.unreachable
            self.stop.set()

    def _one(self, node: Node) -> NodeResult:
        """The last look, and the patch at once."""
        work = self.work
        try:
            plan = work.plan(snapshot_of(node, self._pods.fresh()))
        except DpctlError as error:
            plan = work.plan(Snapshot(None, (), node=node))
            return _not_applied(plan, error)
        if digest(plan) != self._found.todo[node.name]:
            words = "it is another case than when the plan was shown"
            return _not_applied(plan, None, words)
        if work.dry_run:
            try:
                return NodeResult(plan, apply_plan(work.api, plan, dry_run=True))
            except DpctlError as error:
                return _not_applied(plan, error)
        try:
            record = record_of(plan, work.api.server, time.time(), node)
            path = write_undo(record, work.undo_directory, number=next(self._numbers))
            if work.journal is not None:
                work.journal.begin(_intended(plan), path)
        except DpctlError as error:
            return _not_applied(plan, error)
        try:
            applied = apply_plan(work.api, plan)
        except UncertainError as error:
            return NodeResult(
                plan, _intended(plan), doubtful=True, undo_file=path, unreachable=error.message
            )
        except DoubtfulError as error:
            return _not_applied(plan, error)  # begun, in both files: the Node tells
        except DpctlError as error:
            with suppress(DpctlError):  # PLANNED says no wrong either: the Node tells
                rewrite_undo(path, record._replace(state=UndoState.NOT_APPLIED))
            if work.journal is not None:
                with suppress(DpctlError):  # begun, and the Node tells that it was not made
                    work.journal.failed(node.name, error.message)
            return _not_applied(plan, error)
        if work.journal is not None:
            with suppress(DpctlError):
                work.journal.applied(applied)
        return NodeResult(plan, applied, undo_file=path)


def _intended(plan: ChangePlan) -> AppliedChange:
    changes = tuple(change for patch in plan.patches for change in patch.changes)
    return AppliedChange(
        plan.node, plan.uid, changes, time.time(), plan.period, plan.kubelet_manager
    )


def _not_applied(
    plan: ChangePlan, error: DpctlError | None, words: str | None = None
) -> NodeResult:
    detail = words if error is None else error.message
    step = "run the same again" if error is None else error.hint
    outcomes = tuple(
        KeyOutcome(
            row.resource,
            Outcome.NOT_APPLIED,
            detail,
            step,
            row.capacity,
            row.allocatable,
            row.owners or (),
        )
        for row in plan.rows
        if row.named or row.resource in {c.resource for p in plan.patches for c in p.changes}
    )
    causes = (error, error.__cause__ if error is not None else None)
    lost = next((e.message for e in causes if isinstance(e, UnreachableError)), None)
    return NodeResult(plan, None, outcomes=outcomes, unreachable=lost)
