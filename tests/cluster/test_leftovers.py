"""Dead sockets and rejected pods tidied up on a real node."""

from __future__ import annotations

import json
import os

import pytest

from . import pods
from .api import MERGE_PATCH
from .bench import Bench
from .expect import assert_text
from .plane import NO_RIGHTS
from .processes import wait_for
from .sample import GPU, gpus, holder

pytestmark = pytest.mark.ends


def test_dead_sockets_go_and_living_ones_stay(bench: Bench) -> None:
    gpus(bench)
    holder(bench)
    bench.plugin("other.test/nic", ["nic-0"]).kill()
    directory = bench.node.kubelet_dir / "device-plugins"
    dead = directory / "nic.sock"
    assert dead.is_socket()
    os.utime(dead)  # as if made just now, however long this took
    young = bench.dpctl("plugins", "prune", "nic.sock", "--yes")
    assert (young.code, dead.is_socket()) == (6, True), young
    assert "a plugin may be about to listen on it" in young.stdout
    os.utime(dead, (1, 1))
    dry = bench.dpctl("plugins", "prune", "--dry-run")
    assert (dry.code, dead.is_socket()) == (0, True), dry
    done = bench.dpctl("plugins", "prune", "--yes", "-o", "json")
    assert done.code == 0, done
    rows = {row["endpoint"]: row for row in json.loads(done.stdout)["items"]}
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "gpu.sock": None,
        "kubelet.sock": None,
        "nic.sock": "Changed",
    }
    assert not dead.exists()
    bench.node.wait_resource(GPU, "4", "4")
    assert bench.dpctl("plugins", "-q").stdout == "gpu.sock\n"


def test_the_kubelets_socket_stays_without_a_kubelet(bench: Bench) -> None:
    bench.node.kill_kubelet()
    socket = bench.node.kubelet_dir / "device-plugins" / "kubelet.sock"
    os.utime(socket, (1, 1))
    done = bench.dpctl("plugins", "prune", "--yes")
    assert (done.code, socket.is_socket()) == (0, True), done
    named = bench.dpctl("plugins", "prune", "kubelet.sock", "--yes")
    assert (named.code, socket.is_socket()) == (6, True), named
    bench.node.start_kubelet()


def rejected(bench: Bench) -> str:
    """A pod that asks for more than there is, bound without asking the scheduler."""
    name = f"greedy-{bench.node.name}"
    bench.node.create_pod(name, {GPU: 9}, phase="Failed", scheduled=False)
    return name


def test_a_rejected_pod_that_a_finalizer_holds(bench: Bench) -> None:
    gpus(bench)
    name = rejected(bench)
    path = f"/api/v1/namespaces/default/pods/{name}"
    api = bench.plane.api()
    api.patch(path, {"metadata": {"finalizers": ["example.com/counted"]}}, MERGE_PATCH)
    done = bench.dpctl("pods", "prune", "--failed", "--yes")
    assert done.code == 6, done
    assert "marked for deletion, held by example.com/counted (finalizers)" in done.stderr
    api.patch(path, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    wait_for("the pod to be gone", lambda: pods.find(api, name) is None, 10)


def test_rejected_pods_go_and_others_stay(bench: Bench) -> None:
    gpus(bench)
    other = holder(bench)
    name = rejected(bench)
    api = bench.plane.api()
    shown = bench.dpctl("pods", "prune", "--failed", "--dry-run=client", "-o", "json")
    (row,) = json.loads(shown.stdout)["items"]
    assert (row["pod"], row["outcome"]) == (name, None)
    assert row["reason"] in ("UnexpectedAdmissionError", "OutOfready.test/gpu")
    refused = bench.dpctl("pods", "prune", "--failed", "--yes", user=NO_RIGHTS)
    assert (refused.code, pods.find(api, name) is None) == (5, False), refused
    dry = bench.dpctl("pods", "prune", "--failed", "--dry-run=server", "-q")
    assert (dry.code, pods.find(api, name) is None) == (0, False), dry
    # With the node's own credentials.
    done = bench.dpctl("pods", "prune", "--failed", "--yes", "-q", user=None)
    assert done.code == 0, done
    wait_for("the pod to be gone", lambda: pods.find(api, name) is None, 10)
    assert pods.find(api, other) is not None
    assert_text(
        bench.dpctl("pods", "prune", "--failed", "--yes"), "", "note: no pod was rejected here"
    )
