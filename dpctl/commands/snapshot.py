"""`dpctl snapshot FILE`: a bundle of everything that the node says, for `--from`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.errors import ExitCode, UsageError
from dpctl.options import CLUSTER, PLACES, READING, Common, declare

if TYPE_CHECKING:
    from dpctl.bundle.meta import LeftOut
    from dpctl.env import Env
    from dpctl.sources.evidence import Evidence


@declare(
    PLACES,
    CLUSTER,
    READING,
    examples="""
    # Everything that this node says of its devices, to look at elsewhere
    dpctl snapshot node.tgz
    dpctl resources --from node.tgz
    # For somebody outside: without the names of pods, namespaces and nodes
    dpctl snapshot --redact outside.tgz
    # As files
    dpctl snapshot node/
    # What has changed since then
    dpctl diff node.tgz
    """,
)
def command(
    common: Common,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="An archive (.tgz, .tar.gz, .tar), any other name a directory."
        ),
    ],
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Replace names of pods, namespaces and nodes, addresses, and values of the "
            "environment.",
        ),
    ] = False,
) -> int | None:
    """Write what the node says into a bundle that every reading command replays (--from).

    Each source is read on its own and within its own time; one that fails is recorded with its
    reason, and a replay fails there as the node did. Nothing is disturbed: only what the reading
    commands read is read. The bundle appears whole under its name or not at all, readable by its
    owner alone.

    It holds pod manifests and what plugins gave to containers, values of the environment too.
    --redact replaces the names of pods, namespaces, nodes, claims and owners, addresses, and every
    value of an environment by words like pod-1, the same ones everywhere; manifests keep only what
    dpctl reads. UIDs, device IDs, resource names, container names and paths stay: look at them
    before you hand the bundle on.
    """
    from dpctl import __version__
    from dpctl.bundle.disk import check_target, write_bundle
    from dpctl.bundle.writer import bundle_files
    from dpctl.env import find_env

    env = find_env(common.settings)
    if not env.live:
        raise UsageError("a snapshot is of the live node", "leave out --from (DPCTL_FROM)")
    path = file.rstrip("/") or file
    check_target(path)
    evidence = _capture(common, env)
    if redact:
        import os

        from dpctl.bundle.redact import redacted

        evidence = redacted(evidence, nodes=(env.node_name.value or "", os.uname().nodename))
    snap = evidence.snapshot
    files, left_out = bundle_files(evidence, version=__version__, redacted=redact)
    write_bundle(path, files, time=snap.collected_at or 0.0)
    return _say(common, path, evidence, files, left_out)


def _capture(common: Common, env: Env) -> Evidence:
    import sys
    import threading

    from dpctl.collect import EVERYTHING, capture
    from dpctl.commands._reading import how_it_went, with_next_step
    from dpctl.model import SourceRow
    from dpctl.progress import Progress

    def run(told: Progress | None) -> Evidence:
        one_at_a_time = threading.Lock()

        def hear(row: SourceRow) -> None:
            if told is not None:
                with one_at_a_time:
                    told.advance(row.name, row.state)

        return capture(env, told=hear)

    if sys.stderr is not None and sys.stderr.isatty():
        with Progress("reading", len(EVERYTHING)) as progress:
            evidence = run(progress)
    else:
        evidence = run(None)
    snap = evidence.snapshot
    rows = tuple(with_next_step(row, snap) for row in snap.sources)
    evidence.snapshot = snap._replace(sources=rows)
    if common.verbose:
        for row in rows:
            streams.note(how_it_went(row))
    return evidence


def _say(
    common: Common,
    path: str,
    evidence: Evidence,
    files: dict[str, bytes],
    left_out: tuple[LeftOut, ...],
) -> int:
    """What was not read, what was left out, and the exit code."""
    from dpctl.commands._reading import failed_code

    rows = evidence.snapshot.sources
    unread: dict[tuple[str, str | None], list[str]] = {}
    for row in rows:
        if row.state in ("failed", "damaged"):
            unread.setdefault((row.reason or "not there", row.hint), []).append(row.name)
    for (reason, hint), names in unread.items():
        streams.warn(f"{', '.join(names)} not read: {reason}", hint)
    for left in left_out:
        streams.note(f"left out {left.name}: {left.reason}")
    if not any(row.read for row in rows):
        streams.warn("no source was read", "`dpctl env` shows where dpctl looks")
    size = sum(map(len, files.values()))
    read = sum(row.read for row in rows)
    skipped = [row.name for row in rows if not row.read and row.state not in ("failed", "damaged")]
    without = f" ({', '.join(skipped)}: not there)" if skipped else ""
    words = f"{read} of {len(rows)} sources{without}, {len(files)} files, {size} bytes"
    streams.note(f"wrote {path}: {words}")
    return failed_code(rows) if common.strict else ExitCode.OK
