"""A pod's conditions and the statuses of containers that are over, as a kubelet writes them. Pure.

What a container's status is while it runs, and which devices stand in it, is `pods`' to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpctl.lab.api_errors import Json
from dpctl.lab.clock import timestamp

Statuses = Mapping[str, Sequence[Json]]
"""`containerStatuses`, and `initContainerStatuses` where there are some."""

_OVER = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
_CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
_NOT_READY = "pod sandbox is not ready"


def running(pod: Json, statuses: Statuses) -> Json:
    return {"phase": "Running", "conditions": _conditions(pod), **statuses}


def ended(pod: Json, statuses: Statuses, phase: str, *, reasons: bool) -> Json:
    """Containers that ran are over: by themselves (Succeeded), or killed. `reasons`: of 1.37."""
    over = {"exitCode": 0, "reason": "Completed", "finishedAt": timestamp()}
    if phase == "Failed":
        over |= {"exitCode": 137, "reason": "Error"}
    state = {"running": None, "terminated": over}  # null: a merge patch must take it away
    changed = {
        part: [_over(one, state) if "running" in one["state"] else one for one in listed]
        for part, listed in statuses.items()
    }
    return {
        "phase": phase,
        "conditions": _conditions(pod, phase, _NOT_READY if reasons else ""),
        **changed,
    }


def unlocated(pod: Json, statuses: Statuses, *, reasons: bool) -> Json:
    """What a starting kubelet adds to a pod that an earlier one refused."""
    lost = {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    }
    state = {"terminated": lost}
    return {
        "conditions": _conditions(pod, "Failed", "no pod sandbox exists" if reasons else ""),
        **{part: [_over(one, state) for one in listed] for part, listed in statuses.items()},
    }


def _over(status: Json, state: Json) -> Json:
    return {**status, "state": state, "ready": False, "started": False}


def _conditions(pod: Json, over: str = "", sandbox: str = "") -> list[Json]:
    """Of a pod that runs, or of one that is `over` (its phase); `sandbox`: where that is said."""
    found = []
    for kind in _CONDITIONS:
        condition = {"type": kind, "status": "True", "lastTransitionTime": timestamp()}
        condition["observedGeneration"] = pod["metadata"].get("generation", 1)
        if over and kind in ("Ready", "ContainersReady"):
            condition |= {"status": "False", "reason": _OVER[over]}
        elif over == "Succeeded" and kind == "Initialized":
            condition["reason"] = _OVER[over]
        elif over and kind == "PodReadyToStartContainers":
            condition["status"] = "False"
            if sandbox:
                condition |= {"reason": "PodSandboxNotReady", "message": sandbox}
        found.append(condition)
    return found
