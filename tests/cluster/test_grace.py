"""Five minutes later: what the kubelet has let go of, and what is left (see `waiting`)."""

from __future__ import annotations

import pytest

from .everything import assert_everything
from .expect import assert_table, assert_text, document
from .processes import wait_for
from .waiting import Waiting

pytestmark = pytest.mark.last


def test_stale(waiting: Waiting) -> None:
    bench, pod = waiting.bench, waiting.pod()
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE         DEVICES  ALLOCATED  FREE  NUMA  PLUGIN       NODE
        gone.test/gpu   Stale         0/0      1          0     -     -            0/0
        idle.test/fpga  Stale         0/0      0          0     -     -            0/0
        quiet.test/nic  Unregistered  0/0      0          0     -     ~quiet.sock  0/0
        """,
    )
    assert_text(bench.dpctl("resources", "--stale", "-q"), "gone.test/gpu\nidle.test/fpga")
    assert_table(
        bench.dpctl("devices"),
        f"""
        DEVICE  RESOURCE       HEALTH  NUMA  STATE    HOLDER
        gpu-0   gone.test/gpu  ?       -     Unknown  default/{pod}/main
        """,
    )
    assert_table(
        bench.dpctl("pods"),
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE       DEVICES  NUMA  CPUS  MEMORY  ALIGNED
        default    {pod}  main       gone.test/gpu  gpu-0    -     -     -       -
        """,
    )
    assert_table(
        bench.dpctl("who", "gpu-0"),
        f"""
        DEVICE  RESOURCE       WHAT       NAMESPACE  POD    CONTAINER  STATE   PID  COMMAND
        gpu-0   gone.test/gpu  container  default    {pod}  main       active  -    -
        """,
    )
    assert_table(
        bench.dpctl("plugins"),
        f"""
        ENDPOINT    RESOURCE         STATE     KUBELET       OPTIONS  PID/COMMAND                  POD  AGE
        fpga.sock   ?                Dead      NotConnected  -        -                            -    *
        gpu.sock    ?                Dead      NotConnected  -        -                            -    *
        quiet.sock  ~quiet.test/nic  Unlinked  NotConnected  -        {waiting.quiet.pid}/python  -    -
        """,  # noqa: E501
    )
    rows = document(bench.dpctl("resources", "-o", "json"))["items"]
    assert {row["resource"]: (row["tracked"], row["owners"]) for row in rows} == {
        "gone.test/gpu": (False, ["kubelet"]),
        "idle.test/fpga": (False, ["kubelet"]),
        "quiet.test/nic": (False, ["kubelet"]),
    }
    assert_everything(bench)


def test_removal_sticks(waiting: Waiting) -> None:
    """The end of every tutorial: the key goes, by kubectl, and stays away."""
    node = waiting.node
    patch = '{"status":{"capacity":{"idle.test/fpga":null}}}'
    waiting.bench.plane.kubectl(
        "patch", "node", node.name, "--subresource=status", "--type=merge", "-p", patch
    )
    wait_for(
        "the allocatable twin to go, too",
        lambda: "idle.test/fpga" not in waiting.bench.extended_keys(),
        30,
    )
    waiting.bench.set_keys({"marker.test/x": "1"})
    node.wait_resource("marker.test/x", "1")  # a status build has passed
    found = waiting.bench.dpctl("resources", "-q")
    waiting.bench.set_keys({"marker.test/x": None})
    node.wait_resource("marker.test/x", None)
    assert_text(found, "gone.test/gpu\nmarker.test/x\nquiet.test/nic")
