"""The story that every device-plugin tutorial tells, with upstream's plugin and a real kubectl."""

from __future__ import annotations

import os
import sys

import pytest

from . import pods
from .bench import Bench
from .expect import assert_table, assert_text
from .node import SAMPLE_RESOURCE, Result
from .plane import ADMIN
from .processes import wait_for
from .test_removal import numbers
from .waiting import Waiting


def test_tutorial(bench: Bench) -> None:
    plane, node = bench.plane, bench.node
    plugin = bench.sample_plugin()
    assert_table(
        bench.started("resources"),
        """
        RESOURCE              STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        example.com/resource  Ready  2/2      0          2     -     *       2/2
        """,
    )
    shown = "jsonpath={.status.allocatable.example\\.com/resource}"
    assert plane.kubectl("get", "node", node.name, "-o", shown) == "2"

    first, second = f"first-{node.name}", f"second-{node.name}"
    node.create_pod(first, {SAMPLE_RESOURCE: 1})
    found = bench.started("devices", "-o", "csv")
    assert found.code == 0
    held = [line.split(",")[0] for line in found.stdout.splitlines() if first in line]
    assert held in (["Dev-1"], ["Dev-2"])
    assert_text(
        bench.dpctl("pods", first),
        f"""
        Name:       {first}
        Namespace:  default
        UID:        {bench.pod_uid(first)}
        Phase:      Running
        Node:       {node.name}
        Containers:
          main:
            Kind:        app
            CPUs:        shared pool
            Memory:      -
            Aligned:     -
            Known from:  checkpoint, podresources
            example.com/resource:
              Devices:    {held[0]} on no NUMA node
              Requested:  1
              Mounts:     /tmp/{held[0]} at /tmp/{held[0]} (rw): ok, file
        """,
    )

    pods.create(plane.api(), pods.manifest(second, node.name, {SAMPLE_RESOURCE: 2}))
    message = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
    wait_for(
        "the scheduler to say what is missing",
        lambda: (
            f"Insufficient {SAMPLE_RESOURCE}" in plane.kubectl("get", "pod", second, "-o", message)
        ),
        30,
    )
    assert plane.kubectl("get", "pod", second, "-o", "jsonpath={.status.phase}") == "Pending"
    # It is bound to no node, so it counts on none.
    assert_table(
        bench.dpctl("resources", "-o", "wide"),
        """
        RESOURCE              STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE  CHECKPOINT  KUBELET  REQUESTED  OWNER    NOTE
        example.com/resource  Ready  2/2      1          1     -     *       2/2   2           2        1          kubelet  *
        """,  # noqa: E501
    )

    node.delete_pod(second)
    node.delete_pod(first)
    plugin.kill()
    node.wait_resource(SAMPLE_RESOURCE, "0", "2")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE              STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        example.com/resource  Grace  0/2      0          0     -     -       2/0
        """,
    )
    # Taken away while the kubelet still tracks it, the key comes back by itself.
    patch = '{"status":{"capacity":{"example.com/resource":null}}}'
    plane.kubectl("patch", "node", node.name, "--subresource=status", "--type=merge", "-p", patch)
    node.wait_resource(SAMPLE_RESOURCE, "0", "2")
    assert_text(bench.dpctl("resources", "-o", "jsonpath={.items[*].state}"), "Grace")


@pytest.mark.last
def test_tutorial_to_its_end(waiting: Waiting) -> None:
    """The same on the node where a grace runs out (see `waiting`): the key goes, and stays away."""
    bench, node, story = waiting.bench, waiting.node, waiting.story
    line = """
        RESOURCE              STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        example.com/resource  {}
        """
    assert_table(story["registered"], line.format("Ready  2/2  0  2  -  *  2/2"))
    assert_table(story["held"], line.format("Ready  2/2  1  1  -  *  2/2"))
    assert f"Insufficient {SAMPLE_RESOURCE}" in waiting.pending
    assert_table(story["stopped"], line.format("Grace  0/2  1  0  -  -  2/0"))
    assert waiting.removal.returncode == 0, waiting.said
    assert f"waiting for the kubelet to let go of {SAMPLE_RESOURCE}" in waiting.said
    assert f"node/{node.name} {SAMPLE_RESOURCE} removed" in waiting.said
    bench.set_keys({"marker.test/x": "1"})
    node.wait_resource("marker.test/x", "1")  # a status build has passed
    bench.set_keys({"marker.test/x": None})
    node.wait_resource("marker.test/x", None)
    assert numbers(bench, SAMPLE_RESOURCE) == (None, None)
    assert_text(
        bench.dpctl("resources", SAMPLE_RESOURCE),
        "",
        """
        error: no resource "example.com/resource" here
        hint: dpctl resources lists what there is
        """,
        code=1,
    )


def installed(bench: Bench) -> dict[str, str]:
    """dpctl's programs as pip makes them for the entry points, with this checkout's code, on the
    PATH of an environment."""
    scripts = bench.plane.path / f"scripts-{bench.node.name}"
    scripts.mkdir(exist_ok=True)
    programs = {
        "dpctl": "dpctl.__main__:main",
        "kubectl-dp": "dpctl.__main__:main",
        "kubectl_complete-dp": "dpctl.complete:kubectl_complete",
    }
    for name, entry in programs.items():
        module, function = entry.split(":")
        script = scripts / name
        script.write_text(
            f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\n"
            f"sys.exit({function}())\n"
        )
        script.chmod(0o755)
    # kubectl warns of directories on PATH that are not there.
    usual = [place for place in os.environ["PATH"].split(os.pathsep) if os.path.isdir(place)]
    path = os.pathsep.join([str(scripts), str(bench.plane.bin), *usual])
    return bench.environment(env={"PATH": path})


def test_through_kubectl(bench: Bench) -> None:
    bench.plugin("plain.test/gpu", ["gpu-0"])
    environment = installed(bench)

    def kubectl(*words: str) -> Result:
        return bench.node.run(str(bench.plane.bin / "kubectl"), *words, env=environment)

    expected = """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN    NODE
        plain.test/gpu  Ready  1/1      0          1     -     gpu.sock  1/1
        """
    assert_table(kubectl("dp", "resources"), expected)
    # kubectl's global flags, where a plugin can have them.
    config = bench.plane.kubeconfig(ADMIN)
    assert_table(kubectl("dp", "resources", f"--kubeconfig={config}", "--context=test"), expected)
    assert_text(
        kubectl("dp", "resources", "no.such/one"),
        "",
        """
        error: no resource "no.such/one" here
        hint: dpctl resources lists what there is
        """,
        code=1,
    )
    before = kubectl("--context", "test", "dp", "resources")
    assert before.code != 0
    assert "flags cannot be placed before plugin name" in before.stderr


def test_kubectl_knows_the_plugin(bench: Bench) -> None:
    """`kubectl plugin list` without a warning, and TAB by kubectl's own way to ask plugins."""
    bench.plugin("plain.test/gpu", ["gpu-0"])
    environment = installed(bench)
    kubectl = str(bench.plane.bin / "kubectl")
    listed = bench.node.run(kubectl, "plugin", "list", env=environment)
    assert (listed.code, listed.stderr) == (0, "")
    assert [line.rpartition("/")[2] for line in listed.stdout.splitlines() if "/" in line] == [
        "kubectl-dp"
    ]
    for words, wanted in (
        (["re"], "resources"),
        (["resources", "pl"], "plain.test/gpu"),
        (["node", "rem"], "remove"),
        (["devices", "--unh"], "--unhealthy"),
    ):
        found = bench.node.run(kubectl, "__complete", "dp", *words, env=environment)
        assert found.code == 0, found
        assert [line.split("\t")[0] for line in found.stdout.splitlines()][:-1] == [wanted], words
