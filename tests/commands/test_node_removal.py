"""`dpctl node set|remove|prune|undo` against the lab, each run a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec, SampleDevice
from tests.run import DATA, Result, dpctl

MERGE = "application/merge-patch+json"
LIVE = tuple(f"akri.sh/zeroconf-{n:06x}" for n in range(4))
DPCTL = (sys.executable, "-m", "dpctl", "node")
OLD = "old.example/retired"


def env(lab: Lab, **more: str) -> dict[str, str]:
    return {**lab.env, "XDG_STATE_HOME": str(lab.directory / "state"), **more}


def change(lab: Lab, *arguments: str, **more: str) -> Result:
    return dpctl("node", *arguments, "--yes", env=env(lab, **more))


def write(lab: Lab, status: Mapping[str, Any], manager: str = "kubelet") -> None:
    path = f"/api/v1/nodes/{lab.node_name}/status?fieldManager={manager}"
    code, answer = lab.api("PATCH", path, {"status": status}, content_type=MERGE)
    assert code == 200, answer


def numbers(lab: Lab, key: str) -> tuple[str | None, str | None]:
    status = lab.node()["status"]
    return status["capacity"].get(key), status["allocatable"].get(key)


def until(what: str, probe: Callable[[], object]) -> None:
    for _ in range(600):
        if probe():
            return
        time.sleep(0.1)
    raise AssertionError(what)


@pytest.fixture
def akri(new_lab: Callable[..., Lab]) -> Lab:
    """62 keys, as reported: 6 native ones, 52 that daily redeploys left behind, 4 alive. The
    kubelet writes its Node when it is told to, so that what a test takes away stays away."""
    lab = new_lab(scenario="empty", status_period=3600)
    for key in LIVE:
        name = key.rpartition("/")[2]
        devices = (SampleDevice(f"{name}-0"), SampleDevice(f"{name}-1"))
        lab.add_plugin(PluginSpec(name, key, f"{name}.sock", devices, shown="argument"))
    lab.wait_settled()
    given = json.loads((DATA / "inputs" / "node-akri-62keys.json").read_text())["status"]
    keys = {k: v for k, v in given["capacity"].items() if k.startswith("akri.sh/")}
    assert len(given["capacity"]) == 62
    write(lab, {"capacity": keys, "allocatable": keys})
    lab.kubelet.sync()
    return lab


def test_one_patch_takes_exactly_the_dead_keys(akri: Lab) -> None:
    before = akri.node()
    done = change(akri, "prune", "--match", "akri.sh/*", "--verify", "1s", "-o", "json")
    assert done.code == 0, done
    items = json.loads(done.out)["items"]
    gone = {row["resource"] for row in items if row["outcome"] == "Changed"}
    assert len(gone) == 52
    assert not gone & set(LIVE)
    akri.kubelet.sync()
    left = {k for k in akri.node()["status"]["capacity"] if k.startswith("akri.sh/")}
    assert left == set(LIVE)
    version = before["metadata"]["resourceVersion"]
    path = f"/api/v1/nodes?watch=true&timeoutSeconds=1&resourceVersion={version}"
    seen = [set(event["object"]["status"]["capacity"]) for event in watched(akri, path)]
    sizes = [len(set(before["status"]["capacity"]) - keys) for keys in seen]
    assert set(sizes) == {52}, "all of them at once"
    assert len(os.listdir(akri.directory / "state/dpctl/undo")) == 1


def watched(lab: Lab, path: str) -> list[Any]:
    import http.client

    connection = http.client.HTTPConnection(lab.server.removeprefix("http://"), timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {lab.tokens['lab']}"})
    lines = connection.getresponse().read().splitlines()
    connection.close()
    return [json.loads(line) for line in lines]


def lose_boot_id(lab: Lab) -> None:
    write(lab, {"nodeInfo": {"bootID": ""}})


def lose_checksum(lab: Lab) -> None:
    path = lab.device_plugins / "kubelet_internal_checkpoint"
    document = json.loads(path.read_text())
    document["Checksum"] += 1
    path.write_text(json.dumps(document, separators=(",", ":")))


def lose_checkpoint(lab: Lab) -> None:
    (lab.device_plugins / "kubelet_internal_checkpoint").unlink()


def lose_kubelet(lab: Lab) -> None:
    lab.kubelet.stop()


def lose_sight_of_a_plugin(lab: Lab) -> None:
    """A listener whose resource nothing tells."""
    spec = PluginSpec("who", "akri.sh/http-000000", "who.sock", register=False)
    plugin = lab.add_plugin(spec)
    until("it serves", lambda: plugin.state()["serving"])


LOSSES = {
    "no boot ID": lose_boot_id,
    "checksum does not fit": lose_checksum,
    "checkpoint file is gone": lose_checkpoint,
    "lacks the kubelet's own listener": lose_kubelet,
    "listens on who.sock": lose_sight_of_a_plugin,
}


@pytest.mark.parametrize("words", LOSSES)
def test_without_a_piece_of_evidence_nothing_goes(akri: Lab, words: str) -> None:
    LOSSES[words](akri)
    before = akri.node()["status"]
    done = change(akri, "prune", "--node", akri.node_name)
    assert done.code == 0, done
    assert words in done.out + done.err
    assert akri.node()["status"] == before


def test_nobody_to_ask_and_nothing_to_change_in_a_bundle(lab: Lab) -> None:
    found = dpctl("node", "remove", OLD, env=env(lab))
    assert (found.code, "--yes" in found.err) == (2, True), found
    bundle = str(DATA / "captures/1-healthy")
    assert dpctl("node", "prune", "--from", bundle, env=env(lab)).code == 2
    assert dpctl("node", "prune", "--include", "everything", env=env(lab)).code == 2
    assert dpctl("node", "remove", OLD, "--dry-run=perhaps", env=env(lab)).code == 2
    assert dpctl("node", "set", "cpu=4", env=env(lab)).code == 2
    assert dpctl("node", "set", "a.example/x=1.5", env=env(lab)).code == 2
    assert dpctl("node", "remove", OLD, "--timeout", "5s", env=env(lab)).code == 2


def test_without_rights_the_rule_is_told(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab()
    found = change(lab, "remove", OLD, "--context", "lab-viewer")
    assert found.code == 5, found
    assert 'resources: ["nodes/status"]\n  verbs: ["patch"]\n' in found.err
    assert numbers(lab, OLD) == ("0", "0")
    assert change(lab, "undo").code == 1, "there is nothing to undo"


def test_two_at_once_and_one_undo(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab()
    command = [*DPCTL, "remove", OLD, "--yes", "--verify", "1s"]
    both = [
        subprocess.Popen(command, env={**os.environ, **env(lab)}, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 0], [0, 6]), said
    assert numbers(lab, OLD) == (None, None)
    undone = change(lab, "undo", "--verify", "1s")
    assert undone.code == 0, undone
    assert numbers(lab, OLD) == ("0", "0")


def test_killed_after_the_patch_it_can_be_undone(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab()
    process = subprocess.Popen(
        [*DPCTL, "prune", "--yes", "--verify", "10m"],
        env={**os.environ, **env(lab)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "looking for" in line:
            break
    assert numbers(lab, OLD) == (None, None), said
    process.kill()
    process.wait()
    undone = change(lab, "undo", "--verify", "1s")
    assert undone.code == 0, undone
    assert numbers(lab, OLD) == ("0", "0")


def test_interrupted_while_it_looks_it_says_what_it_did(new_lab: Callable[..., Lab]) -> None:
    process = subprocess.Popen(
        [*DPCTL, "remove", OLD, "--yes", "--verify", "10m"],
        env={**os.environ, **env(new_lab())},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "looking for" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.endswith(f"node/lab-0 {OLD} removed (not verified)\n")
    assert "interrupted before it was seen whether it stays" in err
    assert "dpctl node undo" in err


def test_no_place_for_the_undo_file_no_change(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab()
    (lab.directory / "blocked").write_text("a file, no directory")
    found = change(lab, "remove", OLD, XDG_STATE_HOME=str(lab.directory / "blocked"))
    assert found.code == 6, found
    assert "--undo-file" in found.err
    assert numbers(lab, OLD) == ("0", "0")
    there = str(lab.directory / "blocked")
    assert change(lab, "remove", OLD, "--undo-file", there).code == 2
    mine = str(lab.directory / "mine.json")
    done = change(lab, "remove", OLD, "--undo-file", mine, "--verify", "1s")
    assert done.code == 0, done
    assert os.stat(mine).st_mode & 0o777 == 0o600
    assert change(lab, "undo", mine, "--verify", "1s").code == 0
    assert numbers(lab, OLD) == ("0", "0")


def test_keep_holds_until_it_is_told_to_end(new_lab: Callable[..., Lab]) -> None:
    lab, key = new_lab(scenario="empty", status_period=0.5), "dongle.example/x"
    process = subprocess.Popen(
        [*DPCTL, "set", f"{key}=3", "--keep", "--yes", "--verify", "1s"],
        env={**os.environ, **env(lab)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "keeping" in line:
            break
    write(lab, {"capacity": {key: None}, "allocatable": {key: None}}, "somebody")
    until("it is back", lambda: numbers(lab, key) == ("3", "3"))
    write(lab, {"capacity": {key: "0"}, "allocatable": {key: "0"}})  # as a kubelet that starts
    until("it is back", lambda: numbers(lab, key) == ("3", "3"))
    lab.api("DELETE", f"/api/v1/nodes/{lab.node_name}")
    lab.kubelet.restart()
    until("it is on the new Node", lambda: numbers(lab, key) == ("3", "3"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, process.stderr.read()
    assert numbers(lab, key)[0] == "3"


def test_keep_gives_way_to_another_writer(new_lab: Callable[..., Lab]) -> None:
    lab, key = new_lab(scenario="empty", status_period=0.5), "dongle.example/x"
    process = subprocess.Popen(
        [*DPCTL, "set", f"{key}=3", "--keep", "--yes", "--verify", "0"],
        env={**os.environ, **env(lab)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "keeping" in line:
            break
    write(lab, {"capacity": {key: "5"}}, "operator")
    said = process.stderr.read()
    assert process.wait(60) == 6, said
    assert f"{key} is 5 by now, written by operator" in said


def test_an_empty_name_is_seen_and_put_back(new_lab: Callable[..., Lab]) -> None:
    """The API server takes one, and a change of it takes the other keys along."""
    lab, keys = new_lab(scenario="empty", status_period=3600), {"": "0", OLD: "0"}
    write(lab, {"capacity": keys, "allocatable": keys})
    plan = dpctl("node", "prune", "--dry-run=client", env=env(lab))
    assert 'hint: "": prune takes it with --include malformed' in plan.err, plan
    done = change(lab, "prune", "--include", "malformed", "--verify", "0")
    assert (done.code, numbers(lab, ""), numbers(lab, OLD)) == (0, (None, None), (None, None)), done
    assert f'node/{lab.node_name} "" removed' in done.out
    undone = change(lab, "undo", "--verify", "0")
    assert (undone.code, numbers(lab, ""), numbers(lab, OLD)) == (0, ("0", "0"), ("0", "0")), undone


def test_a_key_is_taken_as_it_stands_before_it_is_a_glob(new_lab: Callable[..., Lab]) -> None:
    """The API server takes any text as a key."""
    lab, odd = (
        new_lab(scenario="empty", status_period=3600),
        ("e.example/\x1b[31mred", "e.example/*"),
    )
    keys = dict.fromkeys((*odd, OLD), "0")
    write(lab, {"capacity": keys, "allocatable": keys})
    done = change(lab, "remove", *odd, "--verify", "0")
    assert (done.code, [numbers(lab, key)[0] for key in keys]) == (0, [None, None, "0"]), done
    found = change(lab, "remove", "e.example/*")
    assert (found.code, "remove takes keys in full" in found.err) == (2, True), found
    found = change(lab, "remove", "e.example/*", "--all-nodes")
    assert (found.code, "remove takes keys in full" in found.err) == (2, True), found
