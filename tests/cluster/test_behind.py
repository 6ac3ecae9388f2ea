"""A checkpoint that lacks the kubelet's last write.

A kubelet gathers what it knows and writes it in two steps, so where several plugins register at
once the file may lack one of them. That falls out once in some hundred restarts; here the file is
made so by hand, and the kubelet is real.
"""

from __future__ import annotations

import pytest

from dpctl.lab.spec import SampleDevice
from dpctl.statefiles.device_checkpoint import encode_checkpoint, parse_checkpoint

from .bench import Bench
from .expect import assert_table
from .plugins import devices
from .processes import wait_for

GPU = "behind.test/gpu"
IDS = ["gpu-0", "gpu-1", "gpu-2"]


@pytest.mark.parametrize("written", [{GPU: ()}, {}], ids=["devices", "name"])
def test_the_last_write_is_missing(bench: Bench, written: dict[str, tuple[str, ...]]) -> None:
    bench.plugin(GPU, devices(IDS, [0, 0, 1]))
    pod = f"held-{bench.node.name}"
    bench.node.create_pod(pod, {GPU: 1})
    content = parse_checkpoint(bench.checkpoint_file.read_bytes())
    bench.checkpoint_file.write_bytes(encode_checkpoint(content.allocations, written))
    table = """
        RESOURCE         STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        behind.test/gpu  Ready  3/3      {}          {}     0:2 1:1  gpu.sock  3/3
    """
    assert_table(bench.dpctl("resources"), table.format(1, 2))
    waited = bench.dpctl("plugin", "wait", GPU, "--count", "3", "--timeout", "30s")
    # Whether it also says that it waits depends on how soon it asks the kubelet.
    assert (waited.code, waited.stdout) == (0, f"resource/{GPU} allocatable (3)\n"), waited
    # The next allocation makes the kubelet write all that it knows.
    bench.node.create_pod(f"next-{bench.node.name}", {GPU: 1})
    wait_for("the file to be whole", lambda: set(IDS) == set(registered(bench)), 10)
    assert_table(bench.dpctl("resources"), table.format(2, 1))


def test_beside_a_plugin_that_has_just_died(bench: Bench) -> None:
    """Its number is on the Node for a status period, and the one connected socket looks like its
    own. The key that the checkpoint lacks is a live plugin's all the same."""
    live, dead = "behind.test/live", "behind.test/dead"
    untold = [SampleDevice(name, ()) for name in ("a", "b")]  # not in GetAllocatableResources
    bench.plugin(live, untold, endpoint="one.sock")
    plugin = bench.plugin(dead, devices(["c", "d"]), endpoint="two.sock")
    before = bench.checkpoint_file.read_bytes()
    content = parse_checkpoint(before)
    written = {name: ids for name, ids in content.registered.items() if name != live}
    bench.checkpoint_file.write_bytes(encode_checkpoint(content.allocations, written))
    plugin.kill()
    removed = bench.dpctl("node", "remove", live, "--yes", "--verify", "0")
    bench.checkpoint_file.write_bytes(before)
    assert (removed.code, "listens on one.sock" in removed.stdout) == (6, True), removed
    assert bench.node.get()["status"]["allocatable"][live] == "2"
    bench.node.wait_resource(dead, "0", "2")


def registered(bench: Bench) -> list[str]:
    found: list[str] = bench.checkpoint()["Data"]["RegisteredDevices"].get(GPU, [])
    return found
