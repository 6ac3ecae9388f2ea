"""Removals for which five minutes must have passed (see `waiting`)."""

from __future__ import annotations

import pytest

from .test_removal import change, numbers
from .waiting import Waiting

pytestmark = pytest.mark.last


def test_stale_and_held_is_in_use(waiting: Waiting) -> None:
    found = change(waiting.bench, "remove", "gone.test/gpu")
    assert found.code == 6, found
    assert f"in use: requested by default/{waiting.pod()}" in found.stdout
    assert numbers(waiting.bench, "gone.test/gpu") == ("0", "0")


def test_a_plugin_that_outlived_the_kubelets_restart_keeps_its_key(waiting: Waiting) -> None:
    """The checkpoint has dropped its name by now: it alone would say "nobody"."""
    assert "quiet.test/nic" not in waiting.bench.checkpoint()["Data"]["RegisteredDevices"]
    found = change(waiting.bench, "remove", "quiet.test/nic")
    assert found.code == 6, found
    assert "a plugin serves it on quiet.sock" in found.stdout
    assert change(waiting.bench, "prune", "--match", "quiet.test/*").code == 0
    assert numbers(waiting.bench, "quiet.test/nic") == ("0", "0")
