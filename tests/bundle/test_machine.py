"""Local evidence counts only for the Node it belongs to, in a bundle as on a live node."""

from __future__ import annotations

import pytest

from dpctl.bundle.machine import one_machine
from dpctl.model import Snapshot, Source, SourceRow
from tests import build


@pytest.mark.parametrize(
    ("boot_id", "kubelet", "kept"),
    [
        ("b", "worker-0", True),
        (None, "worker-0", True),
        ("b", None, True),
        ("other", "worker-0", False),
        ("b", "worker-9", False),
    ],
)
def test_the_node_of_another_machine_is_not_mixed_in(
    boot_id: str | None, kubelet: str | None, kept: bool
) -> None:
    snap = Snapshot(
        build.NOW,
        (SourceRow(Source.NODE, "api/node.json", "read"),),
        from_bundle=True,
        node=build.node({"a.example/x": "1"}),
        pods=(),
        boot_id=boot_id,
        kubelets=(build.kubelet()._replace(node_name=kubelet),),
    )
    found = one_machine(snap)
    assert (found.node is not None) is kept
    assert (found.pods is not None) is kept
    assert (found.sources[0].state == "read") is kept
