"""`dpctl plugins`: which plugin sockets are there, who is behind them, is the kubelet connected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl.commands._plugins_prune import prune
from dpctl.errors import DpctlError
from dpctl.inventory.rows import PluginRow
from dpctl.model import Snapshot, Source
from dpctl.options import READS, Common, declare

if TYPE_CHECKING:
    from dpctl.env import Env

_WANT = frozenset(
    {
        Source.DIRECTORY,
        Source.PLUGINS,
        Source.REGISTRY,
        Source.SOCKETS,
        Source.CHECKPOINT,
        Source.POD_NAMES,
    }
)


@declare(
    *READS,
    examples="""
    dpctl plugins
    dpctl plugins 'vendor*' -o wide
    # Plugins that missed a kubelet restart
    dpctl plugins -o jsonpath='{.items[?(@.state=="Unlinked")].endpoint}'
    """,
)
def command(
    common: Common,
    endpoints: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ENDPOINT]...", help="Socket names or globs; none: all."),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Listeners, too, whose directory cannot be told: they may be plugins."
        ),
    ] = False,
) -> int | None:
    """List plugin sockets and live listeners: alive, registered, orphaned or dead.

    STATE is how the socket answers one harmless call: Serving, Dead (nobody listens), Hung,
    NotGRPC, WrongService, NoRights; Unlinked is a live listener whose file is gone, which is what a
    plugin that missed a kubelet restart looks like. KUBELET comes from the kernel's socket table, ?
    when that table cannot be trusted. RESOURCE has a ~ in front when it was inferred.
    """
    from dpctl.commands._reading import Question, answer, not_found
    from dpctl.inventory.plugins import plugin_rows
    from dpctl.text import matches_any
    from dpctl.views import PLUGINS

    patterns = endpoints or []

    def rows(snap: Snapshot) -> Sequence[PluginRow]:
        return [
            row
            for row in plugin_rows(snap)
            if matches_any(row.endpoint, patterns) and (row.certain or everything)
        ]

    def check(snap: Snapshot, _shown: Sequence[PluginRow]) -> DpctlError | None:
        if not patterns:
            return None
        return not_found("plugin", patterns, {row.endpoint for row in plugin_rows(snap)})

    question = Question(PLUGINS, _WANT, (Source.DIRECTORY,), rows, check, more=look_closer)
    return answer(common, question)


def look_closer(env: Env, snap: Snapshot) -> Snapshot:
    """What helps to tell which resource a plugin serves, asked only where it is not told yet."""
    return ask_the_node(env, ask_the_kubelet(env, snap))


def ask_the_kubelet(env: Env, snap: Snapshot) -> Snapshot:
    """Names that its checkpoint may lack: see `inventory.registered`."""
    from dpctl.collect import collect
    from dpctl.inventory.connections import Connections

    if not Connections(snap).names_hang_on_the_file():
        return snap
    found = collect(env, {Source.ALLOCATABLE, Source.DIRECTORY, Source.SOCKETS})
    asked = tuple(
        row
        for row in found.sources
        if row.name == Source.ALLOCATABLE and (row.read or not snap.from_bundle)
    )
    return snap._replace(allocatable=found.allocatable, sources=(*snap.sources, *asked))


def ask_the_node(env: Env, snap: Snapshot) -> Snapshot:
    """Names that only the Node still has help to tell what an unregistered plugin serves; the API
    server costs a third of a second, so it is asked only when a socket is left without a name."""
    from dpctl.collect import collect
    from dpctl.inventory.plugins import plugin_rows

    named = all(row.resource for row in plugin_rows(snap) if row.directory == "device-plugins")
    if named:
        return snap
    if snap.from_bundle and not snap.complete:
        return snap._replace(node=collect(env, {Source.NODE}).node)
    found = collect(env, {Source.NODE, Source.DIRECTORY, Source.SOCKETS})
    asked = tuple(row for row in found.sources if row.name == Source.NODE)
    return snap._replace(node=found.node, sources=(*snap.sources, *asked))


SUBCOMMANDS = {"prune": prune}
