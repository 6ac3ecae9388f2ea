"""A kubelet of each minor takes the lab's checkpoint for its own."""

from __future__ import annotations

from dpctl.model import Allocation
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.statefiles.device_checkpoint import encode_checkpoint

from .bench import Bench
from .expect import assert_table
from .processes import wait_for

GPU = "lab.test/gpu"


def restart_on(bench: Bench, data: bytes) -> str:
    """Start the stopped kubelet on a checkpoint; what it logs until it has read it."""
    bench.checkpoint_file.write_bytes(data)
    bench.node.start_kubelet()
    assert bench.node.kubelet is not None
    return bench.node.kubelet.log_since_start()


def lab_checkpoint(bench: Bench, pod: str) -> bytes:
    """The pod holds `lab-7`, a device that no plugin has ever listed here."""
    uid = bench.pod_uid(pod)
    answer = pb.ContainerAllocateResponse(envs={"LAB": "é\n<7>"}).SerializeToString()
    return encode_checkpoint(
        [Allocation(uid, "main", GPU, {1: ("lab-7",)}, answer)],
        {GPU: ["lab-7", "lab-8"]},
    )


def test_lab_checkpoint_is_accepted(bench: Bench) -> None:
    plugin = bench.plugin(GPU, ["gpu-0"])
    pod = f"holder-{bench.node.name}"
    bench.node.create_pod(pod, {GPU: 1})
    bench.node.stop_kubelet()
    plugin.kill()
    log = restart_on(bench, lab_checkpoint(bench, pod))
    assert "failing to read checkpoint" not in log
    bench.node.wait_resource(GPU, "0")
    wait_for("List to show the pod", lambda: pod in bench.dpctl("pods", "--all").stdout, 30)
    assert_table(
        bench.dpctl("pods", "-o", "wide"),
        f"""
        NAMESPACE  POD    CONTAINER  RESOURCE      DEVICES  NUMA  CPUS  MEMORY  ALIGNED  KIND  REQUESTED  CDI  SOURCES
        default    {pod}  main       lab.test/gpu  lab-7    1     -     -       yes      app   1          -    checkpoint,podresources
        """,  # noqa: E501
    )
    assert_table(
        bench.dpctl("resources"),
        """
        RESOURCE      STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        lab.test/gpu  Grace  0/0      1          0     1:1   -       0/0
        """,
    )


def test_a_wrong_checksum_is_noticed(bench: Bench) -> None:
    """What makes the test above worth something: the kubelet does look."""
    plugin = bench.plugin(GPU, ["gpu-0"])
    pod = f"holder-{bench.node.name}"
    bench.node.create_pod(pod, {GPU: 1})
    bench.node.stop_kubelet()
    plugin.kill()
    data = lab_checkpoint(bench, pod)
    log = restart_on(bench, data.replace(b"lab-8", b"lab-9"))
    assert "failing to read checkpoint" in log
    # It starts with nothing, and never zeroes the Node's keys (kubelet-facts §5.1).
    found = bench.dpctl("resources", "-o", "jsonpath={.items[*].notes}")
    assert "checkpoint is damaged" in found.stdout, found
    plugin.start()  # which makes it write a good one
    plugin.wait_registered()
    bench.node.wait_devices(GPU)
