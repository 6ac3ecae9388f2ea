"""`dpctl plugin wait`: until the kubelet offers devices, for boot ordering and scripts."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.commands._plugin_target import check_resource
from dpctl.errors import DeniedError, FoundError, UsageError
from dpctl.model import Snapshot, Source
from dpctl.options import CLUSTER, OUTPUT, PLACES, READING, Common, declare, duration

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.inventory.by_hand_rows import WaitRow
    from dpctl.inventory.waited import Step

_CHEAP = frozenset({Source.DIRECTORY, Source.CHECKPOINT})
_LOCAL = _CHEAP | {
    Source.PLUGINS,
    Source.REGISTRY,
    Source.SOCKETS,
    Source.POD_RESOURCES,
    Source.ALLOCATABLE,
}
_TIMEOUT = 300.0
_INTERVAL = 1.0
"""Seconds between two looks: a kubelet takes ten to write the Node."""
_ASK_EVERY = 5
"""Looks: so often the kubelet is asked although its checkpoint says no, which may be behind."""
_SHORTEST_CALL = 0.2
_CLOSER_LOOK = 2.0
"""Seconds that each source has at most to say which step is missing."""
_SHOW = "`dpctl resources {} -o wide` shows what there is"


@declare(
    OUTPUT,
    PLACES,
    CLUSTER,
    READING,
    examples="""
    # Until the kubelet offers seven GPUs, ten minutes at most
    dpctl plugin wait vendor.example/gpu --count 7 --timeout 10m
    # While booting, before the API server can be reached (ExecStartPre= of a unit)
    dpctl plugin wait vendor.example/gpu --for healthy
    # After a plugin was taken away, until the key may be removed
    dpctl plugin wait fabric.example/rdma --for gone --timeout 10m && dpctl node prune --yes
    """,
)
def wait(
    common: Common,
    resource: Annotated[
        str, typer.Argument(metavar="RESOURCE", help="An extended resource.", show_default=False)
    ],
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", help="At least so many devices (1).", min=1),
    ] = None,
    condition: Annotated[
        str,
        typer.Option(
            "--for", metavar="CONDITION", help="allocatable, healthy or gone.", show_default=True
        ),
    ] = "allocatable",
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="DURATION", parser=duration, help="The whole wait (5m)."),
    ] = None,
) -> int | None:
    """Wait until the kubelet offers devices of a resource.

    allocatable: the kubelet is connected to the plugin, has N healthy devices, and the Node says
    so, so that pods are sent. After a reboot the Node shows old counts until the plugin has
    registered: they are not believed. With --node of another machine the Node alone counts.

    healthy: the same without the Node and the API server, which is asked only about devices that
    the checkpoint has and the kubelet does not offer: they are ill, or have an empty topology.

    gone: the kubelet has let go of it (five minutes after the plugin's end), the Node shows 0 or
    nothing, and no plugin listens that may serve it for all that is known: dpctl node prune may
    remove it.

    Neither kubelet nor plugin nor socket need be there yet. What is missing is said at the
    beginning, and at the end (exit code 1) when the time is over.
    """
    from dpctl import output
    from dpctl.commands._reading import one_of
    from dpctl.documents import Envelope
    from dpctl.inventory.waited import CONDITIONS, GONE, HEALTHY, is_for_the_node
    from dpctl.text import escape
    from dpctl.views.plugin import WAITED

    one_of("--for", condition, CONDITIONS)
    if count is not None and condition == GONE:
        raise UsageError("--count says nothing with --for gone", "leave it out")
    check_resource(resource)
    options = common.output
    limit = timeout or _TIMEOUT
    row, snap, step = _until(common, resource, condition, count or 1, limit)
    if options.format != "table":
        output.write([row], WAITED, options=options, snapshot_meta=Envelope.of(snap))
    if not row.met:
        raise FoundError(
            f"{resource} is not {condition} after {limit:g} s: {row.waiting_for}",
            f"{step.hint if step else _SHOW.format(resource)}; --timeout waits longer",
        )
    if condition == HEALTHY and is_for_the_node(snap, resource, count or 1):
        streams.note(
            "by the checkpoint alone: the kubelet offers none of them (as it does where topologies "
            "are empty), and the Node was not read"
        )
    if options.format == "table":
        amount = "" if row.seen is None else f" ({row.seen})"
        output.write_text(f"resource/{escape(resource)} {condition}{amount}")
    return None


def _until(
    common: Common, resource: str, condition: str, wanted: int, timeout: float
) -> tuple[WaitRow, Snapshot, Step | None]:
    """How it stood at last. Places are looked for each time: a kubelet that starts meanwhile may
    have its root elsewhere."""
    from dpctl.env import find_env
    from dpctl.inventory.waited import waited, with_step

    started = time.monotonic()
    progress = _Progress(common, resource, timeout)
    before: WaitRow | None = None
    step: Step | None = None
    looks = 0
    try:
        while True:
            looks += 1
            left = started + timeout - time.monotonic()
            env = find_env(common.settings)
            if not env.live:
                raise UsageError(
                    "a bundle does not change: there is nothing to wait for", "leave out --from"
                )
            limit = min(env.request_timeout, max(left, _SHORTEST_CALL))
            env = env._replace(request_timeout=limit)
            ask = looks % _ASK_EVERY == 0 or left <= _INTERVAL  # the last look, too
            snap = _look(env, resource, condition, wanted, ask=ask)
            elsewhere = _is_elsewhere(env, snap)
            unclaimed = () if elsewhere else _unclaimed(snap, condition)
            row = waited(
                snap, resource, condition, wanted, elsewhere=elsewhere, unclaimed=unclaimed
            )
            left = started + timeout - time.monotonic()
            if row.met:
                return row, snap, None
            # Not every time: the plugins would be asked each second.
            if row != before or left <= 0:
                before = row
                step = None if elsewhere else _missing(env, snap, resource, condition)
            row = with_step(row, step)
            if left <= 0:
                return row, snap, step
            progress.show(row, time.monotonic() - started)
            time.sleep(min(_INTERVAL, left))
    except KeyboardInterrupt:
        progress.interrupted(condition)
        raise
    finally:
        progress.close()


def _missing(env: Env, snap: Snapshot, resource: str, condition: str) -> Step | None:
    """Which step is missing, by a closer look where the two files were enough."""
    from dpctl.collect import collect
    from dpctl.inventory.waited import GONE, HEALTHY, missing_step

    if condition == GONE:
        return None
    if snap.source(Source.SOCKETS) is None:
        env = env._replace(request_timeout=_CLOSER_LOOK)
        snap = collect(env, _LOCAL if condition == HEALTHY else _LOCAL | {Source.NODE}, again=True)
    return missing_step(snap, resource)


def _unclaimed(snap: Snapshot, condition: str) -> tuple[str, ...]:
    """Listeners for whose sake nothing is removed."""
    from dpctl.changes.evidence import evidence_of
    from dpctl.inventory.devices import Devices
    from dpctl.inventory.waited import GONE

    if condition != GONE or snap.node is None:
        return ()
    return evidence_of(snap, Devices(snap)).unclaimed


def _look(env: Env, resource: str, condition: str, wanted: int, *, ask: bool) -> Snapshot:
    """What the condition hangs on; where two files say already that it cannot be met, no more, if
    the kubelet is not to be asked all the same.
    Raises DeniedError for what no wait will mend."""
    from dpctl.collect import collect
    from dpctl.inventory.waited import GONE, HEALTHY, is_for_the_node

    if condition != GONE and not ask and not _is_named(env):
        first = collect(env, _CHEAP, again=True)
        _refuse_denied(first)
        checkpoint = first.checkpoint
        known = set(checkpoint.registered.get(resource, ())) if checkpoint is not None else ()
        there = first.directory is not None and first.directory.entry("kubelet.sock") is not None
        if not there or (checkpoint is not None and not checkpoint.absent and len(known) < wanted):
            return first
    want = _LOCAL if condition == HEALTHY else _LOCAL | {Source.NODE}
    snap = collect(env, want, again=True)
    _refuse_denied(snap)
    if condition == HEALTHY and is_for_the_node(snap, resource, wanted):
        snap = collect(env, want | {Source.NODE}, again=True)
    return snap


def _is_named(env: Env) -> bool:
    """A person named the Node."""
    return env.node_name.origin.startswith(("flag", "environment", "config"))


def _is_elsewhere(env: Env, snap: Snapshot) -> bool:
    """The Node is another machine's: one that was named, and this machine has another kubelet, or
    none at all."""
    row = snap.source(Source.CHECKPOINT)
    skipped = row is not None and row.state == "skipped"
    return skipped or (_is_named(env) and snap.directory is None)


def _refuse_denied(snap: Snapshot) -> None:
    for source in (Source.DIRECTORY, Source.CHECKPOINT):
        row = snap.source(source)
        if row is not None and row.code == DeniedError.code:
            raise DeniedError(row.reason or f"{row.where} may not be read", row.hint)


class _Progress:
    """What is missing at first; then on a terminal one line that is written over, elsewhere, under
    -v, a line for every change."""

    def __init__(self, common: Common, resource: str, timeout: float) -> None:
        from dpctl.outputs.terminal import is_terminal

        self._verbose = common.verbose
        self._resource = resource
        self._timeout = timeout
        self._terminal = sys.stderr is not None and is_terminal(sys.stderr)
        self._last: str | None = None

    def show(self, row: WaitRow, seconds: float) -> None:
        before, self._last = self._last, row.waiting_for
        if before is None:
            streams.note(f"waiting for {self._resource}: {row.waiting_for}")
        elif self._verbose and not self._terminal and row.waiting_for != before:
            streams.note(f"waiting: {row.waiting_for}")
        if self._terminal:
            self._paint(f"{int(seconds)}s of {self._timeout:g}s: {row.waiting_for}")

    def _paint(self, text: str) -> None:
        from dpctl.outputs.terminal import size
        from dpctl.text import escape, shorten

        columns = size(sys.stderr)[0] or 80
        # Room for the ^C that a terminal echoes: on the next line it could not be wiped off.
        line = shorten(escape(f"waiting for {self._resource}, {text}"), max(columns - 3, 20))
        with suppress(OSError, ValueError):  # the terminal went away
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()

    def interrupted(self, condition: str) -> None:
        """The last word after Ctrl-C."""
        if self._last is not None:
            self.close()
            streams.note(f"{self._resource} is not {condition} yet: {self._last}")

    def close(self) -> None:
        if self._terminal and self._last is not None:
            with suppress(OSError, ValueError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
