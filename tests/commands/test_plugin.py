"""`dpctl plugin` on a lab: what it says, what it asks first, and what it leaves as it was."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec, SampleDevice
from tests.run import Result, dpctl, golden

GPU = "vendor.example/gpu"
SHARED = "shared.example/dev"
PRICE = "the kubelet may miss that a device fell ill"
NOBODY = (
    "error: nobody can be asked here (standard input is no terminal)\n"
    "hint: --yes does it without asking\n"
)


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


def run(lab: Lab, *arguments: str, **env: str) -> Result:
    return dpctl("plugin", *arguments, env={**lab.env, **env})


def normal(lab: Lab, text: str) -> str:
    return text.replace(str(lab.directory), "/LAB")


def start(lab: Lab, *arguments: str) -> subprocess.Popen[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DPCTL_")}
    return subprocess.Popen(
        [sys.executable, "-m", "dpctl", "plugin", *arguments],
        env={**clean, "HOME": "/nonexistent", **lab.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def eventually(condition: Callable[[], Any], seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


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
    elsewhere = str(own.directory / "nothing-here")
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
        "note: 2 devices, a kubelet counts 2 of which 2 are healthy; the message has 40 bytes, "
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
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "this machine has no NUMA node 63" in err
    assert "Traceback" not in err
    eventually(lambda: plugin.state()["streams"] == 0)
    plugin.set_devices([SampleDevice("dev-0"), SampleDevice("dev-1")])


def test_listening_takes_updates_from_the_kubelet(own: Lab) -> None:
    """A plugin with one channel for all: what dpctl hears, the kubelet never does."""
    plugin = own.plugin("shared")
    assert PRICE in run(own, "devices", "all.sock").err
    process = start(own, "devices", "all.sock", "--watch", "--yes", "-o", "json")
    assert process.stdout is not None
    for _ in range(2):
        assert json.loads(process.stdout.readline())["event"] == "added"
    heard: list[Any] = []
    os.set_blocking(process.stdout.fileno(), False)

    def kubelet() -> set[str]:
        return set(own.kubelet.state()[SHARED]["healthy"])

    def listens() -> bool:
        line = process.stdout.readline() if process.stdout is not None else ""
        if line:
            heard.append(json.loads(line))
        return bool(line)

    for number in range(40):
        # Each list is a new one, so that whoever gets it has something to tell.
        wanted = {"dev-0", f"new-{number}"}
        plugin.set_devices([SampleDevice(device_id) for device_id in sorted(wanted)])
        eventually(lambda wanted=wanted: listens() or kubelet() == wanted)  # type: ignore[misc]
        if heard:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert heard[0]["event"] == "added"
    assert heard[0]["item"]["device"] == f"new-{number}"
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


# --- wait -----------------------------------------------------------------------------------------


def test_wait(lab: Lab) -> None:
    assert run(lab, "wait", GPU, "--count", "7") == Result(
        0, f"resource/{GPU} allocatable (7)\n", ""
    )
    local = run(lab, "wait", GPU, "--for", "healthy", "-o", "json")
    (row,) = json.loads(local.out)["items"]
    assert (row["met"], row["seen"], row["waitingFor"]) == (True, 7, None)
    assert run(lab, "wait", "old.example/retired", "--for", "gone").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((GPU, "--count", "8"), "7 of 8"),
        # 4/4 on the Node, and nobody behind it.
        (("ghost.example/tpu",), "0 of 1"),
        (("ghost.example/tpu", "--for", "gone"), "the Node's capacity is 4"),
        (("fabric.example/rdma", "--for", "gone"), "still tracks it"),
    ],
)
def test_wait_in_vain(lab: Lab, arguments: tuple[str, ...], words: str) -> None:
    found = run(lab, "wait", *arguments, "--timeout", "100ms")
    assert (found.code, found.out) == (1, "")
    assert words in found.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cpu",), "no name that a plugin can register"),
        ((GPU, "--for", "nothing"), "--for"),
        ((GPU, "--for", "gone", "--count", "1"), "--count says nothing"),
        ((GPU, "--from", "/nonexistent"), "a bundle does not change"),
    ],
)
def test_what_cannot_be_waited_for(lab: Lab, arguments: tuple[str, ...], words: str) -> None:
    found = run(lab, "wait", *arguments)
    assert found.code == 2
    assert words in found.err


def test_wait_before_there_is_a_kubelet(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(scenario="empty", status_period=0.3)
    lab.kubelet.stop()
    (lab.device_plugins / "kubelet.sock").unlink()
    process = start(lab, "wait", GPU, "--count", "2", "--timeout", "300s", "-v")
    assert process.stderr is not None
    assert "no kubelet here yet" in process.stderr.readline()
    spec = PluginSpec("gpu", GPU, "gpu.sock", (SampleDevice("g-0"), SampleDevice("g-1")))
    lab.add_plugin(spec)
    lab.kubelet.start()
    out, _ = process.communicate(timeout=240)
    assert (process.returncode, out) == (0, f"resource/{GPU} allocatable (2)\n")


# --- serve ----------------------------------------------------------------------------------------


def test_serve(new_lab: Callable[..., Lab], tmp_path: Path) -> None:
    import socket

    lab = new_lab(scenario="empty", status_period=0.3)
    control = lab.directory / "log" / "x.ctl"
    process = start(lab, "serve", "gpus", "--yes", "--control", str(control))
    with process:
        eventually(lambda: lab.kubelet.state().get("sample.example/gpu", {}).get("healthy"))
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(str(control))
            file = talk.makefile("rw")
            for line, answer in (
                ("health gpu-3 Unhealthy", "ok"),
                ("health nix Healthy", "error: no device nix"),
                ("shout", "error: cue 'shout' is not one of"),
            ):
                file.write(f"{line}\n")
                file.flush()
                assert file.readline().startswith(answer)
        assert control.stat().st_mode & 0o777 == 0o600
        eventually(lambda: len(lab.kubelet.state()["sample.example/gpu"]["healthy"]) == 7)
        eventually(lambda: lab.node()["status"]["allocatable"].get("sample.example/gpu") == "7")
        shown = dpctl("resources", "sample.example/gpu", env=lab.env).out.splitlines()[1].split()
        assert shown[1:3] == ["Degraded", "7/8"]
        # It follows a new kubelet.sock.
        lab.kubelet.restart()
        eventually(lambda: lab.kubelet.state().get("sample.example/gpu", {}).get("healthy"))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(re.findall("registered with the kubelet", out)) == 2
    assert "cue: health gpu-3 Unhealthy\n" in out
    assert "`dpctl node prune` removes it" in err
    assert not control.exists()
    assert not (lab.device_plugins / "sample-gpu.sock").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("gpus",), 2, "nobody can be asked here"),
        (("gpus", "--resource", GPU, "--yes"), 6, f"{GPU} is served by vendor-gpu.sock"),
        (("gpus", "--endpoint", "vendor-gpu.sock", "--yes"), 6, "another plugin's socket"),
        (("gpus", "--endpoint", "kubelet.sock", "--yes"), 2, "the kubelet's own"),
        (("gpus", "--endpoint", "../x", "--yes"), 2, "no file name"),
        (("nosuch", "--yes"), 2, "no scenario"),
        (("./nosuch.toml", "--yes"), 3, "cannot be read"),
        ((), 2, "which scenario?"),
    ],
)
def test_what_is_not_served(lab: Lab, arguments: tuple[str, ...], code: int, words: str) -> None:
    found = run(lab, "serve", *arguments)
    assert (found.code, found.out) == (code, "")
    assert words in found.err


def test_shipped_scenarios(lab: Lab) -> None:
    listed = run(lab, "serve", "--list")
    assert listed.code == 0
    names = [line.split()[0] for line in listed.out.splitlines()]
    assert names == ["faulty", "flapping", "gpus", "replicas", "shared-updates", "too-large"]
    assert "resource = " in run(lab, "serve", "gpus", "--print").out
