"""What the dashboard may change: the plans of `node prune`, `node remove`, `plugins prune` and
`pods prune --failed`, as proposals. What may be changed is decided in `changes`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dpctl.model import Source
from dpctl.model.changes import Action, ChangePlan, Outcome, Verdict, change_rows
from dpctl.options import Common
from dpctl.tui.proposal import Changes, Proposal, Result, Tell

if TYPE_CHECKING:
    from dpctl.changes.removal import Removal
    from dpctl.env import Env
    from dpctl.model import Snapshot
    from dpctl.model.leftovers import PodChangeRow, SocketChangeRow

_SOCKETS = frozenset({Source.DIRECTORY, Source.PLUGINS})
_PODS = frozenset({Source.NODE, Source.PODS, Source.SOCKETS, Source.DIRECTORY})
_FINE = (Outcome.CHANGED, Outcome.GONE_ALREADY)


def changes(common: Common, env: Env) -> Changes:
    def remove(name: str) -> partial[Proposal]:
        from dpctl.changes.removal import Removal

        return partial(_keys, common, Removal(Action.REMOVE, names=(name,)))

    def prune() -> Proposal:
        from dpctl.changes.removal import Removal

        return _keys(common, Removal(Action.PRUNE))

    return Changes(prune, remove, partial(_sockets, env), partial(_pods, env))


# -- keys of the Node ------------------------------------------------------------------------------


def _keys(common: Common, wanted: Removal) -> Proposal:
    from dpctl.changes.removal import plan_removal
    from dpctl.commands._changing import Session, hints
    from dpctl.views.changes import CHANGES

    def planner(snap: Snapshot) -> ChangePlan:
        return plan_removal(snap, wanted)

    session = Session(common)
    plan = planner(session.look())
    count = len(plan.changing)
    question = None
    if count:
        session.preflight(plan.node)
        what = plan.changing[0].resource if count == 1 else f"{count} keys"
        question = f"Remove {what} from node/{plan.node}?"

    def carry_out(tell: Tell) -> Result:
        from dpctl.commands._changing import carried_out

        done = carried_out(session, plan, planner, None, None, tell=tell)
        rows = change_rows(plan, done.outcomes, done.undo_file)
        return Result(rows, _key_words(plan, rows), all(o.outcome in _FINE for o in done.outcomes))

    left = "dpctl node shows how things stand; dpctl node undo puts back what went"
    return Proposal(
        CHANGES,
        change_rows(plan),
        plan.notes,
        question,
        plan.node,
        carry_out,
        left,
        (*hints(plan), *_waits(plan)),
    )


def _waits(plan: ChangePlan) -> list[str]:
    """The dashboard does not wait for minutes; the command does."""
    from shlex import quote

    names = [row.resource for row in plan.rows if row.verdict is Verdict.WAIT]
    return [f"wait for it: dpctl node remove {quote(name)} --wait" for name in names]


def _key_words(plan: ChangePlan, rows: tuple[object, ...]) -> str:
    from dpctl.commands._changing import WORDS
    from dpctl.model.changes import ChangeRow

    done = [row for row in rows if isinstance(row, ChangeRow) and row.outcome is not None]
    words = [f"{r.resource} {WORDS[r.outcome].format(done='removed')}" for r in done if r.outcome]
    undo = next((row.undo_file for row in done if row.undo_file), None)
    back = f"; dpctl node undo puts it back ({undo})" if undo else ""
    return f"node/{plan.node}: {', '.join(words)}{back}"


# -- socket files ----------------------------------------------------------------------------------


def _sockets(env: Env) -> Proposal:
    from dpctl.changes.sockets import plan_sockets, prune_socket
    from dpctl.collect import collect
    from dpctl.commands._reading import missing
    from dpctl.views.leftovers import SOCKET_CHANGES

    snap = collect(env, _SOCKETS, again=True)
    error = missing(snap, (Source.DIRECTORY,))
    if error is not None:
        raise error
    rows = plan_sockets(snap)
    todo = [row for row in rows if row.verdict is Verdict.CHANGE]
    directory = env.device_plugin_dir.value or ""
    files = todo[0].endpoint if len(todo) == 1 else f"{len(todo)} files"
    question = f"Remove {files} from {directory}?" if todo else None

    def carry_out(_tell: Tell) -> Result:
        done: list[SocketChangeRow] = [prune_socket(directory, row) for row in todo]
        others = [row for row in rows if row.verdict is not Verdict.CHANGE]
        gone = sum(row.outcome in _FINE for row in done)
        said = f"{gone} of {len(done)} socket files pruned"
        return Result([*others, *done], said, gone == len(done))

    left = "dpctl plugins shows how things stand; dpctl plugins prune goes on"
    return Proposal(SOCKET_CHANGES, rows, (), question, "prune", carry_out, left)


# -- rejected pods ---------------------------------------------------------------------------------


def _pods(env: Env) -> Proposal:
    from dpctl.changes.failed_pods import delete_failed, planned
    from dpctl.collect import collect
    from dpctl.commands._pods_prune import ROLE
    from dpctl.commands._reading import missing
    from dpctl.errors import DpctlError
    from dpctl.inventory.containers import failed_pod_rows
    from dpctl.sources.access import preflight
    from dpctl.sources.apiserver import Right, connect
    from dpctl.views.leftovers import POD_CHANGES
    from dpctl.writes.pods import right

    snap = collect(env, _PODS, again=True)
    error = missing(snap, (Source.PODS,))
    if error is not None:
        raise error
    rows = [planned(row) for row in failed_pod_rows(snap)]
    api = connect(env)
    if rows:
        preflight(api, [right(None)], role=ROLE, besides=[Right("list", "pods")])
    what = f"pod {rows[0].namespace}/{rows[0].pod}" if len(rows) == 1 else f"{len(rows)} pods"

    def carry_out(_tell: Tell) -> Result:
        done: list[PodChangeRow] = []
        why = ""
        for row in rows:
            try:
                done.append(delete_failed(api, row))
            except DpctlError as error:
                if not done:
                    raise
                why = f"; then: {error.message}"
                break
        gone = sum(row.outcome in _FINE for row in done)
        said = f"{gone} of {len(rows)} pods deleted{why}"
        return Result([*done, *rows[len(done) :]], said, gone == len(rows))

    question = f"Delete {what}?" if rows else None
    left = "dpctl pods prune --failed --dry-run shows what is left"
    return Proposal(POD_CHANGES, rows, (), question, "delete", carry_out, left)
