"""Every command on the sample lab, and what it says when something happens there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from dpctl.lab.fixture import Lab
from tests.run import Result, dpctl

MakeLab = Callable[..., Lab]


def run(lab: Lab, *arguments: str) -> Result:
    return dpctl(*arguments, env=lab.env)


def cells(text: str, columns: int | None = None) -> list[list[str]]:
    """The rows of a table, headers left out."""
    return [re.split(r" {3,}", line.rstrip())[:columns] for line in text.splitlines()[1:]]


def quiet(result: Result) -> str:
    assert (result.code, result.err) == (0, ""), result
    return result.out


def states(lab: Lab) -> dict[str, str]:
    return {row[0]: row[1] for row in cells(quiet(run(lab, "resources")))}


def plugins(lab: Lab) -> dict[str, tuple[str, str, str]]:
    """Endpoint to (resource, state, kubelet)."""
    return {r[0]: (r[1], r[2], r[3]) for r in cells(quiet(run(lab, "plugins")))}


def test_resources(lab: Lab) -> None:
    assert quiet(run(lab, "resources")) == (
        "RESOURCE                    STATE          DEVICES   ALLOCATED   FREE   NUMA      PLUGIN                              NODE\n"  # noqa: E501
        "edge.example/fuse           Ready              3/3           1      2   -         gdp-ZWRnZS5leGFtcGxlL2Z1c2U=.sock   3/3\n"  # noqa: E501
        "empty.example/fpga          Empty              0/0           0      0   -         ~fpga.sock                          0/0\n"  # noqa: E501
        "fabric.example/rdma         Grace              0/2           0      0   -         -                                   2/0\n"  # noqa: E501
        "ghost.example/tpu           Ghost              0/4           0      0   -         -                                   4/4\n"  # noqa: E501
        "kkloud.io/widget            Foreign            0/3           0      0   -         -                                   3/3\n"  # noqa: E501
        "net.example/sriov           Ready              7/7           1      6   0:4 1:4   ~net.example_sriov.sock             7/7\n"  # noqa: E501
        "nodomain                    Malformed          0/2           0      0   -         -                                   2/2\n"  # noqa: E501
        "old.example/retired         Stale              0/0           0      0   -         -                                   0/0\n"  # noqa: E501
        "vendor.example/gpu          Degraded           7/8           2      5   0:4 1:3   ~vendor-gpu.sock                    8/7\n"  # noqa: E501
        "vendor.example/gpu.shared   Ready              8/8           1      7   0:4 1:4   ~gpu-shared.sock                    8/8\n"  # noqa: E501
        "video.example/encoder       Unregistered       0/0           0      0   -         ~encoder.sock                       0/0\n"  # noqa: E501
    )


def test_the_environment_names_a_node_as_the_flag_does(lab: Lab) -> None:
    flag = run(lab, "resources", "--node", "lab-1")
    assert "ghost.example/tpu" in flag.out
    assert "edge.example/fuse" not in flag.out
    named = dpctl("resources", env={**lab.env, "NODE_NAME": "lab-1"})
    assert named == flag


OTHER = "Node lab-1 is not the Node of this kubelet, which is lab-0"
NEXT = "hint: run dpctl on lab-1, or name this one: --node lab-0\n"


@pytest.mark.parametrize("command", ["pods", "plugins", "who gpu-0", "state cpu"])
def test_another_node_is_not_answered_for_with_what_is_here(lab: Lab, command: str) -> None:
    result = run(lab, *command.split(), "--node", "lab-1")
    assert (result.code, result.out) == (3, "")
    assert re.fullmatch(rf"error: [-_a-z]+: {OTHER} \(.*\)\n{NEXT}", result.err)
    assert len(quiet(run(lab, *command.split(), "--node", "lab-0")).splitlines()) > 1


def test_why_nothing_of_another_node_is_seen(lab: Lab) -> None:
    result = run(lab, "devices", "--node", "lab-1", "--free")
    assert result.err == (
        f"warning: {OTHER}: nothing of this machine was used\n{NEXT}No resources found\n"
    )
    nowhere = run(lab, "devices", "--node", "lab-9")
    assert (nowhere.code, nowhere.out) == (4, "")
    assert "has no Node lab-9" in nowhere.err


def test_resources_by_name_and_expectation(lab: Lab) -> None:
    stale = cells(quiet(run(lab, "resources", "--stale")), 2)
    assert stale == [
        ["ghost.example/tpu", "Ghost"],
        ["nodomain", "Malformed"],
        ["old.example/retired", "Stale"],
    ]
    unmet = run(lab, "resources", "vendor.example/gpu", "--expect", "vendor.example/gpu=8", "-q")
    assert unmet == Result(
        1,
        "vendor.example/gpu\n",
        "error: vendor.example/gpu: expected 8, found 7 (Degraded)\n"
        "hint: dpctl resources -o wide shows why\n",
    )


def test_devices(lab: Lab) -> None:
    by_gpu = quiet(run(lab, "devices", "vendor.example/gpu", "edge.example/fuse"))
    assert by_gpu == (
        "DEVICE   RESOURCE             HEALTH      NUMA   STATE       HOLDER\n"
        "fuse-0   edge.example/fuse    Healthy     -      Orphaned    batch/nightly/job\n"
        "fuse-1   edge.example/fuse    Healthy     -      Free        -\n"
        "fuse-2   edge.example/fuse    Healthy     -      Allocated   ml/notebook/proxy\n"
        "gpu-0    vendor.example/gpu   Healthy     0      Allocated   ml/trainer/main,ml/trainer/warmup (init)\n"  # noqa: E501
        "gpu-1    vendor.example/gpu   Healthy     0      Allocated   ml/trainer/main\n"
        "gpu-2    vendor.example/gpu   Healthy     0      Free        -\n"
        "gpu-3    vendor.example/gpu   Healthy     0      Free        -\n"
        "gpu-4    vendor.example/gpu   Healthy     1      Free        -\n"
        "gpu-5    vendor.example/gpu   Healthy     1      Free        -\n"
        "gpu-7    vendor.example/gpu   Healthy     1      Free        -\n"
        "?        vendor.example/gpu   Unhealthy   ?      Unhealthy   -\n"
    )


def test_pods(lab: Lab) -> None:
    card = "GPU-5a1c0d3e-7b42-4f19-9c6e-1d2f3a4b5c6d::0"
    assert cells(quiet(run(lab, "pods"))) == [
        ["ml", "notebook", "app", "vendor.example/gpu.shared", card, "0", "-", "-", "yes"],
        ["ml", "notebook", "proxy", "edge.example/fuse", "fuse-2", "-", "-", "-", "-"],
        ["ml", "trainer", "main", "net.example/sriov", "bond0", "0,1", "-", "-", "yes"],
        ["ml", "trainer", "main", "vendor.example/gpu", "gpu-0,gpu-1", "0", "-", "-", "yes"],
        ["ml", "trainer", "warmup", "vendor.example/gpu", "gpu-0", "0", "?", "?", "yes"],
    ]
    plain = [row for row in cells(quiet(run(lab, "pods", "--all")), 4) if row[0] == "default"]
    assert plain == [["default", "plain", "web", "-"]]


def test_kinds_and_requests_of_containers(lab: Lab) -> None:
    rows = cells(quiet(run(lab, "pods", "-o", "wide")))
    assert [(r[1], r[2], r[3], r[9], r[10]) for r in rows] == [
        ("notebook", "app", "vendor.example/gpu.shared", "app", "1"),
        ("notebook", "proxy", "edge.example/fuse", "sidecar", "1"),
        ("trainer", "main", "net.example/sriov", "app", "1"),
        ("trainer", "main", "vendor.example/gpu", "app", "2"),
        ("trainer", "warmup", "vendor.example/gpu", "init", "1"),
    ]


def test_one_pod_in_full(lab: Lab) -> None:
    text = quiet(run(lab, "pods", "ml/trainer"))
    assert "Name:       trainer\nNamespace:  ml\n" in text
    assert "gpu-0 on NUMA node 0\n" in text
    assert re.search(r"Kind: +app\n", text)


def test_failed_pods(lab: Lab) -> None:
    (row,) = cells(quiet(run(lab, "pods", "--failed")))
    assert row[:4] == ["batch", "greedy", "UnexpectedAdmissionError", "vendor.example/gpu=9"]
    assert "Requested: 9, Available: 5" in row[4]


def test_plugins(lab: Lab) -> None:
    rows = cells(quiet(run(lab, "plugins", "-o", "wide")))
    shown = [[*r[:5], r[5].partition("/")[2], r[8], r[11]] for r in rows]
    where = "device-plugins"
    assert shown == [
        ["encoder.sock", "~video.example/encoder", "Unlinked", "NotConnected", "-",
         "encoder-plugin", where,
         "its socket file is gone: a kubelet that starts removes every socket of the directory"],
        ["fpga.sock", "~empty.example/fpga", "Serving", "Connected", "none", "fpga-plugin",
         where, "named in the arguments of its process"],
        ["gdp-ZWRnZS5leGFtcGxlL2Z1c2U=.sock", "edge.example/fuse", "Serving", "Connected", "none",
         "generic-plugin", where, "says so itself (GetInfo)"],
        ["gpu-shared.sock", "~vendor.example/gpu.shared", "Serving", "Connected",
         "PreStart,PreferredAllocation", "gpu-sharing", where,
         "named in the environment of its process"],
        ["net.example_sriov.sock", "~net.example/sriov", "Serving", "Connected", "none",
         "sriovdp", where, "its socket's name spells the resource"],
        ["rdma.sock", "?", "Dead", "NotConnected", "-", "", where,
         "connection refused: nobody listens behind the file"],
        ["vendor-gpu.sock", "~vendor.example/gpu", "Serving", "Connected", "PreferredAllocation",
         "gpu-plugin", where, "named in the arguments of its process"],
    ]  # fmt: skip


def test_who(lab: Lab) -> None:
    assert cells(quiet(run(lab, "who", "gpu-1"))) == [
        ["gpu-1", "vendor.example/gpu", "container", "ml", "trainer", "main", "active", "-", "-"]
    ]
    assert run(lab, "who", "gpu-2") == Result(
        1,
        "",
        'error: nobody holds "gpu-2" of vendor.example/gpu\n'
        "hint: dpctl devices lists every device that is known\n",
    )
    # Of gpu-6 the kubelet has kept the number alone.
    assert run(lab, "who", "gpu-6") == Result(
        1,
        "",
        'error: no device "gpu-6" here\n'
        "hint: unhealthy devices without a known ID: 1 of vendor.example/gpu;"
        " `dpctl plugin devices vendor.example/gpu` asks the plugin\n",
    )
    given = run(lab, "who", "/dev/vendor0")
    assert given.code == 0
    assert sorted(row[5] for row in cells(given.out)) == ["main", "warmup"]


# --- events ---------------------------------------------------------------------------------------

GPU = "vendor.example/gpu"


def test_a_plugin_dies_for_good_and_another_comes_back(new_lab: MakeLab) -> None:
    lab = new_lab()
    lab.plugin("gpu").kill()
    lab.plugin("sriov").kill()
    lab.wait_settled()
    found = states(lab)
    assert (found[GPU], found["net.example/sriov"]) == ("Grace", "Grace")
    assert plugins(lab)["vendor-gpu.sock"][1:] == ("Dead", "NotConnected")
    gone = run(lab, "devices", GPU)
    assert {row[4] for row in cells(gone.out)} == {"Unknown"}
    lab.plugin("sriov").start()
    lab.wait_settled()
    assert states(lab)["net.example/sriov"] == "Ready"
    lab.clock.advance(301)
    lab.kubelet.sync()
    found = states(lab)
    # Pods still hold two of its devices, yet nobody serves, tracks or owns the key any more.
    assert found[GPU] == "Stale"
    assert found["fabric.example/rdma"] == "Stale"
    lab.plugin("gpu").start()
    lab.wait_settled()
    found = states(lab)
    assert (found[GPU], found["fabric.example/rdma"]) == ("Degraded", "Stale")
    assert plugins(lab)["vendor-gpu.sock"][1:] == ("Serving", "Connected")


def test_a_plugin_that_misses_the_kubelets_restart(new_lab: MakeLab) -> None:
    lab = new_lab()
    lab.kubelet.restart()
    lab.wait_settled()
    found = states(lab)
    assert found["video.example/encoder"] == "Unregistered"
    assert found[GPU] == "Degraded"  # it noticed, and registered again
    assert plugins(lab)["encoder.sock"] == (
        "~video.example/encoder",
        "Unlinked",
        "NotConnected",
    )
    lab.kubelet.stop()
    assert plugins(lab)["fpga.sock"][1] == "Serving"


def test_a_device_falls_ill(new_lab: MakeLab) -> None:
    lab = new_lab()
    lab.plugin("sriov").set_health("bond0", "Unhealthy")
    lab.wait_settled()
    assert states(lab)["net.example/sriov"] == "Degraded"
    assert cells(quiet(run(lab, "devices", "--unhealthy"))) == [
        ["bond0", "net.example/sriov", "Unhealthy", "0,1", "Unhealthy", "ml/trainer/main"],
        ["?", GPU, "Unhealthy", "?", "Unhealthy", "-"],
    ]
    lab.plugin("sriov").set_health("bond0", "Healthy")
    lab.wait_settled()
    assert states(lab)["net.example/sriov"] == "Ready"


def test_two_labs_do_not_meet(lab: Lab, new_lab: MakeLab) -> None:
    other = new_lab(scenario="empty", node_name="lab-9")
    nothing = run(other, "resources")
    # A kubelet that never had a plugin has written no checkpoint: that is an empty state.
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "No resources found\n")
    names: Any = quiet(run(lab, "plugins", "-q")).split()
    assert len(names) == 7
    assert run(other, "plugins", "-q").out == ""
