"""`plugins prune` and `pods prune --failed` as processes, on a lab of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.lab.api_errors import ApiError
from dpctl.lab.api_handlers import Call
from dpctl.lab.fixture import Lab
from tests.changes.nodes import OLD, running
from tests.run import dpctl

REJECTED = "batch/greedy"


@pytest.fixture(scope="module")
def own() -> Iterator[Lab]:
    """The sample lab, to be changed by the tests of this file, in their order."""
    with Lab() as running:
        yield running


@pytest.fixture
def dead(own: Lab) -> Path:
    """The socket file that the sample's dead plugin has left behind, made long ago."""
    path = own.device_plugins / "rdma.sock"
    os.utime(path, (1, 1))
    return path


def test_plugins_dry_run(own: Lab, dead: Path) -> None:
    result = dpctl("plugins", "prune", "--dry-run", "-o", "json", env=own.env)
    assert (result.code, result.err, dead.is_socket()) == (0, "", True)
    rows = {row["endpoint"]: row for row in json.loads(result.out)["items"]}
    assert {name for name, row in rows.items() if row["verdict"] == "Change"} == {"rdma.sock"}
    assert rows["kubelet.sock"]["reason"] == "it is the kubelet's own"


def test_plugins_are_not_pruned_unasked(own: Lab, dead: Path) -> None:
    result = dpctl("plugins", "prune", env=own.env)
    assert (result.code, dead.is_socket()) == (2, True)
    assert "--dry-run only shows the plan" in result.err


@pytest.mark.parametrize("name", ["kubelet.sock", "vendor-gpu.sock"])
def test_a_named_one_that_must_stay(own: Lab, dead: Path, name: str) -> None:
    result = dpctl("plugins", "prune", name, "--yes", env=own.env)
    assert (result.code, "Refuse" in result.out) == (6, True)
    assert (own.device_plugins / name).is_socket()
    assert dead.is_socket()


def test_an_unknown_one(own: Lab, dead: Path) -> None:
    result = dpctl("plugins", "prune", "nope.sock", "--yes", env=own.env)
    assert (result.code, result.out, dead.is_socket()) == (1, "", True)


def test_plugins_pruned(own: Lab, dead: Path) -> None:
    before = set(os.listdir(own.device_plugins))
    result = dpctl("plugins", "prune", "--yes", env=own.env)
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith("socket/rdma.sock pruned\n")
    assert set(os.listdir(own.device_plugins)) == before - {"rdma.sock"}
    again = dpctl("plugins", "prune", "--yes", env=own.env)
    assert (again.code, again.err) == (0, "note: nothing to remove\n")


def rejected(own: Lab) -> bool:
    result = dpctl("pods", "--failed", "-o", "name", env=own.env)
    return "greedy" in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "nothing says which pods"),
        (("--failed",), 2, "nobody can be asked here"),
        (("--failed", "nope"), 1, 'no pod "nope" here'),
        (("--failed", "--dry-run=client"), 0, ""),
        (("--failed", "--dry-run=server"), 0, ""),
        (("--failed", "--yes", "-n", "elsewhere"), 0, "no pod was rejected here"),
        (("--failed", "--yes", "--context", "lab-viewer"), 5, "viewer may not delete pods"),
        (("--failed", "--from", "/nonexistent"), 2, "a bundle cannot be changed"),
    ],
)
def test_nothing_is_deleted(own: Lab, arguments: tuple[str, ...], code: int, words: str) -> None:
    result = dpctl("pods", "prune", *arguments, env=own.env)
    assert result.code == code, result
    assert words in result.err
    assert rejected(own)


def test_only_the_rejected_go(own: Lab) -> None:
    before = dpctl("pods", "-o", "name", env=own.env).out
    result = dpctl("pods", "prune", "--failed", "--yes", "-o", "json", env=own.env)
    assert (result.code, result.err) == (0, "")
    (row,) = json.loads(result.out)["items"]
    assert (f"{row['namespace']}/{row['pod']}", row["outcome"]) == (REJECTED, "Changed")
    assert row["reason"] == "UnexpectedAdmissionError"
    assert not rejected(own)
    assert dpctl("pods", "-o", "name", env=own.env).out == before


def test_a_run_that_ends_midway_says_where(tmp_path: Path) -> None:
    with running(tmp_path) as nodes:
        nodes.add(0)
        for name in ("p-1", "p-2", "p-3"):
            nodes.add_pod(name, "n-0", OLD, phase="Failed")

            def reject(found: dict[str, Any]) -> dict[str, Any]:
                found["status"]["reason"] = "UnexpectedAdmissionError"
                return found

            nodes.store.update(
                "pods", name, reject, namespace="ml", manager="kubelet", subresource="status"
            )

        def before(call: Call) -> None:
            if call.method == "DELETE" and call.path.endswith("p-2"):
                raise ApiError(403, "Forbidden", "not this one")

        nodes.handlers.before = before
        result = dpctl("pods", "prune", "--failed", "--yes", "--node", "n-0", env=nodes.env)
    assert (result.code, result.out.splitlines()[-1]) == (5, "pod/p-1 -n ml deleted"), result
    assert "note: it ended at ml/p-2; 1 of 3 pods not tried" in result.err


def test_a_pod_called_prune(new_lab: Callable[..., Lab]) -> None:
    """The first word is the subcommand; the pod of that name is `pod/prune`."""
    lab = new_lab(scenario="empty")
    result = dpctl("pods", "pod/prune", env=lab.env)
    assert (result.code, 'no pod "prune" here' in result.err) == (1, True)
