"""`dpctl plugin` on a lab: what it says, what it asks first, and what it leaves as it was."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec, SampleDevice
from dpctl.statefiles.device_checkpoint import encode_checkpoint, parse_checkpoint
from tests.commands.by_hand import GPU, NOBODY, eventually, normal, run, start
from tests.run import Result, dpctl, golden

SHARED = "shared.example/dev"
PRICE = "the kubelet may miss that a device fell ill"


@pytest.fixture(scope="module")
def own() -> Iterator[Lab]:
    """A lab whose plugins may be spoken to, and two plugins that the sample lab lacks."""
    with Lab() as lab:
        ids = ("dev-0", "dev-1")
        devices = tuple(SampleDevice(i) for i in ids)
        lab.add_plugin(
            PluginSpec("alone", "alone.example/x", "alone.sock", devices, register=False)
        )
        lab.add_plugin(PluginSpec("shared", SHARED, "all.sock", devices, shared_updates=True))
        lab.wait_settled()
        yield lab


# --- options --------------------------------------------------------------------------------------


def test_options(lab: Lab) -> None:
    found = run(lab, "options", "gpu-shared.sock")
    assert (found.code, found.err) == (0, "")
    # The lab's directory decides how wide the column is.
    golden("plugin/options.txt", re.sub(r" {3,}", "   ", normal(lab, found.out)))
    path = str(lab.device_plugins / "vendor-gpu.sock")
    (row,) = json.loads(run(lab, "options", path, "-o", "json").out)["items"]
    assert row == {
        "socket": path,
        "resource": GPU,
        "resourceInferred": True,
        "preStart": False,
        "preferredAllocation": True,
    }


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("nosuch", 3, 'no plugin socket "nosuch" here'),
        ("vendor-gpu", 3, 'did you mean "vendor-gpu.sock"'),
        ("vendor.example/gpuu", 3, "nobody here serves vendor.example/gpuu; what rdma.sock would"),
        ("vendor.example/gpuu", 3, f'did you mean "{GPU}"'),
        ("ghost.example/tpu", 3, "nobody here serves ghost.example/tpu: only the Node has the"),
        ("old.example/retired", 3, "nobody here serves old.example/retired: only the Node has"),
        ("fabric.example/rdma", 3, "the kubelet has the name of a plugin that is gone"),
        ("kubelet.sock", 2, "the kubelet's own socket"),
        ("encoder.sock", 3, "the socket file of encoder.sock is gone"),
        ("rdma.sock", 3, "nobody listens behind that file"),
        ("./nosuch", 3, "./nosuch does not exist"),
        ("", 2, "the name of the plugin is empty"),
    ],
)
def test_a_socket_that_cannot_be_asked(lab: Lab, name: str, code: int, words: str) -> None:
    found = run(lab, "options", name)
    assert (found.code, found.out) == (code, "")
    assert words in found.err
    assert "\nhint: " in found.err


def test_typed_for_plugins(lab: Lab) -> None:
    found = run(lab, "vendor-gpu.sock")
    assert (found.code, found.out) == (2, "")
    assert "`dpctl plugins` lists the sockets" in found.err


# --- devices --------------------------------------------------------------------------------------


def test_a_connected_plugin_is_not_listened_to_unasked(own: Lab) -> None:
    before = own.plugin("gpu").state()
    found = run(own, "devices", GPU)
    assert (found.code, found.out) == (2, "")
    assert "the kubelet is connected to this plugin" in found.err
    assert PRICE in found.err
    assert f"`dpctl devices {GPU}` shows what the kubelet knows" in found.err
    assert found.err.endswith(NOBODY)
    assert own.plugin("gpu").state() == before


def test_nor_one_of_which_it_cannot_be_told(own: Lab) -> None:
    elsewhere = str(own.directory / "log/nothing-here")
    os.makedirs(elsewhere, exist_ok=True)
    path = str(own.device_plugins / "alone.sock")
    found = run(own, "devices", path, DPCTL_DEVICE_PLUGIN_DIR=elsewhere)
    assert found.code == 2
    assert "it cannot be told whether the kubelet is connected to this plugin" in found.err
    assert own.plugin("alone").state()["streams"] == 0


def test_one_that_is_not_connected_is_opened_at_once(own: Lab) -> None:
    found = run(own, "devices", "alone.sock")
    assert found == Result(
        0,
        "DEVICE   HEALTH    NUMA   NOTE\n"
        "dev-0    Healthy   -      -\n"
        "dev-1    Healthy   -      -\n",
        "note: 2 devices, a kubelet counts 2 of which 2 are healthy; the message has 36 bytes, "
        "less than 1 % of the 4 MiB that a kubelet takes\n",
    )
    eventually(lambda: own.plugin("alone").state()["streams"] == 0)


def test_what_is_ill_and_held_by_nobody_has_a_name(own: Lab) -> None:
    found = run(own, "devices", GPU, "--yes", "-o", "json")
    assert PRICE in found.err
    (row,) = json.loads(found.out)["items"]
    assert (row["capacity"], row["allocatable"], row["kubelet"]) == (8, 7, "Connected")
    assert [d["device"] for d in row["devices"] if d["health"] != "Healthy"] == ["gpu-6"]


def test_watch(own: Lab) -> None:
    process = start(own, "devices", "alone.sock", "--watch")
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(3)]
    assert [line.split()[-1] for line in first] == ["EVENT", "ADDED", "ADDED"]
    plugin = own.plugin("alone")
    plugin.set_health("dev-1", "Unhealthy")
    assert process.stdout.readline().split() == ["dev-1", "Unhealthy", "-", "-", "CHANGED"]
    plugin.set_devices([SampleDevice("dev-0"), SampleDevice("dev-2", (63,))])
    changed = sorted(process.stdout.readline().split()[-1] for _ in range(2))
    assert changed == ["ADDED", "REMOVED"]
    # What it says of a message comes after the rows: the next rows show that it has said it.
    plugin.set_devices([SampleDevice("dev-0", None, "Unhealthy"), SampleDevice("dev-2", (63,))])
    assert process.stdout.readline().split()[-1] == "CHANGED"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "this machine has no NUMA node 63" in err
    assert "Traceback" not in err
    eventually(lambda: plugin.state()["streams"] == 0)
    plugin.set_devices([SampleDevice("dev-0"), SampleDevice("dev-1")])


def test_listening_takes_updates_from_the_kubelet(own: Lab) -> None:
    """A plugin with one channel for all: what dpctl hears, the kubelet never does."""
    plugin = own.plugin("shared")
    assert PRICE in run(own, "devices", "all.sock").err
    process = start(own, "devices", "all.sock", "--watch", "--yes", "-o", "json")
    lines: list[str] = []

    def read() -> None:
        for line in process.stdout or ():
            lines.append(line)

    threading.Thread(target=read, daemon=True).start()
    eventually(lambda: len(lines) == 2)  # the two devices of the first list

    def kubelet() -> set[str]:
        return set(own.kubelet.state()[SHARED]["healthy"])

    for number in range(40):
        # Each list is a new one, so that whoever gets it has something to tell.
        wanted = {"dev-0", f"new-{number}"}
        plugin.set_devices([SampleDevice(device_id) for device_id in sorted(wanted)])

        def told(wanted: set[str] = wanted) -> bool:
            return len(lines) > 2 or kubelet() == wanted

        eventually(told)
        if len(lines) > 2:
            break
    process.send_signal(signal.SIGINT)
    process.wait(60)
    heard = json.loads(lines[2])
    assert (heard["event"], heard["item"]["device"]) == ("added", f"new-{number}")
    assert kubelet() != wanted


# --- prefer ---------------------------------------------------------------------------------------


def test_prefer(own: Lab) -> None:
    found = run(own, "prefer", GPU, "--size", "2", "--must", "gpu-4")
    assert (found.code, found.err) == (0, "")
    golden("plugin/prefer.txt", normal(own, found.out))
    plain = run(own, "prefer", "edge.example/fuse", "--size", "1", "-o", "json")
    assert "does not offer GetPreferredAllocation" in plain.err
    (row,) = json.loads(plain.out)["items"]
    assert (row["offered"], row["answer"], row["takes"], row["good"]) == (False, None, None, True)
    assert row["kubelet"]["eligible"] == row["available"] == ["fuse-0", "fuse-1"]


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--size", "9"), 1, "9 devices are asked for and 5 are free now"),
        (("--size", "1", "--must", "gpu-4,gpu-5"), 2, "--must names 2 devices, --size is 1"),
        (("--size", "1", "--must", "x"), 2, "--must x is no device of vendor.example/gpu"),
        (("--size", "2", "--available", "gpu-4"), 2, "2 devices are asked for and 1 are available"),
        (("--size", "0"), 2, "0"),
        (("--size", "1", "--available", ""), 2, "--available is empty"),
    ],
)
def test_a_question_that_no_kubelet_asks(
    own: Lab, more: tuple[str, ...], code: int, words: str
) -> None:
    found = run(own, "prefer", GPU, *more)
    assert (found.code, found.out) == (code, "")
    assert words in found.err


# --- allocate -------------------------------------------------------------------------------------


def kept(lab: Lab) -> dict[str, Any]:
    """What a kubelet has written and says; an Allocate past it must not change it."""
    return {
        "checkpoint": (lab.device_plugins / "kubelet_internal_checkpoint").read_bytes(),
        "kubelet": lab.kubelet.state(),
        "node": {k: v for k, v in lab.node()["status"].items() if k != "conditions"},
        "pods": {name: pod["metadata"]["resourceVersion"] for name, pod in lab.pods().items()},
        "listed": dpctl("pods", "-o", "json", env=lab.env).out.partition('"collectedAt"')[0],
    }


def test_allocate_is_past_the_kubelet(own: Lab) -> None:
    before = kept(own)
    unasked = run(own, "allocate", GPU, "gpu-0")
    assert (unasked.code, unasked.out) == (2, "")
    assert "warning: gpu-0 is held by ml/trainer/main" in unasked.err
    assert unasked.err.endswith(NOBODY)
    found = run(own, "allocate", GPU, "gpu-3", "--yes")
    assert found.code == 1  # the lab's device nodes are files
    assert "the kubelet does not know of this" in found.err
    golden("plugin/allocate.txt", normal(own, found.out))
    both = run(own, "allocate", "vendor.example/gpu.shared", "--prestart", "--yes", "-o", "json",
               "GPU-5a1c0d3e-7b42-4f19-9c6e-1d2f3a4b5c6d::1")  # fmt: skip
    (row,) = json.loads(both.out)["items"]
    assert row["preStarted"]
    assert kept(own) == before


def test_allocate_that_fails(own: Lab) -> None:
    found = run(own, "allocate", GPU, "nix", "--yes")
    assert (found.code, found.out) == (4, "")
    assert "unknown device nix" in found.err
    assert run(own, "allocate", GPU, "a", "a", "--yes").code == 2


def test_nothing_is_gone_while_a_plugin_of_unknown_resource_listens(own: Lab) -> None:
    """`dpctl node prune` would refuse."""
    waiting = ("wait", "old.example/retired", "--for", "gone", "--timeout")
    found = run(own, *waiting, "1s")
    assert (found.code, found.out) == (1, "")
    assert "which resource the plugin on alone.sock (process " in found.err
    own.plugin("alone").exit()
    found = run(own, *waiting, "30s")
    assert found.code == 0, found


# --- which plugin ---------------------------------------------------------------------------------


def test_a_name_that_the_checkpoint_lacks_is_not_replaced_by_another() -> None:
    """The kubelet's last write is lost, and a dead plugin's name is there: both commands ask the
    kubelet before they give that one to the socket that is left."""
    late, gone = "late.example/x", "fabric.example/rdma"
    with Lab() as lab:
        lab.add_plugin(PluginSpec("late", late, "dp.1", (SampleDevice("d"),)))
        lab.wait_settled()
        file = lab.device_plugins / "kubelet_internal_checkpoint"
        content = parse_checkpoint(file.read_bytes())
        kept = {name: ids for name, ids in content.registered.items() if name != late}
        assert gone in kept
        file.write_bytes(encode_checkpoint(content.allocations, kept))
        rows = json.loads(dpctl("plugins", "-o", "json", env=lab.env).out)["items"]
        assert {r["endpoint"]: r["resource"] for r in rows}["dp.1"] is None
        for socket in (gone, str(lab.device_plugins / "dp.1")):
            assert gone not in run(lab, "options", socket).out
