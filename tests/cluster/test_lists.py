"""Lists that are odd, keys made by hand, pods that were refused or are gone."""

from __future__ import annotations

from dpctl.lab.spec import SampleDevice

from . import images
from .api import AGENT
from .bench import Bench
from .expect import assert_table, assert_text, document
from .plugins import devices
from .processes import wait_for
from .sample import GPU, NOTHING, gpus, holder

# -- lists that are odd


def test_empty_list(bench: Bench) -> None:
    bench.plugin(GPU, [])
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN    NODE
        ready.test/gpu  Empty  0/0      0          0     -     gpu.sock  0/0
        """,
    )
    assert_text(bench.dpctl("devices"), "", NOTHING)
    assert_table(
        bench.dpctl("plugins"),
        """
        ENDPOINT  RESOURCE        STATE    KUBELET    OPTIONS  PID/COMMAND  POD  AGE
        gpu.sock  ready.test/gpu  Serving  Connected  none     *            -    *
        """,
    )


def test_list_over_four_mebibytes(bench: Bench) -> None:
    """The kubelet says registered, drops the stream, and has a resource without devices."""
    many = devices([f"gpu-{number:06}-{'x' * 80}" for number in range(50_000)])
    plugin = bench.plugin(GPU, many, wait=False, arguments=[f"--resource-name={GPU}"])
    plugin.wait_registered()
    assert bench.node.kubelet is not None
    log = bench.node.kubelet
    wait_for(
        "the kubelet to refuse the message",
        lambda: "received message larger than max" in log.log_since_start(),
        30,
        [log, plugin],
    )
    bench.node.wait_resource(GPU, "0")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE         DEVICES  ALLOCATED  FREE  NUMA  PLUGIN     NODE
        ready.test/gpu  Unregistered  0/0      0          0     -     ~gpu.sock  0/0
        """,
    )
    assert_table(
        bench.dpctl("plugins"),
        """
        ENDPOINT  RESOURCE         STATE    KUBELET       OPTIONS  PID/COMMAND  POD  AGE
        gpu.sock  ~ready.test/gpu  Serving  NotConnected  none     *            -    *
        """,
    )


def test_two_numa_nodes_and_empty_topology(bench: Bench) -> None:
    """A device on two nodes is one device; one with `topology: {}` is in List only."""
    both = SampleDevice("both", (0, 1))
    nowhere = SampleDevice("nowhere", ())
    bench.plugin(GPU, [both, nowhere])
    pod = holder(bench, 2)
    assert_table(
        bench.dpctl("resources", "-o", "wide"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE  CHECKPOINT  KUBELET  REQUESTED  OWNER    NOTE
        ready.test/gpu  Ready  2/2      2          0     0:1 1:1  gpu.sock  2/2   2           1        2          kubelet  *
        """,  # noqa: E501
    )
    assert_table(
        bench.dpctl("devices"),
        f"""
        DEVICE   RESOURCE        HEALTH   NUMA  STATE      HOLDER
        both     ready.test/gpu  Healthy  0,1   Allocated  default/{pod}/main
        nowhere  ready.test/gpu  Healthy  -     Allocated  default/{pod}/main
        """,
    )


# -- made by hand


def test_hand_made_and_malformed_keys(bench: Bench) -> None:
    bench.set_keys({"hand.test/made": "3", "nodomain": "1", "kubernetes.io/foo": "2"})
    bench.node.wait_resource("hand.test/made", "3")
    bench.node.wait_resource("nodomain", "1")
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE           STATE      DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        hand.test/made     Foreign    0/3      0          0     -     -       3/3
        kubernetes.io/foo  Malformed  0/2      0          0     -     -       2/2
        nodomain           Malformed  0/1      0          0     -     -       1/1
        """,
    )
    assert_text(bench.dpctl("resources", "--stale", "-q"), "kubernetes.io/foo\nnodomain")
    rows = document(bench.dpctl("resources", "hand.test/made", "-o", "json"))["items"]
    assert [row["owners"] for row in rows] == [[AGENT]]


# -- refused


def test_rejected_pod(bench: Bench) -> None:
    gpus(bench)
    name = f"greedy-{bench.node.name}"
    bench.node.create_pod(name, {GPU: 9}, scheduled=False, phase="Failed")
    message = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
        "ready.test/gpu. Requested: 9, Available: 4, which is unexpected"
    )
    assert_table(
        bench.dpctl("pods", "--failed"),
        f"""
        NAMESPACE  POD     REASON                    REQUESTS          MESSAGE
        default    {name}  UnexpectedAdmissionError  ready.test/gpu=9  {message}
        """,
    )
    # It holds nothing, and nobody counts it.
    assert_table(
        bench.dpctl("resources", "-o", "wide"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE  CHECKPOINT  KUBELET  REQUESTED  OWNER    NOTE
        ready.test/gpu  Ready  4/4      0          4     0:2 1:2  gpu.sock  4/4   4           4        0          kubelet  *
        """,  # noqa: E501
    )
    assert_text(bench.dpctl("pods"), "", NOTHING)


def test_terminated_pod_stays_in_the_checkpoint(bench: Bench) -> None:
    """The checkpoint is not rewritten when a pod ends (kubelet-facts §0.3)."""
    gpus(bench)
    name = f"done-{bench.node.name}"
    bench.node.create_pod(name, {GPU: 2}, image=images.TRUE, phase="Succeeded")
    uid = bench.pod_uid(name)
    entries = bench.checkpoint()["Data"]["PodDeviceEntries"]
    assert [entry["PodUID"] for entry in entries] == [uid]
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA     PLUGIN    NODE
        ready.test/gpu  Ready  4/4      0          4     0:2 1:2  gpu.sock  4/4
        """,
    )
    assert_table(
        bench.dpctl("devices", "--held-by", name),
        f"""
        DEVICE  RESOURCE        HEALTH   NUMA  STATE     HOLDER
        gpu-0   ready.test/gpu  Healthy  0     Orphaned  default/{name}/main
        gpu-1   ready.test/gpu  Healthy  0     Orphaned  default/{name}/main
        """,
    )
    assert_text(bench.dpctl("pods", "--failed"), "", NOTHING)  # it was not rejected
    who = """
        DEVICE  RESOURCE        WHAT       NAMESPACE  POD     CONTAINER  STATE    PID  COMMAND
        gpu-0   ready.test/gpu  container  default    {name}  main       {state}  -    -
        """
    # A kubelet that lists none of its pods may have just begun: then the API server is asked.
    assert_table(bench.dpctl("who", "gpu-0"), who.format(name=name, state="gone"))
    assert name not in bench.dpctl("pods").stdout
    nowhere = {"KUBECONFIG": "/nonexistent"}
    assert f" {name} main ? " in " ".join(bench.dpctl("who", "gpu-0", env=nowhere).stdout.split())
    assert name in bench.dpctl("pods", env=nowhere).stdout
    bench.node.create_pod(f"beside-{bench.node.name}")
    assert_table(bench.dpctl("who", "gpu-0", env=nowhere), who.format(name=name, state="gone"))
    assert name not in bench.dpctl("pods", env=nowhere).stdout


def test_pod_of_the_same_name_again(bench: Bench) -> None:
    """As with a StatefulSet: log directories of both are there, and only one pod is."""
    gpus(bench)
    for _ in range(4):
        pod = holder(bench)
        assert_table(
            bench.dpctl("who", "gpu-0"),
            f"""
            DEVICE  RESOURCE        WHAT       NAMESPACE  POD    CONTAINER  STATE   PID  COMMAND
            gpu-0   ready.test/gpu  container  default    {pod}  main       active  -    -
            """,
        )
        bench.node.delete_pod(pod)
