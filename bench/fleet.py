"""`make bench-cluster`: one key removed from many Nodes of a real API server, by `dpctl node remove
--all-nodes` and by a shell loop of `kubectl patch`, in one run; and what memory it takes.

Needs root, Go and the Kubernetes binaries that `make test-cluster` builds. No kubelet runs: the
Nodes are objects alone, of the size that real ones have.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from dpctl.env import Settings, find_env
from dpctl.sources.apiserver import Api, connect
from tests.cluster.control import ControlPlane

KEY = "old.example/retired"
POINTER = KEY.replace("/", "~1")
MERGE = "application/merge-patch+json"
_PARALLEL = 16
_IMAGES = 40
GOAL = 10.0


class Run(NamedTuple):
    seconds: float
    peak: int
    """MiB."""


class Fleet:
    """Nodes of an API server, with the dead key on each."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        env = find_env(Settings(kubeconfig=str(kubeconfig), request_timeout=60.0), {})
        self.api: Api = connect(env, connections=_PARALLEL, patience=120.0)
        self.count = 0

    def grow(self, count: int) -> None:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(self._create, range(self.count, count)))
        self.count = count

    def restore(self, count: int) -> None:
        """The key is there again, on the first Nodes."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(self._fill, range(count)))

    def left(self) -> int:
        pages = self.api.get_json("/api/v1/nodes")
        assert isinstance(pages, dict)
        return sum(KEY in node["status"].get("capacity", {}) for node in pages["items"])

    def _create(self, number: int) -> None:
        labels = {"kubernetes.io/hostname": name(number), "pool": "bench"}
        self._send("POST", "/api/v1/nodes", {"metadata": {"name": name(number), "labels": labels}})
        self._fill(number)

    def _fill(self, number: int) -> None:
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", KEY: "0"}
        images = [
            {"names": [f"registry.example/team/image-{n}@sha256:{n:064x}"], "sizeBytes": 1 << 28}
            for n in range(_IMAGES)
        ]
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "images": images,
            "conditions": [ready],
        }
        self._send("PATCH", f"/api/v1/nodes/{name(number)}/status", {"status": status}, MERGE)

    def _send(self, method: str, path: str, body: Any, kind: str = "application/json") -> None:
        answer = self.api.connection.exchange(
            method,
            path,
            query=[("fieldManager", "kubelet")],
            body=json.dumps(body).encode(),
            content_type=kind,
        )
        if answer.status not in (200, 201, 409):
            raise SystemExit(f"{method} {path}: {answer.status}: {answer.body[:300]!r}")


def name(number: int) -> str:
    return f"node-{number:05d}"


def with_dpctl(fleet: Fleet, state: Path) -> Run:
    """The command, without its verify window, which all Nodes share."""
    command = [sys.executable, "-m", "dpctl", "node", "remove", KEY, "--assume-gone"]
    command += ["--all-nodes", "--yes", "--verify", "0", "-q", "--request-timeout", "60s"]
    env = {**os.environ, "KUBECONFIG": str(fleet.kubeconfig), "XDG_STATE_HOME": str(state)}
    begun = time.monotonic()
    with subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begun
    if process.returncode != 0 or fleet.left():
        raise SystemExit(f"dpctl ended with {process.returncode}:\n{said[-3000:]}")
    return Run(seconds, usage.ru_maxrss // 1024)


def with_kubectl(fleet: Fleet, kubectl: Path, count: int) -> Run:
    """What people write today: no look before, none after."""
    remove = [
        {"op": "remove", "path": f"/status/{part}/{POINTER}"}
        for part in ("capacity", "allocatable")
    ]
    script = (
        'for node in $NODES; do "$KUBECTL" patch node "$node" --subresource=status --type=json'
        ' -p "$PATCH" >/dev/null || exit 1; done'
    )
    env = {
        **os.environ,
        "KUBECONFIG": str(fleet.kubeconfig),
        "KUBECTL": str(kubectl),
        "NODES": " ".join(name(number) for number in range(count)),
        "PATCH": json.dumps(remove),
    }
    begun = time.monotonic()
    subprocess.run(["sh", "-c", script], env=env, check=True)
    return Run(time.monotonic() - begun, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--loop", type=int, help="Nodes for kubectl, scaled up (default: all)")
    given = parser.parse_args()
    loop = given.loop or given.nodes
    few = min(given.nodes, 500)  # one page of a list, which is what must fit into memory
    with ControlPlane() as plane, tempfile.TemporaryDirectory() as state:
        plane.wait_ready()
        fleet = Fleet(plane.kubeconfig())
        fleet.grow(few)
        small = with_dpctl(fleet, Path(state))
        fleet.grow(given.nodes)
        fleet.restore(given.nodes)
        large = with_dpctl(fleet, Path(state))
        fleet.restore(loop)
        shell = with_kubectl(fleet, plane.bin / "kubectl", loop)
    whole = shell.seconds * given.nodes / loop
    scaled = "" if loop == given.nodes else f", from {loop} of them"
    print(f"| {given.nodes} Nodes, real API server | seconds | peak memory |")
    print("| --- | ---: | ---: |")
    print(f"| `dpctl node remove --all-nodes` | {large.seconds:.1f} | {large.peak} MiB |")
    print(f"| ... the same for {few} Nodes | {small.seconds:.1f} | {small.peak} MiB |")
    print(f"| a loop of `kubectl patch`{scaled} | {whole:.1f} | |")
    ratio = whole / large.seconds
    print(f"\n{ratio:.1f} times faster (goal: {GOAL:g})")
    return 0 if ratio >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
