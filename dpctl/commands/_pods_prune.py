"""`dpctl pods prune --failed`: pods that the kubelet rejected at admission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.commands._change_options import CHANGES_GROUPS, DryRun, Yes, check_dry_run
from dpctl.commands._confirm import confirm
from dpctl.errors import DpctlError, ExitCode, UsageError
from dpctl.model import Source
from dpctl.options import NAMESPACES, Common, declare

if TYPE_CHECKING:
    from dpctl.model.leftovers import PodChangeRow
    from dpctl.sources.apiserver import Api

_WANT = frozenset({Source.NODE, Source.PODS, Source.SOCKETS, Source.DIRECTORY})
ROLE = "dpctl-pods-prune"


@declare(
    NAMESPACES,
    *CHANGES_GROUPS,
    examples="""
    # Which ones, and why the kubelet rejected them
    dpctl pods prune --failed --dry-run=client
    dpctl pods prune --failed
    # In a script, of one namespace; of another Node
    dpctl pods prune --failed -n ml --yes
    dpctl pods prune --failed --node lab-0
    """,
)
def prune(
    common: Common,
    pods: Annotated[
        list[str] | None,
        typer.Argument(metavar="[POD]...", help="POD or NAMESPACE/POD, globs too; none: all."),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Pods that the kubelet rejected at admission.")
    ] = False,
    dry_run: DryRun = "none",
    yes: Yes = False,
) -> int | None:
    """Delete the pods that the kubelet rejected at admission on this Node.

    A pod that the kubelet rejects (UnexpectedAdmissionError, TopologyAffinityError, OutOf…) never
    starts, and its controller makes another one: the rejected ones pile up. Only they are deleted,
    whatever else has failed; each only if it is still the pod that was seen (by UID). One that a
    finalizer holds is only marked to go, and counts as not deleted (exit code 6). --failed must be
    given: it is what there is to prune.
    """
    from dpctl import output
    from dpctl.changes.failed_pods import delete_failed, planned
    from dpctl.commands._pod_names import matches, pattern
    from dpctl.commands._reading import look, not_found
    from dpctl.documents import Envelope
    from dpctl.env import find_env
    from dpctl.inventory.containers import failed_pod_rows
    from dpctl.sources.apiserver import connect
    from dpctl.views.leftovers import POD_CHANGES

    check_dry_run(dry_run)
    if not failed:
        raise UsageError("nothing says which pods", "dpctl pods prune --failed")
    options = common.output
    env = find_env(common.settings)
    if not env.live:
        raise UsageError("a bundle cannot be changed", "leave out --from")
    patterns = [pattern(text) for text in pods or ()]
    snap = look(common, env, _WANT, (Source.PODS,))
    rows = [
        planned(row)
        for row in failed_pod_rows(snap)
        if matches(common, patterns, row.namespace, row.pod)
    ]
    names = {f"{row.namespace}/{row.pod}" for row in rows} | {row.pod for row in rows}
    lost = not_found("pod", patterns, names)
    if lost is not None:
        lost.hint = "dpctl pods --failed lists those that were rejected"
        return streams.report(lost)
    envelope = Envelope.of(snap)
    api = connect(env)
    if rows and dry_run != "client":
        _preflight(common, api)
    shown = dry_run == "client" or not rows
    if shown or options.is_table:
        output.write(rows, POD_CHANGES, options=options, snapshot_meta=envelope)
    if shown:
        if not rows:
            streams.say("note", "no pod was rejected here")
        return ExitCode.OK
    what = "this pod" if len(rows) == 1 else f"these {len(rows)} pods"
    if not options.is_table and not yes:
        for row in rows:
            streams.plain(f"{row.namespace}/{row.pod}: {row.reason}")
    if dry_run == "none" and not confirm(f"Delete {what}?", yes):
        streams.plain("nothing was deleted")
        return ExitCode.NOT_APPLIED
    from dpctl.model.changes import Outcome

    done: list[PodChangeRow] = []
    broke: DpctlError | KeyboardInterrupt | None = None
    for row in rows:
        try:
            done.append(delete_failed(api, row, dry_run=dry_run == "server"))
        except (DpctlError, KeyboardInterrupt) as error:  # what was done is told all the same
            broke = error
            break
    if options.is_table:
        output.write_text("\n".join(_line(row) for row in done))
    else:
        every = [*done, *rows[len(done) :]]
        output.write(every, POD_CHANGES, options=options, snapshot_meta=envelope)
    for row in done:
        if row.outcome is Outcome.NOT_APPLIED:
            streams.say("error", f"{row.namespace}/{row.pod}: {row.detail}")
    if broke is not None:
        stopped = rows[len(done)]
        left = f"{len(rows) - len(done) - 1} of {len(rows)} pods not tried"
        streams.say("note", f"it ended at {stopped.namespace}/{stopped.pod}; {left}")
        raise broke
    bad = any(row.outcome is Outcome.NOT_APPLIED for row in done)
    return ExitCode.NOT_APPLIED if bad else ExitCode.OK


def _preflight(common: Common, api: Api) -> None:
    from dpctl.sources.access import preflight
    from dpctl.sources.apiserver import Right
    from dpctl.writes.pods import right

    namespace = None if common.all_namespaces else common.namespace
    preflight(api, [right(namespace)], role=ROLE, besides=[Right("list", "pods")])


def _line(row: PodChangeRow) -> str:
    from dpctl.model.changes import Outcome
    from dpctl.text import escape

    words = {
        Outcome.CHANGED: "deleted",
        Outcome.DRY_RUN: "deleted (server dry run)",
        Outcome.GONE_ALREADY: "gone already",
        Outcome.NOT_APPLIED: "not deleted",
        None: "not tried",
    }
    return f"pod/{escape(row.pod)} -n {escape(row.namespace)} {words[row.outcome]}"
