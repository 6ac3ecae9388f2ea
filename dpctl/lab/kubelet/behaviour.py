"""What differs between Kubernetes minors, decided once from the version a kubelet bears. Pure."""

from __future__ import annotations

from typing import NamedTuple

from dpctl.model.node import minor_version


class Behaviour(NamedTuple):
    plugins_by_socket: bool
    """1.37: a plugin is known by resource and socket; before, by the resource alone (§3.5)."""
    get_shows_ended: bool
    """Up to 1.34: PodResources' Get answers for pods that are over, too; List never does."""
    device_health: bool
    """1.36: `allocatedResourcesStatus` in a pod's status (§8)."""
    sandbox_reasons: bool
    """1.37: `PodReadyToStartContainers` says why it is False."""


def behaviour_of(version: str) -> Behaviour:
    """Of `v1.36.2`; a version that says nothing counts as the newest."""
    minor = minor_version(version)
    known = 99 if minor is None else minor
    return Behaviour(
        plugins_by_socket=known >= 37,
        get_shows_ended=known <= 34,
        device_health=known >= 36,
        sandbox_reasons=known >= 37,
    )
