"""The kubelet's own fit check at admission, after the devices are taken (kubelet-facts §6.1, §6.3).

Extended resources only: CPU, memory, ports, selectors and taints are not looked at. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dpctl import names, quantity
from dpctl.lab.api_errors import Json
from dpctl.lab.scheduler import effective_request


class Misfit(NamedTuple):
    reason: str
    message: str


def misfit(
    pod: Json, others: Iterable[Json], allocatable: Mapping[str, str], allocated: Mapping[str, int]
) -> Misfit | None:
    """Why a pod does not fit beside `others` into a Node's allocatable; None: it does.

    `allocated`: devices that containers hold, of every resource; empty when this pod holds none.
    Less than that is never allocatable, so that a dead plugin's pods outlive a restart.
    """
    room = {
        key: quantity.count(amount) or 0
        for key, amount in allocatable.items()
        if names.is_extended(key)
    }
    for resource, count in allocated.items():
        room[resource] = max(room.get(resource, 0), count)
    used: dict[str, int] = {}
    for other in others:
        for resource, count in effective_request(other).items():
            used[resource] = used.get(resource, 0) + count
    for resource, count in sorted(effective_request(pod).items()):
        if resource not in room:
            continue  # taken for one that the cluster provides: the pod starts without
        taken = used.get(resource, 0)
        if taken + count > room[resource]:
            return Misfit(
                f"OutOf{resource}",
                f"Node didn't have enough resource: {resource}, requested: {count}, "
                f"used: {taken}, capacity: {room[resource]}",
            )
    return None
