"""Two instances for one resource on 1.37, which knows them by their sockets: kubelet-facts §3.5."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpctl.lab.fixture import Lab
from tests.lab.parts import GPU, amounts, eventually, plain, register


@pytest.fixture
def quiet() -> Iterator[Lab]:
    with Lab(scenario="empty", status_period=3600, kubelet_version="v1.37.2") as running:
        yield running


def healthy(lab: Lab) -> list[str]:
    found: list[str] = lab.kubelet.state().get(GPU, {}).get("healthy", [])
    return found


def ends(lab: Lab) -> int:
    log = (lab.directory / "log" / "kubelet.log").read_text()
    return log.count("ListAndWatch ended unexpectedly")


def test_the_other_serves_on(quiet: Lab) -> None:
    first = quiet.add_plugin(plain(4, name="a"))
    quiet.wait_settled()
    second = quiet.add_plugin(plain(2, name="b"))
    eventually(lambda: healthy(quiet) == ["b-0", "b-1"])
    second.kill()
    eventually(lambda: quiet.kubelet.state()[GPU]["socket"].endswith("/a.sock"))
    assert healthy(quiet) == ["b-0", "b-1"]  # of the dead one, until the survivor sends
    first.set_health("a-0", "Unhealthy")
    eventually(lambda: healthy(quiet) == ["a-1", "a-2", "a-3"])
    quiet.create_pod("ml", "p", {"c": {GPU: 3}}, node_name="lab-0")
    assert quiet.pods()["ml/p"]["status"]["phase"] == "Running"  # Allocate went to the survivor
    first.kill()
    eventually(lambda: not quiet.kubelet.state()[GPU]["running"])
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "0")


def test_a_failed_registration_elsewhere_changes_nothing(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4))
    quiet.wait_settled()
    assert register(quiet, "nothing.sock", GPU) is not None
    plugin.kill()
    eventually(lambda: not quiet.kubelet.state()[GPU]["running"])


def test_one_socket_twice_loses_the_record(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4))
    quiet.wait_settled()
    socket = quiet.device_plugins / "gpu.sock"
    refused = f"UNKNOWN device plugin already connected: {socket}"
    assert register(quiet, "gpu.sock", GPU) == refused
    plugin.set_health("gpu-0", "Unhealthy")  # the stream is still heard
    eventually(lambda: healthy(quiet) == ["gpu-1", "gpu-2", "gpu-3"])
    plugin.kill()
    eventually(lambda: ends(quiet) == 1)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "3")  # its end is not
    again = quiet.add_plugin(plain(4, name="again", endpoint="gpu.sock", register=False))
    eventually(lambda: quiet.device_plugins.joinpath("gpu.sock").exists() and again.pid is not None)
    eventually(lambda: again.state()["serving"])
    assert register(quiet, "gpu.sock", GPU) == refused
    other = quiet.add_plugin(plain(2, name="other"))
    eventually(lambda: healthy(quiet) == ["other-0", "other-1"])
    other.kill()
    eventually(lambda: ends(quiet) == 2)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("2", "2")
