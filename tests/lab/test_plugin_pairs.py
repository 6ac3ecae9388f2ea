"""Two instances for one resource, and streams that go wrong: kubelet-facts §3.3, §3.5.

A lab is 1.36 unless it is told otherwise: what 1.37 does with pairs is in `test_pairs_by_socket`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec, SampleDevice
from tests.lab.parts import GPU, amounts, eventually, plain, register


@pytest.fixture
def quiet() -> Iterator[Lab]:
    with Lab(scenario="empty", status_period=3600) as running:
        yield running


def healthy(lab: Lab) -> list[str]:
    found: list[str] = lab.kubelet.state().get(GPU, {}).get("healthy", [])
    return found


def test_the_older_ones_exit_disconnects_the_newer(quiet: Lab) -> None:
    first = quiet.add_plugin(plain(4, name="a"))
    quiet.wait_settled()
    second = quiet.add_plugin(plain(2, name="b"))
    eventually(lambda: healthy(quiet) == ["b-0", "b-1"])
    first.set_health("a-0", "Unhealthy")  # its stream is still open and overwrites
    eventually(lambda: healthy(quiet) == ["a-1", "a-2", "a-3"])
    first.kill()
    eventually(lambda: not quiet.kubelet.state()[GPU]["running"])
    quiet.kubelet.sync()
    assert amounts(quiet)[1] == "0"
    assert second.pid is not None
    second.register()
    eventually(lambda: healthy(quiet) == ["b-0", "b-1"])


def test_a_failed_registration_blinds_the_kubelet(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4))
    quiet.wait_settled()
    assert register(quiet, "nothing.sock", GPU) is not None
    plugin.kill()
    time.sleep(0.5)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "4")
    pod = quiet.create_pod("ml", "p", {"c": {GPU: 1}}, node_name="lab-0")
    assert "rpc error: code = Unavailable" in pod["status"]["message"]
    assert "gpu.sock: connect: connection refused" in pod["status"]["message"]
    (quiet.device_plugins / "gpu.sock").unlink()
    pod = quiet.create_pod("ml", "q", {"c": {GPU: 1}}, node_name="lab-0")
    assert "gpu.sock: connect: no such file or directory" in pod["status"]["message"]


def test_duplicates_and_both_words(quiet: Lab) -> None:
    devices = (
        *(SampleDevice(f"d{n}") for n in range(8)),
        SampleDevice("d0", (1,)),
        SampleDevice("d1", None, "Unhealthy"),
    )
    quiet.add_plugin(PluginSpec("gpu", GPU, "gpu.sock", devices))
    eventually(lambda: len(healthy(quiet)) == 8)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("9", "8")  # d1 is in both sets


def test_a_message_that_is_too_big_ends_the_stream(quiet: Lab) -> None:
    devices = tuple(SampleDevice(f"{n:070}") for n in range(62_000))
    plugin = quiet.add_plugin(PluginSpec("gpu", GPU, "gpu.sock", devices))
    log = quiet.directory / "log" / "kubelet.log"
    eventually(lambda: "ListAndWatch ended unexpectedly" in log.read_text())
    assert "larger than max" in log.read_text()
    assert plugin.state()["registered_with"] is not None
    eventually(lambda: not quiet.kubelet.state()[GPU]["running"])
    quiet.kubelet.sync()
    assert amounts(quiet) == ("0", "0")


def test_a_paused_plugin_stays_healthy(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(2))
    quiet.wait_settled()
    plugin.pause()
    quiet.clock.advance(600)
    quiet.wait_settled()
    assert amounts(quiet) == ("2", "2")
    plugin.resume()
    plugin.set_health("gpu-0", "Unhealthy")
    quiet.wait_settled()
    assert amounts(quiet) == ("2", "1")


def test_exit_takes_the_socket_along_and_kill_leaves_it(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(2))
    quiet.wait_settled()
    socket = quiet.device_plugins / "gpu.sock"
    plugin.kill()
    assert socket.is_socket()
    plugin.start()
    quiet.wait_settled()
    plugin.exit()
    assert not socket.exists()


def test_restart_keeps_what_runs_and_rejects_init_holders(quiet: Lab) -> None:
    """§6.4: running containers go on; a finished init container with devices loses its pod."""
    quiet.add_plugin(plain(4))
    quiet.wait_settled()
    quiet.create_pod("ml", "app", {"c": {GPU: 1}})
    quiet.create_pod("ml", "init", {"c": {GPU: 1}}, init={"i": {GPU: 1}})
    quiet.kubelet.restart()
    quiet.wait_settled()
    pods = quiet.pods()
    assert pods["ml/app"]["status"]["phase"] == "Running"
    assert pods["ml/init"]["status"]["phase"] == "Failed"
    assert quiet.kubelet.state()[GPU]["allocated"]


def test_deleted_pods_go_with_their_directories(quiet: Lab) -> None:
    pod = quiet.create_pod("ml", "p", {"c": {}})
    uid = pod["metadata"]["uid"]
    logs, data = quiet.root / "var/log/pods", quiet.root / "var/lib/kubelet/pods" / uid
    assert [p.name for p in logs.iterdir()] == [f"ml_p_{uid}"]
    assert data.is_dir()
    quiet.delete_pod("ml", "p")
    assert quiet.pods() == {}
    eventually(lambda: not data.exists() and list(logs.iterdir()) == [])
