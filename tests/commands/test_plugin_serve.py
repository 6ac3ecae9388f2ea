"""`dpctl plugin wait` and `serve` beside a lab."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec, SampleDevice
from dpctl.statefiles.device_checkpoint import encode_checkpoint, parse_checkpoint
from tests.commands.by_hand import GPU, eventually, run, start
from tests.run import Result, dpctl

# --- wait -----------------------------------------------------------------------------------------


def test_wait(lab: Lab) -> None:
    assert run(lab, "wait", GPU, "--count", "7") == Result(
        0, f"resource/{GPU} allocatable (7)\n", ""
    )
    local = run(lab, "wait", GPU, "--for", "healthy", "-o", "json")
    (row,) = json.loads(local.out)["items"]
    assert (row["met"], row["seen"], row["waitingFor"]) == (True, 7, None)
    assert run(lab, "wait", "old.example/retired", "--for", "gone").code == 0


@pytest.mark.parametrize("written", [{GPU: ()}, {}], ids=["devices", "name"])
def test_the_checkpoint_lacks_the_last_write(lab: Lab, written: dict[str, tuple[str, ...]]) -> None:
    """As after two plugins registered at once, until the kubelet writes again."""
    path = lab.device_plugins / "kubelet_internal_checkpoint"
    before = path.read_bytes()
    content = parse_checkpoint(before)
    others = {name: ids for name, ids in content.registered.items() if name != GPU}
    path.write_bytes(encode_checkpoint(content.allocations, {**others, **written}))
    try:
        for timeout in ("30s", "2s"):
            waited = run(lab, "wait", GPU, "--count", "7", "--timeout", timeout)
            assert (waited.code, waited.out) == (0, f"resource/{GPU} allocatable (7)\n")
        shown = dpctl("resources", GPU, "-o", "json", env=lab.env)
        (row,) = json.loads(shown.out)["items"]
        assert (row["healthy"], row["tracked"], row["kubelet"]) == (7, True, 7)
        assert "checkpoint lacks the kubelet's last change" in row["notes"]
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("offered", "arguments", "code", "words"),
    [
        (True, (), 1, "7 of 8 healthy (by the kubelet's checkpoint)"),
        (True, ("--kubeconfig", "/nonexistent"), 1, "offers 7, the checkpoint has 8; the node: "),
        (False, ("--kubeconfig", "/nonexistent"), 0, "note: by the checkpoint alone: the kubelet "),
    ],
)
def test_the_checkpoint_has_more_than_the_kubelet(
    lab: Lab, offered: bool, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """The Node is asked by a wait that does not look at it, where nobody else can tell."""
    path = lab.device_plugins / "kubelet_internal_checkpoint"
    before = path.read_bytes()
    content = parse_checkpoint(before)
    name = GPU if offered else "empty.example/fpga"
    more = {name: (*content.registered[name], "gone-0")}
    path.write_bytes(encode_checkpoint(content.allocations, {**content.registered, **more}))
    try:
        count = str(len(more[name]))
        found = run(
            lab, "wait", name, "--for", "healthy", "--count", count, "--timeout", "1s", *arguments
        )
    finally:
        path.write_bytes(before)
    assert found.code == code
    assert words in found.err


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
    ("name", "missing", "hint"),
    [
        ("video.example/encoder", "encoder.sock serves it, but has not registered", "restart its"),
        ("fabric.example/rdma", "its plugin is gone", "start its plugin"),
        ("ghost.example/tpu", "no plugin has registered it: the Node's 4 is", "start its plugin"),
        ("vendor.example/gpuu", "the Node does not know the name", f'did you mean "{GPU}'),
    ],
)
def test_which_step_is_missing(lab: Lab, name: str, missing: str, hint: str) -> None:
    found = run(lab, "wait", name, "--timeout", "1500ms")
    note, error, last = found.err.splitlines()
    assert note.startswith(f"note: waiting for {name}: 0 of 1 allocatable: ")
    assert error.startswith(f"error: {name} is not allocatable after 1.5 s: ")
    assert missing in note
    assert missing in error
    assert last.startswith(f"hint: {hint}")


def test_the_last_word_of_a_wait_that_is_interrupted(lab: Lab) -> None:
    process = start(lab, "wait", "ghost.example/tpu")
    assert process.stderr is not None
    said = process.stderr.readline().replace("waiting for ghost.example/tpu: ", "")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    last = "note: ghost.example/tpu is not allocatable yet: "
    assert process.returncode == 130
    assert err.startswith(said.replace("note: ", last))


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


def test_serve(new_lab: Callable[..., Lab]) -> None:
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
                ("shout", "error: 'shout' is not one of"),
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


def test_a_served_name_that_the_checkpoint_lacks(
    new_lab: Callable[..., Lab], tmp_path: Path
) -> None:
    """Its plugin says nowhere which resource it serves: the kubelet's own list alone tells. It is
    neither taken over nor called a Ghost that may go."""
    lab = new_lab(scenario="empty", status_period=0.3)
    name = "sample.example/gpu"
    silent = tmp_path / "silent.toml"
    silent.write_text(f'resource = "{name}"\ndevices = ["a", "b"]\nserve_info = false\n')
    with start(lab, "serve", str(silent), "--endpoint", "odd.sock", "--yes") as process:
        try:
            eventually(lambda: lab.node()["status"]["allocatable"].get(name) == "2")
            path = lab.device_plugins / "kubelet_internal_checkpoint"
            path.write_bytes(encode_checkpoint((), {}))
            found = run(lab, "serve", "gpus", "--endpoint", "even.sock", "--yes")
            assert (found.code, f"{name} is served by odd.sock" in found.err) == (6, True), found
            pruned = dpctl("node", "prune", "--include", "ghost", "--dry-run", env=lab.env)
            assert "a plugin serves it on odd.sock" in pruned.out, pruned
        finally:
            process.kill()


def test_a_name_beside_one_in_grace(new_lab: Callable[..., Lab], tmp_path: Path) -> None:
    """Two tracked names and one connected socket that says nowhere whose it is: neither is taken
    over."""
    lab = new_lab(scenario="empty", status_period=0.3)

    def healthy(name: str) -> object:
        return lab.kubelet.state().get(f"s.example/{name}", {}).get("healthy")

    files = []
    for name in ("one", "two"):
        file = tmp_path / f"{name}.toml"
        file.write_text(f'resource = "s.example/{name}"\ndevices = ["a"]\nserve_info = false\n')
        files.append(str(file))
    with (
        start(lab, "serve", files[0], "--endpoint", "x.sock", "--yes") as gone,
        start(lab, "serve", files[1], "--endpoint", "y.sock", "--yes") as there,
    ):
        try:
            eventually(lambda: healthy("one") and healthy("two"))
            gone.kill()
            eventually(lambda: not healthy("one"))
            given = ("--endpoint", "z.sock", "--yes")
            served = run(lab, "serve", "gpus", "--resource", "s.example/two", *given)
            assert (served.code, "s.example/two is served by" in served.err) == (6, True), served
        finally:
            gone.kill()
            there.kill()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("gpus",), 2, "--yes does it without asking; --print only shows the scenario's file\n"),
        (("gpus", "--resource", GPU, "--yes"), 6, f"{GPU} is served by vendor-gpu.sock"),
        (("gpus", "--endpoint", "vendor-gpu.sock", "--yes"), 6, "another plugin's socket"),
        (("gpus", "--endpoint", "kubelet.sock", "--yes"), 2, "the kubelet's own"),
        (("gpus", "--endpoint", "../x", "--yes"), 2, "no file name"),
        (("gpus", "--endpoint", "\udcff", "--yes"), 2, "endpoint is no UTF-8"),
        (("gpus", "--resource", "a.b/\udcff", "--yes"), 2, "no name that a plugin can register"),
        (("gpus", "--resource", "nodomain", "--yes"), 2, "nodomain is no name that a plugin can"),
        (("gpus", "--resource", "cpu"), 2, "cpu is no name that a plugin can register"),
        (("gpus", "--endpoint", "kubelet.pid", "--yes"), 6, "no socket: it is left alone"),
        (("nosuch", "--yes"), 2, "no scenario"),
        (("./nosuch.toml", "--yes"), 3, "cannot be read"),
        ((), 2, "which scenario?"),
    ],
)
def test_what_is_not_served(
    new_lab: Callable[..., Lab], lab: Lab, arguments: tuple[str, ...], code: int, words: str
) -> None:
    if "kubelet.pid" in arguments:
        lab = new_lab(scenario="empty")
        (lab.device_plugins / "kubelet.pid").write_text("1")
    found = run(lab, "serve", *arguments)
    assert (found.code, found.out) == (code, "")
    assert words in found.err


def test_a_name_in_a_file_is_looked_at_before_it_is_served(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('resource = "Sample Example/nic"\ndevices = ["nic-0"]\n')
    found = run(lab, "serve", str(file), "--yes")
    assert (found.code, found.out) == (2, "")
    assert "Sample Example/nic is no name that a plugin can register" in found.err
    # One that is given instead counts.
    assert "is served by" in run(lab, "serve", str(file), "--resource", GPU, "--yes").err


def test_a_device_that_is_listed_twice_is_told(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('resource = "sample.example/nic"\ndevices = ["nic-0", "nic-0"]\n')
    assert f"warning: {file} lists twice: nic-0\n" in run(lab, "serve", str(file)).err
    assert "lists twice" not in run(lab, "serve", "faulty").err


def test_shipped_scenarios(lab: Lab) -> None:
    listed = run(lab, "serve", "--list")
    assert listed.code == 0
    names = [line.split()[0] for line in listed.out.splitlines()]
    assert names == ["faulty", "flapping", "gpus", "replicas", "shared-updates", "too-large"]
    assert "resource = " in run(lab, "serve", "gpus", "--print").out


def test_ctrl_c_while_standard_input_is_read(new_lab: Callable[..., Lab]) -> None:
    """It stays open, and a thread reads it: the interpreter must not stumble over that."""
    lab = new_lab(scenario="empty")
    for _ in range(3):
        read, write = os.pipe()
        process = start(lab, "serve", "gpus", "--yes", "--control", "-", stdin=read)
        os.close(read)
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        os.close(write)
        assert process.returncode == 130, err
