"""The lab behaves as a kubelet of each minor does: one scenario on both, compared field by field.

Where they differ the lab is wrong, or `differences.ACCEPTED` says why that is right.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from dpctl.lab.fixture import Lab

from . import scenario
from .bench import Bench
from .differences import Difference, differences, outlived, report, unexplained
from .machines import LabMachine, RealMachine
from .observing import observe
from .sides import Side

PERIOD = 0.2
"""Seconds between two statuses, on both sides."""
CATCH_UP_SECONDS = 15.0
"""How long one may lag behind the other: nobody tells when the last word on a pod is said."""
LOOK_SECONDS = 0.2


@contextmanager
def sides(bench: Bench, told: scenario.Scenario) -> Iterator[tuple[Side, Side]]:
    """The bench's node, and a lab that passes for it."""
    names = [device.device_id for device in told.plugins["cdi"].devices]
    edits = [{"name": n, "containerEdits": {"env": [f"CARD={n}"]}} for n in names]
    cdi = bench.node.path / "cdi" / "scenario.json"
    cdi.write_text(json.dumps({"cdiVersion": "0.6.0", "kind": "s.test/cdi", "devices": edits}))
    bench.node.configure(extra={"nodeStatusUpdateFrequency": f"{PERIOD * 1000:.0f}ms"})
    version = bench.node.get()["status"]["nodeInfo"]["kubeletVersion"]
    lab = Lab(
        scenario="empty",
        node_name=bench.node.name,
        kubelet_version=version,
        status_period=PERIOD,
    )
    try:
        with lab:
            yield Side(RealMachine(bench), told), Side(LabMachine(lab), told)
    finally:
        cdi.unlink()


def compared(pool: ThreadPoolExecutor, pair: tuple[Side, Side], step: str) -> list[Difference]:
    """What they show now."""
    kubelet, lab = pool.map(observe, pair)
    return list(differences(kubelet, lab, step))


@pytest.mark.timeout(900)
def test_lab_scenario(bench: Bench) -> None:
    told = scenario.read()
    found: list[Difference] = []
    with sides(bench, told) as pair, ThreadPoolExecutor(2) as pool:
        for step in told.steps:
            began = time.monotonic()
            list(pool.map(lambda side, step=step: side.go(step), pair))
            here = compared(pool, pair, step.say)
            until = time.monotonic() + CATCH_UP_SECONDS
            while unexplained(here, bench.minor) and time.monotonic() < until:
                time.sleep(LOOK_SECONDS)
                here = compared(pool, pair, step.say)
            print(f"{time.monotonic() - began:5.1f} s  {step.say}")
            print(report(unexplained(here, bench.minor)))
            found += here
    left = unexplained(found, bench.minor)
    assert not left, f"{len(left)} differences:\n{report(left)}"
    assert not outlived(found, bench.minor)
