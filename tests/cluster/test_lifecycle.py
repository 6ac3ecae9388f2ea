"""The plugin goes and comes, the kubelet goes and comes."""

from __future__ import annotations

import signal

from .bench import Bench
from .everything import assert_everything
from .expect import assert_table, assert_text
from .sample import GPU, GPUS, NOTHING, gpus, holder

# -- the plugin goes and comes


def test_plugin_killed_and_back(bench: Bench) -> None:
    plugin = gpus(bench)
    pod = holder(bench)
    plugin.kill()
    bench.node.wait_resource(GPU, "0", "4")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        ready.test/gpu  Grace  0/4      1          0     0:1   -       4/0
        """,
    )
    assert_table(
        bench.dpctl("devices"),
        f"""
        DEVICE  RESOURCE        HEALTH  NUMA  STATE    HOLDER
        gpu-0   ready.test/gpu  ?       0     Unknown  default/{pod}/main
        gpu-1   ready.test/gpu  ?       ?     Unknown  -
        gpu-2   ready.test/gpu  ?       ?     Unknown  -
        gpu-10  ready.test/gpu  ?       ?     Unknown  -
        """,
    )
    assert_table(
        bench.dpctl("pods"),
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE        DEVICES  NUMA  CPUS  MEMORY  ALIGNED
        default    {pod}  main       ready.test/gpu  gpu-0    0     -     -       yes
        """,
    )
    assert_table(
        bench.dpctl("plugins"),
        """
        ENDPOINT  RESOURCE  STATE  KUBELET       OPTIONS  PID/COMMAND  POD  AGE
        gpu.sock  ?         Dead   NotConnected  -        -            -    *
        """,
    )
    assert_text(
        bench.dpctl("resources", "--expect", f"{GPU}=4", "-q"),
        GPU,
        """
        error: ready.test/gpu: expected 4, found 0 (Grace)
        hint: dpctl resources -o wide shows why
        """,
        code=1,
    )
    assert_everything(bench)
    plugin.start()
    plugin.wait_registered()
    bench.node.wait_resource(GPU, "4")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        ready.test/gpu  Ready  4/4      1          3     0:2 1:2  gpu.sock  4/4
        """,
    )


def test_hung_plugin(bench: Bench) -> None:
    """A stopped plugin stays healthy for the kubelet; only its socket tells."""
    plugin = bench.plugin(GPU, ["gpu-0"])
    plugin.signal(signal.SIGSTOP)
    try:
        assert_table(
            bench.dpctl("plugins"),
            f"""
            ENDPOINT  RESOURCE        STATE  KUBELET    OPTIONS  PID/COMMAND          POD  AGE
            gpu.sock  ready.test/gpu  Hung   Connected  -        {plugin.pid}/python  -    *
            """,
        )
        assert_table(
            bench.dpctl("resources"),
            """
            RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN    NODE
            ready.test/gpu  Ready  1/1      0          1     -     gpu.sock  1/1
            """,
        )
    finally:
        plugin.signal(signal.SIGCONT)


# -- the kubelet restarts


def test_kubelet_restarted_and_the_plugin_notices(bench: Bench) -> None:
    gpus(bench)
    pod = holder(bench)
    bench.node.restart_kubelet()
    bench.node.wait_devices(GPU)
    bench.node.wait_resource(GPU, "4")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        ready.test/gpu  Ready  4/4      1          3     0:2 1:2  gpu.sock  4/4
        """,
    )
    assert_table(
        bench.dpctl("who", "gpu-0"),
        f"""
        DEVICE  RESOURCE        WHAT       NAMESPACE  POD    CONTAINER  STATE   PID  COMMAND
        gpu-0   ready.test/gpu  container  default    {pod}  main       active  -    -
        """,
    )


def test_kubelet_restarted_and_the_plugin_does_not_notice(bench: Bench) -> None:
    plugin = bench.plugin(GPU, GPUS, preferred=True, watch_kubelet=False)
    pod = holder(bench)
    bench.node.restart_kubelet()
    bench.node.wait_resource(GPU, "0")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE         DEVICES  ALLOCATED  FREE  NUMA  PLUGIN     NODE
        ready.test/gpu  Unregistered  0/0      1          0     0:1   ~gpu.sock  0/0
        """,
    )
    assert_table(
        bench.dpctl("plugins"),
        f"""
        ENDPOINT  RESOURCE         STATE     KUBELET       OPTIONS  PID/COMMAND          POD  AGE
        gpu.sock  ~ready.test/gpu  Unlinked  NotConnected  -        {plugin.pid}/python  -    -
        """,
    )
    assert_table(
        bench.dpctl("devices", "--held-by", pod),
        f"""
        DEVICE  RESOURCE        HEALTH  NUMA  STATE    HOLDER
        gpu-0   ready.test/gpu  ?       0     Unknown  default/{pod}/main
        """,
    )


def test_kubelet_killed(bench: Bench) -> None:
    """Its sockets refuse; the checkpoint and the Node still tell."""
    gpus(bench)
    pod = holder(bench)
    bench.node.kill_kubelet()
    assert_table(
        bench.dpctl("pods"),
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE        DEVICES  NUMA  CPUS  MEMORY  ALIGNED
        default    {pod}  main       ready.test/gpu  gpu-0    0     ?     ?       yes
        """,
        """
        warning: podresources not read: /var/lib/kubelet/pod-resources/kubelet.sock: connection refused, nobody listens behind that file
        hint: the process that made it is gone (a kubelet: `systemctl status kubelet`); a container must mount the directory, since the file is replaced when its owner starts anew
        """,  # noqa: E501
    )
    strict = bench.dpctl("pods", "--strict")
    assert strict.code == 3, strict
    bench.node.start_kubelet()


# -- the dangerous kind


def test_ghost_after_a_lost_checkpoint(bench: Bench) -> None:
    """A kubelet that starts without its checkpoint never zeroes the keys it wrote."""
    plugin = bench.plugin(GPU, ["gpu-0", "gpu-1"])
    bench.node.stop_kubelet()
    plugin.kill()
    bench.checkpoint_file.unlink()
    bench.node.start_kubelet()
    # Another plugin makes it write a checkpoint, and the Node be updated.
    bench.plugin("other.test/nic", ["nic-0"])
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN    NODE
        other.test/nic  Ready  1/1      0          1     -     nic.sock  1/1
        ready.test/gpu  Ghost  0/2      0          0     -     -         2/2
        """,
    )
    assert_text(bench.dpctl("devices", GPU), "", NOTHING)
    assert_text(bench.dpctl("resources", "--stale", "-q"), GPU)
