"""`dpctl node` on a real API server: by itself, with a node's credentials, from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from .bench import Bench
from .expect import assert_table
from .plane import NO_RIGHTS
from .sample import GPU, gpus, holder

pytestmark = pytest.mark.newest


def test_one_node(bench: Bench) -> None:
    gpus(bench)
    holder(bench)
    bench.set_keys({"hand.test/made": "3"})
    bench.node.wait_resource("hand.test/made", "3", "3")
    name = bench.node.name
    for user in ("admin", None):
        assert_table(
            bench.dpctl("node", user=user),
            f"""
            NODE    RESOURCE        CAPACITY  ALLOCATABLE  REQUESTED  FREE
            {name}  hand.test/made  3         3            0          3
            {name}  {GPU}           4         4            1          3
            """,
        )
    wide = bench.dpctl("node", "hand.test/*", "-o", "wide")
    assert "Foreign" in wide.stdout, wide


def test_from_elsewhere(bench: Bench) -> None:
    """No kubelet, no directory, no socket: the API server alone."""
    gpus(bench)
    environment = {**os.environ, **bench.environment(), "DPCTL_HOST_ROOT": "/nonexistent"}
    command = [*bench.command(), "node", "--all-nodes", "ready.test/*", "-o", "json"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    found = {row["node"]: row for row in json.loads(done.stdout)["items"]}
    assert (found[bench.node.name]["capacity"], found[bench.node.name]["free"]) == ("4", 4)


def test_what_may_not_be_seen(bench: Bench) -> None:
    gpus(bench)
    nobody = bench.dpctl("node", "--all-nodes", user=NO_RIGHTS)
    assert (nobody.code, nobody.stdout) == (5, ""), nobody
    own = bench.dpctl("node", "--all-nodes", user=None)
    assert (own.code, own.stdout) == (5, ""), own
    assert "a node's own credentials see their own Node and its pods only" in own.stderr
