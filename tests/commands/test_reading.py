"""What the reading commands share: a reading that something happened in."""

from __future__ import annotations

import os
import time

from dpctl.collect import collect
from dpctl.commands._reading import INVENTORY, agreeing
from dpctl.env import Settings, find_env
from dpctl.inventory.resources import resource_rows
from dpctl.lab.fixture import Lab
from dpctl.model import Snapshot, Source
from tests.commands.by_hand import GPU, eventually


def state(snap: Snapshot) -> str:
    return next(str(r.state) for r in resource_rows(snap) if r.resource == GPU)


def test_a_plugin_that_ends_between_two_sources_is_no_mismatch() -> None:
    with Lab() as lab:
        env = find_env(Settings(), lab.env)
        old = time.time() - 3600
        os.utime(lab.device_plugins / "kubelet_internal_checkpoint", (old, old))
        before = collect(env, INVENTORY, again=True)
        assert agreeing(env, before) is before
        lab.plugin("gpu").kill()

        def torn() -> Snapshot:
            lab.kubelet.sync()
            late = collect(env, {Source.NODE, Source.DIRECTORY, Source.SOCKETS}, again=True)
            return before._replace(node=late.node)

        eventually(lambda: state(torn()) == "Mismatch", 20)
        assert state(agreeing(env, torn())) == "Grace"
