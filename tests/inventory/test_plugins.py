"""Plugin rows, and which resource a socket serves."""

from __future__ import annotations

import pytest

from dpctl.inventory.plugins import plugin_rows
from dpctl.inventory.served import Candidate, attribute
from dpctl.inventory.sockets import socket_facts
from dpctl.model import (
    PluginOptions,
    PluginSocket,
    PodName,
    Process,
    RegistrySocket,
    Snapshot,
    SocketState,
    UnixSocket,
)
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"


def snapshot(**fields: object) -> Snapshot:
    base: dict[str, object] = {
        "collected_at": NOW,
        "sources": (),
        "checkpoint": build.checkpoint({R: ("g0",)}),
        "directory": build.directory(),
        "sockets": build.table(),
        "kubelets": (build.kubelet(),),
    }
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


def test_a_served_socket() -> None:
    options = PluginOptions(pre_start_required=True, preferred_allocation=False)
    snap = snapshot(
        directory=build.directory(build.entry("gpu.sock", 20, age=60)),
        plugins=(PluginSocket("gpu.sock", SocketState.SERVING, options, None, None),),
        sockets=build.table(build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)),
        processes={200: Process(200, "gpu-plugin", (), {}, "uid-p", "cid")},
        pod_names=(PodName("uid-p", "kube-system", "gpu-plugin-x"),),
    )
    (row,) = plugin_rows(snap)
    assert (row.endpoint, row.state, row.kubelet, row.resource) == (
        "gpu.sock",
        "Serving",
        "Connected",
        R,
    )
    assert (row.options, row.pid, row.command, row.pod, row.age) == (
        ("PreStart",),
        200,
        "gpu-plugin",
        "gpu-plugin-x",
        60,
    )


def test_kubelet_socket_temporary_files_and_others_are_no_plugins() -> None:
    files = (
        build.entry(".12345", 30),
        build.entry("kubelet_internal_checkpoint", 31, kind="file"),
        build.entry("DEPRECATION", 32, kind="file"),
        build.entry("x.sock", 33, kind="file"),
    )
    assert plugin_rows(snapshot(directory=build.directory(*files))) == ()


def test_unlinked_listener() -> None:
    (row,) = plugin_rows(snapshot(sockets=build.table(build.listener("/other/mount/gpu.sock", 20))))
    assert (row.endpoint, row.state, row.kubelet) == ("gpu.sock", "Unlinked", "NotConnected")


def test_a_file_replaced_by_another_listener_shows_both() -> None:
    """A plugin that lost its file to a new instance of the same name lives on."""
    snap = snapshot(
        directory=build.directory(build.entry("gpu.sock", 21)),
        plugins=(PluginSocket("gpu.sock", SocketState.SERVING, None, None, None),),
        sockets=build.table(
            build.listener("/dp/gpu.sock", 20, pid=201),
            build.listener("/dp/gpu.sock", 21, pid=202),
            build.accepted("/dp/gpu.sock", 20),
        ),
    )
    rows = {r.pid: r for r in plugin_rows(snap)}
    assert (rows[201].state, rows[201].kubelet) == ("Unlinked", "Connected")
    assert (rows[202].state, rows[202].kubelet) == ("Serving", "NotConnected")


def test_a_directory_that_cannot_be_told_counts_as_ours() -> None:
    (row,) = plugin_rows(snapshot(sockets=build.table(build.listener("x.sock", 20, parent=None))))
    assert row.state == "Unknown", "whether its file is gone cannot be told either"
    assert row.detail is not None
    assert "cannot be told" in row.detail


def test_listeners_of_other_directories_are_not_ours() -> None:
    sockets = build.table(build.listener("/run/x.sock", 20, parent=(99, build.DEVICE)))
    assert plugin_rows(snapshot(sockets=sockets)) == ()


def test_the_kubelets_own_sockets_and_an_older_kubelets_are_not_plugins() -> None:
    sockets = build.table(
        build.listener("/dp/kubelet.sock", 9, pid=50), build.listener("/dp/own", 21, pid=100)
    )
    assert plugin_rows(snapshot(sockets=sockets)) == ()


def test_without_a_table_the_kubelet_column_is_unknown() -> None:
    snap = snapshot(sockets=None, directory=build.directory(build.entry("gpu.sock", 20)))
    (row,) = plugin_rows(snap)
    assert row.kubelet is None
    assert row.resource_inferred


def test_registry_sockets() -> None:
    snap = snapshot(
        registry=(
            RegistrySocket(
                "d-reg.sock", SocketState.SERVING, "DRAPlugin", "d.example", "/x", ("v1",)
            ),
            RegistrySocket(
                "p.sock", SocketState.SERVING, "DevicePlugin", R, "", ("v1beta1",), inode=40
            ),
        ),
        sockets=build.table(build.accepted("/reg/p.sock", 40)),
    )
    rows = {r.endpoint: r for r in plugin_rows(snap)}
    assert (rows["d-reg.sock"].resource, rows["d-reg.sock"].kubelet) == ("d.example", None)
    assert (rows["p.sock"].resource, rows["p.sock"].kubelet) == (R, "Connected")


@pytest.mark.parametrize(
    ("own", "trusted"),
    [(build.kubelet_listener(), True), (build.kubelet_listener(pid=None), False), (None, False)],
)
def test_trust_needs_this_kubelets_listener(own: UnixSocket | None, trusted: bool) -> None:
    sockets = build.table(*([own] if own else []), own=False)
    assert socket_facts(snapshot(sockets=sockets)).trusted is trusted


def test_another_inode_behind_the_kubelets_name_is_not_trusted() -> None:
    stranger = build.listener("/dp/kubelet.sock", 11)
    assert not socket_facts(snapshot(sockets=build.table(stranger, own=False))).trusted


def candidate(endpoint: str, *arguments: str, connected: bool | None = True) -> Candidate:
    process = build.process(1, *arguments) if arguments else None
    return Candidate(endpoint, endpoint, None, process, connected)


@pytest.mark.parametrize(
    ("endpoint", "resource"),
    [
        ("nvidia-gpu.sock", "nvidia.com/gpu"),
        ("vendor_example_gpu.sock", "vendor.example/gpu"),
        ("gpu.sock", "nvidia.com/gpu"),
        ("intel.com_sriov.sock", "intel.com/sriov"),
        ("gdp-ZWRnZS5leGFtcGxlL2Z1c2U=-1764421000.sock", "edge.example/fuse"),
    ],
)
def test_names_that_a_socket_tells(endpoint: str, resource: str) -> None:
    others = ["zz.example/other", "yy.example/another"]
    found = attribute(
        [candidate(endpoint), candidate("dp.1"), candidate("dp.2")], [resource, *others], []
    )
    assert found[endpoint].resource == resource
    assert found[endpoint].inferred


def test_names_that_tell_nothing() -> None:
    found = attribute([candidate("dp.1"), candidate("dp.2")], ["a.example/x", "b.example/y"], [])
    assert found == {}


def test_a_tie_decides_nothing() -> None:
    found = attribute(
        [candidate("gpu.sock"), candidate("dp.2")], ["a.example/gpu", "b.example/gpu"], []
    )
    assert found == {}


def test_a_longer_name_is_not_its_prefix() -> None:
    found = attribute(
        [candidate("s1", "--name=nvidia.com/gpu.shared"), candidate("s2"), candidate("s3")],
        ["nvidia.com/gpu", "nvidia.com/gpu.shared", "z.example/z"],
        [],
    )
    assert found["s1"].resource == "nvidia.com/gpu.shared"


def test_elimination_after_evidence_is_inferred() -> None:
    found = attribute(
        [candidate("a", "--r", "v.example/x"), candidate("b")], ["v.example/x", "v.example/y"], []
    )
    assert found["b"].resource == "v.example/y"
    assert found["b"].inferred


def test_an_unconnected_socket_may_have_a_name_that_only_the_node_has() -> None:
    found = attribute([candidate("dp.1", connected=False)], [], ["v.example/x"])
    assert (found["dp.1"].resource, found["dp.1"].inferred) == ("v.example/x", True)
    assert attribute([candidate("dp.1", connected=False)], [], ["v/x", "v/y"]) == {}


def test_two_instances_of_one_resource() -> None:
    found = attribute(
        [candidate("a", "--r=v.example/x"), candidate("b", "--r=v.example/x", connected=False)],
        ["v.example/x"],
        [],
    )
    assert {s.resource for s in found.values()} == {"v.example/x"}
    assert set(found) == {"a", "b"}


def test_hard_links_are_names_of_one_socket() -> None:
    files = [build.entry(name, 20) for name in ("aaa.sock", "gpu.sock", "zzz.sock")]
    snap = snapshot(
        directory=build.directory(*files),
        sockets=build.table(build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)),
    )
    assert {r.endpoint: (r.kubelet, r.pid) for r in plugin_rows(snap)} == dict.fromkeys(
        ("aaa.sock", "gpu.sock", "zzz.sock"), ("Connected", 200)
    )


def test_a_path_that_begins_with_at_is_no_abstract_name() -> None:
    snap = snapshot(
        directory=build.directory(build.entry("@r.sock", 20)),
        sockets=build.table(build.listener("@r.sock", 20), build.accepted("@r.sock", 20)),
    )
    (row,) = plugin_rows(snap)
    assert (row.endpoint, row.kubelet, row.resource) == ("@r.sock", "Connected", R)


def test_several_holders_of_the_kubelets_listener() -> None:
    own = build.kubelet_listener()._replace(pid=7, holders=(7, 100))
    socket = build.listener("/dp/gpu.sock", 20)
    connected = snapshot(
        directory=build.directory(build.entry("gpu.sock", 20)),
        sockets=build.table(own, socket, build.accepted("/dp/gpu.sock", 20), own=False),
    )
    facts = socket_facts(connected)
    assert facts.kubelet is not None
    assert (facts.trusted, facts.kubelet.pid) == (True, 100), "the one that is a known kubelet"
    strangers = snapshot(kubelets=(), sockets=build.table(own._replace(holders=(7, 8)), own=False))
    assert not socket_facts(strangers).trusted


def test_an_old_listener_of_another_namespace_does_not_inherit_the_new_file() -> None:
    """Its name is all its table has, and a listener here is bound to the file of that name."""
    old = build.listener("/plugins/gpu.sock", 99, pid=300)._replace(
        file_inode=None, device=None, other_namespace=True
    )
    snap = snapshot(
        directory=build.directory(build.entry("gpu.sock", 20)),
        sockets=build.table(
            old, build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)
        ),
    )
    rows = {r.pid: (r.state, r.kubelet) for r in plugin_rows(snap)}
    assert rows[300] == ("Unlinked", "NotConnected")
    assert rows[200][1] == "Connected"
