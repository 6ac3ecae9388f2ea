"""Keys are removed from a real Node, stay away, come back, and are put back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpctl.changes.apply import apply_plan
from dpctl.changes.removal import Removal, plan_removal
from dpctl.env import Settings, find_env
from dpctl.errors import NotAppliedError
from dpctl.lab.fixture import Lab
from dpctl.model import Snapshot
from dpctl.model.changes import Action
from dpctl.sources.apiserver import Api, connect
from dpctl.sources.connection import Answer

from . import pods
from .bench import Bench
from .gate import Gate
from .node import REPOSITORY, Result
from .processes import wait_for

pytestmark = pytest.mark.ends

GPU = "ready.test/gpu"
OLD = "old.test/retired"


def left_behind(bench: Bench, keys: Mapping[str, str], manager: str = "kubelet") -> None:
    """Keys that a manager wrote long ago."""
    bench.plane.api().patch(
        f"/api/v1/nodes/{bench.node.name}/status?fieldManager={manager}",
        {"status": {"capacity": dict(keys), "allocatable": dict(keys)}},
        "application/merge-patch+json",
    )


def change(bench: Bench, *arguments: str, user: str | None = "admin") -> Result:
    """A changing command that asks nobody, its undo files in the node's own directories."""
    state = {"XDG_STATE_HOME": str(bench.node.kubelet_dir / "dpctl-state")}
    return bench.dpctl("node", *arguments, "--yes", user=user, env=state)


def numbers(bench: Bench, key: str) -> tuple[str | None, str | None]:
    status = bench.node.get()["status"]
    return status["capacity"].get(key), status["allocatable"].get(key)


def rows(result: Result) -> dict[str, dict[str, object]]:
    return {row["resource"]: row for row in json.loads(result.stdout)["items"]}


def background(bench: Bench, *arguments: str) -> subprocess.Popen[str]:
    state = {"XDG_STATE_HOME": str(bench.node.kubelet_dir / "dpctl-state")}
    return subprocess.Popen(
        [*bench.node.entering, *bench.command(), "node", *arguments, "--yes"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **bench.environment(env=state)},
    )


# -- the grace


@contextmanager
def without_log(bench: Bench) -> Iterator[None]:
    """The kubelet's log is empty for a while, as if it had been rotated."""
    assert bench.node.kubelet is not None
    path = bench.node.kubelet.log
    saved = path.read_bytes()
    os.truncate(path, 0)
    try:
        yield
    finally:
        added = path.read_bytes()
        os.truncate(path, 0)
        with path.open("ab") as log:
            log.write(saved + added)


def test_inside_the_grace(bench: Bench) -> None:
    plugin = bench.plugin(GPU, ["gpu-0"])
    plugin.kill()
    bench.node.wait_resource(GPU, "0", "1")
    found = change(bench, "remove", GPU)
    assert found.code == 6, found
    assert "are left (by its log)" in found.stdout, found
    assert "--wait" in found.stderr, found
    with without_log(bench):
        found = change(bench, "remove", GPU)
    assert found.code == 6, found
    assert "at most" in found.stdout, found
    assert "are left (an upper bound)" in found.stdout, found
    pruned = change(bench, "prune", "-o", "json")
    assert pruned.code == 0, pruned
    row = rows(pruned)[GPU]
    assert (row["verdict"], row["outcome"]) == ("Wait", None)
    left = row["timeLeft"]
    assert isinstance(left, float)
    assert 200 < left <= 301.04
    assert numbers(bench, GPU) == ("1", "0")


def test_plugin_returns_during_the_wait(bench: Bench) -> None:
    plugin = bench.plugin(GPU, ["gpu-0"])
    plugin.kill()
    bench.node.wait_resource(GPU, "0", "1")
    waits = background(bench, "remove", GPU, "--wait")
    assert waits.stderr is not None
    line = waits.stderr.readline()
    while line and "waiting for the kubelet" not in line:
        line = waits.stderr.readline()
    assert line, "it does not wait"
    plugin.start()
    plugin.wait_registered()
    _, said = waits.communicate(timeout=60)
    assert waits.returncode == 6, said
    assert "came back during the wait, so nothing was removed" in said
    bench.node.wait_resource(GPU, "1")


# -- what lives


def test_live_is_refused_and_forced_comes_back(bench: Bench) -> None:
    bench.plugin(GPU, ["gpu-0"])
    refused = change(bench, "remove", GPU)
    assert refused.code == 6, refused
    assert "a plugin serves it on gpu.sock" in refused.stdout
    assert numbers(bench, GPU) == ("1", "1")
    forced = change(bench, "remove", GPU, "--force-in-use", "--verify", "8s")
    assert forced.code == 6, forced
    assert "came back as 1/1, written by kubelet" in forced.stderr, forced
    bench.node.wait_resource(GPU, "1")


def test_native_whatever_the_flags(bench: Bench) -> None:
    names = ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "attachable-volumes-x"]
    before = bench.node.get()["status"]["capacity"]
    found = change(bench, "remove", *names, "--force-in-use", "--assume-gone", "-o", "json")
    assert found.code == 6, found
    assert {row["verdict"] for row in rows(found).values()} == {"Refuse"}
    assert bench.node.get()["status"]["capacity"] == before


# -- what is dead


def test_stale_goes_and_is_put_back_byte_for_byte(bench: Bench) -> None:
    left_behind(bench, {OLD: "0"})
    name = f"pending-{bench.node.name}"
    bench.node.create_pod(name, {OLD: 1}, phase=None)
    before = bench.node.get()["status"]
    shown = change(bench, "prune", "--dry-run=client")
    assert shown.code == 0, shown
    assert f"default/{name} waits for it" in shown.stdout
    server = change(bench, "prune", "--dry-run=server")
    assert server.code == 0, server
    assert "(server dry run)" in server.stdout
    assert numbers(bench, OLD) == ("0", "0")
    pods.delete(bench.plane.api(), name)
    done = change(bench, "prune")
    assert done.code == 0, done
    assert f"node/{bench.node.name} {OLD} removed" in done.stdout
    assert numbers(bench, OLD) == (None, None)
    undone = change(bench, "undo")
    assert undone.code == 0, undone
    after = bench.node.get()["status"]
    for part in ("capacity", "allocatable"):
        assert after[part] == before[part]
    again = rows(change(bench, "prune", "--dry-run=client", "-o", "json"))
    assert again[OLD]["state"] == "Stale", "what dpctl put back counts as the kubelet's"


def test_ghost_goes_back_as_zero_unless_asked(bench: Bench) -> None:
    left_behind(bench, {"ghost.test/tpu": "4"})
    kept = change(bench, "prune")
    assert kept.code == 0, kept
    assert numbers(bench, "ghost.test/tpu") == ("4", "4"), "only with --include ghost"
    zeroed = change(bench, "set", "ghost.test/tpu=0")
    assert zeroed.code == 0, zeroed
    assert numbers(bench, "ghost.test/tpu") == ("0", "0")
    restored = change(bench, "undo", "--restore-value", "--verify", "2s")
    assert restored.code == 0, restored
    done = change(bench, "prune", "--include", "ghost", "--verify", "2s")
    assert done.code == 0, done
    undone = change(bench, "undo")
    assert undone.code == 0, undone
    assert numbers(bench, "ghost.test/tpu") == ("0", "0")
    done = change(bench, "remove", "ghost.test/tpu", "--verify", "2s")
    assert done.code == 0, done
    plugin = bench.plugin("ghost.test/tpu", ["tpu-0"])
    over = change(bench, "undo")
    assert over.code == 6, over
    assert "a plugin serves it" in over.stdout
    plugin.kill()


def test_malformed_goes_from_both(bench: Bench) -> None:
    left_behind(bench, {"nodomain": "2", "kubernetes.io/foo~bar": "1"}, "kubectl-patch")
    done = change(bench, "prune", "--include", "malformed")
    assert done.code == 0, done
    for key in ("nodomain", "kubernetes.io/foo~bar"):
        assert numbers(bench, key) == (None, None)


def test_node_credentials(bench: Bench) -> None:
    """The kubelet's own, as found on its command line: good for its own node only."""
    left_behind(bench, {OLD: "0"})
    done = change(bench, "prune", user=None)
    assert done.code == 0, done
    assert "unscheduled pods were not seen" in done.stderr
    assert numbers(bench, OLD) == (None, None)
    other = change(bench, "prune", "--node", "no-bench", user=None)
    assert other.code == 5, other
    assert "their own Node" in other.stderr


def test_set_and_its_end(bench: Bench) -> None:
    made = change(bench, "set", "dongle.test/x=1000")
    assert made.code == 0, made
    assert numbers(bench, "dongle.test/x") == ("1k", "1k")
    done = change(bench, "remove", "dongle.test/x")
    assert done.code == 0, done
    assert numbers(bench, "dongle.test/x") == (None, None)


def test_keep_puts_it_back_after_a_reset_and_with_a_new_node(bench: Bench) -> None:
    """A kubelet resets the key when it registers before anything is in its directory: whether it
    does, is a race (kubelet-facts §4.4), so the test writes what it would write."""
    key, api, node = "dongle.test/x", bench.plane.api(), bench.node
    keeper = background(bench, "set", f"{key}=3", "--keep", "--verify", "0")
    try:
        assert "keeping" in told(keeper, "keeping")
        node.wait_resource(key, "3")
        left_behind(bench, {key: "0"})
        assert f"{key} was 0: set to 3 again" in told(keeper)
        node.wait_resource(key, "3")
        node.stop_kubelet()
        api.delete(f"/api/v1/nodes/{node.name}")
        node.start_kubelet()
        assert f"{key} was gone: set to 3 again" in told(keeper)
        node.wait_resource(key, "3")
        keeper.terminate()
        assert keeper.wait(30) == 0
        assert numbers(bench, key) == ("3", "3"), "it stays when the keeper goes"
    finally:
        keeper.kill()


def told(keeper: subprocess.Popen[str], word: str = "to 3 again") -> str:
    """What it says until it says this, or ends."""
    assert keeper.stderr is not None
    said = ""
    for line in keeper.stderr:
        said += line
        if word in line:
            return said
    return f"{said}it ended with {keeper.wait()}"


# -- another machine


def test_from_another_network_namespace_nothing_goes(bench: Bench) -> None:
    """The API server answers there, and the socket table does not show who serves what."""
    left_behind(bench, {OLD: "0", "ghost.test/x": "2"})
    bench.plugin(GPU, ["gpu-0"])
    wait_for("both keys", lambda: numbers(bench, "ghost.test/x") == ("2", "2"), 30)
    path = bench.node.path / "api.sock"
    port = bench.node.gate.port
    assert isinstance(port, int)
    gate = Gate(path, port)
    outside = [sys.executable, "-m", "tests.cluster.outside", str(port), str(path)]
    try:
        for flags in (["prune"], ["prune", "--include", "ghost"], ["remove", OLD, "ghost.test/x"]):
            command = bench.command("unshare", "--net", *outside)
            found = bench.node.run(
                *command, "node", *flags, "--yes", env=bench.environment(), cwd=REPOSITORY
            )
            assert found.code == (6 if flags[0] == "remove" else 0), found
            assert OLD in found.stdout, found
            assert "network namespace" in found.stdout + found.stderr, found
    finally:
        gate.close()
    assert numbers(bench, OLD) == ("0", "0")
    assert numbers(bench, "ghost.test/x") == ("2", "2")


def test_another_clusters_node_of_the_same_name(bench: Bench, tmp_path: Path) -> None:
    with Lab(scenario="empty") as lab:
        node = {
            "metadata": {"name": bench.node.name},
            "status": {
                "capacity": {OLD: "0"},
                "allocatable": {OLD: "0"},
                "nodeInfo": {"bootID": "00000000-1111-4222-8333-444455556666"},
            },
        }
        assert lab.api("POST", "/api/v1/nodes", node)[0] == 201
        config = {"KUBECONFIG": lab.env["KUBECONFIG"]}
        found = bench.dpctl("node", "prune", "--yes", env=config)
        assert found.code != 0, found
        assert "is another machine (its boot ID is 00000000" in found.stderr
        named = bench.dpctl("node", "remove", OLD, "--yes", "--node", bench.node.name, env=config)
        assert named.code == 6, named
        assert "is another machine" in named.stdout
        assert OLD in lab.node(bench.node.name)["status"]["capacity"]


# -- what the API server does not say


def _plan(bench: Bench) -> tuple[Api, Snapshot]:
    env = find_env(
        Settings(kubeconfig=str(bench.plane.kubeconfig("admin")), node_name=bench.node.name)
    )
    api = connect(env)
    node = api.get_node(bench.node.name)
    return api, Snapshot(collected_at=None, sources=(), node=node, pods=(), unscheduled=())


def test_a_422_is_explained(bench: Bench) -> None:
    left_behind(bench, {"foreign.test/x": "3"}, "operator")
    api, snap = _plan(bench)
    plan = plan_removal(snap, Removal(Action.REMOVE, names=("foreign.test/x",)))
    assert plan.changing
    left_behind(bench, {"foreign.test/x": "5"}, "other-operator")
    with pytest.raises(NotAppliedError) as error:
        apply_plan(api, plan)
    assert "capacity of foreign.test/x was 3 and is 5 by other-operator" in error.value.message
    wait_for("the kubelet to follow", lambda: numbers(bench, "foreign.test/x") == ("5", "5"), 20)
    unlike = plan._replace(uid="00000000-0000-4000-8000-000000000000")
    with pytest.raises(NotAppliedError, match="made anew"):
        apply_plan(api, unlike)


def test_a_success_without_effect_is_none(bench: Bench) -> None:
    """A patch that loses its /status on the way: 200, and nothing has changed."""
    left_behind(bench, {"foreign.test/x": "3"}, "operator")
    api, snap = _plan(bench)
    plan = plan_removal(snap, Removal(Action.REMOVE, names=("foreign.test/x",)))
    exchange = api.connection.exchange

    def without_status(method: str, path: str, **more: object) -> Answer:
        return exchange(method, path.removesuffix("/status"), **more)  # type: ignore[arg-type]

    api.connection.exchange = without_status  # type: ignore[method-assign]
    with pytest.raises(NotAppliedError, match="with success and changed nothing"):
        apply_plan(api, plan)
    assert numbers(bench, "foreign.test/x") == ("3", "3")
