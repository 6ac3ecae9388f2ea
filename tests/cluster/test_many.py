"""Many Nodes of a real API server changed at once: rights, selectors, somebody who writes again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from .api import MERGE_PATCH, Api
from .bench import Bench
from .node import Result
from .plane import ADMIN
from .processes import wait_for

pytestmark = pytest.mark.newest

OLD = "old.test/retired"
COUNT = 12


class Pool:
    """Node objects without a kubelet, with a label of their own."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.api: Api = bench.plane.api()
        self.label = f"pool={bench.node.name}"
        self.names = [f"{bench.node.name}-x{number}" for number in range(COUNT)]

    def make(self) -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(self._make, self.names))

    def _make(self, name: str) -> None:
        labels = {"pool": self.bench.node.name}
        self.api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        self.write(name, "0")

    def write(self, name: str, text: str) -> None:
        """As a kubelet would."""
        keys = {"cpu": "4", OLD: text}
        status = {"status": {"capacity": keys, "allocatable": keys}}
        path = f"/api/v1/nodes/{name}/status?fieldManager=kubelet"
        self.api.patch(path, status, MERGE_PATCH)

    def left(self) -> set[str]:
        found = self.api.get(f"/api/v1/nodes?labelSelector={self.label.replace('=', '%3D')}")
        return {
            node["metadata"]["name"]
            for node in found["items"]
            if OLD in node["status"].get("capacity", {})
        }

    def remove(self, *more: str, user: str | None = ADMIN) -> Result:
        state = {"XDG_STATE_HOME": str(self.bench.node.kubelet_dir / "dpctl-state")}
        command = ("node", "remove", OLD, "--assume-gone", "-l", self.label, "--yes")
        return self.bench.dpctl(*command, *more, user=user, env=state)


@pytest.fixture
def pool(bench: Bench) -> Iterator[Pool]:
    made = Pool(bench)
    made.make()
    yield made
    for name in made.names:
        made.api.delete(f"/api/v1/nodes/{name}")


def test_all_of_a_pool_and_no_other(pool: Pool) -> None:
    bench = pool.bench
    bench.set_keys({OLD: "0"})
    dry = pool.remove("--dry-run=server")
    assert (dry.code, dry.stdout.count("removed (server dry run)")) == (0, COUNT), dry
    assert pool.left() == set(pool.names)
    done = pool.remove("--verify", "2s")
    assert (done.code, done.stdout.count(f"{OLD} removed\n")) == (0, COUNT), done
    assert pool.left() == set()
    assert OLD in bench.node.get()["status"]["capacity"]  # not of the pool


def test_one_that_comes_back_is_named(pool: Pool) -> None:
    back = pool.names[3]
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(pool.remove, "--verify", "8s", "-o", "json")
        wait_for("the removal", lambda: not pool.left(), 60, interval=0.2)
        pool.write(back, "2")
        done = running.result()
    assert done.code == 6, done
    outcomes = {row["node"]: row["outcome"] for row in json.loads(done.stdout)["items"]}
    assert {name for name, word in outcomes.items() if word == "CameBack"} == {back}
    assert set(outcomes.values()) == {"Changed", "CameBack"}
    assert "came back as 2/2, written by kubelet" in done.stderr


def test_taken_up_again_and_undone(pool: Pool) -> None:
    journal = str(pool.bench.node.kubelet_dir / "journal")
    first = pool.remove("--verify", "1s", "--resume", journal)
    assert first.code == 0, first
    again = pool.remove("--verify", "1s", "--resume", journal)
    assert (again.code, again.stdout) == (0, ""), again
    assert f"an earlier run has done {COUNT} Nodes" in again.stderr
    state = {"XDG_STATE_HOME": str(pool.bench.node.kubelet_dir / "dpctl-state")}
    name = pool.names[0]
    undone = pool.bench.dpctl(
        *("node", "undo", "--node", name, "--yes", "--verify", "1s"), env=state
    )
    assert undone.code == 0, undone
    assert pool.left() == {name}


def test_the_manifest_gives_the_rights(pool: Pool) -> None:
    """What a refusal prints is applied as it is, and then it works.

    For a user of its own: beside this test others look at what `nobody` may not do.
    """
    stranger = ("--as", f"stranger-to-{pool.bench.node.name}")
    refused = pool.remove("--verify", "0", *stranger)
    assert (refused.code, refused.stdout) == (5, ""), refused
    assert "may not" in refused.stderr
    manifest = pool.bench.node.kubelet_dir / "role.yaml"
    manifest.write_text(refused.stderr[refused.stderr.index("apiVersion:") :])
    pool.bench.plane.kubectl("apply", "-f", str(manifest))
    try:
        results: list[Result] = []

        def works() -> bool:
            results.append(pool.remove("--verify", "1s", *stranger))
            return results[-1].code == 0

        wait_for("the rights to count", works, 30)
        assert results[-1].stdout.count(" removed\n") == COUNT, results[-1]
    finally:
        pool.bench.plane.kubectl("delete", "-f", str(manifest))


def test_a_nodes_own_credentials(pool: Pool) -> None:
    done = pool.remove(user=None)
    assert (done.code, done.stdout) == (5, ""), done
    assert f"holds the credentials of Node {pool.bench.node.name}" in done.stderr
    other = pool.bench.dpctl("node", "set", f"{OLD}=1", "--node", pool.names[0], "--yes", user=None)
    assert other.code == 5, other
    assert pool.left() == set(pool.names)
