"""A node that goes through a scenario: what each line of a step means, and when it has come true.

Nothing here knows whether the node is real (`machines`), nor what it looks like (`observing`).
"""

from __future__ import annotations

import itertools
import json
import socket
from pathlib import Path
from typing import Any

import grpc

from dpctl.errors import PeerError
from dpctl.lab import sockets
from dpctl.lab.cues import device
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as rpc

from .api import JSON, MERGE_PATCH, ApiError
from .machines import SECONDS, Machine
from .processes import ClusterError, wait_for
from .scenario import Scenario, Step, Words

MARKER = "dpctl.test/marker"
"""A key made by hand: once its number is allocatable, a whole status build has passed."""
OVER = ("Succeeded", "Failed")


class Side:
    """One node and what it has gone through so far."""

    def __init__(self, machine: Machine, scenario: Scenario) -> None:
        self.machine = machine
        self.scenario = scenario
        self.uids: dict[str, str] = {}
        """UID to the name of the pod, of all pods that there ever were."""
        self.answers: dict[str, str] = {}
        """What was refused in this step, by the line that asked for it."""
        self.running = True
        """Whether there is a kubelet."""
        self._logged = 0
        self._marks = itertools.count(1)
        self._begun: list[tuple[Words, Any, grpc.Channel]] = []

    # --- a step

    def go(self, step: Step) -> None:
        """Do it, and wait until all of it has come true. Raises ClusterError."""
        self.answers = {}
        self._logged = len(self.machine.log())
        for words in step.do:
            self._do(words)
        for words in step.until:
            what = f"{self.machine.name}: {step.say}: {' '.join(words)}"
            try:
                wait_for(what, lambda words=words: self._true(words), self.machine.patience)  # type: ignore[misc]
            except ClusterError:
                if not self.machine.judged:
                    raise  # the scenario is wrong
                self.answers[" ".join(words)] = "has not come true"
        if self.running:
            self.pass_status()

    def pass_status(self) -> None:
        """Wait until the kubelet has built a whole status."""
        number = str(next(self._marks))
        self._patch("capacity", MARKER, number)
        allocatable = lambda: self.amounts(MARKER) == (number, number)  # noqa: E731
        wait_for(f"{self.machine.name} to build a status", allocatable, SECONDS)

    # --- what the API server says

    def get(self, path: str) -> JSON:
        """An object or a list. Raises ApiError."""
        return self._request("GET", path)

    def get_node(self) -> JSON:
        """This node."""
        return self.get(f"/api/v1/nodes/{self.machine.node}")

    def get_pods(self) -> dict[str, JSON]:
        """The pods of the scenario that are there."""
        items = self.get("/api/v1/namespaces/default/pods")["items"]
        ours = {pod.named(self.machine.node): name for name, pod in self.scenario.pods.items()}
        found = {ours[p["metadata"]["name"]]: p for p in items if p["metadata"]["name"] in ours}
        self.uids |= {pod["metadata"]["uid"]: name for name, pod in found.items()}
        return found

    def get_warnings(self) -> list[JSON]:
        """Warning events about these pods."""
        items = self.get("/api/v1/namespaces/default/events")["items"]
        return [
            event
            for event in items
            if event["type"] == "Warning" and event["involvedObject"].get("uid") in self.uids
        ]

    def amounts(self, key: str) -> tuple[str, str]:
        """Capacity and allocatable; `-`: no such key."""
        status = self.get_node()["status"]
        return status["capacity"].get(key, "-"), status["allocatable"].get(key, "-")

    # --- doing

    def _do(self, words: Words) -> None:
        verb, *rest = words
        do = getattr(self, f"_do_{verb.replace('-', '_')}")
        do(*rest)

    def _note(self, words: Words, call: Any) -> None:
        try:
            call.result()
            said = "OK"
        except grpc.RpcError as error:
            said = f"{error.code().name} {error.details()}"
        self.answers[" ".join(words)] = said

    def _do_register(self, *words: str) -> None:
        with _dial(self.machine.device_plugins) as channel:
            self._note(("register", *words), _register(channel, *words))

    def _do_begin(self, *words: str) -> None:
        """Register, without waiting for the answer."""
        channel = _dial(self.machine.device_plugins)
        self._begun.append((words, _register(channel, *words[1:]), channel))

    def _do_end(self) -> None:
        """Wait for the answers to all that has begun."""
        for words, call, channel in self._begun:
            self._note(words, call)
            channel.close()
        self._begun = []

    def _do_start(self, name: str) -> None:
        spec = self.scenario.plugins[name]
        self.machine.start(spec)
        if not spec.register:
            path = self.machine.device_plugins / spec.endpoint
            wait_for(f"{self.machine.name}: {name} to serve", lambda: _accepts(path), SECONDS)

    def _do_kill(self, name: str) -> None:
        self.machine.kill(name)

    def _do_health(self, name: str, device_id: str, health: str) -> None:
        self.machine.ask(name, "set-health", device=device_id, health=health)

    def _do_devices(self, name: str, *listed: str) -> None:
        found = [device(text) for text in listed]
        given = [
            {"device_id": d.device_id, "numa_nodes": d.numa_nodes, "health": d.health}
            for d in found
        ]
        self.machine.ask(name, "set-devices", devices=given)

    def _do_refuse(self, name: str, *words: str) -> None:
        self.machine.ask(name, "allocate-error", text=" ".join(words))

    def _do_pod(self, name: str) -> None:
        pod = self.scenario.pods[name]
        self._request("POST", "/api/v1/namespaces/default/pods", pod.manifest(self.machine.node))
        self.machine.created(pod)

    def _do_delete(self, name: str) -> None:
        self._request("DELETE", self._pod_path(name))

    def _do_capacity(self, key: str, number: str) -> None:
        self._patch("capacity", key, number)

    def _do_allocatable(self, key: str, number: str) -> None:
        self._patch("allocatable", key, number)

    def _do_kubelet(self, command: str) -> None:
        self.machine.kubelet(command)
        self.running = command == "start"

    def _do_spoil(self, _: str) -> None:
        path = self.machine.device_plugins / "kubelet_internal_checkpoint"
        document = json.loads(path.read_text())
        document["Checksum"] ^= 1
        path.write_text(json.dumps(document, separators=(",", ":")))

    def _do_delete_node(self) -> None:
        self._request("DELETE", f"/api/v1/nodes/{self.machine.node}")

    # --- waiting

    def _true(self, words: Words) -> bool:
        verb, *rest = words
        return bool(getattr(self, f"_is_{verb}")(*rest))

    def _is_node(self, key: str, amounts: str) -> bool:
        return "/".join(self.amounts(key)) == amounts

    def _is_pod(self, name: str, phase: str) -> bool:
        pod = self.get_pods().get(name)
        if pod is None or phase == "gone":
            return pod is None and phase == "gone"
        status = pod["status"]
        if phase == "Running" and not all(
            c["ready"] for c in status.get("containerStatuses") or [{"ready": False}]
        ):
            return False
        uid = pod["metadata"]["uid"]
        told = phase not in ("Failed", "over") or any(
            event["involvedObject"]["uid"] == uid for event in self.get_warnings()
        )
        return (status["phase"] in OVER if phase == "over" else status["phase"] == phase) and told

    def _is_unschedulable(self, name: str) -> bool:
        pod = self.get_pods().get(name) or {"status": {}}
        conditions = pod["status"].get("conditions") or []
        return any(c.get("reason") == "Unschedulable" for c in conditions)

    def _is_checkpoint(self, resource: str, ids: str) -> bool:
        path = self.machine.device_plugins / "kubelet_internal_checkpoint"
        registered = json.loads(path.read_text())["Data"]["RegisteredDevices"]
        return sorted(registered.get(resource) or []) == ids.split(",")

    def _is_registered(self, name: str) -> bool:
        """With the kubelet that runs now."""
        now = sockets.identity(self.machine.device_plugins / "kubelet.sock")
        try:
            return bool(self.machine.ask(name, "state")["registered_with"] == now)
        except (ClusterError, PeerError):
            return False  # it has only just been started

    def _is_log(self, text: str, count: str) -> bool:
        return self.machine.log()[self._logged :].count(text) >= int(count)

    # --- requests

    def _request(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> JSON:
        code, answer = self.machine.request(method, path, body, kind)
        if code >= 300:
            raise ApiError(method, path, code, json.dumps(answer))
        return answer

    def _patch(self, part: str, key: str, number: str) -> None:
        value = None if number == "none" else number
        path = f"/api/v1/nodes/{self.machine.node}/status?fieldManager=hand"
        self._request("PATCH", path, {"status": {part: {key: value}}}, MERGE_PATCH)

    def _pod_path(self, name: str) -> str:
        named = self.scenario.pods[name].named(self.machine.node)
        return f"/api/v1/namespaces/default/pods/{named}"


def _dial(device_plugins: Path) -> grpc.Channel:
    options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(f"unix:{device_plugins}/kubelet.sock", options)


def _register(channel: grpc.Channel, resource: str, endpoint: str, version: str = "v1beta1") -> Any:
    request = pb.RegisterRequest(version=version, endpoint=endpoint, resource_name=resource)
    stub = rpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]
    return stub.Register.future(request, timeout=SECONDS)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
