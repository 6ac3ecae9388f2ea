"""`--redact` file by file: checksums that fit go on fitting, and what cannot be rewritten goes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from dpctl.bundle.redact import redacted
from dpctl.errors import BadDataError
from dpctl.model import Allocation, CdiDevice, CdiSpec, PodName, Snapshot, Source
from dpctl.model.statefiles import PreparedClaim, PreparedDevice, PreparedDriver
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as plugin_pb
from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from dpctl.sources import evidence as kept
from dpctl.sources.evidence import Evidence
from dpctl.statefiles.device_checkpoint import encode_checkpoint, parse_checkpoint
from dpctl.statefiles.dra_manager import encode_dra_manager_state, parse_dra_manager_state

SECRET = "s3cr3t-token"


def answer() -> bytes:
    return plugin_pb.ContainerAllocateResponse(
        envs={"TOKEN": SECRET, "VISIBLE": "gpu-0", "ONE": "1"},
        annotations={"who": "trainer in ml"},
        mounts=[plugin_pb.Mount(container_path="/data", host_path="/srv/ml/trainer")],
        devices=[plugin_pb.DeviceSpec(container_path="/dev/x", host_path="/dev/x")],
        cdi_devices=[plugin_pb.CDIDevice(name="vendor.example/gpu=trainer")],
    ).SerializeToString()


def checkpoint(alloc_resp: bytes | None = None) -> bytes:
    entry = Allocation("uid-1", "main", "vendor.example/gpu", {0: ("gpu-0",)}, alloc_resp)
    return encode_checkpoint([entry], {"vendor.example/gpu": ["gpu-0", "gpu-1"]})


def evidence(**files: bytes) -> Evidence:
    found = Evidence()
    found.files = {name.replace("__", "/"): data for name, data in files.items()}
    data = found.files.get(kept.CHECKPOINT)
    found.snapshot = Snapshot(
        1_800_000_000.0,
        (),
        pod_names=(PodName("uid-1", "ml", "trainer"),),
        checkpoint=None if data is None else parse_checkpoint(data),
    )
    return found


def put(name: str, data: bytes) -> Evidence:
    found = evidence()
    found.files[name] = data
    if name == kept.CHECKPOINT:
        with suppress(BadDataError):  # damaged on purpose
            found.snapshot = found.snapshot._replace(checkpoint=parse_checkpoint(data))
    return found


def test_the_checkpoint_stays_verifiable() -> None:
    new = parse_checkpoint(
        redacted(put(kept.CHECKPOINT, checkpoint(answer()))).files[kept.CHECKPOINT]
    )
    assert new.verified
    [entry] = new.allocations
    assert entry.answer is not None
    assert set(entry.answer.envs) == {"TOKEN", "VISIBLE", "ONE"}
    assert all(value.startswith("value-") for value in entry.answer.envs.values())
    assert entry.answer.annotations == {"who": "pod-1 in namespace-1"}
    assert entry.answer.mounts[0].host_path == "/srv/namespace-1/pod-1"
    assert entry.answer.cdi_devices == ("vendor.example/gpu=pod-1",)
    assert (entry.devices, new.registered) == (
        {0: ("gpu-0",)},
        {"vendor.example/gpu": ("gpu-0", "gpu-1")},
    )


def test_cdi_names_still_meet_their_specification() -> None:
    """A namespace may be called like the last half of a CDI kind."""
    asked = plugin_pb.ContainerAllocateResponse(
        cdi_devices=[plugin_pb.CDIDevice(name="vendor.example/ml=trainer")]
    )
    found = put(kept.CHECKPOINT, checkpoint(asked.SerializeToString()))
    spec = CdiSpec("/etc/cdi/ml.json", 0, "vendor.example/ml", "0.6.0", (CdiDevice("trainer", ()),))
    found.snapshot = found.snapshot._replace(cdi=(spec,))
    new = redacted(found)
    [entry] = parse_checkpoint(new.files[kept.CHECKPOINT]).allocations
    [changed] = new.snapshot.cdi or ()
    assert entry.answer is not None
    assert entry.answer.cdi_devices == (f"{changed.kind}={changed.devices[0].name}",)


def test_a_checksum_that_did_not_fit_still_does_not() -> None:
    document = json.loads(checkpoint(answer()))
    document["Checksum"] += 1
    data = json.dumps(document).encode()
    new = parse_checkpoint(redacted(put(kept.CHECKPOINT, data)).files[kept.CHECKPOINT])
    assert not new.verified
    assert new.stored_checksum == document["Checksum"]


def test_an_answer_that_nobody_can_read_goes() -> None:
    new = parse_checkpoint(
        redacted(put(kept.CHECKPOINT, checkpoint(b"\xff\xfftrainer"))).files[kept.CHECKPOINT]
    )
    assert new.verified
    assert new.allocations[0].alloc_resp is None


def test_a_damaged_file_with_a_name_in_it_is_left_out() -> None:
    found = redacted(put(kept.CHECKPOINT, b'{"Data": "of trainer'))
    assert kept.CHECKPOINT not in found.files
    assert "damaged" in found.left_out[kept.CHECKPOINT]
    harmless = redacted(put(kept.CHECKPOINT, b'{"Data": "of nobody'))
    assert harmless.files[kept.CHECKPOINT] == b'{"Data": "of nobody'


def test_dra_claims() -> None:
    device = PreparedDevice("worker-0", "gpu-0", None, ("r",), ("cdi/trainer",))
    claim = PreparedClaim(
        "c-1", "trainer-gpu", "ml", ("uid-1",), {"drv": PreparedDriver((device,))}
    )
    name = kept.state_file(Source.DRA_STATE)
    found = put(name, encode_dra_manager_state([claim]))
    found.snapshot = found.snapshot._replace(
        dra_state=parse_dra_manager_state(found.files[name]),
    )
    new = parse_dra_manager_state(redacted(found, nodes=("worker-0",)).files[name])
    assert all(one.fits for one in new.checksums)
    [changed] = new.claims
    assert (changed.name, changed.namespace, changed.uid) == ("claim-1", "namespace-1", "c-1")
    assert changed.drivers["drv"].devices[0].pool == "node-1"
    assert changed.drivers["drv"].devices[0].cdi_devices == ("cdi/pod-1",)


def test_podresources() -> None:
    data = pb.ListPodResourcesResponse(
        pod_resources=[
            pb.PodResources(
                name="trainer",
                namespace="ml",
                containers=[
                    pb.ContainerResources(
                        name="main",
                        devices=[pb.ContainerDevices(resource_name="r.x/y", device_ids=["gpu-0"])],
                    )
                ],
            )
        ]
    ).SerializeToString()
    new = pb.ListPodResourcesResponse.FromString(redacted(put(kept.LIST, data)).files[kept.LIST])
    [pod] = new.pod_resources
    assert (pod.name, pod.namespace) == ("pod-1", "namespace-1")
    assert list(pod.containers[0].devices[0].device_ids) == ["gpu-0"]


def test_manifests_keep_only_what_dpctl_reads() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "trainer", "namespace": "ml", "uid": "u", "labels": {"team": "red"}},
        "spec": {
            "nodeName": "worker-0",
            "serviceAccountName": "robot",
            "volumes": [{"hostPath": {"path": "/secret"}}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.corp/x",
                    "command": ["--password=x"],
                    "env": [{"name": "A", "value": SECRET}, {"name": "B", "valueFrom": {}}],
                    "resources": {"limits": {"vendor.example/gpu": "1"}},
                }
            ],
        },
        "status": {"podIP": "10.0.0.7", "phase": "Failed", "message": f"trainer said {SECRET}"},
    }
    data = json.dumps({"items": [pod]}).encode()
    found = redacted(put(kept.PODS, data), nodes=("worker-0",)).files[kept.PODS]
    for word in (
        b"red",
        b"robot",
        b"/secret",
        b"registry",
        b"password",
        b"10.0.0.7",
        SECRET.encode(),
    ):
        assert word not in found.replace(b"redacted", b""), word
    [new] = json.loads(found)["items"]
    assert new["spec"]["containers"][0]["env"] == [{"name": "A", "value": "value-1"}, {"name": "B"}]
    assert new["spec"]["containers"][0]["resources"] == pod["spec"]["containers"][0]["resources"]
    assert new["status"]["message"] == "pod-1 said value-1"


def test_log_lines() -> None:
    line = b'I0101 device_manager.go:1] "x" pod="ml/trainer" at 10.0.0.7\n'
    assert (
        redacted(put(kept.LOG, line)).files[kept.LOG]
        == b'I0101 device_manager.go:1] "x" pod="namespace-1/pod-1" at address-1\n'
    )


@pytest.mark.parametrize(
    "name", [kept.PODS, kept.NODE, kept.LIST, kept.OPENERS, "kubelet/cpu_manager_state"]
)
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b'{"items": [1, null]}', b"\xff\x00", b"[" * 9000]
)
def test_nonsense_passes_or_goes(name: str, data: bytes) -> None:
    found = evidence()
    found.files[name] = data
    redacted(found)
