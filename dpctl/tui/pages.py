"""The pages: which rows each shows, what people call it, and what lies deeper. Pure.

Rows and columns are those of the commands; a page adds no fact of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpctl import views
from dpctl.columns import Column, Emphasis, View
from dpctl.inventory.containers import container_rows, failed_pod_rows, holds_something
from dpctl.inventory.nodes import RequestTally, node_rows
from dpctl.inventory.plugins import plugin_rows
from dpctl.inventory.resources import resource_rows
from dpctl.inventory.rows import (
    ContainerRow,
    DeviceRow,
    FailedPodRow,
    NodeResourceRow,
    PluginRow,
    ResourceRow,
    ResourceState,
)
from dpctl.model import Source, SourceRow
from dpctl.tui.facts import Facts
from dpctl.views.nodes import NODE_RESOURCES


class Scope(NamedTuple):
    """Part of a page's rows: what belongs to the row from which it was opened."""

    label: str
    holds: Callable[[Any], bool]


class Deeper(NamedTuple):
    page: str
    scope: Scope


class Page(NamedTuple):
    name: str
    words: tuple[str, ...]
    """What else `:` takes for it."""
    view: View[Any] | None
    """None: a text, the NUMA picture."""
    make: Callable[[Facts], Sequence[Any]]
    needs: tuple[Source, ...]
    """One of them must have been read, else the page says why it is empty."""
    nothing: str
    """Said where there is no row."""
    deeper: Callable[[Any], Deeper | None] = lambda row: None
    inside: str = ""
    """What Enter opens, for the line of keys."""
    change: str = ""
    """What `p` plans here: `keys`, `sockets` or `pods`."""
    resource: Callable[[Any], str | None] = lambda row: None
    """The key of the Node that `x` removes."""


def _devices_of(resource: str | None) -> Deeper | None:
    if resource is None:
        return None
    return Deeper("devices", Scope(resource, lambda row: row.resource == resource))


def _holders(row: DeviceRow) -> Deeper | None:
    holders = {(h.namespace, h.pod, h.uid) for h in row.holders}
    if not holders:
        return None
    names = {(namespace, pod) for namespace, pod, _ in holders}
    uids = {uid for _, _, uid in holders if uid}

    def holds(found: ContainerRow) -> bool:
        return found.uid in uids or (
            found.pod is not None and (found.namespace, found.pod) in names
        )

    return Deeper("pods", Scope(row.holders[0].label, holds))


def _of_key(row: NodeResourceRow) -> Deeper | None:
    name = row.resource
    return Deeper("resources", Scope(name, lambda found: found.resource == name))


def _pods(facts: Facts) -> Sequence[ContainerRow]:
    return [row for row in container_rows(facts.snapshot, facts.joined) if holds_something(row)]


def _plugins(facts: Facts) -> Sequence[PluginRow]:
    return [row for row in plugin_rows(facts.snapshot) if row.certain]


def _resources(facts: Facts) -> Sequence[ResourceRow]:
    return resource_rows(facts.snapshot, facts.joined)


def _node(facts: Facts) -> Sequence[NodeResourceRow]:
    """With the states of the page resources: a Node that is not this machine's is never read
    together with the machine's own evidence."""
    snap = facts.snapshot
    if snap.node is None:
        return []
    tally = RequestTally()
    tally.add(snap.pods or ())
    rows = node_rows(snap.node, None if snap.pods is None else tally.of(snap.node.name))
    found = {row.resource: row.state for row in facts.rows("resources", _resources)}
    states = {name: state for name, state in found.items() if state is not ResourceState.UNKNOWN}
    return [row._replace(state=states.get(row.resource, row.state)) for row in rows]


def _failed(facts: Facts) -> Sequence[FailedPodRow]:
    return failed_pod_rows(facts.snapshot)


def _sources(facts: Facts) -> Sequence[SourceRow]:
    """How long reading a bundle took tells nothing of the node, and differs every time."""
    rows = facts.snapshot.sources
    return [row._replace(seconds=None) for row in rows] if facts.snapshot.from_bundle else rows


_STATE_EMPHASIS: dict[str, Emphasis] = {"failed": "bad", "damaged": "bad", "missing": "warn"}

SOURCES: View[SourceRow] = View(
    kind="Source",
    row_type=SourceRow,
    name=lambda r: f"source/{r.name}",
    order=lambda r: list(Source).index(Source(r.name)),
    columns=(
        Column("SOURCE", lambda r: r.name, "name"),
        Column(
            "STATE",
            lambda r: r.state,
            "state",
            emphasis=lambda r: _STATE_EMPHASIS.get(r.state),
        ),
        Column(
            "TOOK",
            lambda r: None if r.seconds is None else f"{r.seconds * 1000:.0f}ms",
            "seconds",
            align="right",
        ),
        Column("WHERE", lambda r: r.where, "where"),
        Column("REASON", lambda r: r.reason, "reason"),
        Column("NEXT", lambda r: r.hint, "hint", wide=True),
    ),
)

_INVENTORY = (Source.NODE, Source.CHECKPOINT, Source.POD_RESOURCES)

PAGES: tuple[Page, ...] = (
    Page(
        "resources",
        ("res", "resource", "r"),
        views.RESOURCES,
        _resources,
        _INVENTORY,
        "no extended resource exists here",
        lambda row: _devices_of(row.resource),
        "devices",
        "keys",
        lambda row: row.resource,
    ),
    Page(
        "devices",
        ("dev", "device", "d"),
        views.DEVICES,
        lambda facts: facts.joined.rows(),
        _INVENTORY,
        "no device is known here",
        _holders,
        "holder",
    ),
    Page(
        "pods",
        ("po", "pod", "containers"),
        views.CONTAINERS,
        _pods,
        (Source.POD_RESOURCES, Source.CHECKPOINT),
        "no container holds a device, a CPU or memory of its own",
        inside="the pod",
    ),
    Page(
        "plugins",
        ("plugin", "pl", "sockets"),
        views.PLUGINS,
        _plugins,
        (Source.DIRECTORY,),
        "no plugin socket is there",
        lambda row: _devices_of(row.resource),
        "devices",
        "sockets",
    ),
    Page("numa", ("topology", "topo"), None, lambda _: (), (Source.NUMA,), ""),
    Page(
        "node",
        ("no", "nodes", "keys"),
        NODE_RESOURCES,
        _node,
        (Source.NODE,),
        "the Node has no extended resource",
        _of_key,
        "the resource",
        "keys",
        lambda row: row.resource,
    ),
    Page(
        "failed",
        ("rejected",),
        views.FAILED_PODS,
        _failed,
        (Source.PODS,),
        "the kubelet has rejected no pod here",
        inside="the pod",
        change="pods",
    ),
    Page(
        "sources",
        ("source", "src"),
        SOURCES,
        _sources,
        (),
        "nothing was read",
    ),
)


def find_page(word: str) -> Page | None:
    """By its name, one of its other names, or the beginning of one name alone."""
    word = word.strip().lower()
    for page in PAGES:
        if word == page.name or word in page.words:
            return page
    begun = [page for page in PAGES if word and page.name.startswith(word)]
    return begun[0] if len(begun) == 1 else None


def page_names() -> tuple[str, ...]:
    return tuple(page.name for page in PAGES)


def why_none(page: Page, scope: Scope, facts: Facts) -> str:
    """What an empty part of a page says."""
    resources = find_page("resources")
    if page.name == "devices" and resources is not None:
        rows = facts.rows(resources.name, resources.make)
        row = next((found for found in rows if found.resource == scope.label), None)
        if row is not None and row.state is ResourceState.GRACE:
            return "its plugin is gone; the kubelet no longer lists its devices (Grace)"
        if row is not None:
            return f"the kubelet knows no device of {scope.label} ({row.state})"
    return f"nothing here: {scope.label} is gone, or has nothing of it any more"


def why_empty(page: Page, facts: Facts) -> tuple[str, str | None]:
    """What an empty page says, and what to do next: nothing there, or nothing read."""
    rows = [row for source in page.needs if (row := facts.snapshot.source(source)) is not None]
    if not page.needs or any(row.read for row in rows):
        return page.nothing, None
    first = next((row for row in rows if row.reason), None)
    if first is None:
        return f"{page.needs[0]} was not read", "the page sources shows why (:sources)"
    return f"{first.name} was not read: {first.reason}", first.hint
