"""`dpctl topology -f` against the kubelet itself: the same pods, the same verdicts.

The node has two NUMA nodes that the machine need not have, 8 CPUs each.
"""

from __future__ import annotations

import pytest

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
from .settings import KubeletSettings

pytestmark = pytest.mark.ends

GPU, NIC, ONE, WIDE = "fit.test/gpu", "fit.test/nic", "fit.test/one", "fit.test/wide"
PLAIN, MINUS, EMPTY, FAR, MIXED = (
    "fit.test/plain",
    "fit.test/minus",
    "fit.test/empty",
    "fit.test/far",
    "fit.test/mixed",
)
PLUGINS = {
    GPU: made("gpu", *[(0,)] * 4, *[(1,)] * 4),
    NIC: made("nic", (0,), (1,)),
    ONE: made("one", (1,), (1,)),
    WIDE: made("wide", (0, 1), (0, 1)),
    PLAIN: made("plain", None, None, None),
    MINUS: made("minus", (-1,), (-1,)),
    EMPTY: made("empty", (), ()),
    FAR: made("far", (5,), (0,)),
    MIXED: made("mixed", (0,), None, (-1,)),
}

ONLY_DEVICES = {
    "all of one node": Case("yes", {GPU: 4}),
    "one of each": Case("yes", {GPU: 1, NIC: 1, WIDE: 1, PLAIN: 1}),
    "more than there are": Case(UNEXPECTED, {GPU: 9}),
    "no topology": Case("yes", {PLAIN: 3}),
    "on two nodes each": Case("yes", {WIDE: 2}),
    "empty topology": Case("yes", {EMPTY: 2}),
}

GROUPS: dict[str, tuple[KubeletSettings, list[Stage]]] = {
    "none": (
        KubeletSettings(),
        [
            Stage(
                {
                    **ONLY_DEVICES,
                    "both nodes": Case("yes", {GPU: 6}),
                    "minus one": Case("yes", {MINUS: 2}),
                    "init container gives on": Case("yes", {GPU: 8}, init={GPU: 8}),
                    "sidecar keeps": Case(UNEXPECTED, {GPU: 8}, sidecar={GPU: 1}),
                    "none of it": Case("yes", {GPU: 0}),
                }
            )
        ],
    ),
    "none, static managers": (
        static("none"),
        [
            Stage(
                {
                    "all CPUs": Case("yes", exact(15)),
                    "one CPU too many": Case(UNEXPECTED, exact(16)),
                    "not Guaranteed": Case("yes", {"cpu": 2}),
                    "memory of two nodes": Case("yes", exact(1, "16Gi")),
                    "memory of none": Case(UNEXPECTED, exact(1, "64Gi")),
                }
            ),
            Stage(
                {
                    "what is left": Case("yes", exact(8, gpu=2)),
                    "more than is left": Case(UNEXPECTED, exact(9)),
                    "joined and single": Case(UNEXPECTED, exact(1, "16Gi")),
                },
                holders=(exact(7),),
            ),
        ],
    ),
    "best-effort": (
        static("best-effort"),
        [
            Stage(
                {
                    **ONLY_DEVICES,
                    "minus one": Case("yes", {MINUS: 2}),
                    "apart": Case("yes", exact(8, gpu=8)),
                    "unknown node": Case("yes", {FAR: 2}),
                    "two containers": Case("yes", exact(7, gpu=4), more=exact(8, gpu=4)),
                }
            ),
            Stage(
                {
                    "spread": Case("yes", {GPU: 5}),
                    "aligned": Case("yes", exact(8, gpu=4)),
                    "nothing left": Case(UNEXPECTED, exact(1, gpu=6)),
                },
                holders=(exact(2, gpu=3),),
            ),
        ],
    ),
    "restricted": (
        static("restricted"),
        [
            Stage(
                {
                    **ONLY_DEVICES,
                    "more than there are": Case(AFFINITY, {GPU: 9}),
                    "too big for one": Case("yes", {GPU: 6}),
                    "too big, and small": Case(AFFINITY, {GPU: 6, NIC: 1}),
                    "both too big": Case("yes", {GPU: 6, NIC: 2}),
                    "minus one": Case(AFFINITY, {MINUS: 1}),
                    "unknown node": Case("yes", {FAR: 1}),
                    "unknown nodes": Case(AFFINITY, {FAR: 2}),
                    "some without": Case("yes", {MIXED: 1}),
                    "more than with": Case(AFFINITY, {MIXED: 2}),
                    "one node only": Case("yes", exact(8, one=2)),
                    "CPUs too big": Case(AFFINITY, exact(9, gpu=1)),
                    "memory too big": Case(AFFINITY, exact(1, "16Gi", gpu=1)),
                    "all too big": Case("yes", exact(9, "16Gi", gpu=5)),
                }
            ),
            Stage(
                {
                    "would fit an empty one": Case(AFFINITY, exact(8, gpu=5, nic=1)),
                    "the other node": Case("yes", exact(8, gpu=4)),
                    "rest of this node": Case("yes", exact(5, gpu=1)),
                    "CPUs of one, devices of the other": Case(AFFINITY, exact(6, one=3)),
                    "joined and single": Case(UNEXPECTED, exact(1, "16Gi")),
                    "init gives on": Case("yes", exact(4, gpu=4), init=exact(4, gpu=4)),
                },
                holders=(exact(2, gpu=3),),
            ),
        ],
    ),
    "single-numa-node": (
        static("single-numa-node"),
        [
            Stage(
                {
                    **ONLY_DEVICES,
                    "more than there are": Case(AFFINITY, {GPU: 9}),
                    "too big for one": Case(AFFINITY, {GPU: 5}),
                    "minus one": Case(AFFINITY, {MINUS: 1}),
                    "CPUs and devices": Case("yes", exact(8, gpu=4)),
                    "too many CPUs": Case(AFFINITY, exact(9)),
                    "too much memory": Case(AFFINITY, exact(1, "16Gi")),
                    "two containers": Case("yes", exact(7, gpu=4), more=exact(8, gpu=4)),
                    "second does not fit": Case(AFFINITY, exact(5, gpu=3), more=exact(9, gpu=1)),
                    "not Guaranteed": Case("yes", {"cpu": 12, GPU: 4}),
                }
            ),
            Stage(
                {
                    "left on one": Case("yes", exact(5, gpu=2, nic=1)),
                    "CPUs left on none": Case(AFFINITY, exact(6, gpu=2)),
                    "devices left on none": Case(AFFINITY, exact(1, gpu=3)),
                },
                holders=(exact(2, gpu=2), exact(7, gpu=2)),
            ),
        ],
    ),
    "restricted, pod": (
        static("restricted", "pod"),
        [
            Stage(
                {
                    "sum fits one": Case("yes", exact(4, gpu=2), more=exact(4, gpu=2)),
                    "memory fits": Case(AFFINITY, exact(5, gpu=3), more=exact(5, gpu=3)),
                    "all too big": Case("yes", exact(5, "8Gi", gpu=3), more=exact(5, "8Gi", gpu=3)),
                    "sum too big, CPUs not": Case(AFFINITY, exact(2, gpu=3), more=exact(2, gpu=3)),
                    "init is more": Case(AFFINITY, exact(2, gpu=1), init=exact(2, gpu=5)),
                    "init is less": Case("yes", exact(4, gpu=4), init=exact(2, gpu=2)),
                    "sidecar adds": Case(AFFINITY, exact(1, gpu=4), sidecar=exact(1, gpu=1)),
                    "no topology": Case("yes", {PLAIN: 1}, more={PLAIN: 2}),
                }
            )
        ],
    ),
    "single-numa-node, pod": (
        static("single-numa-node", "pod"),
        [
            Stage(
                {
                    "sum fits one": Case("yes", exact(4, gpu=2), more=exact(4, gpu=2)),
                    "sum does not": Case(AFFINITY, exact(4, gpu=2), more=exact(4, gpu=3)),
                    "one without": Case("yes", exact(8, gpu=4), more={"cpu": "100m"}),
                    "init gives on": Case("yes", exact(8, gpu=4), init=exact(8, gpu=4)),
                    "sidecar beside init": Case(
                        AFFINITY, exact(1), init=exact(1, gpu=4), sidecar=exact(1, gpu=1)
                    ),
                    "minus one": Case(AFFINITY, exact(1), more=exact(1, minus=1)),
                }
            )
        ],
    ),
    "restricted, CPUs spread": (
        KubeletSettings(
            "restricted",
            cpu_policy="static",
            cpu_options={"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"},
        ),
        [
            Stage(
                {
                    "on one": Case("yes", exact(4, gpu=2)),
                    "evenly": Case("yes", exact(10, gpu=5)),
                    "all but the reserved": Case("yes", exact(15)),
                    "too many": Case(AFFINITY, exact(16)),
                    "nothing left on one": Case(AFFINITY, exact(9), more=exact(6)),
                }
            ),
            Stage({"odd": Case("yes", exact(11))}, holders=(exact(3),)),
        ],
    ),
    "restricted, devices only": (
        KubeletSettings(
            topology_policy="restricted",
            topology_options={"prefer-closest-numa-nodes": "true"},
        ),
        [
            Stage(
                {
                    "CPUs do not count": Case("yes", exact(9, gpu=4)),
                    "memory does not count": Case("yes", exact(1, "16Gi", gpu=4)),
                    "too big and one": Case(AFFINITY, {GPU: 5, ONE: 1}),
                    "two of one each": Case("yes", {GPU: 2, NIC: 1}),
                }
            ),
            Stage(
                {
                    "apart": Case(AFFINITY, {NIC: 1, MIXED: 1}),
                    "together": Case("yes", {NIC: 1, ONE: 2}),
                },
                holders=({NIC: 1},),
            ),
        ],
    ),
}


def test_there_are_enough_cases() -> None:
    assert sum(len(stage.cases) for _, stages in GROUPS.values() for stage in stages) >= 60


@pytest.mark.parametrize("group", GROUPS)
def test_fit(bench: Bench, group: str) -> None:
    settings, stages = GROUPS[group]
    bench.node.configure(settings)
    start_plugins(bench, PLUGINS)
    assert_same_verdicts(bench, stages)
