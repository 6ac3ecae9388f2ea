"""`python -m dpctl.lab.supervisor DIR FD`: the lab's parent process, orders as one line on stdin.

FD holds the lock of DIR; it stays open as long as this process lives.

It starts and ends kubelet and plugins and holds the API server and the scheduler. What the lab is
made of stands in `scenario`, in which order it comes about in `story`, what can be asked of a
running one in `control`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import select
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpctl.lab import directory as lab_directory
from dpctl.lab import node_tree, process
from dpctl.lab.api_errors import Json
from dpctl.lab.child import Child, ChildError
from dpctl.lab.scenario import Scenario, sample
from dpctl.lab.spec import LabSpec, PluginSpec

if TYPE_CHECKING:
    from dpctl.lab.api_server import ApiServer
    from dpctl.lab.api_store import Store

CONTEXTS: Final = {
    "lab": "admin",
    "lab-viewer": "viewer",
    "lab-nobody": "nobody",
    "lab-node": "node",
}
"""Kubeconfig context to the lab's user."""


class Plugin:
    """A sample plugin and the process that is it now."""

    def __init__(self, spec: PluginSpec) -> None:
        self.spec = spec
        self.child: Child | None = None
        self.registers = spec.register
        self.paused = False
        self.serving = threading.Event()

    def running(self) -> bool:
        return self.child is not None and self.child.running()

    def event(self, event: str, _: Json) -> None:
        if event == "serving":
            self.serving.set()


class Supervisor:
    def __init__(self, directory: Path, spec: LabSpec) -> None:
        self.directory = directory
        self.spec = spec
        self.root = directory / "root"
        self.scenario = sample(spec.node_name) if spec.scenario == "sample" else Scenario()
        self.plugins: dict[str, Plugin] = {}
        self.kubelet: Child | None = None
        self.kubelet_ready = threading.Event()
        self.stopping = threading.Event()
        self.tokens = {name: secrets.token_urlsafe(18) for name in CONTEXTS}
        self.store: Store
        self.api: ApiServer
        self.told = False
        """Whether who started us knows how that went."""
        self.command_pidfd: int | None = None
        """Of the command that `lab run` waits for."""

    # --- starting

    def start(self) -> Json:
        """Everything, to the end of the scenario's story. Returns what to set."""
        (self.directory / "log").mkdir(exist_ok=True)
        (self.root / node_tree.DEVICE_PLUGINS).mkdir(parents=True)
        # Processes first: each imports for more than a tenth of a second.
        self.kubelet = self._spawn_kubelet()
        for plugin in self.scenario.plugins:
            self.plugins[plugin.name] = Plugin(plugin)
            if plugin.name in self.scenario.missed:
                self.start_plugin(plugin.name, registers=False)
        for name, known in self.plugins.items():
            if known.child is None:
                self.start_plugin(name)
        node_tree.build(self.root, self.spec)
        self._serve_api()
        self._write_kubeconfigs()
        from dpctl.lab import control, story

        story.tell(self)
        control.serve(self)
        environment = {
            "DPCTL_HOST_ROOT": str(self.root),
            "KUBECONFIG": str(self.directory / "kubeconfig"),
        }
        state = {"pid": os.getpid(), "env": environment, "server": self._server()}
        lab_directory.write_private(
            self.directory / "lab.json", json.dumps({**state, "tokens": self.tokens}) + "\n"
        )
        return state

    def start_plugin(self, name: str, *, registers: bool | None = None) -> None:
        """Raises ChildError when it runs already."""
        plugin = self.plugins[name]
        if plugin.running():
            raise ChildError(f"plugin {name} runs already")
        spec = plugin.spec
        plugin.registers = spec.register if registers is None else registers
        plugin.serving.clear()
        plugin.paused = False
        plugin.child = Child(
            "dpctl.lab.plugin",
            [f"--resource-name={spec.resource}"] if spec.shown == "argument" else [],
            {
                "spec": {**spec.to_json(), "register": plugin.registers},
                "directory": str(self.root / node_tree.DEVICE_PLUGINS),
            },
            log=self.directory / "log" / f"{name}.log",
            environment={"RESOURCE_NAME": spec.resource} if spec.shown == "environment" else {},
            events=plugin.event,
        )

    def start_kubelet(self) -> None:
        """Returns when it is ready. Raises ChildError."""
        if self.kubelet is not None and self.kubelet.running():
            raise ChildError("the kubelet runs already")
        self.kubelet = self._spawn_kubelet()
        self.order_kubelet()

    def order_kubelet(self) -> None:
        """Tell a spawned kubelet to start, and wait until it is ready. Raises ChildError."""
        if self.kubelet is None:
            raise ChildError("no kubelet")
        self.kubelet.order(
            {
                "root": str(self.root),
                "node_name": self.spec.node_name,
                "port": self.api.port,
                "token": self.tokens["lab-node"],
                "version": self.spec.kubelet_version,
                "status_period": self.spec.status_period,
                "frozen_clock": self.spec.frozen_clock,
                "seed": self.spec.seed,
            }
        )
        while not self.kubelet_ready.wait(0.2):
            if not self.kubelet.running():
                raise ChildError(f"the kubelet ended: see {self.directory}/log/kubelet.log")

    def _spawn_kubelet(self) -> Child:
        self.kubelet_ready.clear()
        return Child(
            "dpctl.lab.kubelet",
            [
                f"--hostname-override={self.spec.node_name}",
                "--root-dir=/var/lib/kubelet",
                "--config=/var/lib/kubelet/config.yaml",
            ],
            None,
            log=self.directory / "log" / "kubelet.log",
            environment={},
            events=self._kubelet_event,
        )

    def _kubelet_event(self, event: str, _: Json) -> None:
        if event == "ready":
            self.kubelet_ready.set()

    def _serve_api(self) -> None:
        from dpctl.lab import api_auth
        from dpctl.lab.api_handlers import Handlers
        from dpctl.lab.api_server import ApiServer
        from dpctl.lab.api_store import Store
        from dpctl.lab.scheduler import Scheduler

        users = api_auth.users(self.spec.node_name)
        self.store = Store()
        configz = {self.spec.node_name: node_tree.kubelet_config(self.spec)}
        handlers = Handlers(self.store, version=self.spec.kubelet_version, configz=configz)
        tokens = {token: users[CONTEXTS[name]] for name, token in self.tokens.items()}
        self.api = ApiServer(self.store, tokens, handlers)
        Scheduler(self.store)

    def _server(self) -> str:
        return f"http://127.0.0.1:{self.api.port}"

    def _write_kubeconfigs(self) -> None:
        write, text = lab_directory.write_private, lab_directory.kubeconfig
        write(self.directory / "kubeconfig", text(self._server(), self.tokens, "lab"))
        node = {"lab-node": self.tokens["lab-node"]}
        write(self.root / "etc/kubernetes/kubelet.conf", text(self._server(), node, "lab-node"))

    # --- ending

    def end(self) -> None:
        """All children, then the directory. Nothing stays."""
        self.stopping.set()
        children = [plugin.child for plugin in self.plugins.values()] + [self.kubelet]
        alive = [child for child in children if child is not None and child.running()]
        for child in alive:
            child.send_signal(signal.SIGKILL)
        for child in alive:
            child.kill()
        lab_directory.clean(self.directory)
        if self.command_pidfd is not None:
            _end_command(self.command_pidfd)


def _end_command(pidfd: int) -> None:
    """The command of a `lab run` that was killed: asked to go, then made to."""
    for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        try:
            signal.pidfd_send_signal(pidfd, number)
        except ProcessLookupError:
            return
        if select.select([pidfd], [], [], patience)[0]:
            return


def _watch_parent(supervisor: Supervisor) -> None:
    """Lines from `lab run`; their end is the end."""
    for line in sys.stdin.buffer:
        try:
            supervisor.command_pidfd = os.pidfd_open(json.loads(line)["command"])
        except ProcessLookupError:
            continue  # it was that quick
    supervisor.stopping.set()


def _end_when_stopping(supervisor: Supervisor) -> None:
    supervisor.stopping.wait()
    try:
        if not supervisor.told:
            process.tell({"error": "it was taken down while it came up"})
        supervisor.end()
    finally:
        process.leave(0)


def _tell_failure(supervisor: Supervisor, error: Exception) -> None:
    """To who started us, and then to the log, which may be on a full file system."""
    number = error.errno if isinstance(error, OSError) else None
    # A child's failure has no number here, but the same cause.
    no_space = number in (errno.ENOSPC, errno.EDQUOT) or lab_directory.full(supervisor.directory)
    supervisor.told = True
    process.tell({"error": f"{type(error).__name__}: {error}", "no_space": no_space})
    with contextlib.suppress(OSError):
        traceback.print_exc()


def main() -> None:
    directory = Path(sys.argv[1])
    spec = LabSpec(**process.first_line())
    lock = int(sys.argv[2])
    os.set_inheritable(lock, False)
    process.set_command("dpctl-lab")
    supervisor = Supervisor(directory, spec)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.stopping.set())
    if spec.watch_parent:
        threading.Thread(target=_watch_parent, args=(supervisor,), daemon=True).start()
    threading.Thread(target=_end_when_stopping, args=(supervisor,), daemon=True).start()
    try:
        lab_directory.sign(lock)
        state = supervisor.start()
    except Exception as error:
        if not supervisor.stopping.is_set():
            _tell_failure(supervisor, error)
        supervisor.stopping.set()
    else:
        supervisor.told = True
        process.tell(state)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
