"""What is asked of a live node, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpctl.collect.live import Live
from dpctl.env import Settings, find_env
from dpctl.model import Source
from tests import build
from tests.sources.test_go_binary import program


@pytest.mark.parametrize(
    ("running", "node", "state"),
    [
        ("v1.21.14", None, "skipped"),
        ("v1.37.2", None, "failed"),  # asked, and nobody there
        ("v1.37.2", build.node(version="v1.22.0"), "skipped"),
    ],
)
def test_a_kubelet_that_may_crash_is_not_asked_whether_its_node_was_read_or_not(
    tmp_path: Path, running: str, node: object, state: str
) -> None:
    exe = tmp_path / "proc" / str(build.KUBELET_PID) / "exe"
    exe.parent.mkdir(parents=True)
    exe.write_bytes(program(f"mod\tk8s.io/kubernetes\t{running}\t\n"))
    env = find_env(Settings(host_root=str(tmp_path)), {}, scan=False)
    live = Live(
        env._replace(proc=env.proc._replace(value=str(tmp_path / "proc"))),
        frozenset({Source.ALLOCATABLE}),
        True,
    )
    live.fields.update(
        directory=build.directory(), sockets=build.table(), kubelets=(build.kubelet(),), node=node
    )
    live._read_allocatable()
    assert live.rows[Source.ALLOCATABLE].state == state
