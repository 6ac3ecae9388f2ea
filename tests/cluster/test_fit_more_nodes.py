"""The same as test_fit on a machine of four NUMA nodes, 4 CPUs each, of which 2 and 3 are near;
and on one of nine, which is more than a kubelet takes by itself."""

from __future__ import annotations

import pytest

from . import sysfs
from .bench import Bench
from .fitting import (
    AFFINITY,
    UNEXPECTED,
    Case,
    Stage,
    assert_same_verdicts,
    exact,
    made,
    start_plugins,
    static,
)
from .processes import ClusterError
from .settings import KubeletSettings
from .sysfs import Machine

pytestmark = pytest.mark.ends

GPU, NIC, CORNER, PAIR = "fit.test/gpu", "fit.test/nic", "fit.test/corner", "fit.test/pair"
FOUR, NINE = Machine(4, 16), Machine(9, 18)
PLUGINS = {
    GPU: made("gpu", *[(node,) for node in range(4) for _ in range(2)]),
    NIC: made("nic", (1,), (3,)),
    CORNER: made("corner", (0,), (2,), (3,)),
    PAIR: made("pair", (0, 1), (2, 3)),
}


def memory(nodes: float) -> str:
    """As much as is on so many of the four."""
    return f"{int(sysfs.memory_kib() / 4 * nodes)}Ki"


NEARNESS = {
    "on two": Case("yes", exact(6, memory(1.5), gpu=3)),
    "first or nearest": Case("yes", exact(6, memory(1.5), corner=2)),
    "both wide ones": Case("yes", {PAIR: 2, GPU: 3}),
}
DISTANT = [
    Stage(
        {
            **NEARNESS,
            "on one": Case("yes", exact(4, gpu=2)),
            "on three": Case("yes", exact(10, memory(2.5), gpu=5)),
            "on all": Case("yes", exact(15, memory(3.5), gpu=8)),
            "three and two": Case(AFFINITY, exact(10, memory(1.5), gpu=5)),
            "at both ends": Case("yes", {NIC: 2}),
            "wide ones": Case("yes", {PAIR: 1, GPU: 2}),
            "both wide ones, one node": Case(AFFINITY, {PAIR: 2, GPU: 2}),
            "two and one": Case(AFFINITY, exact(6, memory(1.5), gpu=3, nic=1)),
            "two containers": Case("yes", exact(4, gpu=2), more=exact(6, memory(1.5), gpu=3)),
        }
    ),
    Stage(
        {
            "all of another": Case("yes", exact(4, gpu=2, nic=1)),
            "beside it": Case("yes", exact(6, memory(1.5), gpu=4)),
            "not beside it": Case("yes", exact(6, memory(1.5), corner=2)),
            "no three left": Case(AFFINITY, exact(12, memory(2.5), gpu=5)),
        },
        holders=(exact(2, gpu=1), exact(2, gpu=1)),
    ),
]

GROUPS: dict[str, tuple[KubeletSettings, list[Stage]]] = {
    "restricted": (static("restricted"), [Stage(NEARNESS)]),
    "restricted, closest": (
        static(
            "restricted",
            topology_options={
                "prefer-closest-numa-nodes": "true",
                "max-allowable-numa-nodes": "16",
            },
        ),
        DISTANT,
    ),
    "single-numa-node, pod": (
        static("single-numa-node", "pod"),
        [
            Stage(
                {
                    "sum fits one": Case("yes", exact(2, gpu=1), more=exact(2, gpu=1)),
                    "sum does not": Case(AFFINITY, exact(3, gpu=1), more=exact(2, gpu=1)),
                    "the only node": Case("yes", exact(1, nic=1), more=exact(3, corner=1)),
                    "no node": Case(AFFINITY, exact(1, nic=2)),
                    "a wide one": Case("yes", exact(1, pair=1)),
                    "both wide ones": Case(AFFINITY, exact(1, pair=2)),
                }
            ),
        ],
    ),
    "best-effort, CPUs spread": (
        KubeletSettings(
            "best-effort",
            cpu_policy="static",
            cpu_options={"distribute-cpus-across-numa": "true"},
            topology_options={"prefer-closest-numa-nodes": "true"},
        ),
        [
            Stage(
                {
                    "on two": Case("yes", exact(6, gpu=3)),
                    "on three": Case("yes", exact(9, gpu=6)),
                    "on all": Case("yes", exact(14, gpu=7)),
                    "more than there are": Case(UNEXPECTED, exact(16)),
                }
            ),
            Stage({"odd": Case("yes", exact(7, corner=3))}, holders=(exact(3), exact(2))),
        ],
    ),
}


@pytest.mark.parametrize("group", GROUPS)
def test_four_nodes(bench: Bench, group: str) -> None:
    settings, stages = GROUPS[group]
    bench.node.configure(settings, machine=FOUR)
    start_plugins(bench, PLUGINS)
    assert_same_verdicts(bench, stages)


def test_nine_nodes(bench: Bench) -> None:
    """A kubelet with a policy does not start, and dpctl says so; with an option it does."""
    with pytest.raises(ClusterError):
        bench.node.configure(KubeletSettings("best-effort"), machine=NINE)
    assert bench.node.kubelet is not None
    assert "unsupported on machines with more than 8 NUMA Nodes" in bench.node.kubelet.log_tail()
    result = bench.dpctl("topology", "--fit", f"{GPU}=1")
    assert result.code == 3, result
    assert "does not start with policy best-effort here: unsupported on machines" in result.stderr

    option = {"max-allowable-numa-nodes": "9"}
    bench.node.configure(topology_options=option)
    start_plugins(bench, {GPU: made("gpu", *[(node,) for node in range(9)])})
    stage = Stage({"spread": Case("yes", {GPU: 7}), "too many": Case(UNEXPECTED, {GPU: 10})})
    assert_same_verdicts(bench, [stage])
