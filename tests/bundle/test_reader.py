"""`--from`: captures of a real node, bundles assembled from what people have, and broken ones."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from dpctl.bundle.meta import Meta, encode_meta
from dpctl.bundle.records import encode_proc, encode_socket_state, encode_sockets
from dpctl.errors import ExitCode
from dpctl.model import (
    DirectoryEntry,
    DirectoryListing,
    Kubelet,
    PluginOptions,
    Process,
    SocketState,
    SocketTable,
    Source,
    UnixSocket,
)
from tests.bundle.helpers import CAPTURES, INPUTS, input_, put, read, row

# --- captures ---


@pytest.mark.parametrize(
    ("name", "pods", "gpus"),
    [
        ("1-healthy", 4, ("gpu-0", "gpu-1", "gpu-2", "gpu-3")),
        ("2-plugin-dead-in-grace", 4, ("gpu-0", "gpu-1", "gpu-2", "gpu-3")),
        ("3-after-kubelet-restart", 4, None),
    ],
)
def test_a_capture(name: str, pods: int, gpus: tuple[str, ...] | None) -> None:
    found = read(CAPTURES / name)
    assert found.from_bundle
    assert found.collected_at is None  # no meta.json
    assert found.node is not None
    assert found.node.name == "worker-0"
    assert found.kubelet_version == found.node.kubelet_version
    assert found.pods is not None
    assert len(found.pods) == pods
    assert found.pod_resources is not None
    assert found.allocatable is not None
    assert found.numa is not None
    assert [n.cpus for n in found.numa.nodes] == [(0,), (1,)]
    assert found.directory is not None
    assert found.directory.entry("kubelet.sock") is not None
    checkpoint = found.checkpoint
    assert checkpoint is not None
    assert checkpoint.verified
    if gpus is not None:
        assert sorted(checkpoint.registered["vendor.example/gpu"]) == list(gpus)
    states = {r.name: r.state for r in found.sources}
    assert {name for name, state in states.items() if state == "missing"} == {
        "plugins",
        "plugins_registry",
        "sockets",
        "cpus",
        "deviceclasses",
        "pci",
        "podnames",
        "hostpaths",
        "cdi",
        "kubelet",
        "dra_health_state",
        "pods-api",
        "poddirs",
    }
    assert set(states.values()) == {"read", "missing"}
    recorded = [source for source in Source if source is not Source.UNSCHEDULED]
    assert [r.name for r in found.sources] == recorded


def test_times_come_from_the_listing_not_from_the_files(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / "1-healthy", tmp_path / "b")
    for path in (tmp_path / "b").rglob("*"):
        os.utime(path, (1, 1))
    checkpoint = read(tmp_path / "b").checkpoint
    assert checkpoint is not None
    assert checkpoint.modified == pytest.approx(1795957935.2722021)
    (tmp_path / "b/device-plugins/ls.txt").unlink()
    checkpoint = read(tmp_path / "b").checkpoint
    assert checkpoint is not None
    assert checkpoint.modified is None


def test_bytes_and_their_rendering_say_the_same(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / "1-healthy", tmp_path / "b")
    exact = read(tmp_path / "b")
    assert row(exact, "podresources").where.endswith("podresources/list.binpb")
    for name in ("list", "allocatable"):
        (tmp_path / f"b/podresources/{name}.binpb").unlink()
    rendered = read(tmp_path / "b")
    assert row(rendered, "podresources").where.endswith("podresources/list.json")
    assert rendered.pod_resources == exact.pod_resources
    assert rendered.allocatable == exact.allocatable


def test_an_archive_is_read_like_the_directory(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as tar:
        tar.add(CAPTURES / "1-healthy", "1-healthy")
    one, two = read(CAPTURES / "1-healthy"), read(tmp_path / "b.tgz")
    for field in ("node", "pods", "checkpoint", "directory", "numa", "pod_resources"):
        assert getattr(one, field) == getattr(two, field), field
    place = row(two, "node").where
    assert place == f"{tmp_path}/b.tgz:1-healthy/api/node.json"


def test_only_what_is_wanted_is_read() -> None:
    found = read(CAPTURES / "1-healthy", [Source.NODE])
    assert found.node is not None
    assert found.checkpoint is None
    assert [r.name for r in found.sources] == ["node"]


# --- what people have ---


@pytest.mark.parametrize("path", sorted(INPUTS.glob("node-*.json")), ids=lambda p: p.stem)
def test_a_bundle_of_one_node_object(tmp_path: Path, path: Path) -> None:
    found = read(put(tmp_path, "api/node.json", path.read_bytes()))
    assert found.node is not None
    assert found.node.name == "node-a"
    assert {r.state for r in found.sources if r.name != "node"} == {"missing"}


@pytest.mark.parametrize("path", sorted(INPUTS.glob("podres-*.json")), ids=lambda p: p.stem)
def test_a_bundle_of_one_list_answer(tmp_path: Path, path: Path) -> None:
    found = read(put(tmp_path, "podresources/list.json", path.read_bytes()))
    assert row(found, "podresources").state == "read"
    assert found.pod_resources is not None
    assert found.pod_resources.pods


def test_checkpoints_of_all_ages_and_states(tmp_path: Path) -> None:
    states = {}
    for path in sorted(INPUTS.glob("checkpoint-*.json")):
        name = "device-plugins/kubelet_internal_checkpoint"
        found = read(put(tmp_path, name, path.read_bytes()), [Source.CHECKPOINT])
        checkpoint = found.checkpoint
        verified = checkpoint.verified if checkpoint else None
        states[path.stem.removeprefix("checkpoint-")] = (row(found, "checkpoint").state, verified)
    assert states == {
        "bad-checksum": ("read", False),
        "cdi": ("read", True),
        "empty-file": ("failed", None),
        "null-entries": ("read", True),
        "truncated": ("failed", None),
        "v1-array": ("read", True),
        "v2-numa": ("read", True),
    }


def test_a_listing_by_hand(tmp_path: Path) -> None:
    text = input_("dir-listing-after-kubelet-restart.txt")
    found = read(put(tmp_path, "device-plugins/ls.txt", text))
    assert found.directory is not None
    assert [e.name for e in found.directory.entries if e.kind == "socket"] == [
        "kubelet.sock",
        "nvidia-gpu.sock",
    ]
    assert found.directory.path == "/var/lib/kubelet/device-plugins"


def test_recorded_answers_of_plugins(tmp_path: Path) -> None:
    put(tmp_path, "plugins/gpu.sock/devices.json", input_("listandwatch-mig-grpcurl.json"))
    put(tmp_path, "plugins/gpu.sock/options.json", {"getPreferredAllocationAvailable": True})
    put(tmp_path, "plugins/empty.sock/devices.json", input_("listandwatch-empty.json"))
    put(tmp_path, "plugins/sub%2Fx.sock/options.json", {})
    put(tmp_path, "plugins/dead.sock/state.json", encode_socket_state(SocketState.DEAD, "refused"))
    put(tmp_path, "plugins/deep/er/options.json", {})
    put(tmp_path, "device-plugins/ls.txt", "srwxr-xr-x lone.sock\nsrwxr-xr-x kubelet.sock\n")
    found = read(tmp_path)
    assert found.plugins is not None
    plugins = {socket.endpoint: socket for socket in found.plugins}
    assert sorted(plugins) == ["dead.sock", "empty.sock", "gpu.sock", "lone.sock", "sub/x.sock"]
    gpu = plugins["gpu.sock"]
    assert (gpu.state, gpu.options) == (SocketState.SERVING, PluginOptions(False, True))
    assert gpu.recorded_devices is not None
    assert len(gpu.recorded_devices) == 5
    assert plugins["empty.sock"].recorded_devices == ()
    assert plugins["sub/x.sock"].options == PluginOptions(False, False)
    assert (plugins["dead.sock"].state, plugins["dead.sock"].detail) == ("Dead", "refused")
    assert (plugins["lone.sock"].state, plugins["lone.sock"].detail) == ("Unknown", "not recorded")


def test_one_broken_answer_of_many(tmp_path: Path) -> None:
    put(tmp_path, "plugins/bad.sock/options.json", "nonsense")
    put(tmp_path, "plugins/good.sock/options.json", {})
    found = read(tmp_path, [Source.PLUGINS])
    assert found.plugins is not None
    assert [(s.endpoint, s.state) for s in found.plugins] == [
        ("bad.sock", SocketState.UNKNOWN),
        ("good.sock", SocketState.SERVING),
    ]
    first = found.source(Source.PLUGINS)
    assert first is not None
    assert first.read
    broken = found.sources[1]
    assert (broken.name, broken.state, broken.code) == ("plugins", "failed", ExitCode.BAD_DATA)
    assert broken.where.endswith("plugins/bad.sock/options.json")


def test_registrations(tmp_path: Path) -> None:
    info = {"type": "DevicePlugin", "name": "v.io/gpu", "endpoint": "/x/gpu.sock"}
    put(tmp_path, "plugins_registry/gpu-reg.sock.json", {**info, "supportedVersions": ["v1beta1"]})
    put(tmp_path, "plugins_registry/sub/dead.sock.json", {"state": "Dead", "detail": "refused"})
    put(tmp_path, "plugins_registry/bad.sock.json", "nonsense")
    put(tmp_path, "plugins_registry/notes.txt", "not a record")
    found = read(tmp_path, [Source.REGISTRY])
    assert found.registry is not None
    assert [(s.path, s.state, s.name) for s in found.registry] == [
        ("bad.sock", SocketState.UNKNOWN, None),
        ("gpu-reg.sock", SocketState.SERVING, "v.io/gpu"),
        ("sub/dead.sock", SocketState.DEAD, None),
    ]
    assert found.registry[1].service_endpoint == "/x/gpu.sock"
    assert [r.state for r in found.sources] == ["read", "failed"]


def test_the_socket_table_and_the_processes_behind_it(tmp_path: Path) -> None:
    entry = DirectoryEntry(
        "kubelet_internal_checkpoint", "file", 0o600, 0, 0, 5, 6, 1795957935.25, 9
    )
    listing = DirectoryListing("/var/lib/kubelet/device-plugins", (entry,), 3, 6)
    table = SocketTable((UnixSocket(11, "listen", "/x/kubelet.sock", 7, 6, None, 42),))
    kubelet = Kubelet(42, ("kubelet",), "worker-0", 5.0, None, None)
    process = Process(43, "plugin", ("plugin",), {"RESOURCE": "v.io/gpu"}, "uid", None, 6.0)
    put(tmp_path, "device-plugins/sockets.json", encode_sockets(listing, table))
    put(tmp_path, "device-plugins/ls.txt", "srwxr-xr-x other.sock\n")
    put(tmp_path, "proc.json", encode_proc([kubelet], {43: process}))
    name = "device-plugins/kubelet_internal_checkpoint"
    put(tmp_path, name, input_("checkpoint-v2-numa.json"))
    found = read(tmp_path)
    assert (found.directory, found.sockets) == (listing, table)
    assert row(found, "device-plugins").where.endswith("sockets.json")
    assert (found.kubelets, found.processes) == ((kubelet,), {43: process})
    assert found.checkpoint is not None
    assert found.checkpoint.modified == 1795957935.25


def test_flags_of_the_kubelet_win_over_its_file(tmp_path: Path) -> None:
    arguments = ("kubelet", "--topology-manager-policy=restricted")
    one = Kubelet(42, arguments, "worker-0", 5.0, None, None)
    put(tmp_path, "kubelet/config.json", {"topologyManagerPolicy": "none"})
    put(tmp_path, "proc.json", encode_proc([one], {}))
    found = read(tmp_path, [Source.KUBELET])
    assert found.kubelet_config == {"topologyManagerPolicy": "restricted"}
    assert found.kubelet_flags == {"topologyManagerPolicy": "topology-manager-policy"}
    put(tmp_path, "proc.json", encode_proc([one, one._replace(pid=43)], {}))
    found = read(tmp_path, [Source.KUBELET])
    assert found.kubelet_config == {"topologyManagerPolicy": "none"}, "whose it is, nobody can tell"
    assert found.kubelet_flags == {}


def test_a_table_that_could_not_be_read_when_the_bundle_was_made(tmp_path: Path) -> None:
    put(tmp_path, "device-plugins/sockets.json", encode_sockets(None, None))
    put(tmp_path, "device-plugins/ls.txt", "srwxr-xr-x a.sock\n")
    found = read(tmp_path)
    assert found.sockets is None
    assert row(found, "sockets").state == "missing"
    assert "was not read when the bundle was made" in (row(found, "sockets").reason or "")
    assert found.directory is not None
    assert row(found, "device-plugins").where.endswith("ls.txt")


def test_meta(tmp_path: Path) -> None:
    put(tmp_path, "meta.json", encode_meta(Meta(1795957974.5, "v1.36.2", "boot", "worker-0")))
    put(tmp_path, "api/node.json", input_("node-mig-ghost.json"))
    found = read(tmp_path)
    assert (found.collected_at, found.kubelet_version) == (1795957974.5, "v1.36.2")
    assert found.boot_id == "boot"


def test_a_broken_meta_is_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    put(tmp_path, "meta.json", "{")
    put(tmp_path, "proc.json", "[]")
    put(tmp_path, "api/node.json", input_("node-mig-ghost.json"))
    found = read(tmp_path)
    assert found.node is not None
    assert found.collected_at is None
    for name in ("meta", "proc"):
        assert row(found, name).state == "failed"
        assert row(found, name).where.endswith(f"{name}.json")


def test_kubelet_configuration(tmp_path: Path) -> None:
    config = {"kind": "KubeletConfiguration", "topologyManagerPolicy": "restricted"}
    for document in (config, {"kubeletconfig": config}):
        found = read(put(tmp_path, "kubelet/config.json", document))
        assert found.kubelet_config is not None
        assert found.kubelet_config["topologyManagerPolicy"] == "restricted"


def test_pci_devices_and_numa_nodes(tmp_path: Path) -> None:
    put(tmp_path, "sys/bus/pci/devices/0000:3b:00.2/numa_node", "1\n")
    put(tmp_path, "sys/bus/pci/devices/0000:5e:00.0/numa_node", "-1\n")
    put(tmp_path, "sys/devices/system/node/node0/cpulist", "0-3,8\n")
    put(tmp_path, "sys/devices/system/node/node0/meminfo", input_("meminfo-drift.txt"))
    (tmp_path / "sys/devices/system/node/node0/cpu0").symlink_to("/sys/devices/system/cpu/cpu0")
    found = read(tmp_path)
    assert found.pci == {"0000:3b:00.2": 1, "0000:5e:00.0": None}
    assert found.numa is not None
    assert found.numa.nodes[0].cpus == (0, 1, 2, 3, 8)
    assert found.numa.nodes[0].memory_total == 132064252 * 1024
    assert row(found, "numa").read  # and no second row for the link that nobody reads


def test_links_below_sys_are_said_not_followed(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", "numa_node", "7\n")
    put(tmp_path / "b", "sys/bus/pci/devices/0000:3b:00.2/numa_node", "1\n")
    for address in ("0000:5e:00.0", "0000:5e:00.1"):
        (tmp_path / "b/sys/bus/pci/devices" / address).symlink_to(outside)
    found = read(tmp_path / "b", [Source.PCI])
    assert found.pci == {"0000:3b:00.2": 1}
    assert [r.state for r in found.sources] == ["read", "failed"]
    assert "0000:5e:00.0 is a symbolic link (1 more like it)" in (found.sources[1].reason or "")
