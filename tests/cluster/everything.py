"""Every reading command in the state that a node is in, held against what the node says itself.

Tests spell out what a state looks like. This is what must hold in each of them: no command fails
or complains, and every number and name of the JSON is the node's own. `bench` ends each test with
it, so the state that a test leaves is looked at with all commands.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from typing import Any, NamedTuple

from dpctl import __version__

from .bench import Bench, is_native
from .node import BOUND
from .processes import wait_for
from .truth import DONE, Truth, parse, tell

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("resources",),
    ("devices",),
    ("pods", "-A"),
    ("plugins",),
)
Items = dict[str, list[dict[str, Any]]]
KUBELET = BOUND["kubelet"]


class Beside(NamedTuple):
    """What else decides over a state: dpctl's own word for it is not taken."""

    asked: frozenset[str]
    """Extended resources that pods which are not over ask for."""
    classes: frozenset[str]
    """Those that a DeviceClass names."""
    served: frozenset[str]
    """Those of plugins that are registered since they and the kubelet started, and live."""
    abandoned: frozenset[str]
    """Those of plugins of which none lives."""
    numa: dict[tuple[str, str], frozenset[int]]
    """Resource and device ID -> NUMA nodes when a pod got it, by the checkpoint."""


def assert_everything(bench: Bench) -> None:
    """All commands; the node must not change meanwhile."""
    truth, beside, items = wait_for(
        "a moment without change", lambda: _look(bench), 60, interval=0.5
    )
    _resources(truth, beside, items["resources"])
    connected = {row["resource"] for row in items["resources"] if row["connected"]}
    _devices(truth, connected, items["devices"])
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
    _env(bench, parse(_run(bench, "env", "-o", "json")))
    machine = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    assert _run(bench, "version") == f"dpctl {__version__}\n{machine}\n"


def _look(bench: Bench) -> tuple[Truth, Beside, Items] | None:
    before = (tell(bench), _beside(bench))
    items = {c[0]: parse(_run(bench, *c, "-o", "json")) for c in COMMANDS}
    return (*before, items) if (tell(bench), _beside(bench)) == before else None


def _beside(bench: Bench) -> Beside:
    api = bench.plane.api()
    pods = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{bench.node.name}")["items"]
    asked = {
        name
        for pod in pods
        if pod["status"].get("phase") not in DONE
        for kind in ("containers", "initContainers")
        for container in pod["spec"].get(kind, ())
        for name in container.get("resources", {}).get("requests", {})
    }
    classes = api.get("/apis/resource.k8s.io/v1/deviceclasses")["items"]
    named = {found["spec"].get("extendedResourceName") for found in classes}
    kubelet = bench.node.kubelet
    assert kubelet is not None
    # A kubelet that has just started shows the numbers of the one before, connected to nobody.
    heard = set(
        re.findall(r'"Processed device updates.* resourceName="([^"]+)"', kubelet.log_since_start())
    )
    living = [plugin for plugin in bench.plugins if plugin.alive]
    registered = {
        p.spec.resource for p in living if any(e["event"] == "registered" for e in p.events)
    }
    data = bench.checkpoint()["Data"] if bench.checkpoint_file.exists() else {}
    numa: dict[tuple[str, str], set[int]] = {}
    for entry in data.get("PodDeviceEntries") or ():
        for number, ids in entry["DeviceIDs"].items():
            for device in ids:
                nodes = numa.setdefault((entry["ResourceName"], device), set())
                nodes.update({int(number)} - {-1})  # -1: on none
    return Beside(
        frozenset(name for name in asked if not is_native(name)),
        frozenset(named - {None}),
        frozenset(registered & heard),
        frozenset({p.spec.resource for p in bench.plugins} - {p.spec.resource for p in living}),
        {key: frozenset(nodes) for key, nodes in numa.items()},
    )


def _run(bench: Bench, *command: str) -> str:
    done = bench.dpctl(*command)
    said = done.stderr if done.stderr != "No resources found\n" else ""
    assert (done.code, said) == (0, ""), (command, done)
    return done.stdout


def _resources(truth: Truth, beside: Beside, items: list[dict[str, Any]]) -> None:
    rows = {row["resource"]: row for row in items}
    holding = {resource for resource, _ in truth.held if truth.used(resource)}
    assert set(rows) == {*truth.keys, *truth.healthy, *holding, *beside.asked}
    for name, row in rows.items():
        capacity, allocatable = truth.keys.get(name, (None, None))
        assert (row["capacity"], row["allocatable"]) == (capacity, allocatable), row
        assert row["tracked"] is (name in truth.healthy), row
        file = truth.registered.get(name)
        assert row["registered"] == (None if file is None else len(file)), row
        assert row["allocated"] == len(truth.used(name)), row
        healthy = truth.healthy.get(name, frozenset())
        offered = allocatable is not None and 0 < len(healthy) == int(allocatable)
        if name in beside.served and offered:
            assert row["connected"] is True, row
        if name in beside.abandoned:
            # Also of a kubelet that has not noticed: its connection has ended.
            assert row["connected"] is False, row
        free = healthy - truth.used(name)
        assert row["free"] == (len(free) if row["connected"] else 0), row
        assert row["healthy"] == (len(healthy) if row["connected"] else 0), row
        _numa(truth, beside, row)
        _unserved(truth, beside, row)


def _unserved(truth: Truth, beside: Beside, row: dict[str, Any]) -> None:
    """The states that a name has which no plugin serves and the kubelet does not track."""
    name = row["resource"]
    alone = name not in truth.healthy and name not in beside.served
    asked = name not in truth.keys and (name in beside.asked or truth.used(name))
    if row["state"] == "DRA":
        assert alone, row
        assert name in beside.classes, row
    if row["state"] == "Absent":
        assert alone, row
        assert asked, row
        assert name not in beside.classes, row
    if row["connected"]:
        assert row["state"] in ("Empty", "Ready", "Degraded", "Mismatch"), row


def _numa(truth: Truth, beside: Beside, row: dict[str, Any]) -> None:
    """Of the devices that count: how many are on which NUMA node; null: not told."""
    name = row["resource"]
    known = truth.healthy.get(name, frozenset())
    if row["connected"]:
        known |= _lost(truth, name)
    else:
        known |= {device for resource, device in truth.held if resource == name}
    nodes = {**beside.numa, **truth.numa}
    told = [nodes[name, device] for device in known if (name, device) in nodes]
    counted = Counter(str(number) for numbers in told for number in numbers)
    assert row["numa"] == (counted if told or not known else None), (row, counted)


def _lost(truth: Truth, name: str) -> set[str]:
    """Devices that pods hold and that are unhealthy: the Node counts them still."""
    healthy = truth.healthy.get(name, frozenset())
    lost = truth.used(name) - healthy
    capacity = int(truth.keys.get(name, (None, None))[0] or 0)
    # Less than that: the plugin lists them no longer, healthy or not.
    return lost if capacity >= len(healthy | lost) else set()


def _devices(truth: Truth, connected: set[str], items: list[dict[str, Any]]) -> None:
    rows = {(row["resource"], row["device"]): row for row in items if row["device"] is not None}
    known = {(name, device) for name, ids in truth.healthy.items() for device in ids}
    assert set(rows) == known | set(truth.held), (sorted(rows), truth)
    for key, row in rows.items():
        holders = {(h["uid"], h["container"]) for h in row["holders"] if h["uid"]}
        assert holders == truth.held.get(key, frozenset()), row
        active = {h["uid"] for h in row["holders"] if h["active"]}
        assert active == {uid for uid, _ in holders if uid in truth.active}, row
        if key in truth.numa and row["health"] == "Healthy":
            assert frozenset(row["numaNodes"] or ()) == truth.numa[key], row
        assert row["state"] == _state(truth, connected, key), row
        assert (row["health"] == "Healthy") is (key[0] in connected and key in known), row
    nameless = {row["resource"]: row["count"] for row in items if row["device"] is None}
    unseen = {name: _unseen(truth, name) for name in connected}
    assert nameless == {name: count for name, count in unseen.items() if count}


def _state(truth: Truth, connected: set[str], key: tuple[str, str]) -> str:
    name, device = key
    if key in truth.held and device not in truth.used(name):
        return "Orphaned"
    if name not in connected:
        return "Unknown"
    if device not in truth.healthy.get(name, ()):
        return "Unhealthy" if device in _lost(truth, name) else "Missing"
    if device not in truth.used(name):
        return "Free"
    # List tells of sidecars and of what they stand beside, not of what has to end first.
    listed = any(holding[3] == name and device in ids for holding, ids in truth.listed.items())
    return "Allocated" if listed else "Reusable"


def _unseen(truth: Truth, name: str) -> int:
    """Unhealthy devices that nobody holds: only their number is known."""
    named = truth.healthy.get(name, frozenset()) | _lost(truth, name)
    return max(int(truth.keys.get(name, (None, None))[0] or 0) - len(named), 0)


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


def _env(bench: Bench, items: list[dict[str, Any]]) -> None:
    """Where things are in the node's namespace, by the kubelet's own command line."""
    wanted = {
        "node": bench.node.name,
        "kubelet-root": KUBELET,
        "kubelet-config": f"{KUBELET}/config.yaml",
        "device-plugin-dir": f"{KUBELET}/device-plugins",
        "pod-resources-socket": f"{KUBELET}/pod-resources/kubelet.sock",
        "plugins-registry": f"{KUBELET}/plugins_registry",
        "kubeconfig": str(bench.node.kubeconfig_of()),
    }
    assert {row["name"]: row["value"] for row in items}.items() >= wanted.items(), items
