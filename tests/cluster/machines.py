"""What differs between a real kubelet's node and the lab's, for those who do the same on both.

Starting and ending things, and asking the API server; what is asked of it is `sides`' to know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from dpctl.lab.fixture import Lab
from dpctl.lab.spec import PluginSpec

from .api import JSON, ApiError
from .bench import Bench
from .plugins import LabPlugin
from .processes import wait_for
from .scenario import PodSpec

SECONDS = 60.0
"""Longer than anything takes on a busy machine."""


class Machine(Protocol):
    """One of them."""

    name: str
    judged: bool
    """Whether what does not come true is its fault, not the scenario's."""
    patience: float
    """Seconds until what has not come true counts as not coming."""
    node: str
    device_plugins: Path
    pod_resources: Path

    def request(self, method: str, path: str, body: Any, kind: str) -> tuple[int, JSON]:
        """As the admin: code and answer."""

    def start(self, spec: PluginSpec) -> None:
        """A new process of this plugin."""

    def kill(self, plugin: str) -> None:
        """SIGKILL."""

    def ask(self, plugin: str, op: str, **arguments: Any) -> Any:
        """One of its commands."""

    def kubelet(self, command: str) -> None:
        """`start`, `stop`."""

    def log(self) -> str:
        """What the kubelet has said so far."""

    def created(self, pod: PodSpec) -> None:
        """The runtime's part, where there is none."""


class RealMachine:
    """A bench of the cluster tests."""

    name = "kubelet"
    judged = False
    patience = SECONDS

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.node = bench.node.name
        self.device_plugins = bench.node.kubelet_dir / "device-plugins"
        self.pod_resources = bench.node.kubelet_dir / "pod-resources" / "kubelet.sock"
        self._plugins: dict[str, LabPlugin] = {}

    def request(self, method: str, path: str, body: Any, kind: str) -> tuple[int, JSON]:
        try:
            return 200, self._bench.plane.api().request(method, path, body, kind)
        except ApiError as error:
            return error.code, {"message": error.body}

    def start(self, spec: PluginSpec) -> None:
        if spec.name not in self._plugins:
            self._plugins[spec.name] = LabPlugin(self._bench.node, spec, forked=self._bench.forked)
            self._bench.plugins.append(self._plugins[spec.name])
        self._plugins[spec.name].start()

    def kill(self, plugin: str) -> None:
        self._plugins[plugin].kill()

    def ask(self, plugin: str, op: str, **arguments: Any) -> Any:
        return self._plugins[plugin].ask(op, **arguments)

    def kubelet(self, command: str) -> None:
        if command == "stop":
            self._bench.node.stop_kubelet()
        else:
            self._bench.node.start_kubelet(ask=False)

    def log(self) -> str:
        kubelet = self._bench.node.kubelet
        assert kubelet is not None
        return kubelet.log.read_text(errors="replace")

    def created(self, pod: PodSpec) -> None:
        pass


class LabMachine:
    """A lab of its own."""

    name = "lab"
    judged = True
    patience = SECONDS

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.node = lab.node_name
        self.device_plugins = lab.device_plugins
        self.pod_resources = lab.pod_resources_socket
        self._added: set[str] = set()

    def request(self, method: str, path: str, body: Any, kind: str) -> tuple[int, JSON]:
        return self._lab.api(method, path, body, content_type=kind)

    def start(self, spec: PluginSpec) -> None:
        if spec.name not in self._added:
            self._added.add(spec.name)
            self._lab.add_plugin(spec, start=False)
        self._lab.plugin(spec.name).start()

    def kill(self, plugin: str) -> None:
        self._lab.plugin(plugin).kill()

    def ask(self, plugin: str, op: str, **arguments: Any) -> Any:
        return self._lab.client.ask("plugin", name=plugin, command=op, **arguments)

    def kubelet(self, command: str) -> None:
        (self._lab.kubelet.start if command == "start" else self._lab.kubelet.stop)()

    def log(self) -> str:
        return (self._lab.directory / "log" / "kubelet.log").read_text()

    def created(self, pod: PodSpec) -> None:
        """No container runs here, so none ends by itself."""
        if not pod.ends:
            return
        name = pod.named(self.node)
        wait_for(
            f"the lab to run {name}",
            lambda: self._lab.pods()[f"default/{name}"]["status"]["phase"] == "Running",
            SECONDS,
        )
        self._lab.finish_pod("default", name)
