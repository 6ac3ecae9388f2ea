"""What people reported from the field, as bundles: what the commands make of each file.

Files that lack evidence come out Unknown with the missing source named; where a test needs more, it
supplies it and says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpctl.names import is_native
from dpctl.statefiles.device_checkpoint import encode_checkpoint
from tests.run import DATA, Result, dpctl

INPUTS = DATA / "inputs"
PLACES = {
    "checkpoint": "device-plugins/kubelet_internal_checkpoint",
    "node": "api/node.json",
    "list": "podresources/list.json",
    "ls": "device-plugins/ls.txt",
}


class Bundle:
    """A bundle that is put together from input files and what a test adds."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, place: str, data: bytes | str | dict[str, Any]) -> Bundle:
        if isinstance(data, dict):
            data = json.dumps(data)
        path = self.root / PLACES.get(place, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return self

    def copy(self, place: str, name: str) -> Bundle:
        return self.put(place, (INPUTS / name).read_bytes())

    def run(self, command: str, *arguments: str) -> Result:
        return dpctl(command, "--from", str(self.root), *arguments)

    def items(self, command: str, *arguments: str) -> list[dict[str, Any]]:
        result = self.run(command, *arguments, "-o", "json")
        assert result.code == 0, result.err
        found: list[dict[str, Any]] = json.loads(result.out)["items"]
        return found

    def states(self) -> dict[str, str]:
        return {i["resource"]: i["state"] for i in self.items("resources")}


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle(tmp_path)


def node(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((INPUTS / name).read_text())
    return found


def owned(document: dict[str, Any], manager: str = "kubelet") -> dict[str, Any]:
    """The same Node with managedFields: every capacity key is `manager`'s."""
    keys: dict[str, Any] = {f"f:{key}": {} for key in document["status"]["capacity"]}
    document["metadata"]["managedFields"] = [
        {
            "manager": manager,
            "operation": "Update",
            "subresource": "status",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:capacity": keys}},
        }
    ]
    return document


LS = """total 8
srwxr-xr-x 1 root root 0 2026-11-29 13:00:00.000000000 +0000 kubelet.sock
-rw------- 1 root root 9 2026-11-29 13:10:00.000000000 +0000 kubelet_internal_checkpoint
"""


def tracking(registered: dict[str, list[str]]) -> bytes:
    return encode_checkpoint([], registered)


@pytest.mark.parametrize("name", sorted(p.name for p in INPUTS.glob("node-*.json")))
def test_a_node_alone_is_not_enough(bundle: Bundle, name: str) -> None:
    """kubectl leaves managedFields out, and nothing local says who tracks what."""
    bundle.copy("node", name)
    keys = [k for k in node(name)["status"]["capacity"] if not is_native(k)]
    rows = bundle.items("resources")
    assert sorted(r["resource"] for r in rows) == sorted(keys)
    foreign = {r["resource"] for r in rows if r["state"] == "Foreign"}
    for row in rows:
        if row["resource"] not in foreign:
            assert (row["state"], row["missingSources"]) == ("Unknown", ["checkpoint"])
    if "managedFields" not in node(name)["metadata"]:
        assert not foreign


def test_akri_62_keys(bundle: Bundle) -> None:
    """56 of 62 keys are akri's and four of those are alive: the rest may go."""
    document = owned(node("node-akri-62keys.json"))
    capacity = document["status"]["capacity"]
    alive = {
        k: [f"{k}-{n}" for n in range(int(v))]
        for k, v in capacity.items()
        if "akri" in k and v != "0"
    }
    bundle.put("node", document).put("ls", LS).put("checkpoint", tracking(alive))
    states = bundle.states()
    akri = {k: s for k, s in states.items() if "akri" in k}
    assert len(akri) == 56
    assert {k for k, s in akri.items() if s == "Ready"} == set(alive)
    assert len(alive) == 4
    assert sum(s == "Stale" for s in akri.values()) == 52


def test_mig_ghosts(bundle: Bundle) -> None:
    """Only mig-1g.5gb has a plugin; the other two send pods to nothing."""
    ids = [f"MIG-{n}" for n in range(56)]
    bundle.put("node", owned(node("node-mig-ghost.json"))).put("ls", LS)
    bundle.put("checkpoint", tracking({"nvidia.com/mig-1g.5gb": ids}))
    assert bundle.states() == {
        "nvidia.com/gpu": "Ghost",
        "nvidia.com/mig-1g.5gb": "Ready",
        "nvidia.com/mig-7g.40gb": "Ghost",
    }


def test_one_of_three_is_unhealthy(bundle: Bundle) -> None:
    bundle.put("node", owned(node("node-alloc2of3.json"))).put("ls", LS)
    bundle.put("checkpoint", tracking({"nvidia.com/gpu": ["a", "b"]}))
    assert bundle.states() == {"nvidia.com/gpu": "Degraded"}
    rows = bundle.items("devices", "--unhealthy")
    assert [(r["device"], r["count"]) for r in rows] == [(None, 1)]


def test_sixteen_and_none_of_them_allocatable(bundle: Bundle) -> None:
    """All unhealthy, or the plugin gone for less than five minutes: without a table that shows a
    connection it is taken for the second, and the evidence says what it could be."""
    bundle.put("node", owned(node("node-cap16-alloc0.json"))).put("ls", LS)
    (resource,) = [k for k in node("node-cap16-alloc0.json")["status"]["capacity"] if "/" in k]
    bundle.put("checkpoint", tracking({resource: [f"d{n}" for n in range(16)]}))
    (row,) = bundle.items("resources")
    assert (row["state"], row["healthy"], row["total"]) == ("Grace", 0, 16)
    assert any("may be Unregistered" in text for text in row["evidence"])


def test_hand_patched_keys_are_foreign(bundle: Bundle) -> None:
    document = owned(node("node-hand-patched.json"), "kubectl-patch")
    bundle.put("node", document).put("ls", LS).put("checkpoint", tracking({}))
    assert set(bundle.states().values()) == {"Foreign"}


@pytest.mark.parametrize(
    ("name", "code", "word"),
    [
        ("checkpoint-truncated.json", 7, "JSON"),
        ("checkpoint-empty-file.json", 7, "empty"),
    ],
)
def test_a_broken_checkpoint_alone_ends_the_run(
    bundle: Bundle, name: str, code: int, word: str
) -> None:
    result = bundle.copy("checkpoint", name).run("devices")
    assert (result.code, result.out) == (code, "")
    assert word in result.err
    assert "hint: " in result.err


def test_a_broken_checkpoint_beside_the_node_is_named(bundle: Bundle) -> None:
    bundle.copy("checkpoint", "checkpoint-truncated.json").copy("node", "node-mig-ghost.json")
    result = bundle.run("resources")
    assert result.code == 0
    assert "checkpoint not read" in result.err
    assert bundle.run("resources", "--strict").code == 7


def test_a_damaged_checkpoint_is_said_and_tells_nothing_of_tracking(bundle: Bundle) -> None:
    bundle.copy("checkpoint", "checkpoint-bad-checksum.json")
    result = bundle.run("resources", "-o", "json")
    assert (result.code, result.err.count("checkpoint damaged: its checksum is ")) == (0, 1)
    document = json.loads(result.out)
    for row in document["items"]:
        assert (row["state"], row["tracked"]) == ("Unknown", None)
        assert "checkpoint is damaged: a kubelet that starts ignores it" in row["notes"]
    source = next(s for s in document["sources"] if s["name"] == "checkpoint")
    assert (source["state"], source["code"]) == ("damaged", 7)
    assert bundle.run("resources", "--strict").code == 7


def test_numa_keys_of_the_checkpoint(bundle: Bundle) -> None:
    bundle.copy("checkpoint", "checkpoint-v2-numa.json")
    numa = {r["device"]: r["numaNodes"] for r in bundle.items("devices") if r["numaKnown"]}
    assert numa["fpga-0"] == [0, 1]
    assert numa["/dev/ttyUSB0"] is None, "-1 is no topology"
    assert numa["GPU-00000002-aaaa-bbbb-cccc-000000000002"] == [1]


def test_a_flat_checkpoint_of_old(bundle: Bundle) -> None:
    bundle.copy("checkpoint", "checkpoint-v1-array.json")
    (row,) = bundle.items("pods")
    assert [d["id"] for d in row["devices"]] == ["0000:03:02.0", "0000:03:02.3"]
    assert {r["address"] for r in bundle.items("devices")} >= {"0000:03:02.0", "0000:03:02.1"}


def test_null_entries(bundle: Bundle) -> None:
    bundle.copy("checkpoint", "checkpoint-null-entries.json")
    assert len(bundle.items("devices")) == 1
    assert bundle.items("pods") == []


def test_cdi_names_and_annotations(bundle: Bundle) -> None:
    bundle.copy("checkpoint", "checkpoint-cdi.json")
    (row,) = bundle.items("pods")
    name = "k8s.device-plugin.nvidia.com/gpu=GPU-00000001-aaaa-bbbb-cccc-000000000001"
    assert row["cdiDevices"] == [name]
    assert list(row["answer"]["annotations"]) == ["cdi.k8s.io/nvidia-device-plugin_x"]


def test_numa_node_0_is_a_node(bundle: Bundle) -> None:
    bundle.copy("list", "podres-list-numa0.json")
    rows = {r["resource"]: r for r in bundle.items("pods")}
    assert rows["example.com/nic"]["numaNodes"] == [0, 1]
    assert rows["example.com/serial"]["numaNodes"] is None
    assert rows["example.com/nic"]["memory"][0] == {
        "type": "memory",
        "size": 34359738368,
        "numaNodes": [0],
    }


def test_time_slices_by_card(bundle: Bundle) -> None:
    bundle.copy("list", "podres-timeslice.json")
    groups = bundle.items("devices", "--group-by", "physical")
    assert [(g["group"][:12], g["devices"], g["allocated"]) for g in groups] == [
        ("GPU-00000000", 2, 2),
        ("GPU-00000001", 1, 1),
    ]


def test_a_pod_without_its_devices(bundle: Bundle) -> None:
    bundle.copy("list", "podres-missing-devices.json")
    assert bundle.items("pods") == []
    (row,) = bundle.items("pods", "--all")
    assert (row["pod"], row["devices"]) == ("infer-0", [])


def test_claims_and_pod_level_cpus(bundle: Bundle) -> None:
    bundle.copy("list", "podres-dra.json")
    (row,) = bundle.items("pods")
    assert row["claim"] == "team-a/dra-pod-gpu-abcde"
    assert [d["id"] for d in row["devices"]] == ["gpu.example.com/node-a/gpu-1"]
    assert row["cpus"] == [], "the pod's CPUs are not the container's"
    described = bundle.run("pods", "dra-pod").out
    assert "8-11" in described


def test_a_listing_after_a_kubelet_restart(bundle: Bundle) -> None:
    """ib.sock vanished at the kubelet's start and nobody made it again."""
    bundle.copy("ls", "dir-listing-after-kubelet-restart.txt")
    assert [r["endpoint"] for r in bundle.items("plugins")] == ["nvidia-gpu.sock"]


class TestRecordedLists:
    """What a plugin listed, captured with a gRPC client."""

    def test_unhealthy_ones_have_names(self, bundle: Bundle) -> None:
        resource = "nvidia.com/mig-1g.5gb"
        ids = [f"MIG-0000000{n}-1111-5222-8333-00000000000{n}" for n in range(1, 5)]
        capacity = {"capacity": {resource: "5"}, "allocatable": {resource: "4"}}
        bundle.put("node", owned({"kind": "Node", "metadata": {"name": "a"}, "status": capacity}))
        bundle.put("checkpoint", tracking({resource: ids})).put("ls", LS)
        bundle.copy("plugins/nvidia-mig-1g.5gb.sock/devices.json", "listandwatch-mig-grpcurl.json")
        bundle.put(
            "ls",
            LS + "srwxr-xr-x 1 root root 0 2026-11-29 13:05:00.000000000 +0000 "
            "nvidia-mig-1g.5gb.sock\n",
        )
        rows = {r["device"]: r for r in bundle.items("devices")}
        assert None not in rows, "the fifth has a name"
        broken = rows["MIG-00000005-1111-5222-8333-000000000005"]
        assert (broken["health"], broken["state"], broken["numaNodes"]) == (
            "Unhealthy",
            "Unhealthy",
            [1],
        )
        assert [rows[i]["numaNodes"] for i in ids] == [[6], [0], [4], None]

    def test_zero_devices(self, bundle: Bundle) -> None:
        bundle.copy("plugins/x.sock/devices.json", "listandwatch-empty.json").put("ls", LS)
        (row,) = bundle.items("plugins")
        assert (row["endpoint"], row["state"]) == ("x.sock", "Serving")
