"""`dpctl plugin` beside a real kubelet: upstream's sample plugin, and dpctl's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .bench import Bench
from .expect import assert_table, assert_text, document
from .node import SAMPLE_RESOURCE, Result
from .plugins import devices
from .processes import Daemon, wait_for
from .sample import GPU, gpus, holder

SERVED = "sample.example/nic"
DIRECTORY = "/var/lib/kubelet/device-plugins"
STATUS_PERIODS = 25.0
"""Seconds: two of the kubelet's status periods, and some for a busy machine."""
PRICE = "the kubelet may miss that a device fell ill"
ILL = """
resource = "sample.example/nic"
endpoint = "sample-nic.sock"
devices = ["nic-0@0", "nic-1@0", "nic-2@1", "nic-3@1"]
preferred = true
"""


@contextmanager
def serving(bench: Bench, scenario: str) -> Iterator[tuple[Daemon, Path]]:
    """`dpctl plugin serve` in the node's namespace, and its control socket."""
    file = bench.node.path / "scenario.toml"
    file.write_text(scenario)
    control = bench.node.path / "serve.ctl"
    command = [
        *(sys.executable, "-m", "dpctl", "plugin", "serve", str(file)),
        *("--yes", "--control", str(control)),
    ]
    daemon = bench.node.process("serve", command, bench.environment())
    bench.daemons.append(daemon)
    try:
        yield daemon, control
    finally:
        daemon.stop()


def cue(control: Path, line: str) -> str:
    """One line to a served plugin; its answer."""
    import socket

    with socket.socket(socket.AF_UNIX) as talk:
        talk.settimeout(30)
        talk.connect(str(control))
        talk.sendall(f"{line}\n".encode())
        with talk.makefile() as answers:
            return answers.readline().strip()


def plugin(bench: Bench, *arguments: str) -> Result:
    return bench.dpctl("plugin", *arguments)


# -- upstream's sample plugin


def endpoint_of(bench: Bench, resource: str) -> str:
    """The name of its socket: upstream's has the time in it."""
    rows = document(bench.dpctl("plugins", "-o", "json"))["items"]
    (name,) = [row["endpoint"] for row in rows if row["resource"] == resource]
    return str(name)


def test_upstreams_sample(bench: Bench) -> None:
    bench.sample_plugin()
    endpoint = endpoint_of(bench, SAMPLE_RESOURCE)
    (row,) = document(plugin(bench, "options", endpoint, "-o", "json"))["items"]
    assert row["socket"] == f"{DIRECTORY}/{endpoint}"
    assert (row["preStart"], row["preferredAllocation"]) == (False, False)
    # Connected: nothing is opened unasked.
    unasked = plugin(bench, "devices", endpoint)
    assert (unasked.code, unasked.stdout) == (2, "")
    assert "the kubelet is connected to this plugin" in unasked.stderr
    assert PRICE in unasked.stderr
    asked = plugin(bench, "devices", SAMPLE_RESOURCE, "--yes")
    assert PRICE in asked.stderr
    assert_table(
        asked._replace(stderr=""),
        """
        DEVICE  HEALTH   NUMA  NOTE
        Dev-1   Healthy  -     -
        Dev-2   Healthy  -     -
        """,
    )
    found = plugin(bench, "prefer", endpoint, "--size", "1", "-o", "json")
    assert "does not offer GetPreferredAllocation" in found.stderr
    (row,) = json.loads(found.stdout)["items"]
    assert (row["available"], row["answer"]) == (["Dev-1", "Dev-2"], None)
    assert row["kubelet"]["eligible"] == ["Dev-1", "Dev-2"]
    waited = plugin(bench, "wait", SAMPLE_RESOURCE, "--count", "2", "--timeout", "30s")
    assert_text(waited, f"resource/{SAMPLE_RESOURCE} allocatable (2)")
    more = plugin(bench, "wait", SAMPLE_RESOURCE, "--count", "3", "--timeout", "1s")
    assert (more.code, more.stdout) == (1, "")
    assert "2 of 3" in more.stderr


# -- dpctl's own


def test_served_scenario(bench: Bench) -> None:
    """Options, list, preference, wait; a health change is seen within two status periods."""
    with serving(bench, ILL) as (daemon, control):
        waited = bench.node.dpctl(
            *("plugin", "wait", SERVED, "--count", "4", "--timeout", "60s"),
            env=bench.environment(),
            seconds=90,
        )
        # Whether it also says that it waits depends on how soon the plugin is there.
        assert (waited.code, waited.stdout) == (0, f"resource/{SERVED} allocatable (4)\n"), waited
        (row,) = document(plugin(bench, "options", SERVED, "-o", "json"))["items"]
        assert (row["resourceInferred"], row["preferredAllocation"]) == (False, True)
        listed = plugin(bench, "devices", SERVED, "--yes", "-o", "json")
        assert listed.code == 0
        (row,) = json.loads(listed.stdout)["items"]
        assert (row["kubelet"], row["capacity"], row["findings"]) == ("Connected", 4, [])
        assert [d["numaNodes"] for d in row["devices"]] == [[0], [0], [1], [1]]
        (row,) = document(plugin(bench, "prefer", SERVED, "--size", "2", "-o", "json"))["items"]
        assert row["good"]
        assert row["answer"] == row["takes"] == ["nic-0", "nic-1"]
        assert cue(control, "health nic-1 Unhealthy") == "ok"
        wait_for(
            "dpctl resources to show the device that fell ill",
            lambda: _state(bench, SERVED) == ("Degraded", 3, "4", "3"),
            STATUS_PERIODS,
            [daemon],
        )
        assert cue(control, "health nic-1 Healthy") == "ok"
        wait_for(
            "dpctl resources to show it well",
            lambda: _state(bench, SERVED) == ("Ready", 4, "4", "4"),
            STATUS_PERIODS,
            [daemon],
        )


def test_served_plugin_follows_a_new_kubelet(bench: Bench) -> None:
    with serving(bench, ILL) as (daemon, _):
        bench.node.wait_resource(SERVED, "4", needs=[daemon])
        bench.node.restart_kubelet()
        bench.node.wait_devices(SERVED)
        bench.node.wait_resource(SERVED, "4", needs=[daemon])
        assert daemon.log_since_start().count("registered with the kubelet") == 2
    bench.node.wait_resource(SERVED, "0", "4")
    assert not (bench.node.kubelet_dir / "device-plugins" / "sample-nic.sock").exists()


def _state(bench: Bench, resource: str) -> tuple[Any, ...]:
    (row,) = document(bench.dpctl("resources", resource, "-o", "json"))["items"]
    return row["state"], row["healthy"], row["capacity"], row["allocatable"]


def test_wait_is_not_fooled_by_old_counts(bench: Bench) -> None:
    """A kubelet that has restarted, a plugin that has not registered: the Node says 4."""
    bench.plugin(GPU, devices(["gpu-0", "gpu-1"]), watch_kubelet=False)
    bench.node.stop_kubelet()
    assert bench.node.get()["status"]["allocatable"][GPU] == "2"
    gone = plugin(bench, "wait", GPU, "--timeout", "3s")
    assert (gone.code, gone.stdout) == (1, "")
    assert "no kubelet" in gone.stderr
    bench.node.start_kubelet()
    quiet = plugin(bench, "wait", GPU, "--timeout", "3s")
    assert (quiet.code, quiet.stdout) == (1, "")
    assert "gpu.sock serves it, but has not registered it with this kubelet" in quiet.stderr


# -- what listening takes, and what an Allocate leaves


def test_listening_takes_updates_from_the_kubelet(bench: Bench) -> None:
    """A plugin with one channel for all its streams (kubelet-facts §0.1)."""
    made = bench.plugin("shared.test/dev", devices(["dev-0", "dev-1"]), shared_updates=True)
    unasked = plugin(bench, "devices", "shared.test/dev")
    assert unasked.code == 2
    assert PRICE in unasked.stderr
    command = [
        *(sys.executable, "-m", "dpctl", "plugin", "devices", "shared.test/dev"),
        *("--watch", "--yes", "-o", "json"),
    ]
    watch = bench.node.process("watch", command, bench.environment())
    bench.daemons.append(watch)
    wait_for("the first list", lambda: watch.log_since_start().count('"added"') == 2, 60, [watch])
    for number in range(40):
        # Each list is a new one, so that whoever gets it has something to tell.
        new = f"new-{number}"
        made.set_devices(devices(["dev-0", new]))

        def arrived(new: str = new) -> bool:
            return new in watch.log_since_start() or new in _registered(bench)

        wait_for("somebody to hear of it", arrived, 60, [watch, made])
        if new not in _registered(bench):
            break
    assert new in watch.log_since_start()
    watch.stop()
    # It never comes: dpctl had it, and the Node goes on showing what is not so.
    assert new not in _registered(bench)
    # The stray stream that dpctl left takes one more, and then is gone.
    for last in ("a", "b"):
        made.set_devices(devices(["dev-0", last]))
    wait_for("the kubelet to hear again", lambda: _registered(bench) & {"a", "b"}, 30, [made])


def _registered(bench: Bench) -> set[str]:
    """IDs that the kubelet knows of."""
    return set(bench.checkpoint()["Data"]["RegisteredDevices"].get("shared.test/dev") or ())


def test_allocate_is_past_the_kubelet(bench: Bench) -> None:
    gpus(bench)
    pod = holder(bench)

    def kept() -> dict[str, Any]:
        status = bench.node.get()["status"]
        listed = document(bench.dpctl("pods", "-A", "-o", "json"))["items"]
        return {
            "checkpoint": bench.checkpoint_file.read_bytes(),
            "inode": bench.checkpoint_file.stat().st_ino,
            "node": (status["capacity"], status["allocatable"]),
            "listed": listed,
        }

    before = kept()
    unasked = plugin(bench, "allocate", GPU, "gpu-0", "gpu-2")
    assert (unasked.code, unasked.stdout) == (2, "")
    assert f"warning: gpu-0 is held by default/{pod}/main" in unasked.stderr
    found = plugin(bench, "allocate", GPU, "gpu-0", "gpu-2", "--yes", "-o", "json")
    assert found.code == 0, found
    (row,) = json.loads(found.stdout)["items"]
    assert row["answer"]["envs"] == {"LAB_DEVICES": "gpu-0,gpu-2"}
    assert "the kubelet does not know of this" in found.stderr
    assert kept() == before
