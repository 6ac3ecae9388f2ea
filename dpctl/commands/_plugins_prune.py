"""`dpctl plugins prune`: socket files that nobody listens on any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dpctl import streams
from dpctl.commands._change_options import DryRun, Yes, check_dry_run
from dpctl.commands._confirm import confirm
from dpctl.errors import ExitCode, UsageError
from dpctl.model import Source
from dpctl.model.changes import Outcome, Verdict
from dpctl.model.leftovers import SocketChangeRow
from dpctl.options import OUTPUT, PLACES, READING, Common, declare

_WANT = frozenset({Source.DIRECTORY, Source.PLUGINS})


@declare(
    OUTPUT,
    PLACES,
    READING,
    examples="""
    # What would go, and what stays and why
    dpctl plugins prune --dry-run
    dpctl plugins prune
    # In a script, one vendor's
    dpctl plugins prune 'rdma*' --yes
    """,
)
def prune(
    common: Common,
    endpoints: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ENDPOINT]...", help="Socket names or globs; none: all."),
    ] = None,
    dry_run: DryRun = "none",
    yes: Yes = False,
) -> int | None:
    """Remove the socket files of device-plugins/ that nobody listens on.

    A plugin that crashes leaves its file behind. A file goes only if a connection is refused, twice
    and ten seconds after it was made at the earliest; never kubelet.sock, under whatever name, and
    never one that somebody listens on. So that a plugin that comes back in that very moment keeps
    its socket, each file is first renamed aside, connected to once more under the new name, and put
    back if somebody answers. Sockets of plugins_registry/ stay: the kubelet watches them by itself.

    A named file that stays is exit code 6; finding nothing to remove is 0.
    """
    from dpctl import output
    from dpctl.changes.sockets import plan_sockets, prune_socket
    from dpctl.commands._reading import look, not_found
    from dpctl.documents import Envelope
    from dpctl.env import find_env
    from dpctl.views.leftovers import SOCKET_CHANGES

    check_dry_run(dry_run)
    options = common.output
    env = find_env(common.settings)
    if not env.live:
        raise UsageError("a bundle cannot be changed", "leave out --from, and run on the node")
    patterns = endpoints or []
    snap = look(common, env, _WANT, (Source.DIRECTORY,))
    rows = plan_sockets(snap, patterns)
    lost = not_found("plugin", patterns, {row.endpoint for row in rows})
    if lost is not None:
        return streams.report(lost)
    todo = [row for row in rows if row.verdict is Verdict.CHANGE]
    refused = any(row.verdict is Verdict.REFUSE for row in rows)
    envelope = Envelope.of(snap)
    if dry_run != "none" or not todo or options.is_table:
        output.write(rows, SOCKET_CHANGES, options=options, snapshot_meta=envelope)
    if dry_run != "none" or not todo:
        if not todo:
            streams.say("note", "nothing to remove")
        return ExitCode.NOT_APPLIED if refused else ExitCode.OK
    directory = env.device_plugin_dir.value or ""
    files = "this file" if len(todo) == 1 else f"these {len(todo)} files"
    if not options.is_table and not yes:
        for row in todo:
            streams.plain(f"{row.endpoint}: {row.reason}")
    if not confirm(f"Remove {files} from {directory}?", yes, only_show="--dry-run"):
        streams.plain("nothing was removed")
        return ExitCode.NOT_APPLIED
    done = [prune_socket(directory, row) for row in todo]
    if options.is_table:
        output.write_text("\n".join(_line(row) for row in done))
    else:
        others = [row for row in rows if row.verdict is not Verdict.CHANGE]
        output.write([*others, *done], SOCKET_CHANGES, options=options, snapshot_meta=envelope)
    return _code(done, refused)


def _line(row: SocketChangeRow) -> str:
    from dpctl.text import escape
    from dpctl.writes.socket_files import original_of

    word = _WORDS[row.outcome]
    told = row.outcome is not Outcome.CHANGED or original_of(row.endpoint) is not None
    more = f": {escape(row.reason)}" if told else ""
    return f"socket/{escape(row.endpoint)} {word}{more}"


_WORDS: dict[Outcome | None, str] = {
    Outcome.CHANGED: "pruned",
    Outcome.GONE_ALREADY: "gone already",
    Outcome.NOT_APPLIED: "not pruned",
}


def _code(done: Sequence[SocketChangeRow], refused: bool) -> int:
    for row in done:
        if row.outcome is Outcome.NOT_APPLIED:
            streams.say("error", f"{row.endpoint}: {row.reason}", row.next_step)
            refused = True
    return ExitCode.NOT_APPLIED if refused else ExitCode.OK
