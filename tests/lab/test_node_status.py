"""The executed sequence of kubelet-facts §4.2, and what belongs to it, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dpctl.lab.fixture import Lab, PluginHandle
from tests.lab.parts import GPU, STATUS, amounts, checkpoint, json_patch, key, plain

GRACE = 301.0
NewLab = Callable[..., Lab]


@pytest.fixture
def quiet(new_lab: NewLab) -> Lab:
    """No status but those asked for, no clock but ours."""
    return new_lab(scenario="empty", status_period=3600)


def lost(lab: Lab, plugin: PluginHandle, resource: str = GPU) -> None:
    """The plugin is gone and the kubelet knows."""
    plugin.kill()
    until = time.monotonic() + 5
    while lab.kubelet.state()[resource]["running"]:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_grace_sequence(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4))
    quiet.wait_settled()
    assert amounts(quiet) == ("4", "4")
    lost(quiet, plugin)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "0")
    quiet.clock.advance(290)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "0")
    assert GPU in checkpoint(quiet).registered
    quiet.clock.advance(11)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("0", "0")
    assert GPU not in checkpoint(quiet).registered
    quiet.kubelet.sync()
    assert amounts(quiet) == ("0", "0")
    assert quiet.kubelet.state() == {}


def test_lost_patch_brings_the_old_count_back(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4))
    quiet.wait_settled()
    lost(quiet, plugin)
    quiet.kubelet.sync()
    quiet.clock.advance(GRACE)
    quiet.fail_requests(1, method="PATCH", path_part="/status", user="system:node")
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "4")
    assert GPU not in checkpoint(quiet).registered
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "4")


def test_hand_patched(quiet: Lab) -> None:
    widget = "kkloud.io/widget"
    assert json_patch(quiet, ("add", key(widget), "3")) == 200
    quiet.kubelet.sync()
    assert amounts(quiet, widget) == ("3", "3")
    assert json_patch(quiet, ("replace", key(widget, "allocatable"), "1")) == 200
    quiet.kubelet.sync()
    assert amounts(quiet, widget) == ("3", "3")
    assert json_patch(quiet, ("remove", key(widget), None)) == 200
    assert amounts(quiet, widget) == (None, "3")
    quiet.kubelet.sync()
    assert amounts(quiet, widget) == (None, None)


def test_a_name_that_is_not_extended_keeps_its_allocatable_twin(quiet: Lab) -> None:
    json_patch(quiet, ("add", key("nodomain"), "3"))
    quiet.kubelet.sync()
    json_patch(quiet, ("remove", key("nodomain"), None))
    quiet.kubelet.sync()
    assert amounts(quiet, "nodomain") == (None, "3")


def remove_both(lab: Lab) -> None:
    operations = [("remove", key(GPU, part), None) for part in ("capacity", "allocatable")]
    assert json_patch(lab, *operations) == 200
    assert amounts(lab) == (None, None)


def test_removed_while_alive_comes_back(quiet: Lab) -> None:
    quiet.add_plugin(plain(4))
    quiet.wait_settled()
    remove_both(quiet)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "4")


def test_removed_in_grace_comes_back_twice(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4))
    quiet.wait_settled()
    lost(quiet, plugin)
    quiet.kubelet.sync()
    remove_both(quiet)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("4", "0")
    remove_both(quiet)
    quiet.clock.advance(GRACE)
    quiet.kubelet.sync()
    assert amounts(quiet) == ("0", "0")
    remove_both(quiet)
    quiet.kubelet.sync()
    assert amounts(quiet) == (None, None)


def test_native_resources_are_put_back(quiet: Lab) -> None:
    assert json_patch(quiet, ("remove", key("cpu"), None)) == 200
    quiet.kubelet.sync()
    assert amounts(quiet, "cpu") == ("16", "16")


def test_restart_gives_zero_until_the_plugin_is_back(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4))
    json_patch(quiet, ("add", key("kkloud.io/widget"), "3"))
    quiet.wait_settled()
    lost(quiet, plugin)
    quiet.kubelet.restart()
    assert amounts(quiet) == ("0", "0")
    assert amounts(quiet, "kkloud.io/widget") == ("3", "3")
    assert checkpoint(quiet).registered[GPU]  # not written by a start
    plugin.start()
    quiet.wait_settled()
    assert amounts(quiet) == ("4", "4")


def test_restart_with_a_live_plugin(quiet: Lab) -> None:
    """Five times: the plugin's new socket must never fall to its old server's clean-up."""
    quiet.add_plugin(plain(4))
    for _ in range(5):
        quiet.kubelet.restart()
        quiet.wait_settled()
        assert amounts(quiet) == ("4", "4")
        assert (quiet.device_plugins / "gpu.sock").is_socket()


def test_a_plugin_that_does_not_look(quiet: Lab) -> None:
    plugin = quiet.add_plugin(plain(4, watch_kubelet=False))
    quiet.wait_settled()
    quiet.kubelet.restart()
    quiet.wait_settled()
    assert amounts(quiet) == ("0", "0")
    assert plugin.pid is not None
    assert not (quiet.device_plugins / "gpu.sock").exists()
    quiet.clock.advance(GRACE)
    quiet.kubelet.sync()
    assert GPU not in checkpoint(quiet).registered


def test_corrupt_checkpoint_is_an_empty_one(quiet: Lab) -> None:
    """The kubelet goes on, forgets the names, and nothing zeroes them (§5.1)."""
    plugin = quiet.add_plugin(plain(4))
    quiet.wait_settled()
    quiet.kubelet.stop()
    plugin.kill()
    path = quiet.device_plugins / "kubelet_internal_checkpoint"
    path.write_bytes(path.read_bytes().replace(b"gpu-0", b"gpu-9"))
    quiet.kubelet.start()
    assert amounts(quiet) == ("4", "4")
    assert quiet.kubelet.state() == {}
    log = (quiet.directory / "log" / "kubelet.log").read_text()
    assert "Continue after failing to read checkpoint file" in log
    assert "checkpoint is corrupted" in log


def test_owners(quiet: Lab) -> None:
    """Capacity belongs to whoever wrote it, allocatable to the kubelet, native keys to nobody."""
    quiet.add_plugin(plain(4))
    body = [{"op": "add", "path": key("kkloud.io/widget"), "value": "1000"}]
    path = f"{STATUS}?fieldManager=kubectl-patch"
    quiet.api("PATCH", path, body, content_type="application/json-patch+json")
    quiet.wait_settled()
    owners = {
        (part.removeprefix("f:"), name.removeprefix("f:")): entry["manager"]
        for entry in quiet.node()["metadata"]["managedFields"]
        for part in ("f:capacity", "f:allocatable")
        for name in entry["fieldsV1"].get("f:status", {}).get(part, {})
    }
    assert owners["capacity", GPU] == "kubelet"
    assert owners["allocatable", GPU] == "kubelet"
    assert owners["capacity", "kkloud.io/widget"] == "kubectl-patch"
    assert owners["allocatable", "kkloud.io/widget"] == "kubelet"
    assert ("capacity", "cpu") not in owners
    assert amounts(quiet, "kkloud.io/widget") == ("1k", "1k")
