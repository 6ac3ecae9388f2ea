"""`dpctl state`: the kubelet's state files decoded, verified, and held against the live kubelet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.errors import DpctlError, UsageError
from dpctl.model import Snapshot, Source
from dpctl.options import READS, Common, declare

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.inventory.state.reader import StateReader
    from dpctl.inventory.state.rows import StateCheckRow, StateDifferenceRow, StateRow

HELP = """Show the kubelet's state files, check them, and compare them with the kubelet."""

# How UIDs become names: the kubelet's own pods first, then logs and directories.
_NAMES = frozenset({Source.PODS_API, Source.POD_NAMES, Source.POD_DIRS})
_API = frozenset({Source.NODE, Source.PODS})
_Which = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STATE]...", help="devices, cpu, memory, dra or pods; none: all of them."
    ),
]


@declare(
    *READS,
    examples="""
    # Everything that the kubelet keeps on disk
    dpctl state
    # Which CPUs are whose
    dpctl state cpu
    # Would the kubelet start again?
    dpctl state verify
    dpctl state devices -o json
    """,
)
def command(common: Common, files: _Which = None) -> int | None:
    """Show the kubelet's state files, decoded, with pod UIDs as names.

    devices is kubelet_internal_checkpoint, cpu and memory are what the two managers remember, dra
    the prepared claims and the devices' health, pods the resources as granted and as the runtime
    has them. Entries of pods that are gone may stay (-o wide: ACTIVE no); that is no leak. A file
    that is newer than dpctl knows, or damaged, is shown as far as it can be read.
    """
    from dpctl.commands._reading import Question, answer
    from dpctl.inventory.state.contents import state_rows
    from dpctl.views.state import STATE

    sources = _sources(files)
    _tell_places(common, sources)

    def rows(snap: Snapshot) -> Sequence[StateRow]:
        return state_rows(snap, sources)

    def check(_snap: Snapshot, shown: Sequence[StateRow]) -> DpctlError | None:
        from dpctl.errors import BadDataError

        bad = list(dict.fromkeys(row.file for row in shown if row.entry == "fault"))
        if not bad:
            return None
        return BadDataError(
            f"{', '.join(bad)} cannot be decoded as a whole",
            "`dpctl state verify` says what a kubelet makes of it, and the way out",
        )

    question = Question(
        STATE, {*sources, *_NAMES}, sources, rows, check, more=_ask_for_names, recorded=_API
    )
    return answer(common, question)


@declare(
    *READS,
    examples="""
    # Before a restart: would this kubelet start?
    dpctl state verify
    # Before an upgrade, or a downgrade
    dpctl state verify --kubelet-version v1.37.2
    # What it would say, and the way out
    dpctl state verify -o wide
    """,
)
def verify(
    common: Common,
    files: _Which = None,
    kubelet_version: Annotated[
        str | None,
        typer.Option(
            "--kubelet-version",
            metavar="VERSION",
            help="The kubelet that is to start (the running one, else the Node's).",
        ),
    ] = None,
) -> int | None:
    """Check whether a kubelet would start with its state files, and what it would say if not.

    Checksums are computed anew, for each half of a file by the kubelets that read it; then the
    kubelet's own rules: policy recorded and configured, CPUs online and reserved, overlaps, memory
    and NUMA nodes. Exit code 1 when a file is not good.

    The verdicts: Good. Absent: the kubelet makes a new file. Refused: the kubelet exits. Ignored:
    it starts as if there were none. Loses: it starts and forgets a part. Unread: this kubelet does
    not look at it. Unknown: it cannot be told.

    A refused file is never just deleted while pods run: drain the node first.
    """
    from dpctl.commands._reading import Question, answer
    from dpctl.inventory.state.verify import check_rows
    from dpctl.views.state import STATE_CHECKS

    sources = _sources(files)
    _tell_places(common, sources)
    if kubelet_version is not None and not _is_version(kubelet_version):
        raise UsageError(
            f"--kubelet-version {kubelet_version!r} is no version", "for example: v1.37.2"
        )

    def rows(snap: Snapshot) -> Sequence[StateCheckRow]:
        return check_rows(snap, _reader(snap, kubelet_version), sources)

    def check(_snap: Snapshot, shown: Sequence[StateCheckRow]) -> DpctlError | None:
        return _verdict(shown)

    def more(env: Env, snap: Snapshot) -> Snapshot:
        as_live = env.live or snap.complete
        return _with_version(env, snap) if as_live and not kubelet_version else snap

    want = {*sources, *_RULES, *_NAMES}
    # A device checkpoint that cannot be decoded is not read, and has its verdict all the same.
    needs = (*sources, Source.DIRECTORY)
    question = Question(STATE_CHECKS, want, needs, rows, check, more=more, recorded=_API)
    return answer(common, question)


# What the kubelet's rules look at: its settings (of the process behind its socket), the machine.
_RULES = frozenset({Source.KUBELET, Source.NUMA, Source.DIRECTORY, Source.SOCKETS})


@declare(
    *READS,
    examples="""
    dpctl state diff
    dpctl state diff cpu -o wide
    """,
)
def diff(common: Common, files: _Which = None) -> int | None:
    """Compare the state files with what the running kubelet says.

    Leftover is an entry of a pod that is gone, which goes with the next write; Mismatch is a real
    difference. What the kubelet hides on purpose (finished init containers) is none. Exit code 1
    when there is any row.
    """
    from dpctl.commands._reading import Question, answer
    from dpctl.errors import FoundError
    from dpctl.inventory.state.diff import difference_rows
    from dpctl.views.state import STATE_DIFFERENCES

    sources = _sources(files)
    _tell_places(common, sources)

    def rows(snap: Snapshot) -> Sequence[StateDifferenceRow]:
        return difference_rows(snap, sources)

    def check(_snap: Snapshot, shown: Sequence[StateDifferenceRow]) -> DpctlError | None:
        if not shown:
            return None
        wrong = sum(row.state == "Mismatch" for row in shown)
        return FoundError(
            f"{len(shown)} {'difference' if len(shown) == 1 else 'differences'}"
            f" ({wrong} mismatched, the rest left over)",
            None if common.output.format == "wide" else "-o wide says what each means",
        )

    want = {*sources, *_NAMES, Source.POD_RESOURCES}
    want |= {Source.KUBELET, Source.DIRECTORY, Source.SOCKETS}
    question = Question(
        STATE_DIFFERENCES,
        want,
        (Source.POD_RESOURCES,),
        rows,
        check,
        more=_ask_for_names,
        recorded=_API,
    )
    return answer(common, question)


SUBCOMMANDS = {"verify": verify, "diff": diff}


def _tell_places(common: Common, sources: Sequence[Source]) -> None:
    """Somebody who looks at copied files names one directory, and there are two."""
    given = common.settings
    if given.kubelet_root and not given.device_plugin_dir and Source.CHECKPOINT in sources:
        streams.note(
            "--kubelet-root does not move the device plugins' directory, where the device"
            " checkpoint is: --device-plugin-dir names that"
        )


def _sources(files: Sequence[str] | None) -> list[Source]:
    from dpctl.inventory.state.verify import FILES

    unknown = [name for name in files or () if name not in FILES]
    if unknown:
        raise UsageError(f"no state file {unknown[0]!r}", f"one of: {', '.join(FILES)}")
    return [source for name in files or FILES for source in FILES[name]]


def _ask_for_names(env: Env, snap: Snapshot) -> Snapshot:
    """The API server costs a third of a second, so it is asked only for UIDs without a name."""
    from dpctl.collect import collect
    from dpctl.inventory.pods import Pods
    from dpctl.inventory.state.uids import uids_of

    pods = Pods(snap)
    if not (env.live or snap.complete) or all(pods.by_uid(uid).name for uid in uids_of(snap)):
        return snap
    found = collect(env, {Source.NODE, Source.PODS, Source.DIRECTORY, Source.SOCKETS})
    asked = tuple(row for row in found.sources if row.name in _API)
    return snap._replace(node=found.node, pods=found.pods, sources=(*snap.sources, *asked))


def _with_version(env: Env, snap: Snapshot) -> Snapshot:
    """The Node is asked only where no kubelet runs, or its program does not say its version."""
    from dpctl.collect import collect

    if snap.kubelet_version is not None:
        return snap
    found = collect(env, {Source.NODE, Source.DIRECTORY, Source.SOCKETS})
    asked = tuple(row for row in found.sources if row.name == Source.NODE)
    return snap._replace(node=found.node, sources=(*snap.sources, *asked))


def _is_version(text: str) -> bool:
    from dpctl.inventory.state.reader import reader_for

    return reader_for(text, None) is not None


def _reader(snap: Snapshot, given: str | None) -> StateReader:
    from dpctl.inventory.state.reader import reader_for

    node = snap.node.kubelet_version if snap.node else None
    for version in (given, snap.kubelet_version, node):
        reader = reader_for(version, snap.kubelet_config) if version else None
        if reader is not None:
            return reader
    raise UsageError(
        "the kubelet's version is not known"
        + (f" (the Node says {node})" if node else " (the Node was not read)"),
        "give it: --kubelet-version v1.37.2 (`kubelet --version` prints it)",
    )


def _verdict(shown: Sequence[StateCheckRow]) -> DpctlError | None:
    """For the person: which file, what the kubelet says, and the way out."""
    from dpctl.errors import FoundError
    from dpctl.inventory.state.rows import StateVerdict
    from dpctl.inventory.state.verify import BAD

    bad = sorted((r for r in shown if r.verdict in BAD), key=lambda r: BAD.index(r.verdict))
    if not bad:
        return None
    first = bad[0]
    words = {
        StateVerdict.REFUSED: f"kubelet {first.kubelet} would not start with {first.file}",
        StateVerdict.IGNORED: f"kubelet {first.kubelet} would start as if without {first.file}",
        StateVerdict.LOSES: f"kubelet {first.kubelet} would forget a part of {first.file}",
        StateVerdict.UNKNOWN: f"whether kubelet {first.kubelet} starts with {first.file} cannot be"
        " told",
    }[first.verdict]
    said = f": {first.reason}" if first.says is None else f": it would say `{first.says}`"
    more = f" (and {', '.join(row.file for row in bad[1:])})" if bad[1:] else ""
    return FoundError(words + said + more, first.remedy)
