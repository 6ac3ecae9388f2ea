"""What the reading commands share: collect, say what was not read, print, and the exit code.

A command says what it wants, what it cannot do without, and how rows come from a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple

from dpctl import streams
from dpctl.columns import NOTHING_FOUND, Row, View
from dpctl.errors import DpctlError, ExitCode, FoundError, UnreachableError, UsageError
from dpctl.model import Snapshot, Source, SourceRow
from dpctl.options import Common

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.output import OutputOptions

INVENTORY = frozenset(
    {
        Source.POD_RESOURCES,
        Source.ALLOCATABLE,
        Source.CHECKPOINT,
        Source.DIRECTORY,
        Source.PLUGINS,
        Source.REGISTRY,
        Source.SOCKETS,
        Source.NODE,
        Source.PODS,
        Source.DEVICE_CLASSES,
        Source.POD_NAMES,
        Source.KUBELET,
    }
)
"""What the states of resources and devices hang on."""

OWN_TABLES = frozenset({Source.CHECKPOINT, Source.DIRECTORY, Source.SOCKETS})
"""What the machine itself says of its plugins, in milliseconds."""

# Nothing hangs on these alone: their failure is a note under -v (and stands in `sources`).
_INCIDENTAL = frozenset(
    {
        Source.DEVICE_CLASSES,
        Source.POD_NAMES,
        Source.POD_DIRS,
        Source.PODS_API,
        Source.KUBELET,
        Source.PCI,
    }
)

# What tells this kubelet, and with it the Node: nobody misses these alone.
_KUBELET = frozenset({Source.SOCKETS, Source.DIRECTORY})


class Question(NamedTuple, Generic[Row]):
    """One reading command: what to ask, and what rows the answer makes."""

    view: View[Row]
    want: Collection[Source]
    needs: Collection[Source]
    """One of these must have been read, else the run ends with the error of the best of them."""
    rows: Callable[[Snapshot], Sequence[Row]]
    check: Callable[[Snapshot, Sequence[Row]], DpctlError | None] | None = None
    """Said after printing, with its exit code (an expectation unmet)."""
    more: Callable[[Env, Snapshot], Snapshot] | None = None
    """A second look, at what the first one showed to be needed."""
    recorded: Collection[Source] = ()
    """Wanted besides from a bundle that was put together by hand: there they cost nothing, and it
    may lack what a node would be asked in the end."""


def answer(common: Common, question: Question[Row]) -> int:
    """Run one question, once or again and again (`-w`). Returns the exit code."""
    from dpctl import output
    from dpctl.documents import Envelope
    from dpctl.env import find_env

    options = common.output
    env = find_env(common.settings)
    if common.watch and not env.live:
        raise UsageError(
            "a bundle does not change: -w has nothing to watch", "leave out -w or --from"
        )
    said: set[str] = set()

    def read() -> tuple[Snapshot, Sequence[Row]]:
        snap = look(
            common,
            env,
            question.want,
            question.needs,
            said=said,
            more=question.more,
            recorded=question.recorded,
        )
        return snap, question.rows(snap)

    if common.watch:
        from dpctl import watching

        def produce() -> tuple[Sequence[Row], Envelope]:
            snap, rows = read()
            return rows, Envelope.of(snap)

        watching.watch(
            produce,
            question.view,
            options=options,
            interval=common.interval or 2.0,
            on_error=lambda error: streams.say("error", error.message, error.hint),
        )
        return ExitCode.OK
    snap, rows = read()
    output.write(rows, question.view, options=options, snapshot_meta=Envelope.of(snap))
    return finish(common, options, snap, rows, question.check, nothing=question.view.nothing)


def finish(
    common: Common,
    options: OutputOptions,
    snap: Snapshot,
    rows: Sequence[Row],
    check: Callable[[Snapshot, Sequence[Row]], DpctlError | None] | None = None,
    nothing: str = NOTHING_FOUND,
) -> int:
    """What is left to say after printing, and the exit code."""
    from dpctl.output import nothing_found

    found = check(snap, rows) if check is not None else None
    if found is not None:
        return streams.report(found)
    sentence = nothing_found(rows, options, nothing)
    if sentence is not None:
        streams.plain(sentence)
    if not common.strict:
        return ExitCode.OK
    return failed_code(snap.sources)


def failed_code(rows: Sequence[SourceRow]) -> int:
    """What --strict makes of sources that were not read."""
    weighty = [r for r in rows if r.name not in _INCIDENTAL]
    failed = [r.code for r in weighty if r.state in ("failed", "damaged")]
    missing = [r.code or ExitCode.UNREACHABLE for r in weighty if r.state == "missing"]
    return next(iter(failed + missing), ExitCode.OK)


def look(
    common: Common,
    env: Env,
    want: Collection[Source],
    needs: Collection[Source],
    *,
    said: set[str] | None = None,
    more: Callable[[Env, Snapshot], Snapshot] | None = None,
    recorded: Collection[Source] = (),
) -> Snapshot:
    """Collect, name every source that was not read on stderr, and raise when nothing was."""
    from dpctl.collect import collect

    snap = agreeing(env, collect(env, want, again=common.watch, recorded=recorded))
    if more is not None:
        snap = more(env, snap)
    snap = snap._replace(sources=tuple(with_next_step(row, snap) for row in snap.sources))
    error = missing(snap, needs)
    if error is not None and env.live and no_kubelet(env):
        raise UnreachableError(
            "no kubelet here: neither "
            f"{env.device_plugin_dir.value} nor {env.pod_resources_socket.value} is there",
            "run on a node; in a container with --host-root; --from a captured node; or try one: "
            "`dpctl lab run -- bash`",
        )
    _say_unread(common, snap, said if said is not None else set(), except_for=error)
    if error is not None:
        raise error
    return snap


def agreeing(env: Env, snap: Snapshot) -> Snapshot:
    """The machine's own tables are read before the Node. Where it has another number than they, a
    plugin may have ended in between, which would look like a broken kubelet: then once more."""
    if not env.live or snap.sockets is None or snap.node is None:
        return snap
    from dpctl.collect import collect
    from dpctl.inventory.states import node_differs

    if not node_differs(snap):
        return snap
    later = collect(env, OWN_TABLES, again=True)
    if later.sockets is None or later.directory is None or later.checkpoint is None:
        return snap
    return with_local(snap, later)


def with_local(snap: Snapshot, late: Snapshot) -> Snapshot:
    """The machine's own tables of a later look."""
    rows = {row.name: row for row in (*snap.sources, *late.sources)}
    return snap._replace(
        sources=tuple(rows.values()),
        checkpoint=late.checkpoint,
        directory=late.directory,
        sockets=late.sockets,
        processes=late.processes,
        kubelets=late.kubelets,
    )


def ask_for_pods(env: Env, snap: Snapshot) -> Snapshot:
    """The API server is asked, which costs a third of a second, only where this machine does not
    tell of a holder whether it is gone."""
    from dpctl.collect import collect
    from dpctl.inventory.pods import in_doubt

    if snap.source(Source.PODS) is not None or not in_doubt(snap):
        return snap
    # The kubelet behind the socket is the one that names the Node whose pods these are.
    found = collect(env, {Source.NODE, Source.PODS, Source.DIRECTORY, Source.SOCKETS})
    asked = tuple(row for row in found.sources if row.name in (Source.NODE, Source.PODS))
    return snap._replace(node=found.node, pods=found.pods, sources=(*snap.sources, *asked))


_NEXT_STEPS = {
    Source.POD_RESOURCES: "is this the kubelet's PodResources socket? `dpctl env` shows which",
    Source.ALLOCATABLE: "`--no-allocatable` does without it",
    Source.CHECKPOINT: "the kubelet writes it anew when a plugin lists its devices",
    Source.DIRECTORY: "name it with --device-plugin-dir; `dpctl env` shows what was tried",
    Source.NODE: "check the server's address in the kubeconfig; `dpctl env` shows which",
    Source.PODS: "check the server's address in the kubeconfig; `dpctl env` shows which",
}


def with_next_step(row: SourceRow, snap: Snapshot) -> SourceRow:
    """A failure never stands without something to type or to check."""
    checkpoint = snap.checkpoint
    if row.name == Source.CHECKPOINT and checkpoint is not None and not checkpoint.verified:
        return row._replace(
            state="damaged",
            reason=f"its checksum is {checkpoint.stored_checksum}, that of its content "
            f"{checkpoint.computed_checksum}: a kubelet that starts ignores it",
            hint="the kubelet writes it anew when a plugin lists its devices; until then nobody "
            "knows which resources it tracks",
            code=ExitCode.BAD_DATA,
        )
    if row.state != "failed" or row.hint:
        return row
    if snap.from_bundle:
        return row._replace(hint=f"capture the node again, or do without: remove {row.where}")
    known = _NEXT_STEPS.get(Source(row.name)) if row.name in set(Source) else None
    return row._replace(hint=known or "`dpctl env` shows where dpctl looks, and why")


def missing(snap: Snapshot, needed: Collection[Source]) -> DpctlError | None:
    """The error to end with when none of the needed sources was read; None when one was."""
    rows = [row for row in snap.sources if row.name in needed]
    if any(row.read for row in rows):
        return None
    denied = [row for row in rows if row.code == ExitCode.DENIED]
    first = next(iter(denied or [r for r in rows if r.code] or rows), None)
    if first is None:
        return UnreachableError("nothing to read from", "see dpctl env")
    reason = first.reason or "not there"
    where = "" if first.where in reason else f" ({first.where})"
    error = DpctlError(f"{first.name}: {reason}{where}", first.hint)
    error.code = ExitCode(first.code or ExitCode.UNREACHABLE)
    return error


def no_kubelet(env: Env) -> bool:
    """Nothing that a kubelet makes is there: one sentence says more than a list of its files."""
    places = (env.device_plugin_dir, env.pod_resources_socket)
    if any(place.origin.startswith(("flag", "environment", "config")) for place in places):
        return False  # a path that a person named is what to talk about
    return all(_is_absent(place.value) for place in places)


def _is_absent(path: str | None) -> bool:
    """Surely not there: what may not be looked at could be."""
    import os

    try:
        os.lstat(path or "")
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _say_unread(
    common: Common, snap: Snapshot, said: set[str], *, except_for: DpctlError | None
) -> None:
    """Once per reason, also under -w. What ends the run is said by the error itself."""
    if common.verbose:
        for row in snap.sources:
            streams.note(how_it_went(row))
    for text, hint in unread(snap, except_for):
        _warn_once(text, hint, said)
    absent = [row.name for row in snap.sources if _is_absent_in_bundle(snap, row)]
    if absent and except_for is None:
        text = f"this bundle has no {', '.join(absent)}"
        if text not in said:
            said.add(text)
            streams.say("note", text)


def unread(snap: Snapshot, except_for: DpctlError | None = None) -> list[tuple[str, str | None]]:
    """A sentence and a hint for what was damaged or not read, and something hangs on, and for what
    was left out as another Node's. `except_for`: the error that says it already."""
    found: list[tuple[str, str | None]] = []
    reasons: dict[tuple[str, str | None], list[str]] = {}
    skipped: dict[tuple[str, str | None], None] = {}
    for row in snap.sources:
        if row.state == "damaged":
            found.append((f"{row.name} damaged: {row.reason}", row.hint))
        lost = row.state == "skipped" and row.hint and row.name not in _KUBELET
        if lost and not _same(except_for, row):
            skipped[row.reason or "", row.hint] = None
        if row.read or row.state == "skipped" or _is_absent_in_bundle(snap, row):
            continue
        if row.name not in _INCIDENTAL and not _same(except_for, row):
            reasons.setdefault((row.reason or "not there", row.hint), []).append(row.name)
    for (reason, hint), names in reasons.items():
        # One API server that does not answer is several sources and one sentence.
        found.append((f"{', '.join(dict.fromkeys(names))} not read: {reason}", hint))
    for reason, hint in skipped:
        found.append((f"{reason}: nothing of this machine was used", hint))
    return found


def _is_absent_in_bundle(snap: Snapshot, row: SourceRow) -> bool:
    return row.state == "missing" and snap.from_bundle


def _warn_once(text: str, hint: str | None, said: set[str]) -> None:
    if text not in said:
        said.add(text)
        streams.warn(text, hint)


def _same(error: DpctlError | None, row: SourceRow) -> bool:
    return error is not None and row.reason is not None and row.reason in error.message


def how_it_went(row: SourceRow) -> str:
    took = f" in {row.seconds * 1000:.0f} ms" if row.seconds is not None else ""
    why = f": {row.reason}" if row.reason else ""
    return f"{row.name} {row.state}{took} ({row.where}){why}"


def not_found(
    kind: str, patterns: Sequence[str], names: Collection[str], snap: Snapshot | None = None
) -> FoundError | None:
    """As kubectl: a name that was typed in full and is not there is an error, a glob is not. With
    `snap`: what it could not read is said, since the name may be there."""
    from dpctl.text import is_glob, unmatched

    lost = [p for p in unmatched(patterns, names) if not is_glob(p)]
    if not lost:
        return None
    listed = ", ".join(f'"{name}"' for name in lost)
    unread = [r.name for r in snap.sources if r.state == "failed"] if snap is not None else []
    unread = [name for name in unread if name not in _INCIDENTAL]
    where = f"in what could be read (not: {', '.join(unread)})" if unread else "here"
    return FoundError(f"no {kind} {listed} {where}", f"dpctl {kind}s lists what there is")


def one_of(flag: str, value: str | None, allowed: Sequence[str]) -> None:
    """Raises UsageError unless the value is one of those allowed (or not given)."""
    if value is not None and value not in allowed:
        raise UsageError(f"{flag} {value!r}: not one of {', '.join(allowed)}")
