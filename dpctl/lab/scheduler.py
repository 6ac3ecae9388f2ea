"""A scheduler for the lab: binds pods that ask for no node, by extended resources alone.

Taints, CPU and memory, affinity: not looked at. Extended resources as the real one does
(kubelet-facts §11): a missing key and 0 are the same, `Insufficient R`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from dpctl import names, quantity
from dpctl.lab.api_errors import ApiError, Json
from dpctl.lab.api_handlers import bind
from dpctl.lab.api_store import Store
from dpctl.lab.clock import timestamp

_TERMINAL = ("Succeeded", "Failed")


class Scheduler:
    """One thread that follows the store; `close` ends it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def _run(self) -> None:
        seen = 0
        while not self._closing.is_set():
            version = self._store.version
            if version != seen:
                self._schedule()
                seen = version
            try:
                self._store.changes_since("pods", version, 0.1)
            except ApiError:
                continue

    def _schedule(self) -> None:
        pods, _ = self._store.list("pods")
        waiting = [p for p in pods if not p["spec"].get("nodeName") and _phase(p) == "Pending"]
        if not waiting:
            return
        nodes, _ = self._store.list("nodes")
        used = {n["metadata"]["name"]: requested(pods, n["metadata"]["name"]) for n in nodes}
        for pod in sorted(waiting, key=lambda p: int(p["metadata"]["resourceVersion"])):
            wanted = effective_request(pod)
            fitting, reasons, preempting = "", Counter[str](), Counter[str]()
            for node in nodes:
                wrong = _obstacle(node, wanted, used[node["metadata"]["name"]])
                if wrong is None:
                    fitting = node["metadata"]["name"]
                    break
                reasons.update(wrong)
                preempting[_preemption(node, wanted)] += 1
            try:
                if fitting:
                    used[fitting].update(wanted)
                    bind(
                        self._store, pod["metadata"]["namespace"], pod["metadata"]["name"], fitting
                    )
                else:
                    self._report(pod, len(nodes), reasons, preempting)
            except ApiError:
                continue  # gone, or bound by somebody else meanwhile

    def _report(
        self, pod: Json, nodes: int, reasons: Mapping[str, int], preempting: Mapping[str, int]
    ) -> None:
        message = _unavailable(nodes, reasons) if nodes else "no nodes available"
        if nodes:
            message += f" preemption: {_unavailable(nodes, preempting)}"
        old = next(
            (c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"), None
        )
        if old is not None and old.get("message") == message:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": timestamp(),
            "observedGeneration": pod["metadata"].get("generation", 1),
        }

        def mark(found: Json) -> Json:
            others = [
                c for c in found["status"].get("conditions", []) if c["type"] != "PodScheduled"
            ]
            found["status"]["conditions"] = [*others, condition]
            return found

        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self._store.update(
            "pods",
            name,
            mark,
            namespace=namespace,
            manager="kube-scheduler",
            subresource="status",
        )
        self._store.create("events", event(pod, "FailedScheduling", message), "kube-scheduler")


def event(pod: Json, reason: str, message: str, component: str = "default-scheduler") -> Json:
    """A Warning about a pod."""
    metadata = pod["metadata"]
    involved = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"]}
    return {
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
        "involvedObject": {**involved, "uid": metadata["uid"], "apiVersion": "v1"},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": component},
        "firstTimestamp": timestamp(),
        "lastTimestamp": timestamp(),
        "count": 1,
    }


def effective_request(pod: Json) -> dict[str, int]:
    """What the scheduler counts for a pod, extended resources only: the larger of what runs in the
    end and the peak while init containers run, sidecars in both."""
    sidecars, peak = Counter[str](), Counter[str]()
    for container in pod["spec"].get("initContainers") or []:
        wanted = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars.update(wanted)
            peak |= sidecars
        else:
            peak |= sidecars + wanted
    running = Counter(sidecars)
    for container in pod["spec"]["containers"]:
        running.update(_requests(container))
    return {name: count for name, count in (running | peak).items() if count > 0}


def requested(pods: Iterable[Json], node_name: str) -> Counter[str]:
    """Sum over the non-terminal pods bound to a node."""
    total = Counter[str]()
    for pod in pods:
        if pod["spec"].get("nodeName") == node_name and _phase(pod) not in _TERMINAL:
            total.update(effective_request(pod))
    return total


def _requests(container: Json) -> Counter[str]:
    found = (container.get("resources") or {}).get("requests") or {}
    return Counter(
        {
            name: quantity.count(str(value)) or 0
            for name, value in found.items()
            if not names.is_native(name)
        }
    )


def _obstacle(node: Json, wanted: Mapping[str, int], used: Mapping[str, int]) -> list[str] | None:
    if node["spec"].get("unschedulable"):
        return ["node(s) were unschedulable"]
    allocatable = node.get("status", {}).get("allocatable") or {}
    short = [
        f"Insufficient {name}"
        for name, count in sorted(wanted.items())
        if used.get(name, 0) + count > (quantity.count(allocatable.get(name)) or 0)
    ]
    return short or None


def _preemption(node: Json, wanted: Mapping[str, int]) -> str:
    """What the scheduler says of taking other pods' place; nothing is ever preempted here."""
    allocatable = node.get("status", {}).get("allocatable") or {}
    hopeless = node["spec"].get("unschedulable") or any(
        count > (quantity.count(allocatable.get(name)) or 0) for name, count in wanted.items()
    )
    if hopeless:
        return "Preemption is not helpful for scheduling"
    return "No preemption victims found for incoming pod"


def _unavailable(nodes: int, reasons: Mapping[str, int]) -> str:
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available: {told}."


def _phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", ""))
