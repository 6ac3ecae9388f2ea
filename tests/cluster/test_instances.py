"""Two plugins of one resource, two kubelets of one machine."""

from __future__ import annotations

import os
import subprocess

from .bench import Bench
from .everything import assert_everything
from .expect import assert_table, assert_text
from .node import Result
from .plugins import devices
from .processes import wait_for
from .waiting import Waiting

GPU = "twice.test/gpu"


def newer(bench: Bench) -> bool:
    """Whether this kubelet keeps plugins apart by socket (1.37), not by resource alone."""
    return int(bench.minor.split(".")[1]) >= 37


def test_second_instance_takes_over(bench: Bench) -> None:
    """B replaces A; when A goes, kubelets up to 1.36 hang up on B (kubelet-facts §3.5)."""
    named = [f"--resource-name={GPU}"]
    first = bench.plugin(GPU, ["a-0"], endpoint="a.sock", arguments=named)
    second = bench.plugin(GPU, ["b-0", "b-1"], endpoint="b.sock", arguments=named)
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN           NODE
        twice.test/gpu  Ready  2/2      0          2     -     ~a.sock,~b.sock  2/2
        """,
    )
    assert_table(
        bench.dpctl("plugins"),
        f"""
        ENDPOINT  RESOURCE         STATE    KUBELET    OPTIONS  PID/COMMAND          POD  AGE
        a.sock    ~twice.test/gpu  Serving  Connected  none     {first.pid}/python   -    *
        b.sock    ~twice.test/gpu  Serving  Connected  none     {second.pid}/python  -    *
        """,
    )
    # The old stream is open still: its next list overwrites the other's.
    first.set_devices(devices(["a-0", "a-1", "a-2"]))
    bench.node.wait_resource(GPU, "3")
    second.set_devices(devices(["b-0", "b-1"]))
    bench.node.wait_resource(GPU, "2")
    first.kill()
    if newer(bench):
        wait_for(
            "the kubelet to hang up on the first",
            lambda: "NotConnected" in bench.dpctl("plugins", "a.sock").stdout,
            30,
        )
        assert_table(
            bench.dpctl("resources"),
            """
            RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
            twice.test/gpu  Ready  2/2      0          2     -     b.sock  2/2
            """,
        )
        return
    bench.node.wait_resource(GPU, "0", "2")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE         DEVICES  ALLOCATED  FREE  NUMA  PLUGIN   NODE
        twice.test/gpu  Unregistered  0/2      0          0     ?     ~b.sock  2/0
        """,
    )
    assert_table(
        bench.dpctl("plugins", "b.sock"),
        f"""
        ENDPOINT  RESOURCE         STATE    KUBELET       OPTIONS  PID/COMMAND          POD  AGE
        b.sock    ~twice.test/gpu  Serving  NotConnected  none     {second.pid}/python  -    *
        """,
    )


def test_same_socket_name_is_refused(bench: Bench) -> None:
    """1.37 refuses a socket path that it is connected to; older ones take the newcomer."""
    bench.plugin(GPU, ["a-0"], endpoint="same.sock", watch_kubelet=False)
    # Tries once: another try would be another server.
    second = bench.plugin(
        GPU, ["b-0", "b-1"], endpoint="same.sock", wait=False, watch_kubelet=False
    )
    if newer(bench):
        assert "device plugin already connected" in second.refusal()
    else:
        second.wait_registered()
        bench.node.wait_resource(GPU, "2")
    columns = "custom-columns=E:.endpoint,S:.state,K:.kubelet"
    # A kubelet that refuses has dialled before, and does not hang up.
    assert_table(
        bench.dpctl("plugins", "same.sock", "--sort-by", "state", "-o", columns),
        """
        E          S         K
        same.sock  Serving   Connected
        same.sock  Unlinked  Connected
        """,
    )
    # The device set is the first one's where the second was refused.
    count = 1 if newer(bench) else 2
    assert_text(bench.dpctl("resources", "--expect", f"{GPU}={count}", "-q"), GPU)


def test_two_resources_with_the_same_ids(bench: Bench) -> None:
    bench.plugin("one.test/x", ["0", "1"], preferred=True, serve_info=True)
    bench.plugin("two.test/y", ["0", "1"], preferred=True, serve_info=True)
    name = f"both-{bench.node.name}"
    bench.node.create_pod(name, {"one.test/x": 1, "two.test/y": 2})
    assert_table(
        bench.dpctl("devices"),
        f"""
        DEVICE  RESOURCE    HEALTH   NUMA  STATE      HOLDER
        0       one.test/x  Healthy  -     Allocated  default/{name}/main
        1       one.test/x  Healthy  -     Free       -
        0       two.test/y  Healthy  -     Allocated  default/{name}/main
        1       two.test/y  Healthy  -     Allocated  default/{name}/main
        """,
    )
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE    STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        one.test/x  Ready  2/2      1          1     -     x.sock  2/2
        two.test/y  Ready  2/2      2          0     -     y.sock  2/2
        """,
    )


def test_another_kubelet_beside(bench: Bench, cluster) -> None:
    """Each node's dpctl tells of its own; outside of both there is no local evidence."""
    bench.plugin(GPU, ["a-0"])
    other: Waiting = cluster.waiting(bench.minor)
    assert_text(bench.dpctl("resources", "-q"), GPU)
    assert GPU not in other.bench.dpctl("resources", "-q").stdout
    for one in (bench, other.bench):
        assert_everything(one)
    for one in (bench, other.bench):
        assert_table(
            one.dpctl("env", "-o", "custom-columns=N:.name,V:.value"),
            f"""
            N                     V
            as                    <none>
            as-group              <none>
            context               <none>
            device-plugin-dir     /var/lib/kubelet/device-plugins
            from                  <none>
            host-root             /
            kubeconfig            {one.node.kubeconfig_of()}
            kubelet-config        /var/lib/kubelet/config.yaml
            kubelet-root          /var/lib/kubelet
            max-message-size      67108864
            no-allocatable        false
            node                  {one.node.name}
            plugins-registry      /var/lib/kubelet/plugins_registry
            pod-logs              /var/log/pods
            pod-resources-socket  /var/lib/kubelet/pod-resources/kubelet.sock
            proc                  /proc
            request-timeout       5
            sys                   /sys
            """,
        )
    command = [*bench.command(), "resources", "--node", bench.node.name]
    environment = {**os.environ, **bench.environment()}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    outside = Result(done.returncode, done.stdout, done.stderr)
    assert_table(
        outside,
        """
        RESOURCE        STATE    DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        twice.test/gpu  Unknown  ?/1      ?          ?     -     -       1/1
        """,
        """
        warning: podresources, allocatable not read: /var/lib/kubelet/pod-resources/kubelet.sock does not exist
        hint: /var/lib/kubelet is there; `dpctl env` shows where paths come from
        warning: checkpoint not read: /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint does not exist
        hint: /var/lib/kubelet is there; `dpctl env` shows where paths come from
        warning: device-plugins not read: /var/lib/kubelet/device-plugins does not exist
        hint: /var/lib/kubelet is there; `dpctl env` shows where paths come from
        warning: plugins_registry not read: /var/lib/kubelet/plugins_registry does not exist
        hint: /var/lib/kubelet is there; `dpctl env` shows where paths come from
        """,  # noqa: E501
    )
