"""The kubelet's pods: admission, a runtime that is only pretended, statuses, and their end.

A pod's containers run as soon as it is admitted, ordinary init containers are over at once. What a
pod holds is decided in `allocation`. Source: kubelet-facts §6, §8.
"""

from __future__ import annotations

import queue
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dpctl.lab.api_errors import Json
from dpctl.lab.clock import timestamp
from dpctl.lab.kubelet import pod_status
from dpctl.lab.kubelet.allocation import Allocator
from dpctl.lab.kubelet.api_client import ApiClient, RequestError
from dpctl.lab.kubelet.behaviour import Behaviour
from dpctl.lab.kubelet.device_manager import DeviceManager
from dpctl.lab.kubelet.plugin_client import CallError
from dpctl.lab.kubelet.predicates import Misfit, misfit
from dpctl.lab.scheduler import event
from dpctl.topology.requests import RefusedError

TERMINAL = ("Succeeded", "Failed")
_PASSING = (0, 429, 500, 503)
"""Errors after which a status is sent again."""


@dataclass(slots=True)
class Pods:
    """All pods bound to this node, handled one at a time as the kubelet's sync loop does."""

    api: ApiClient
    node_name: str
    root: Path
    """The node's /."""
    log: Callable[[str], None]
    behaviour: Behaviour
    manager: DeviceManager = field(init=False)
    allocator: Allocator = field(init=False)
    known: dict[str, Json] = field(default_factory=dict)
    """UID to the pod as last seen or written."""
    admitted: set[str] = field(default_factory=set)
    started: threading.Event = field(default_factory=threading.Event)
    """Set once the pods of the first list are admitted."""
    _work: queue.SimpleQueue[tuple[str, Json]] = field(default_factory=queue.SimpleQueue)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def active(self) -> set[str]:
        """UIDs of pods not known to be over; those being deleted still count."""
        with self._lock:
            return {uid for uid, pod in self.known.items() if not is_terminal(pod)}

    def active_pods(self) -> list[Json]:
        with self._lock:
            return [pod for pod in self.known.values() if not is_terminal(pod)]

    def run(self) -> None:
        """Start following the API server. Returns at once."""
        threading.Thread(target=self._follow, daemon=True).start()
        threading.Thread(target=self._loop, daemon=True).start()

    def refresh_health(self, uids: set[str]) -> None:
        """A device's word changed: rewrite the statuses of its holders (§8)."""
        with self._lock:
            for uid in uids & self.known.keys():
                self._work.put(("HEALTH", self.known[uid]))

    def finish(self, namespace: str, name: str, phase: str) -> None:
        """The pretended runtime reports that all containers ended. Raises KeyError."""
        with self._lock:
            named = {
                (p["metadata"]["namespace"], p["metadata"]["name"]): p for p in self.known.values()
            }
            pod = named[namespace, name]
        self._write(pod, self._ended(pod, phase))

    # --- following the API server

    def _follow(self) -> None:
        first = True
        while True:
            try:
                pods, version = self.api.list_pods(self.node_name)
                for pod in pods:
                    self._work.put(("MODIFIED", pod))
                present = {pod["metadata"]["uid"] for pod in pods}
                with self._lock:
                    for uid in self.known.keys() - present:
                        self._work.put(("DELETED", self.known[uid]))
                if first:
                    self._work.put(("STARTED", {}))
                    first = False
                for change in self.api.watch_pods(self.node_name, version):
                    if change["type"] == "ERROR":
                        break
                    self._work.put((change["type"], change["object"]))
            except (RequestError, OSError) as error:
                self.log(f"Failed to watch pods: {error}")
                time.sleep(0.2)

    def _loop(self) -> None:
        while True:
            kind, pod = self._work.get()
            try:
                self._handle(kind, pod)
            except RequestError as error:
                # Gone meanwhile, or the API server is away: the next list tells.
                self.log(f"Failed to update a pod's status: {error}")

    def _handle(self, kind: str, pod: Json) -> None:
        if kind == "STARTED":
            self.manager.sources_ready = True
            self.started.set()
            return
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._forget(uid)
            return
        with self._lock:
            if kind == "HEALTH" and uid not in self.known:
                return
            if kind != "HEALTH":
                self.known[uid] = pod
            pod = self.known[uid]
        if pod["metadata"].get("deletionTimestamp"):
            self._terminate(pod)
        elif is_terminal(pod):
            self._look_for_containers(pod)
        elif kind == "HEALTH":
            self._write(pod, {"containerStatuses": self._statuses(pod, "containers")})
        elif uid not in self.admitted:
            self._admit(pod)

    # --- one pod's life

    def _admit(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self.admitted.add(uid)
        self._directories(pod)
        running = _running(pod)
        try:
            self.allocator.allocate_pod(pod, running)
        except RefusedError as error:
            self._reject(pod, Misfit(error.reason, error.message))
            return
        finally:
            self.manager.pending_admission = None
        if (found := self._misfit(pod)) is not None:
            self._reject(pod, found)
            return
        if not running:
            try:
                self._pre_start(pod)
            except CallError as error:
                self.log(f"PreStartContainer failed: {error}")
            self._write(pod, self._running_status(pod))
        else:
            self._write(pod, self._all_statuses(pod))

    def _misfit(self, pod: Json) -> Misfit | None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            known = [self.known[other] for other in self.admitted & self.known.keys() - {uid}]
        others = [other for other in known if not is_terminal(other)]
        node = self.api.get_node(self.node_name)
        with self.manager.lock:
            holds = uid in self.manager.pod_devices.pods()
            held = {name: len(ids) for name, ids in self.manager.allocated.items()}
        return misfit(pod, others, node["status"].get("allocatable") or {}, held if holds else {})

    def _reject(self, pod: Json, why: Misfit) -> None:
        status = {
            "phase": "Failed",
            "reason": why.reason,
            "message": f"Pod was rejected: {why.message}",
            "startTime": timestamp(),
        }
        if _running(pod):  # at a kubelet's start: its containers are killed
            status |= self._ended(pod, "Failed")
        self._write(pod, status)
        warning = event(pod, why.reason, why.message, "kubelet")
        self.api.create_event(pod["metadata"]["namespace"], warning)

    def _pre_start(self, pod: Json) -> None:
        """PreStartContainer where the plugin asked for it, before each container starts."""
        for container in _containers(pod):
            held = self.manager.pod_devices.container(pod["metadata"]["uid"], container["name"])
            for resource, one in held.items():
                endpoint = self.manager.endpoints.get(resource)
                if endpoint and endpoint.client and endpoint.client.options.pre_start_required:
                    endpoint.client.pre_start(sorted(one.ids()))

    def _terminate(self, pod: Json) -> None:
        if not is_terminal(pod):
            self._write(pod, self._ended(pod, "Succeeded"))
        self.api.delete_pod(pod)

    def _forget(self, uid: str) -> None:
        with self._lock:
            pod = self.known.pop(uid, None)
            self.admitted.discard(uid)
        if pod is not None:
            for path in self._paths(pod):
                shutil.rmtree(path, ignore_errors=True)

    # --- statuses

    def _write(self, pod: Json, status: Json) -> None:
        for patience in (0.1, 0.2, 0.5, 1.0, 0.0):
            try:
                written = self.api.patch_pod_status(pod, {"status": status})
                break
            except RequestError as error:
                if error.code not in _PASSING or not patience:
                    raise
                time.sleep(patience)
        with self._lock:
            if written["metadata"]["uid"] in self.known:
                self.known[written["metadata"]["uid"]] = written

    def _running_status(self, pod: Json) -> Json:
        found = pod_status.running(pod, self._all_statuses(pod))
        return {**found, "startTime": timestamp(), "hostIP": "127.0.0.1"}

    def _all_statuses(self, pod: Json) -> Json:
        found = {"containerStatuses": self._statuses(pod, "containers")}
        if pod["spec"].get("initContainers"):
            found["initContainerStatuses"] = self._statuses(pod, "initContainers")
        return found

    def _ended(self, pod: Json, phase: str) -> Json:
        reasons = self.behaviour.sandbox_reasons
        return pod_status.ended(pod, self._all_statuses(pod), phase, reasons=reasons)

    def _look_for_containers(self, pod: Json) -> None:
        """A kubelet that starts looks for the containers of pods that were refused before."""
        status = pod["status"]
        if self.manager.sources_ready or status["phase"] != "Failed":
            return
        if not status.get("containerStatuses"):
            reasons = self.behaviour.sandbox_reasons
            self._write(pod, pod_status.unlocated(pod, self._all_statuses(pod), reasons=reasons))

    def _statuses(self, pod: Json, part: str) -> list[Json]:
        return [self._status(pod, container, part) for container in pod["spec"].get(part) or []]

    def _status(self, pod: Json, container: Json, part: str) -> Json:
        over = part == "initContainers" and container.get("restartPolicy") != "Always"
        state: Json = {"running": {"startedAt": timestamp()}}
        if over:
            state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        uid, name = pod["metadata"]["uid"], container["name"]
        status: Json = {
            "name": name,
            "image": container.get("image", ""),
            "imageID": "",
            "containerID": f"lab://{uid}/{name}",
            "ready": True,
            "started": not over,
            "restartCount": 0,
            "state": state,
        }
        if (
            part == "containers" and self.behaviour.device_health
        ):  # init containers' are never filled (§8)
            # null: a merge patch must take away what an earlier one said
            status["allocatedResourcesStatus"] = self._health(uid, name) or None
        return status

    def _health(self, uid: str, container: str) -> list[Json]:
        manager = self.manager
        return [
            {
                "name": resource,
                "resources": [
                    {"resourceID": i, "health": manager.stored_health(resource, i) or "Unknown"}
                    for i in sorted(held.ids())
                ],
            }
            for resource, held in manager.pod_devices.container(uid, container).items()
        ]

    # --- directories

    def _directories(self, pod: Json) -> None:
        data, logs = self._paths(pod)
        data.mkdir(parents=True, exist_ok=True)
        for container in _containers(pod):
            (logs / container["name"]).mkdir(parents=True, exist_ok=True)

    def _paths(self, pod: Json) -> tuple[Path, Path]:
        metadata = pod["metadata"]
        named = f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"
        data = self.root / "var/lib/kubelet/pods" / metadata["uid"]
        return data, self.root / "var/log/pods" / named


def is_terminal(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in TERMINAL


def _containers(pod: Json) -> list[Json]:
    return [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]


def _running(pod: Json) -> set[str]:
    """Containers that run, as the runtime tells a starting kubelet."""
    status = pod.get("status", {})
    return {
        one["name"]
        for part in ("containerStatuses", "initContainerStatuses")
        for one in status.get(part) or []
        if "running" in (one.get("state") or {})
    }
