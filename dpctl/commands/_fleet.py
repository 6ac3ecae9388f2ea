"""A change of many Nodes, as a command: options, the order of things, the prompt, the exit code.

What is done to a Node is `changes.fleet`; what is said, `_fleet_report`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dpctl import streams
from dpctl.commands._confirm import confirm
from dpctl.commands._fleet_report import Report, counted
from dpctl.commands._selection import is_fleet, selection
from dpctl.errors import DpctlError, ExitCode, UsageError
from dpctl.model import Snapshot
from dpctl.model.changes import Action, AppliedChange, ChangePlan, KeyOutcome, Outcome
from dpctl.options import Common

if TYPE_CHECKING:
    from dpctl.changes.fleet import NodeResult, Survey
    from dpctl.changes.fleet_pods import PodsLook
    from dpctl.changes.journal import Journal
    from dpctl.env import Env
    from dpctl.sources.apiserver import Api, Selection

_PATIENCE = 60.0
"""Seconds that a busy API server is waited for, per request."""
_MOST_PARALLEL = 256

Parallel = Annotated[
    int, typer.Option("--parallel", metavar="N", help="With many Nodes: so many at a time.")
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        help="With many Nodes: keep a journal there, and go on where an earlier run stopped.",
    ),
]


class Many(NamedTuple):
    """Which Nodes, and how many at a time."""

    all_nodes: bool
    labels: str | None
    fields: str | None
    parallel: int
    resume: str | None

    @property
    def meant(self) -> bool:
        """Raises UsageError for a selector that is empty."""
        return is_fleet(self.all_nodes, self.labels, self.fields)

    def check_unused(self) -> None:
        """Raises UsageError where one Node is meant and the journal of many is named."""
        if self.resume is not None:
            raise UsageError(
                "--resume is for many Nodes", "add --all-nodes, -l or --field-selector"
            )


class Asked(NamedTuple):
    """What a person asked of many Nodes."""

    action: Action
    question: Mapping[str, object]
    """What makes it the same change when it is taken up again (JSON)."""
    many: Many
    dry_run: str
    yes: bool
    verify: float | None
    undo_file: str | None


def change_many(common: Common, asked: Asked, plan: Callable[[Snapshot], ChangePlan]) -> int:
    """Plan, show, ask, change, look again, report. Returns the exit code."""
    from dpctl.env import find_env
    from dpctl.sources.apiserver import connect

    many = asked.many
    if not 1 <= many.parallel <= _MOST_PARALLEL:
        raise UsageError(f"--parallel {many.parallel}: from 1 to {_MOST_PARALLEL}")
    if asked.undo_file is not None:
        raise UsageError(
            "--undo-file is for one Node: of many, each has a file of its own",
            "leave it out, or set XDG_STATE_HOME to say where they go",
        )
    report = Report(common.output, asked.action)
    env = find_env(common.settings)
    if not env.live:
        raise UsageError("a bundle cannot be changed", "leave out --from")
    wanted = selection(env, many.all_nodes, many.labels, many.fields)
    api = connect(env, connections=many.parallel + 1, patience=_PATIENCE)
    if asked.dry_run != "client":
        _preflight(api)
    journal = _journal(api, asked) if asked.dry_run == "none" else None
    try:
        return _Fleet(env, api, wanted, asked, plan, report, journal).run()
    except DpctlError:
        report.abandon(time.time())
        raise
    finally:
        if journal is not None:
            journal.close()


def _preflight(api: Api) -> None:
    from dpctl.sources.access import NODE_ROLE, preflight
    from dpctl.sources.apiserver import Right

    rights = (
        Right("get", "nodes"),
        Right("list", "nodes"),
        Right("patch", "nodes/status"),
        Right("list", "pods"),
    )
    preflight(api, rights, role=NODE_ROLE)


def _journal(api: Api, asked: Asked) -> Journal | None:
    from dpctl.changes.journal import open_journal

    if asked.many.resume is None:
        return None
    which = {"labels": asked.many.labels, "fields": asked.many.fields}
    about = {"server": api.server, "action": str(asked.action)}
    return open_journal(asked.many.resume, {**about, **asked.question, **which})


class _Fleet:
    def __init__(
        self,
        env: Env,
        api: Api,
        wanted: Selection,
        asked: Asked,
        plan: Callable[[Snapshot], ChangePlan],
        report: Report,
        journal: Journal | None,
    ) -> None:
        from dpctl.changes.fleet import FleetWork
        from dpctl.changes.undo_file import undo_directory

        self.asked = asked
        self.report = report
        self.work = FleetWork(
            api=api,
            selection=wanted,
            plan=plan,
            undo_directory=undo_directory(env, dict(os.environ)),
            parallel=asked.many.parallel,
            dry_run=asked.dry_run == "server",
            journal=journal,
        )
        self.results: dict[str, NodeResult] = {}

    def run(self) -> int:
        from dpctl.changes.fleet import survey
        from dpctl.changes.fleet_pods import PodsLook

        client = self.asked.dry_run == "client"
        pods = PodsLook(self.work.api)
        found = survey(self.work, pods, self.report.see_all if client else self.report.see)
        if not client:
            self.report.show_kinds()
        for note in found.notes:
            streams.say("note", note)
        if found.refused and not client:
            hint = "--dry-run=client lists them Node by Node, -o wide with what to do next"
            streams.say("error", f"{counted(found.refused, 'key')} refused", hint)
        earlier = found.finished + len(found.made)
        if earlier:
            streams.say("note", f"an earlier run has done {counted(earlier, 'Node')}")
        if client or not (found.todo or found.made):
            if not found.todo:
                streams.plain(f"nothing to change on {counted(found.nodes, 'Node')}")
            self.report.close(time.time())
            return ExitCode.NOT_APPLIED if found.refused else ExitCode.OK
        if found.todo and not self._agreed(found):
            streams.plain("nothing was changed")
            self.report.close(time.time())
            return ExitCode.NOT_APPLIED
        return self._change(found, pods)

    def _agreed(self, found: Survey) -> bool:
        what = f"{counted(found.keys, 'key')} on {counted(len(found.todo), 'Node')}"
        danger = f", {found.forced} of them IN USE" if found.forced else ""
        verb = "Set" if self.asked.action is Action.SET else "Remove"
        return confirm(f"{verb} {what}{danger}?", self.asked.yes or self.work.dry_run)

    def _change(self, found: Survey, pods: PodsLook) -> int:
        from dpctl.changes.fleet import Run
        from dpctl.changes.undo_clearing import clear_undo

        run = Run(self.work, found, pods)
        broke: DpctlError | None = None
        with _stopping(run.stop) as signals:
            try:
                self._carry_out(run.carry_out, len(found.todo))
            except DpctlError as error:
                broke = error
            outcomes = self._verify(found, run.stop)
        try:
            self._keep(outcomes)
        except DpctlError as error:  # what was done is told all the same
            broke = broke or error
        every = {**{name: r.outcomes for name, r in self.results.items()}, **outcomes}
        self.report.tell(self.results, every, found.made)
        self.report.close(time.time())
        if any(result.undo_file for result in self.results.values()):
            where = self.work.undo_directory
            streams.say("note", f"what went is kept in {where}: dpctl node undo --node NODE")
            clear_undo(where)
        left = len(found.todo) - len(self.results)
        if signals:
            return self._stopped("interrupted", left, ExitCode.INTERRUPTED)
        if broke is not None:
            return self._stopped(f"given up: {broke.message}", left, broke.code)
        if run.lost is not None:
            return self._stopped(f"given up: {run.lost}", left, ExitCode.UNREACHABLE)
        if left:
            streams.warn(f"{counted(left, 'Node')} went away before it was their turn")
        return self._code(found, every)

    def _carry_out(
        self, carry_out: Callable[[Callable[[NodeResult], None]], None], total: int
    ) -> None:
        from dpctl.changes.fleet import without_plan
        from dpctl.progress import Progress

        if not total:
            return
        what = "setting" if self.asked.action is Action.SET else "removing"
        with Progress(what, total) as progress:

            def tell(result: NodeResult) -> None:
                # A table shows no more of the plan: thousands of them would not be small.
                kept = result if self.report.documents else without_plan(result)
                self.results[result.plan.node] = kept
                first = result.outcomes[0] if result.outcomes else None
                outcome = first.outcome if first else Outcome.UNVERIFIED
                if self.work.dry_run and first is None:
                    outcome = Outcome.DRY_RUN
                progress.advance(result.plan.node, outcome, first.detail if first else None)

            carry_out(tell)

    def _verify(self, found: Survey, stop: threading.Event) -> dict[str, tuple[KeyOutcome, ...]]:
        from dpctl.changes.fleet_verify import verify_all
        from dpctl.changes.verify import window

        applied: dict[str, AppliedChange] = {
            name: r.applied for name, r in self.results.items() if r.applied is not None
        }
        applied |= {name: change for name, (change, _) in found.made.items()}
        seconds = 0.0 if self.work.dry_run else self.asked.verify
        if applied and not stop.is_set() and seconds != 0:
            length = max(window(each, seconds) for each in applied.values())
            nodes = counted(len(applied), "Node")
            streams.say("note", f"looking for {length:.0f} s whether it stays, on {nodes}")
        return verify_all(
            self.work.api,
            self.work.selection,
            applied,
            doubtful=frozenset(name for name, r in self.results.items() if r.doubtful),
            seconds=seconds,
            wait=stop.wait,
        )

    def _keep(self, outcomes: Mapping[str, tuple[KeyOutcome, ...]]) -> None:
        """In the journal, what needs no second look."""
        if self.work.journal is None:
            return
        for name, each in outcomes.items():
            if any(o.outcome is Outcome.NOT_APPLIED for o in each):
                self.work.journal.failed(name, each[0].detail or "not applied")
            elif all(o.outcome is not Outcome.UNVERIFIED for o in each):
                self.work.journal.verified(name, each)

    def _code(self, found: Survey, outcomes: Mapping[str, tuple[KeyOutcome, ...]]) -> int:
        seen = {o.outcome for each in outcomes.values() for o in each}
        if found.refused or seen & {Outcome.NOT_APPLIED, Outcome.CAME_BACK}:
            return ExitCode.NOT_APPLIED
        if Outcome.UNVERIFIED in seen and self.asked.verify != 0:
            return ExitCode.UNREACHABLE
        return ExitCode.OK

    def _stopped(self, why: str, left: int, code: ExitCode) -> int:
        done = sum(result.applied is not None for result in self.results.values())
        hint = "run the same again: what is done already is left as it is"
        if self.asked.many.resume is not None:
            hint = (
                f"run the same again to go on: --resume {self.asked.many.resume} knows what is done"
            )
        words = f"{counted(done, 'Node')} changed, {counted(left, 'Node')} not tried"
        streams.say("error", f"{why}; {words}", hint)
        return code


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM stop between two Nodes; a second one at once. Gives the signals heard."""
    heard: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if heard:
            # What is begun is in the journal and the undo files, and the Nodes tell the rest.
            streams.say("error", "stopped at once; what was under way may have been done or not")
            os._exit(ExitCode.INTERRUPTED)
        heard.append(number)
        stop.set()
        streams.say("note", "stopping: what is under way is finished (once more: at once)")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
