"""What the commands that change a Node share (their options apart: `_change_options`): the look
before and the last one, the prompt, and how a report ends. What may be changed is decided in
`changes`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dpctl import streams
from dpctl.columns import Row, View
from dpctl.commands._confirm import confirm
from dpctl.commands._reading import INVENTORY, OWN_TABLES, with_local
from dpctl.errors import DpctlError, ExitCode, UnreachableError, UsageError
from dpctl.model import Snapshot, Source, SourceRow
from dpctl.model.changes import ChangePlan, KeyOutcome, Outcome, Verdict, change_rows
from dpctl.options import Common

if TYPE_CHECKING:
    from dpctl.changes.run import Done
    from dpctl.env import Env
    from dpctl.model.changes import UndoRecord
    from dpctl.sources.apiserver import Api

Planner = Callable[[Snapshot], ChangePlan]
_MOST_NAMED = 3
_PASSING_LOOKS = 5
_PASSING_SECONDS = 0.1
# What the kubelet offers, too: its checkpoint may lack a name that a plugin serves.
_WANT = (INVENTORY | {Source.UNSCHEDULED}) - {Source.POD_NAMES}


class Session:
    """One run of a changing command: where it looks, and what it saw last."""

    def __init__(self, common: Common) -> None:
        from dpctl.env import find_env

        self.common = common
        self.options = common.output
        self.env: Env = find_env(common.settings)
        if not self.env.live:
            raise UsageError(
                "a bundle cannot be changed", "leave out --from, and run on the node itself"
            )
        self._api: Api | None = None
        self.snap: Snapshot | None = None

    @property
    def api(self) -> Api:
        if self._api is None:
            from dpctl.sources.apiserver import connect

            self._api = connect(self.env)
        return self._api

    def look(self) -> Snapshot:
        """Everything, read once. Raises the error of the Node where it could not be read."""
        from dpctl.collect import collect

        snap = collect(self.env, _WANT, again=True)
        if snap.node is None:
            raise _no_node(snap.source(Source.NODE))
        if self.common.verbose and self.snap is None:
            for row in snap.sources:
                streams.note(f"{row.name} {row.state}{f': {row.reason}' if row.reason else ''}")
        self.snap = self._with_log(self._settled(snap))
        return self.snap

    def _settled(self, snap: Snapshot) -> Snapshot:
        """Somewhere on the machine a process came or went while its listener was looked up: its
        directory cannot be told then, and it would count as a plugin's. A later look tells: a
        listener that is gone by then, or is somebody else's, is left out."""
        from dpctl.collect import collect
        from dpctl.inventory.connections import Connections

        for _ in range(_PASSING_LOOKS):
            unsure = {x.socket.inode for x in Connections(snap).unclaimed() if not x.certain}
            if snap.sockets is None or not unsure:
                break
            time.sleep(_PASSING_SECONDS)
            later = collect(self.env, OWN_TABLES, again=True)
            if later.sockets is None or later.directory is None:
                break
            facts = Connections(with_local(snap, later)).facts
            if not facts.trusted:
                break
            still = {x.socket.inode for x in facts.listeners}
            rows = tuple(
                s for s in snap.sockets.sockets if s.inode not in unsure or s.inode in still
            )
            snap = snap._replace(sockets=snap.sockets._replace(sockets=rows))
        return snap

    def _with_log(self, snap: Snapshot) -> Snapshot:
        """When the kubelet noticed that plugins were gone, where some seem to be."""
        from dpctl.inventory.sockets import socket_facts
        from dpctl.quantity import count

        node, checkpoint = snap.node, snap.checkpoint
        if node is None or checkpoint is None:
            return snap
        quiet = [n for n in checkpoint.registered if not count(node.allocatable.get(n))]
        kubelet = socket_facts(snap).kubelet if quiet else None
        if kubelet is None:
            return snap
        from dpctl.sources.kubelet_log import read_lost_at

        return snap._replace(lost_at=read_lost_at(self.env.proc.value or "/proc", kubelet.pid))

    def last_look(self) -> Snapshot:
        """Everything anew, and then the machine's own tables and its kubelet once more: they take
        milliseconds, the API server may take seconds, and what was read first is then seconds
        old."""
        from dpctl.collect import collect

        snap = self.look()
        if snap.sockets is None or snap.checkpoint is None:
            return snap  # nothing here counts
        again = OWN_TABLES if snap.allocatable is None else OWN_TABLES | {Source.ALLOCATABLE}
        late = collect(self.env, again, again=True)
        self.snap = self._settled(with_local(snap, late)._replace(allocatable=late.allocatable))
        return self.snap

    # -- talking

    def show(self, plan: ChangePlan) -> None:
        """The plan, before a person is asked: on stdout where tables go there, else on stderr."""
        import sys

        from dpctl import output
        from dpctl.documents import Envelope
        from dpctl.views.changes import CHANGES

        rows = change_rows(plan)
        if self.options.is_table:
            output.write(rows, CHANGES, options=self.options, snapshot_meta=Envelope())
            sys.stdout.flush()
        else:
            show_aside(rows, CHANGES)
        if not rows:
            streams.plain("nothing to do: the Node has no such extended resource")
        for note in plan.notes:
            streams.say("note", note)
        for hint in hints(plan):
            streams.say("hint", hint)

    def preflight(self, node: str) -> None:
        """Whether this user may change the Node, before a person is asked. Raises DeniedError with
        the ClusterRole that is missing."""
        from dpctl.sources.access import NODE_ROLE, preflight
        from dpctl.sources.apiserver import Right
        from dpctl.writes.node_status import right

        read = (Right("get", "nodes"), Right("list", "pods"))
        preflight(self.api, [right(node)], role=NODE_ROLE, node=node, besides=read)

    def report(
        self, plan: ChangePlan, outcomes: tuple[KeyOutcome, ...], undo_file: str | None
    ) -> None:
        """What was done: a line a key, or the rows as a document."""
        from dpctl import output
        from dpctl.documents import Envelope
        from dpctl.text import escape, named
        from dpctl.views.changes import CHANGES

        if not self.options.is_table:
            rows = change_rows(plan, outcomes, undo_file)
            meta = Envelope.of(self.snap) if self.snap is not None else Envelope()
            output.write(rows, CHANGES, options=self.options, snapshot_meta=meta)
        elif outcomes:
            said = PAST.get(plan.action, "changed")
            lines = [
                f"node/{plan.node} {escape(named(o.resource))} {WORDS[o.outcome].format(done=said)}"
                for o in outcomes
            ]
            output.write_text("\n".join(lines))
        for outcome in outcomes:
            if outcome.outcome in (Outcome.CAME_BACK, Outcome.UNVERIFIED) and outcome.detail:
                text = f"{named(outcome.resource)}: {outcome.detail}"
                say = streams.warn if outcome.outcome is Outcome.UNVERIFIED else _error
                say(text, outcome.next_step)


def hints(plan: ChangePlan) -> list[str]:
    """What to do about keys that are left alone: on a workstation the same for all of them."""
    from dpctl.text import named

    steps: dict[str, list[str]] = {}
    for row in plan.rows:
        if row.verdict is not Verdict.CHANGE and row.next_step:
            steps.setdefault(row.next_step, []).append(named(row.resource))
    found = []
    for step, names in steps.items():
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        found.append(f"{', '.join(names[:_MOST_NAMED])}{more}: {step}")
    return found


def show_aside(rows: Sequence[Row], view: View[Row]) -> None:
    """A table on stderr, whatever stdout has; nothing where stderr is closed or full."""
    import sys

    from dpctl import output
    from dpctl.documents import Envelope

    if sys.stderr is None:
        return
    with suppress(OSError, ValueError):  # there is nobody to tell
        options = output.OutputOptions()
        output.write(rows, view, options=options, snapshot_meta=Envelope(), stream=sys.stderr)


PAST = {"remove": "removed", "prune": "removed", "set": "set", "undo": "put back"}
WORDS = {
    Outcome.CHANGED: "{done}",
    Outcome.UNVERIFIED: "{done} (not verified)",
    Outcome.CAME_BACK: "{done}, and undone by somebody",
    Outcome.NOT_APPLIED: "not {done}",
    Outcome.DRY_RUN: "{done} (server dry run)",
    Outcome.GONE_ALREADY: "{done} already",
}


def _error(message: str, hint: str | None) -> None:
    streams.say("error", message, hint)


def exit_code(
    plan: ChangePlan, outcomes: tuple[KeyOutcome, ...], verified: bool = True
) -> ExitCode:
    """6: something named was refused, or came back; 3: nobody could look whether it stayed."""
    found = {outcome.outcome for outcome in outcomes}
    if plan.refused or found & {Outcome.CAME_BACK, Outcome.NOT_APPLIED}:
        return ExitCode.NOT_APPLIED
    if verified and Outcome.UNVERIFIED in found:
        return ExitCode.UNREACHABLE
    return ExitCode.OK


def _no_node(row: SourceRow | None) -> DpctlError:
    if row is None:
        return UnreachableError("no Node was read", "dpctl env shows which API server is asked")
    error = DpctlError(row.reason or "the Node was not read", row.hint)
    error.code = ExitCode(row.code or ExitCode.UNREACHABLE)
    return error


def stopped(
    session: Session, plan: ChangePlan, question: str, *, idle: bool, dry_run: str, yes: bool
) -> int | None:
    """The exit code where a shown plan ends here: nothing to do (`idle`), a dry run, or a person
    who says no. None: carry it out."""
    if dry_run == "client" or idle:
        session.report(plan, (), None)
        return exit_code(plan, ())
    session.preflight(plan.node)
    if dry_run == "server":
        return _server_dry_run(session, plan)
    if not confirm(question, yes):
        streams.plain("nothing was changed")
        return ExitCode.NOT_APPLIED
    return None


def _server_dry_run(session: Session, plan: ChangePlan) -> int:
    """Have the API server check the plan."""
    from dpctl.changes.apply import apply_plan
    from dpctl.changes.verify import judge

    applied = apply_plan(session.api, plan, dry_run=True)
    outcomes = judge(None, applied, final=False)
    session.report(plan, outcomes, None)
    return exit_code(plan, outcomes)


def finish(
    session: Session,
    plan: ChangePlan,
    planner: Planner,
    verify: float | None,
    undo_file: str | None,
    *,
    record: tuple[str, UndoRecord] | None = None,
) -> int:
    """Carry out what was agreed to, and report. `record`: what is undone."""
    if not plan.changing:
        session.report(plan, (), None)
        return exit_code(plan, ())

    def tell(text: str) -> None:
        streams.say("note", text)

    done = carried_out(session, plan, planner, verify, undo_file, record=record, tell=tell)
    session.report(plan, done.outcomes, done.undo_file)
    if done.interrupted:
        return ExitCode.INTERRUPTED
    return exit_code(plan, done.outcomes, verified=verify != 0)


def carried_out(
    session: Session,
    plan: ChangePlan,
    planner: Planner,
    verify: float | None,
    undo_file: str | None,
    *,
    record: tuple[str, UndoRecord] | None = None,
    tell: Callable[[str], None],
) -> Done:
    """Undo file, last look, patch, verification. Raises what `carry_out` raises."""
    import os

    from dpctl.changes.run import Work, carry_out
    from dpctl.changes.undo_file import undo_directory

    assert session.snap is not None
    node = session.snap.node
    assert node is not None
    work = Work(
        api=session.api,
        look=session.last_look,
        plan=planner,
        verify_seconds=verify,
        undo_directory=undo_directory(session.env, dict(os.environ)),
        undo_file=undo_file,
        record=record,
        tell=tell,
    )
    return carry_out(plan, node, work)
