"""A kubelet that is blind to a plugin's death, one that threw its checkpoint away; open nodes."""

from __future__ import annotations

import json
from typing import Any

import grpc

from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2, deviceplugin_pb2_grpc

from . import images, pods
from .bench import Bench
from .expect import assert_table, assert_text, document
from .processes import wait_for
from .sample import GPU, GPUS, gpus, holder


def test_kubelet_blind_to_a_death(bench: Bench) -> None:
    """A second instance that could not be dialled makes up to 1.36 forget the first one's stream.

    The plugin dies, and the Node goes on offering its device (kubelet-facts §3.5).
    """
    plugin = bench.plugin(GPU, ["gpu-0"], endpoint="first.sock")
    refusal = _register(bench, "nobody.sock")
    assert refusal == "failed to dial device plugin: context deadline exceeded"
    plugin.kill()
    if int(bench.minor.split(".")[1]) >= 37:
        bench.node.wait_resource(GPU, "0", "1")
        offered, numa = "1/0", "?"  # it tells of no device without topology
    else:
        # After two status builds it would have been seen.
        bench.set_keys({"marker.test/x": "1"})
        bench.node.wait_resource("marker.test/x", "1")
        bench.set_keys({"marker.test/x": None})
        bench.node.wait_resource("marker.test/x", None)
        offered, numa = "1/1", "-"
    assert_table(
        bench.dpctl("resources"),
        f"""
        RESOURCE        STATE  DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        {GPU}  Grace  0/1      0          0     {numa}  -       {offered}
        """,
    )


def test_corrupt_checkpoint(bench: Bench) -> None:
    """The kubelet starts without it and never zeroes what it has forgotten (kubelet-facts §5.1)."""
    plugin = gpus(bench)
    pod = holder(bench)
    bench.node.stop_kubelet()
    plugin.kill()
    document = bench.checkpoint()
    document["Checksum"] ^= 1
    bench.checkpoint_file.write_text(json.dumps(document))
    bench.node.start_kubelet()
    stored = document["Checksum"]
    warning = f"""
        warning: checkpoint damaged: its checksum is {stored}, that of its content {stored ^ 1}: a kubelet that starts ignores it
        hint: the kubelet writes it anew when a plugin lists its devices; until then nobody knows which resources it tracks
        """  # noqa: E501
    table = """
        RESOURCE        STATE    DEVICES  ALLOCATED  FREE  NUMA  PLUGIN  NODE
        ready.test/gpu  Unknown  0/4      1          0     0:1   -       4/4
        """
    assert_table(bench.dpctl("resources"), table, warning)
    assert_table(bench.dpctl("resources", "--strict"), table, warning, code=7)
    assert_table(
        bench.dpctl("devices", "--held-by", pod),
        f"""
        DEVICE  RESOURCE        HEALTH  NUMA  STATE    HOLDER
        gpu-0   ready.test/gpu  ?       0     Unknown  default/{pod}/main
        """,
        warning,
    )
    plugin.start()
    plugin.wait_registered()
    bench.node.wait_devices(GPU)
    wait_for("a new checkpoint", lambda: bench.checkpoint()["Checksum"] != stored, 30)
    assert_text(bench.dpctl("resources", "--expect", f"{GPU}=4", "-q"), GPU)


def test_sidecar_described(bench: Bench) -> None:
    gpus(bench)
    api, name = bench.plane.api(), bench.node.name
    pod = pods.manifest(f"team-{name}", name, {GPU: 1}, init_containers={"aside": {GPU: 1}})
    pod["spec"]["initContainers"][0] |= {"restartPolicy": "Always", "image": images.PAUSE}
    pods.create(api, pod)
    pods.wait_phase(api, f"team-{name}", "Running")
    assert_text(
        bench.dpctl("pods", f"team-{name}"),
        f"""
        Name:       team-{name}
        Namespace:  default
        UID:        {bench.pod_uid(f"team-{name}")}
        Phase:      Running
        Node:       {name}
        Containers:
          aside:
            Kind:        sidecar
            CPUs:        shared pool
            Memory:      -
            Aligned:     yes
            Known from:  checkpoint, podresources
            {GPU}:
              Devices:    gpu-0 on NUMA node 0
              Requested:  1
              Environment:
                LAB_DEVICES:  gpu-0
          main:
            Kind:        app
            CPUs:        shared pool
            Memory:      -
            Aligned:     yes
            Known from:  checkpoint, podresources
            {GPU}:
              Devices:    gpu-2 on NUMA node 1
              Requested:  1
              Environment:
                LAB_DEVICES:  gpu-2
        """,
    )


def test_who_has_a_device_node_open(bench: Bench) -> None:
    """The container that was given it, and a process that has it open."""
    bench.plugin(GPU, GPUS[:1], device_path="/dev/full")
    pod = holder(bench)
    opener = bench.node.process("opener", ["sh", "-c", "exec 3</dev/full; exec sleep 300"])
    bench.daemons.append(opener)

    def users() -> list[dict[str, Any]]:
        # Nodes share the machine's processes, and other minors are tested beside this one.
        rows = document(bench.dpctl("who", "/dev/full", "-o", "json"))["items"]
        return [row for row in rows if row["what"] == "container" or row["pid"] == opener.pid]

    wait_for("it to be open", lambda: len(users()) == 2, 30, [opener])
    keys = ("what", "resource", "pod", "container", "state", "pid", "command")
    assert [tuple(row[key] for key in keys) for row in users()] == [
        ("container", GPU, pod, "main", "active", None, None),
        ("process", None, None, None, "open", opener.pid, "sleep"),
    ]


def _register(bench: Bench, endpoint: str) -> str:
    """Register a socket file that nobody listens on; the kubelet's refusal (after ten seconds)."""
    path = bench.node.kubelet_dir / "device-plugins" / "kubelet.sock"
    request = deviceplugin_pb2.RegisterRequest(
        version="v1beta1", endpoint=endpoint, resource_name=GPU
    )
    with grpc.insecure_channel(f"unix:{path}") as channel:
        stub = deviceplugin_pb2_grpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]
        try:
            stub.Register(request, timeout=30)
        except grpc.RpcError as error:
            return str(error.details())
    return "registered"
