"""Which socket a person means, and whether the kubelet is connected to it."""

from __future__ import annotations

import pytest

from dpctl.errors import UnreachableError, UsageError
from dpctl.inventory.targets import is_path, target_by_name, target_by_path
from dpctl.model import PluginSocket, RegistrySocket, Snapshot, SocketState, Source, SourceRow
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"
SERVING = SocketState.SERVING


def served(endpoint: str, *, state: SocketState = SERVING, resource: str = R) -> PluginSocket:
    info = RegistrySocket(endpoint, SERVING, "DevicePlugin", resource)
    return PluginSocket(endpoint, state, None, info, None)


def snapshot(**fields: object) -> Snapshot:
    """One plugin, gpu.sock, that the kubelet is connected to."""
    base: dict[str, object] = {
        "collected_at": NOW,
        "sources": (SourceRow(Source.REGISTRY, "/reg", "read"),),
        "checkpoint": build.checkpoint({R: ("g0",)}),
        "directory": build.directory(build.entry("gpu.sock", 20)),
        "plugins": (served("gpu.sock"),),
        "sockets": build.table(
            build.listener("/dp/gpu.sock", 20), build.accepted("/dp/gpu.sock", 20)
        ),
        "kubelets": (build.kubelet(),),
    }
    return Snapshot(**{**base, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gpu.sock", R])
def test_by_name_and_by_resource(name: str) -> None:
    target = target_by_name(snapshot(), name)
    assert (target.path, target.resource, target.inferred) == ("/dp/gpu.sock", R, False)
    assert (target.connected, target.follow) == (True, False)


def test_not_connected_only_by_a_trusted_table() -> None:
    quiet = snapshot(sockets=build.table(build.listener("/dp/gpu.sock", 20)))
    assert target_by_name(quiet, "gpu.sock").connected is False
    # Without the kubelet's own listener the table is another namespace's.
    other = snapshot(sockets=build.table(build.listener("/dp/gpu.sock", 20), own=False))
    found = target_by_name(other, "gpu.sock")
    assert found.connected is None
    assert "lacks the kubelet's own listener" in found.evidence


def test_a_path_is_one_of_the_directorys_by_inode() -> None:
    snap = snapshot()
    found = target_by_path(snap, "/host/dp/gpu.sock", build.entry("gpu.sock", 20))
    assert (found.path, found.resource, found.connected) == ("/host/dp/gpu.sock", R, True)
    assert found.follow
    stranger = target_by_path(snap, "/tmp/gpu.sock", build.entry("gpu.sock", 21))
    assert (stranger.resource, stranger.connected) == (None, False)


def test_of_a_path_nothing_is_told_without_a_trusted_table() -> None:
    for table in (None, build.table(own=False)):
        found = target_by_path(snapshot(sockets=table), "/tmp/x", build.entry("x", 21))
        assert found.connected is None


def test_a_path_elsewhere_that_the_kubelet_is_connected_to() -> None:
    """As a plugin of plugins_registry whose service socket is in its own directory."""
    sockets = build.table(
        build.listener("/dp/gpu.sock", 20),
        build.listener("/x/own.sock", 30, parent=(7, build.DEVICE)),
        build.accepted("/x/own.sock", 30),
    )
    found = target_by_path(snapshot(sockets=sockets), "/x/own.sock", build.entry("own.sock", 30))
    assert found.connected is True


def test_the_kubelets_own_socket_is_no_plugin() -> None:
    with pytest.raises(UsageError, match="kubelet's own"):
        target_by_name(snapshot(), "kubelet.sock")
    with pytest.raises(UsageError, match="kubelet's own"):
        target_by_path(snapshot(), "/link", build.entry("link", 10))


def test_two_that_serve_one_resource() -> None:
    entries = (build.entry("gpu.sock", 20), build.entry("new.sock", 21))
    both = (served("gpu.sock"), served("new.sock"))
    snap = snapshot(directory=build.directory(*entries), plugins=both, sockets=None)
    with pytest.raises(UsageError, match=r"gpu\.sock, new\.sock"):
        target_by_name(snap, R)
    one_dead = (served("gpu.sock"), served("new.sock", state=SocketState.DEAD))
    snap = snapshot(directory=build.directory(*entries), plugins=one_dead, sockets=None)
    assert target_by_name(snap, R).path == "/dp/gpu.sock"


def test_a_file_that_is_gone() -> None:
    snap = snapshot(directory=build.directory(), plugins=())
    with pytest.raises(UnreachableError, match=r"socket file of gpu\.sock is gone") as caught:
        target_by_name(snap, "gpu.sock")
    assert "restart the plugin" in (caught.value.hint or "")


def test_nothing_of_that_name() -> None:
    with pytest.raises(UnreachableError, match='no plugin socket "nosuch"'):
        target_by_name(snapshot(), "nosuch")
    empty = snapshot(directory=build.directory(), plugins=(), sockets=None)
    with pytest.raises(UnreachableError, match="there is no plugin socket in /dp"):
        target_by_name(empty, R)


def test_a_registration_socket_whose_plugin_is_elsewhere() -> None:
    registry = RegistrySocket("r.sock", SERVING, "DevicePlugin", "other.example/x", "/y/z.sock")
    with pytest.raises(UsageError, match=r"listens on /y/z\.sock"):
        target_by_name(snapshot(registry=(registry,)), "r.sock")
    here = registry._replace(service_endpoint="")
    found = target_by_name(snapshot(registry=(here,)), "other.example/x")
    assert found.path == "/reg/r.sock"


@pytest.mark.parametrize(
    ("text", "path"),
    [("/a", True), ("./a", True), ("../a", True), ("a.sock", False), ("a.b/c", False)],
)
def test_what_is_a_path(text: str, path: bool) -> None:
    assert is_path(text) is path
