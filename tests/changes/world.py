"""One node in one process: the lab's API server and its kubelet's device manager and node status,
without sockets and threads, so that thousands of interleavings run in a minute.

Whatever dpctl does (a request, a step on disk, a pause) passes `World.step`, where a test lets
other things happen: a plugin returns, the kubelet writes the Node, another writer changes a key,
the server fails, dpctl is killed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from dpctl.lab.api_auth import User
from dpctl.lab.api_errors import ApiError, Json
from dpctl.lab.api_handlers import Call, Handlers, Watch
from dpctl.lab.api_store import Store
from dpctl.lab.clock import Clock
from dpctl.lab.kubelet.api_client import RequestError
from dpctl.lab.kubelet.device_manager import DeviceManager
from dpctl.lab.kubelet.node_status import NodeStatus
from dpctl.lab.scenario import pod as pod_json
from dpctl.model import (
    Checkpoint,
    Kubelet,
    PluginSocket,
    PodResources,
    RegistrySocket,
    Snapshot,
    SocketState,
)
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.sources.apiserver import Api
from dpctl.sources.connection import Answer
from dpctl.sources.retries import LostError
from dpctl.statefiles.device_checkpoint import parse_checkpoint
from tests import build

NODE = "world-0"
ADMIN = User("admin", ("system:masters", "system:authenticated"))
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Killed(BaseException):
    """kill -9: nothing of dpctl runs any more."""


class LabServer:
    """The lab's handlers, called directly."""

    def __init__(self) -> None:
        self.store = Store()
        self.handlers = Handlers(self.store, version="v1.37.2", configz={})

    def exchange(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: bytes,
        content_type: str,
        manager: str,
    ) -> tuple[int, bytes]:
        given = dict(query)
        call = Call(
            method, path, given, content_type, body, ADMIN, given.get("fieldManager") or manager
        )
        try:
            answer = self.handlers.handle(call)
        except ApiError as error:
            return error.code, json.dumps(error.status()).encode()
        assert not isinstance(answer, Watch)
        return answer[0], json.dumps(answer[1]).encode()


class _Connection:
    """dpctl's connection: every request is two steps, before the server and behind it."""

    server = "http://world"
    where = "the test"
    timeout = 5.0
    max_body_size = 1 << 26

    def __init__(self, world: World) -> None:
        self._world = world

    def exchange(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        content_type: str = "application/json",
        repeatable: bool | None = None,
    ) -> Answer:
        world = self._world
        world.step(f"before {method}")
        failure, world.failure = world.failure, None
        if failure == "500":
            return Answer(500, {}, b'{"message":"etcd is slow"}')
        if failure == "lost before":
            raise LostError("the connection broke")
        before = world.amounts() if method == "PATCH" else {}
        code, data = world.server.exchange(method, path, query, body or b"", content_type, "dpctl")
        if method == "PATCH" and code == 200:
            world.note_patch(before)
        world.step(f"after {method}")
        if failure == "503 after":
            return Answer(503, {}, b'{"message":"a proxy gave up"}')
        if failure == "lost after":
            raise LostError("the connection broke")
        return Answer(code, {}, data)


class _KubeletsApi:
    """What `NodeStatus` needs of its API client."""

    def __init__(self, server: Any, name: str) -> None:
        self._server = server
        self._name = name

    def get_node(self, name: str) -> Json:
        return self._ask("GET", f"/api/v1/nodes/{name}")

    def create_node(self, node: Json) -> Json:
        return self._ask("POST", "/api/v1/nodes", node)

    def patch_node_status(self, name: str, patch: Json) -> Json:
        kind = "application/strategic-merge-patch+json"
        return self._ask("PATCH", f"/api/v1/nodes/{name}/status", patch, kind)

    def _ask(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json"
    ) -> Json:
        data = b"" if body is None else json.dumps(body).encode()
        code, answer = self._server.exchange(method, path, (), data, kind, "kubelet")
        document: Json = json.loads(answer)
        if code >= 300:
            raise RequestError(code, str(document.get("message")))
        return document


class _Client(NamedTuple):
    """What the device manager looks at of a connection to a plugin."""

    resource: str
    socket: str


class World:
    """The node, what is true of it, and what dpctl did to it."""

    def __init__(self, directory: Path, server: Any = None, name: str = NODE) -> None:
        self.name = name
        self.server = server or LabServer()
        self.directory = directory
        self.plugins_dir = directory / "device-plugins"
        self.plugins_dir.mkdir()
        self.clock = Clock(frozen=True)
        self.manager = DeviceManager(
            self.plugins_dir, self.clock, lambda text: None, set, lambda uids: None, True
        )
        self.kubelets_api = _KubeletsApi(self.server, name)
        self.status = NodeStatus(
            self.kubelets_api,  # type: ignore[arg-type]
            name,
            "v1.37.2",
            self.manager.capacity,
            lambda text: None,
        )
        self.status.register()
        self.status.sync()
        self.api = Api(_Connection(self))  # type: ignore[arg-type]
        self.serving: dict[str, bool] = {}
        """Resource of a live plugin to whether the kubelet is connected to it."""
        self.clients: dict[str, _Client] = {}
        self.inodes: dict[str, int] = {}
        self.failure: str | None = None
        """Of the next request of dpctl."""
        self.on_step: Callable[[str], None] = lambda what: None
        self.removed: list[tuple[frozenset[str], frozenset[str]]] = []
        """Per applied patch: keys that went, and what was served or in use at the last look."""
        self.untouchable: frozenset[str] = frozenset()
        self._begun: Json | None = None

    def step(self, what: str) -> None:
        self.on_step(what)

    # -- what happens on the node

    def plugin_up(self, resource: str, devices: int = 2, *, registers: bool = True) -> None:
        if resource in self.clients:
            return  # the kubelet refuses a socket that it is connected to
        if registers:
            client = _Client(resource, f"{resource.rpartition('/')[2]}.sock")
            self.manager.plugin_connected(resource, client)  # type: ignore[arg-type]
            self.clients[resource] = client
            listed = [pb.Device(ID=f"dev-{n}", health="Healthy") for n in range(devices)]
            self.manager.devices_received(resource, listed)
        self.serving[resource] = registers

    def plugin_down(self, resource: str) -> None:
        if self.serving.pop(resource, None):
            self.manager.plugin_disconnected(self.clients.pop(resource))  # type: ignore[arg-type]

    def sync(self) -> None:
        self._begun = None
        self.status.sync()

    def sync_begin(self) -> None:
        """The kubelet has looked and not yet written."""
        old = self.kubelets_api.get_node(self.name)
        new = self.status.build(old, self.manager.capacity())
        from dpctl.lab.merge_patch import diff

        self._begun = diff(old.get("status", {}), new)

    def sync_end(self) -> None:
        if self._begun:
            self.kubelets_api.patch_node_status(self.name, {"status": self._begun})
        self._begun = None

    def write(
        self, changes: Mapping[str, str | None], manager: str = "operator", both: bool = False
    ) -> None:
        """Another writer's merge patch to capacity (and allocatable)."""
        status: Json = {"capacity": dict(changes)}
        if both or None in changes.values():
            status["allocatable"] = dict(changes)
        self.server.exchange(
            "PATCH",
            f"/api/v1/nodes/{self.name}/status",
            (),
            json.dumps({"status": status}).encode(),
            "application/merge-patch+json",
            manager,
        )

    def create_pod(self, name: str, resource: str) -> None:
        given = pod_json(
            "default", f"{self.name}-{name}", {"main": {resource: 1}}, node_name=self.name
        )
        given["spec"]["automountServiceAccountToken"] = False
        code, answer = self.server.exchange(
            "POST",
            "/api/v1/namespaces/default/pods",
            (),
            json.dumps(given).encode(),
            "application/json",
            "test",
        )
        assert code == 201, answer

    # -- what is true

    def amounts(self) -> dict[str, tuple[str | None, str | None]]:
        """Extended keys of the Node: capacity and allocatable."""
        status = self.kubelets_api.get_node(self.name)["status"]
        capacity, allocatable = status["capacity"], status["allocatable"]
        found = [k for k in {**capacity, **allocatable} if "/" in k or k == "nodomain"]
        return {k: (capacity.get(k), allocatable.get(k)) for k in found}

    def requested(self) -> set[str]:
        code, answer = self.server.exchange(
            "GET",
            "/api/v1/pods",
            (("fieldSelector", f"spec.nodeName={self.name}"),),
            b"",
            "",
            "test",
        )
        assert code == 200
        return {
            name
            for item in json.loads(answer)["items"]
            for container in item["spec"]["containers"]
            for name in container.get("resources", {}).get("requests", {})
        }

    def note_patch(self, before: Mapping[str, object]) -> None:
        gone = frozenset(before) - frozenset(self.amounts())
        if gone:
            self.removed.append((gone, self.untouchable))

    # -- what dpctl sees

    def look(self) -> Snapshot:
        """The API server first, the machine's own tables last, as the real last look."""
        node = self.api.get_node(self.name)
        # Whoever comes after the server has answered was not there at the last look.
        in_use = self.requested()
        pods = self.api.list_pods(self.name)
        self.step("look at the machine")
        self.untouchable = frozenset(self.serving) | frozenset(in_use)
        return self.local(
            Snapshot(
                collected_at=build.NOW,
                sources=(),
                node=node,
                pods=pods,
                unscheduled=(),
                boot_id=BOOT_ID,
            )
        )

    def local(self, snap: Snapshot) -> Snapshot:
        sockets, entries, plugins = [], [], []
        for resource, connected in self.serving.items():
            inode = self.inodes.setdefault(resource, 20 + len(self.inodes))
            endpoint = f"plugin-{inode}.sock"
            sockets.append(build.listener(f"/dp/{endpoint}", inode))
            if connected:
                sockets.append(build.accepted(f"/dp/{endpoint}", inode))
            entries.append(build.entry(endpoint, inode))
            info = RegistrySocket(endpoint, SocketState.SERVING, "DevicePlugin", resource)
            plugins.append(PluginSocket(endpoint, SocketState.SERVING, None, info, None))
        return snap._replace(
            checkpoint=self._checkpoint(),
            directory=build.directory(*entries),
            sockets=build.table(*sockets),
            plugins=tuple(plugins),
            registry=(),
            kubelets=(Kubelet(build.KUBELET_PID, (), self.name, None, None, None),),
            pod_resources=PodResources("v1", ()),
        )

    def _checkpoint(self) -> Checkpoint:
        path = self.plugins_dir / "kubelet_internal_checkpoint"
        if not path.exists():
            return Checkpoint((), {}, 0, 0, absent=True)
        return parse_checkpoint(path.read_bytes(), modified=build.NOW - 60)


class Disk:
    """Stands before `os` in the module that writes undo files: each step can be the last."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if name not in ("rename", "fsync", "open", "makedirs", "unlink"):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            if self.dead:
                return None  # the clean-up of a process that is no more
            self._world.step(f"before {name}")
            result = found(*arguments, **named)
            self._world.step(f"after {name}")
            return result

        return call


def query_text(query: Sequence[tuple[str, str]]) -> str:
    return f"?{urlencode(query)}" if query else ""
