"""`with Lab() as lab:` for tests and scripts: a lab for a while, and handles on its parts.

    with Lab() as lab:
        subprocess.run(["dpctl", "resources"], env={**os.environ, **lab.env})
        lab.plugin("gpu").set_health("gpu-0", "Unhealthy")
        lab.wait_settled()

The clock stands still unless told otherwise: `lab.clock.advance(300)` is five minutes.
"""

from __future__ import annotations

import http.client
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from dpctl.errors import UnreachableError
from dpctl.lab import directory as lab_directory
from dpctl.lab import up
from dpctl.lab.api_errors import Json
from dpctl.lab.client import LabClient
from dpctl.lab.scenario import pod
from dpctl.lab.spec import LabSpec, PluginSpec, SampleDevice


@dataclass(frozen=True, slots=True)
class KubeletHandle:
    _client: LabClient

    def stop(self) -> None:
        """At once, as a kubelet that exits: nothing is cleaned up."""
        self._client.ask("kubelet", command="stop")

    def start(self) -> None:
        """Returns when it is ready: pods admitted, first status written."""
        self._client.ask("kubelet", command="start")

    def restart(self) -> None:
        self._client.ask("kubelet", command="restart")

    def sync(self) -> None:
        """Write the Node's status now."""
        self._client.ask("kubelet", command="sync")

    def state(self) -> dict[str, Json]:
        """Resource to what the device manager has in memory (`healthy`, `unhealthy`, `running`,
        `socket`, `messages`, `allocated`)."""
        found: dict[str, Json] = self._client.ask("kubelet", command="state")
        return found

    @property
    def pid(self) -> int | None:
        found: int | None = self._client.ask("status")["kubelet"]
        return found


@dataclass(frozen=True, slots=True)
class ClockHandle:
    _client: LabClient

    def advance(self, seconds: float) -> None:
        """The kubelet's clock; what follows happens at its next status sync."""
        self._client.ask("kubelet", command="advance", seconds=seconds)


@dataclass(frozen=True, slots=True)
class PluginHandle:
    _client: LabClient
    name: str

    def start(self) -> None:
        """A new process; it registers by itself."""
        self._ask("start")

    def kill(self) -> None:
        """SIGKILL: the socket file stays."""
        self._ask("kill")

    def exit(self) -> None:
        """A clean exit: the socket file goes."""
        self._ask("exit")

    def pause(self) -> None:
        """SIGSTOP: alive, connected, answers nothing."""
        self._ask("pause")

    def resume(self) -> None:
        self._ask("resume")

    def register(self) -> None:
        """Register once more on kubelet.sock."""
        self._ask("register")

    def set_health(self, device_id: str, word: str) -> None:
        self._ask("set-health", device=device_id, health=word)

    def set_devices(self, devices: Sequence[SampleDevice]) -> None:
        listed = [
            {"device_id": d.device_id, "numa_nodes": d.numa_nodes, "health": d.health}
            for d in devices
        ]
        self._ask("set-devices", devices=listed)

    def fail_allocate(self, text: str) -> None:
        """Allocate answers with this error from now on; empty: no more."""
        self._ask("allocate-error", text=text)

    def state(self) -> Json:
        found: Json = self._ask("state")
        return found

    @property
    def pid(self) -> int | None:
        found: int | None = self._client.ask("status")["plugins"][self.name]
        return found

    def _ask(self, command: str, **arguments: Any) -> Any:
        return self._client.ask("plugin", name=self.name, command=command, **arguments)


class Lab:
    """A lab of its own in a temporary directory; down at the end of the `with` block, or when this
    process ends, however it ends."""

    def __init__(
        self,
        *,
        scenario: str = "sample",
        status_period: float = 1.0,
        frozen_clock: bool = True,
        seed: int = 0,
        node_name: str = "lab-0",
        kubelet_version: str = "v1.36.2",
        topology_policy: str = "none",
        topology_scope: str = "container",
    ) -> None:
        self._spec = LabSpec(
            scenario=scenario,
            status_period=status_period,
            frozen_clock=frozen_clock,
            seed=seed,
            node_name=node_name,
            kubelet_version=kubelet_version,
            topology_policy=topology_policy,
            topology_scope=topology_scope,
            watch_parent=True,
        )
        self.node_name = node_name
        self._running: up.Running | None = None

    def __enter__(self) -> Lab:
        directory = Path(tempfile.mkdtemp(prefix="dpl-", dir="/tmp"))
        self._running = up.start(directory, self._spec)
        state = json.loads((directory / "lab.json").read_bytes())
        self.tokens: Mapping[str, str] = state["tokens"]
        """Kubeconfig context to bearer token."""
        self.server: str = state["server"]
        self.client = LabClient(directory)
        self.kubelet = KubeletHandle(self.client)
        self.clock = ClockHandle(self.client)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._running is not None:
            up.end_with_us(self._running)
            lab_directory.clean(self._running.directory)

    @property
    def directory(self) -> Path:
        if self._running is None:
            raise UnreachableError("the lab is not up", "use it in a with block")
        return self._running.directory

    @property
    def root(self) -> Path:
        """The node's /."""
        return self.directory / "root"

    @property
    def device_plugins(self) -> Path:
        return self.root / "var/lib/kubelet/device-plugins"

    @property
    def pod_resources_socket(self) -> Path:
        return self.root / "var/lib/kubelet/pod-resources/kubelet.sock"

    @property
    def env(self) -> Mapping[str, str]:
        """What to set so that dpctl looks at this lab."""
        if self._running is None:
            raise UnreachableError("the lab is not up", "use it in a with block")
        return self._running.env

    def plugin(self, name: str) -> PluginHandle:
        return PluginHandle(self.client, name)

    def add_plugin(self, spec: PluginSpec, *, start: bool = True) -> PluginHandle:
        """One more plugin."""
        self.client.ask("add-plugin", spec=spec.to_json())
        handle = self.plugin(spec.name)
        if start:
            handle.start()
        return handle

    def wait_settled(self, timeout: float = 15.0) -> None:
        """Until every pod is decided and every plugin's word with the kubelet; then the Node is
        written. Raises PeerError naming what is open."""
        self.client.ask("settle", timeout=timeout)

    def fail_requests(
        self,
        count: int = 1,
        code: int = 503,
        *,
        method: str = "",
        path_part: str = "",
        user: str = "",
        retry_after: int = 0,
    ) -> None:
        """The API server's next `count` matching answers are errors."""
        self.client.ask(
            "fault",
            count=count,
            code=code,
            method=method,
            path_part=path_part,
            user=user,
            retry_after=retry_after,
        )

    # --- the API

    def api(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        context: str = "lab",
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Json]:
        """One request as the user of a kubeconfig context: code and body."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.server.removeprefix("http://"), timeout=30)
        try:
            sent = {"Content-Type": content_type, "User-Agent": "lab-test/1", **(headers or {})}
            if context:
                sent["Authorization"] = f"Bearer {self.tokens[context]}"
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def node(self, name: str | None = None) -> Json:
        return self.api("GET", f"/api/v1/nodes/{name or self.node_name}")[1]

    def pods(self) -> dict[str, Json]:
        """`namespace/name` to pod."""
        items = self.api("GET", "/api/v1/pods")[1]["items"]
        return {f"{p['metadata']['namespace']}/{p['metadata']['name']}": p for p in items}

    def create_pod(
        self,
        namespace: str,
        name: str,
        containers: dict[str, dict[str, int]],
        *,
        init: dict[str, dict[str, int]] | None = None,
        sidecars: dict[str, dict[str, int]] | None = None,
        node_name: str | None = None,
    ) -> Json:
        """Create it and wait until it is decided; `containers`: name to limits. The pod then."""
        given = pod(namespace, name, containers, init=init, sidecars=sidecars, node_name=node_name)
        code, answer = self.api("POST", f"/api/v1/namespaces/{namespace}/pods", given)
        if code != 201:
            raise AssertionError(answer)
        self.wait_settled()
        return self.pods()[f"{namespace}/{name}"]

    def delete_pod(self, namespace: str, name: str) -> None:
        self.api("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")
        self.wait_settled()

    def finish_pod(self, namespace: str, name: str, phase: str = "Succeeded") -> None:
        """Its containers end by themselves."""
        self.client.ask("kubelet", command="finish", namespace=namespace, name=name, phase=phase)
