"""Every command on a node where nothing, all, or half is well."""

from __future__ import annotations

from .bench import Bench
from .everything import assert_everything
from .expect import assert_table, assert_text
from .sample import GPU, GPUS, NOTHING, gpus, holder

# -- nothing there


def test_clean_node(bench: Bench) -> None:
    for command in (["resources"], ["devices"], ["pods"], ["pods", "--failed"], ["plugins"]):
        assert_text(bench.dpctl(*command), "", NOTHING)
    assert_text(
        bench.dpctl("who", "gpu-0"),
        "",
        """
        error: no device "gpu-0" here
        hint: dpctl devices lists every device that is known
        """,
        code=1,
    )
    assert_text(bench.dpctl("resources", "--strict"), "", NOTHING)
    assert_text(
        bench.dpctl("resources", "no.such/thing"),
        "",
        """
        error: no resource "no.such/thing" here
        hint: dpctl resources lists what there is
        """,
        code=1,
    )


def test_before_the_first_plugin(bench: Bench) -> None:
    """A kubelet that has never heard of a device has no checkpoint, and lacks nothing."""
    bench.node.stop_kubelet()
    bench.checkpoint_file.unlink()
    bench.node.start_kubelet()
    assert_text(bench.dpctl("resources", "--strict"), "", NOTHING)
    bench.set_keys({"hand.test/made": "3"})
    bench.node.wait_resource("hand.test/made", "3")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE    DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        hand.test/made  Foreign  0/3      0          0     -     -       3/3
        """,
    )


# -- healthy


def test_healthy(bench: Bench) -> None:
    plugin = gpus(bench)
    pod = holder(bench)
    assert_table(
        bench.dpctl("resources", "-o", "wide"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE  CHECKPOINT  KUBELET  REQUESTED  OWNER    NOTE
        ready.test/gpu  Ready  4/4      1          3     0:2 1:2  gpu.sock  4/4   4           4        1          kubelet  *
        """,  # noqa: E501
    )
    assert_table(
        bench.dpctl("devices"),
        f"""
        DEVICE  RESOURCE        HEALTH   NUMA  STATE      HOLDER
        gpu-0   ready.test/gpu  Healthy  0     Allocated  default/{pod}/main
        gpu-1   ready.test/gpu  Healthy  0     Free       -
        gpu-2   ready.test/gpu  Healthy  1     Free       -
        gpu-10  ready.test/gpu  Healthy  1     Free       -
        """,
    )
    assert_table(
        bench.dpctl("devices", "--group-by", "numa"),
        """
        GROUP  RESOURCE        DEVICES  HEALTHY  ALLOCATED  FREE
        0      ready.test/gpu  2        2        1          1
        1      ready.test/gpu  2        2        0          2
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
        bench.dpctl("pods", "-o", "wide"),
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE        DEVICES  NUMA  CPUS  MEMORY  ALIGNED  KIND  REQUESTED  CDI  SOURCES
        default    {pod}  main       ready.test/gpu  gpu-0    0     -     -       yes      app   1          -    checkpoint,podresources
        """,  # noqa: E501
    )
    assert_text(
        bench.dpctl("pods", f"default/{pod}"),
        f"""
        Name:       {pod}
        Namespace:  default
        UID:        {bench.pod_uid(pod)}
        Phase:      Running
        Node:       {bench.node.name}
        Containers:
          main:
            Kind:        app
            CPUs:        shared pool
            Memory:      -
            Aligned:     yes
            Known from:  checkpoint, podresources
            ready.test/gpu:
              Devices:    gpu-0 on NUMA node 0
              Requested:  1
              Environment:
                LAB_DEVICES:  gpu-0
        """,
    )
    assert_table(
        bench.dpctl("plugins"),
        f"""
        ENDPOINT  RESOURCE        STATE    KUBELET    OPTIONS              PID/COMMAND          POD  AGE
        gpu.sock  ready.test/gpu  Serving  Connected  PreferredAllocation  {plugin.pid}/python  -    *
        """,  # noqa: E501
    )
    assert_table(
        bench.dpctl("who", "gpu-0"),
        f"""
        DEVICE  RESOURCE        WHAT       NAMESPACE  POD    CONTAINER  STATE   PID  COMMAND
        gpu-0   ready.test/gpu  container  default    {pod}  main       active  -    -
        """,
    )
    assert_text(bench.dpctl("pods", "--failed"), "", NOTHING)
    assert_text(bench.dpctl("resources", "--expect", f"{GPU}=4", "-q"), GPU)
    assert_text(
        bench.dpctl("resources", "--expect", f"{GPU}=8", "-q"),
        GPU,
        """
        error: ready.test/gpu: expected 8, found 4 (Ready)
        hint: dpctl resources -o wide shows why
        """,
        code=1,
    )


def test_environment(bench: Bench) -> None:
    assert bench.node.kubelet is not None
    kubelet = f"kubelet {bench.node.kubelet.pid}"
    assert_table(
        bench.dpctl("env"),
        f"""
        NAME                  VALUE                                        ORIGIN
        as                    -                                            default
        as-group              -                                            default
        context               -                                            default
        device-plugin-dir     /var/lib/kubelet/device-plugins              layout kubeadm
        from                  -                                            default
        host-root             /                                            default
        kubeconfig            {bench.node.kubeconfig_of()}  environment KUBECONFIG
        kubelet-config        /var/lib/kubelet/config.yaml                 {kubelet}
        kubelet-root          /var/lib/kubelet                             {kubelet}
        max-message-size      67108864                                     default
        no-allocatable        false                                        default
        node                  {bench.node.name}                            {kubelet}
        plugins-registry      /var/lib/kubelet/plugins_registry            kubelet-root: {kubelet}
        pod-logs              /var/log/pods                                default
        pod-resources-socket  /var/lib/kubelet/pod-resources/kubelet.sock  kubelet-root: {kubelet}
        proc                  /proc                                        default
        request-timeout       5                                            default
        sys                   /sys                                         default
        """,
    )


# -- unhealthy


def test_unhealthy_device(bench: Bench) -> None:
    plugin = gpus(bench)
    pod = holder(bench)
    plugin.set_health("gpu-0", "Unhealthy")
    plugin.set_health("gpu-10", "weird")  # whatever is not Healthy counts as unhealthy
    bench.node.wait_resource(GPU, "2", "4")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE     DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        ready.test/gpu  Degraded  2/4      1          2     0:2 1:1  gpu.sock  4/2
        """,
    )
    assert_table(
        bench.dpctl("devices"),
        f"""
        DEVICE  RESOURCE        HEALTH     NUMA  STATE      HOLDER
        gpu-0   ready.test/gpu  Unhealthy  0     Unhealthy  default/{pod}/main
        gpu-1   ready.test/gpu  Healthy    0     Free       -
        gpu-2   ready.test/gpu  Healthy    1     Free       -
        ?       ready.test/gpu  Unhealthy  ?     Unhealthy  -
        """,
    )
    assert_table(
        bench.dpctl("devices", "--free"),
        """
        DEVICE  RESOURCE        HEALTH   NUMA  STATE  HOLDER
        gpu-1   ready.test/gpu  Healthy  0     Free   -
        gpu-2   ready.test/gpu  Healthy  1     Free   -
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
        bench.dpctl("who", "gpu-0"),
        f"""
        DEVICE  RESOURCE        WHAT       NAMESPACE  POD    CONTAINER  STATE   PID  COMMAND
        gpu-0   ready.test/gpu  container  default    {pod}  main       active  -    -
        """,
    )
    # Nobody holds it, and so nothing that may be asked knows its name.
    assert_text(
        bench.dpctl("who", "gpu-10"),
        "",
        """
        error: no device "gpu-10" here
        hint: unhealthy devices without a known ID: 1 of ready.test/gpu; `dpctl plugin devices ready.test/gpu` asks the plugin
        """,  # noqa: E501
        code=1,
    )
    assert_everything(bench)
    plugin.set_health("gpu-0", "Healthy")
    plugin.set_health("gpu-10", "Healthy")
    bench.node.wait_resource(GPU, "4")
    assert_text(bench.dpctl("resources", "--expect", f"{GPU}=4", "-q"), GPU)


def test_all_unhealthy(bench: Bench) -> None:
    plugin = bench.plugin(GPU, ["gpu-0", "gpu-1"])
    for device in ("gpu-0", "gpu-1"):
        plugin.set_health(device, "Unhealthy")
    bench.node.wait_resource(GPU, "0", "2")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE     DEVICES  ALLOCATED  FREE  NUMA  PLUGIN    NODE
        ready.test/gpu  Degraded  0/2      0          0     -     gpu.sock  2/0
        """,
    )
    assert_table(
        bench.dpctl("devices"),
        """
        DEVICE  RESOURCE        HEALTH     NUMA  STATE      HOLDER
        ? (×2)  ready.test/gpu  Unhealthy  ?     Unhealthy  -
        """,
    )


def test_device_lost_from_the_list(bench: Bench) -> None:
    plugin = gpus(bench)
    pod = holder(bench)
    plugin.set_devices(GPUS[1:])
    bench.node.wait_resource(GPU, "3")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        ready.test/gpu  Ready  3/3      1          3     0:1 1:2  gpu.sock  3/3
        """,
    )
    assert_table(
        bench.dpctl("devices", "--unhealthy"),
        f"""
        DEVICE  RESOURCE        HEALTH  NUMA  STATE    HOLDER
        gpu-0   ready.test/gpu  ?       0     Missing  default/{pod}/main
        """,
    )
