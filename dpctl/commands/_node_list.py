"""`dpctl node`: what Nodes offer and what of it is left, as the API server alone tells it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.commands._selection import AllNodes, Fields, Labels, is_fleet, selection
from dpctl.errors import DeniedError, DpctlError, ExitCode, UsageError
from dpctl.inventory.rows import NodeResourceRow
from dpctl.model import Source, SourceRow
from dpctl.options import CLUSTER, OUTPUT, PLACES, READING, WATCH, Common, declare

if TYPE_CHECKING:
    from dpctl.documents import Envelope
    from dpctl.env import Env
    from dpctl.inventory.nodes import RequestTally
    from dpctl.sources.apiserver import Api, Selection


@declare(
    OUTPUT,
    WATCH,
    PLACES,
    CLUSTER,
    READING,
    examples="""
    # What this node offers, what pods request of it, what is left
    dpctl node
    # From a workstation
    dpctl node --node lab-0 --context lab
    # A fleet: GPUs that are left, node by node
    dpctl node --all-nodes 'vendor.example/*' -o custom-columns=NODE:.node,FREE:.free
    dpctl node -l pool=gpu -o json | jq '.items[] | select(.free < 0)'
    """,
)
def command(
    common: Common,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RESOURCE]...", help="Names or globs; none: all."),
    ] = None,
    all_nodes: AllNodes = False,
    labels: Labels = None,
    fields: Fields = None,
) -> int | None:
    """List what Nodes offer of each extended resource, and what is left of it.

    CAPACITY and ALLOCATABLE are the Node's, REQUESTED is what the scheduler counts for the pods
    there, FREE the difference; below 0 is more than is offered. All of it comes from the API server
    alone, so it works from a workstation; whether a plugin is behind a number only the node itself
    can tell: dpctl resources there.

    Many Nodes are read 500 at a time and printed as they come, in the server's order, each 500
    sorted by name; --sort-by and -o jsonpath read all of them first. STATE (-o wide) is Malformed
    or Foreign, the two states that need the Node alone; every other one is a ?.
    """
    from dpctl.env import find_env

    options = common.output
    env = find_env(common.settings)
    if not env.live:
        return _from_bundle(common, env, names or [], is_fleet(all_nodes, labels, fields))
    wanted = selection(env, all_nodes, labels, fields)
    if common.watch:
        return _watch(common, env, wanted, names or [])
    from dpctl import output
    from dpctl.views.nodes import NODE_RESOURCES

    reading = _Reading(common, env, wanted, names or [])
    printer = output.RowPrinter(NODE_RESOURCES, options=options)
    try:
        for rows in reading.batches():
            printer.add(rows)
    except DpctlError as error:
        reading.failed(error)
        if not reading.nodes:
            raise
        # What was read is printed, and the document is whole; the code tells of the rest.
        printer.close(reading.envelope())
        raise
    printer.close(reading.envelope())
    return reading.finish()


class _Reading:
    """One look at the Nodes: pods first, once, as sums; then Node by Node."""

    def __init__(
        self, common: Common, env: Env, wanted: Selection, patterns: Sequence[str]
    ) -> None:
        self.nodes = 0
        self.rows = 0
        self._common = common
        self._env = env
        self._wanted = wanted
        self._patterns = patterns
        self._matched: set[str] = set()
        self._started = time.time()
        self._sources: dict[Source, SourceRow] = {}

    def batches(self) -> Iterator[list[NodeResourceRow]]:
        from dpctl.inventory.nodes import node_rows
        from dpctl.sources.apiserver import connect
        from dpctl.text import matches_any

        api = connect(self._env)
        begun = time.monotonic()
        tally = self._tally(api)
        for page in api.node_pages(self._wanted):
            rows = [
                row
                for node in page
                for row in node_rows(node, tally.of(node.name) if tally else None)
                if matches_any(row.resource, self._patterns)
            ]
            self.nodes += len(page)
            self.rows += len(rows)
            if self._patterns:
                self._matched.update(row.resource for row in rows)
            yield rows
        self._note(SourceRow(Source.NODE, api.server, "read", seconds=time.monotonic() - begun))

    def _tally(self, api: Api) -> RequestTally | None:
        """None: the pods could not be read, which is said."""
        from dpctl.inventory.nodes import RequestTally

        begun = time.monotonic()
        tally = RequestTally()
        try:
            for page in api.pod_pages(self._wanted.name):
                if page.first:
                    tally.clear()
                tally.add(page.pods)
        except DpctlError as error:
            if not isinstance(error, DeniedError) or "credentials" in error.message:
                raise
            self._fail(Source.PODS, api.server, error, time.monotonic() - begun)
            streams.warn(f"pods not read: {error.message}", error.hint)
            return None
        self._note(SourceRow(Source.PODS, api.server, "read", seconds=time.monotonic() - begun))
        return tally

    def failed(self, error: DpctlError) -> None:
        self._fail(Source.NODE, self._env.kubeconfig.value or "API server", error, None)

    def _fail(self, source: Source, where: str, error: DpctlError, seconds: float | None) -> None:
        code = int(error.code)
        self._note(SourceRow(source, where, "failed", error.message, error.hint, code, seconds))

    def _note(self, row: SourceRow) -> None:
        self._sources[Source(row.name)] = row
        if self._common.verbose:
            from dpctl.commands._reading import how_it_went

            streams.note(how_it_went(row))

    def envelope(self) -> Envelope:
        from dpctl.documents import Envelope

        order = [source for source in (Source.NODE, Source.PODS) if source in self._sources]
        return Envelope(self._started, tuple(self._sources[source] for source in order))

    def finish(self) -> int:
        """What is left to say after printing, and the exit code."""
        from dpctl.commands._reading import not_found
        from dpctl.names import is_native
        from dpctl.output import nothing_found

        lost = not_found("resource", self._patterns, self._matched) if self._patterns else None
        if lost is not None:
            lost.hint = "dpctl node --all-nodes -q lists every name there is"
            if any(not (is_native(word) or "/" in word) for word in self._patterns):
                # `list`, `status`: none is called so, and a command may be meant.
                lost.hint += "; `dpctl node --help` every command"
            return streams.report(lost)
        sentence = nothing_found(range(self.rows), self._common.output)
        if sentence is not None:
            streams.plain(sentence)
        if self._common.strict:
            return next((row.code for row in self._sources.values() if row.code), ExitCode.OK)
        return ExitCode.OK


def _watch(common: Common, env: Env, wanted: Selection, patterns: Sequence[str]) -> int:
    from dpctl import watching
    from dpctl.views.nodes import NODE_RESOURCES

    def produce() -> tuple[Sequence[NodeResourceRow], Envelope]:
        reading = _Reading(common, env, wanted, patterns)
        rows = [row for batch in reading.batches() for row in batch]
        return rows, reading.envelope()

    watching.watch(
        produce,
        NODE_RESOURCES,
        options=common.output,
        interval=common.interval or 2.0,
        on_error=lambda error: streams.say("error", error.message, error.hint),
    )
    return ExitCode.OK


def _from_bundle(common: Common, env: Env, patterns: Sequence[str], many: bool) -> int:
    """A captured node: its Node and its pods."""
    from dpctl.commands._reading import Question, answer, not_found
    from dpctl.inventory.nodes import RequestTally, node_rows
    from dpctl.model import Snapshot
    from dpctl.text import matches_any
    from dpctl.views.nodes import NODE_RESOURCES

    if many:
        raise UsageError(
            "a bundle holds one node", "leave out --all-nodes, -l and --field-selector"
        )

    def all_rows(snap: Snapshot) -> list[NodeResourceRow]:
        if snap.node is None:
            return []
        tally = RequestTally()
        tally.add(snap.pods or ())
        return node_rows(snap.node, None if snap.pods is None else tally.of(snap.node.name))

    def rows(snap: Snapshot) -> list[NodeResourceRow]:
        return [row for row in all_rows(snap) if matches_any(row.resource, patterns)]

    def check(snap: Snapshot, _shown: Sequence[NodeResourceRow]) -> DpctlError | None:
        return not_found("resource", patterns, {row.resource for row in all_rows(snap)}, snap)

    want = frozenset({Source.NODE, Source.PODS})
    return answer(common, Question(NODE_RESOURCES, want, (Source.NODE,), rows, check))
