"""`collect(env, want)`: run the sources that a command wants, side by side, and keep each failure.

With `--from` the bundle answers instead. How a live node is read: `live`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from dpctl.env import Env
from dpctl.model import Snapshot, Source, SourceRow
from dpctl.sources.evidence import Evidence

EVERYTHING = frozenset(Source) - {Source.UNSCHEDULED}
"""All that a node has to say; pods of no node are the cluster's."""


def collect(
    env: Env,
    want: Collection[Source],
    *,
    again: bool = False,
    recorded: Collection[Source] = (),
) -> Snapshot:
    """Everything wanted, read once. Never raises for a source: see `Snapshot.sources`.

    `again`: this process goes on and reads more than once, so it keeps what it loads to itself.
    `recorded`: wanted, too, from a bundle that was put together by hand.

    Raises BadDataError or UnreachableError for a bundle that is none.
    """
    if not env.live:
        from dpctl.bundle import read_bundle

        return read_bundle(env, want, recorded)
    from dpctl.collect.live import Live

    return Live(env, frozenset(want), again).run()


def capture(env: Env, *, told: Callable[[SourceRow], None] | None = None) -> Evidence:
    """A live node for a bundle: every source read once, with what it said as it came.

    `told` hears how each source fared, from any thread. Never raises for a source.
    """
    from dpctl.collect.live import Live

    evidence = Evidence()
    evidence.snapshot = Live(env, EVERYTHING, True, evidence, told).run()
    return evidence
