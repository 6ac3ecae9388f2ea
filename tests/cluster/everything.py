"""Every reading command in the state that a node is in, held against what the node says itself.

Tests spell out what a state looks like. This is what must hold in each of them: no command fails
or complains, and every number and name of the JSON is the node's own. `bench` ends each test with
it, so the state that a test leaves is looked at with all commands.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .bench import Bench
from .processes import wait_for
from .truth import Truth, parse, tell

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("resources",),
    ("devices",),
    ("pods", "-A"),
    ("plugins",),
)
Items = dict[str, list[dict[str, Any]]]


def assert_everything(bench: Bench) -> None:
    """All commands; the node must not change meanwhile."""
    truth, items = wait_for("a moment without change", lambda: _look(bench), 60, interval=0.5)
    _resources(truth, items["resources"])
    _devices(truth, items["devices"])
    _pods(truth, items["pods"])
    _plugins(truth, items["plugins"])
    for holder in items["pods"][:1]:
        described = _run(bench, "pods", f"{holder['namespace']}/{holder['pod']}")
        assert holder["container"] in described
    for row in items["devices"]:
        # Of pods that are gone the kubelet removes the log directories, and with them the names.
        if row["holders"] and all(h["active"] for h in row["holders"]) and row["device"]:
            _who(row, parse(_run(bench, "who", row["device"], "-o", "json")))
            break


def _look(bench: Bench) -> tuple[Truth, Items] | None:
    before = tell(bench)
    items = {c[0]: parse(_run(bench, *c, "-o", "json")) for c in COMMANDS}
    return (before, items) if tell(bench) == before else None


def _run(bench: Bench, *command: str) -> str:
    done = bench.dpctl(*command)
    said = done.stderr if done.stderr != "No resources found\n" else ""
    assert (done.code, said) == (0, ""), (command, done)
    return done.stdout


def _resources(truth: Truth, items: list[dict[str, Any]]) -> None:
    rows = {row["resource"]: row for row in items}
    asked = {name for name, row in rows.items() if row["state"] in ("Absent", "DRA")}
    holding = {resource for resource, _ in truth.held if truth.used(resource)}
    assert set(rows) - asked == {*truth.keys, *truth.registered, *holding} - asked
    for name, row in rows.items():
        capacity, allocatable = truth.keys.get(name, (None, None))
        assert (row["capacity"], row["allocatable"]) == (capacity, allocatable), row
        assert row["tracked"] is (name in truth.registered), row
        registered = len(truth.registered.get(name, ()))
        assert row["registered"] == (registered if row["tracked"] else None), row
        assert row["allocated"] == len(truth.used(name)), row
        if row["connected"]:
            free = truth.registered.get(name, frozenset()) - truth.used(name)
            assert row["free"] == len(free), row
            assert row["healthy"] == registered, row
            _numa(truth, row)


def _numa(truth: Truth, row: dict[str, Any]) -> None:
    """Of the devices that count: how many are on which NUMA node; null: not told."""
    name = row["resource"]
    healthy = truth.registered.get(name, frozenset())
    lost = truth.used(name) - healthy
    if int(row["capacity"] or 0) < len(healthy | lost):
        lost = set()  # the plugin lists them no longer, healthy or not
    offered = [(name, device) for device in healthy | lost]
    told = [truth.numa[key] for key in offered if key in truth.numa]
    counted = Counter(str(number) for nodes in told for number in nodes)
    assert row["numa"] == (counted if told or not offered else None), (row, counted)


def _devices(truth: Truth, items: list[dict[str, Any]]) -> None:
    rows = {(row["resource"], row["device"]): row for row in items if row["device"] is not None}
    known = {(name, device) for name, ids in truth.registered.items() for device in ids}
    assert set(rows) == known | set(truth.held), (sorted(rows), truth)
    for key, row in rows.items():
        holders = {(h["uid"], h["container"]) for h in row["holders"] if h["uid"]}
        assert holders == truth.held.get(key, frozenset()), row
        active = {h["uid"] for h in row["holders"] if h["active"]}
        assert active == {uid for uid, _ in holders if uid in truth.active}, row
        if key in truth.numa and row["health"] == "Healthy":
            assert frozenset(row["numaNodes"] or ()) == truth.numa[key], row


def _pods(truth: Truth, items: list[dict[str, Any]]) -> None:
    found = {
        (row["namespace"], row["pod"], row["container"], row["resource"]): frozenset(
            device["id"] for device in row["devices"]
        )
        for row in items
        if row["devices"] and row["kind"] != "init" and row["claim"] is None
    }
    assert found == truth.listed


def _plugins(truth: Truth, items: list[dict[str, Any]]) -> None:
    rows = [row for row in items if row["directory"] == "device-plugins"]
    files = {row["endpoint"]: row["state"] for row in rows if row["state"] != "Unlinked"}
    assert set(files) == set(truth.sockets)
    for name, state in files.items():
        assert (state == "Dead") is not truth.sockets[name], (name, state)


def _who(row: dict[str, Any], users: list[dict[str, Any]]) -> None:
    wanted = {
        (h["namespace"], h["pod"] or f"uid:{h['uid']}", h["container"]) for h in row["holders"]
    }
    shown = {
        (u["namespace"], u["pod"], u["container"])
        for u in users
        if u["resource"] == row["resource"]
    }
    assert shown == wanted, (row, users)
