"""One node: a containerd and a kubelet in a mount namespace of their own.

The node has directories of its own where a kubelet expects its, and NUMA nodes and CPUs that the
machine need not have. Several nodes run side by side under one control plane; the machine's own
/var/lib/kubelet is never touched. Whatever looks at a node must run in its namespace: see `run`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import build, cgroups, images, pods, runtime, sysfs
from .api import JSON
from .gate import Gate
from .listing import listed_pods
from .plane import ADMIN, Plane
from .processes import ClusterError, Daemon, inside, wait_for
from .settings import KubeletSettings
from .sysfs import Machine

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE_RESOURCE = "example.com/resource"
DRA_DRIVER = "test-driver.cdi.k8s.io"
# Bound over the machine's, so that nothing is shared and nothing stays behind.
BOUND = {
    "kubelet": "/var/lib/kubelet",
    "log": "/var/log",
    "cdi": "/run/cdi",
    "containerd": "/run/containerd",
}
STATE_FILES = ("cpu_manager_state", "memory_manager_state")

# Mounts pairs of directories, says that it is done, and keeps the namespace open.
_HOLD = """
ready=$1; shift
while [ "$#" -gt 0 ]; do mount --bind "$1" "$2" || exit 1; shift 2; done
: > "$ready"
exec sleep infinity
"""


class Result(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


class Node:
    """A kubelet of one minor under a control plane."""

    def __init__(
        self,
        plane: Plane,
        minor: str | None = None,
        *,
        machine: Machine | None = None,
        settings: KubeletSettings | None = None,
    ) -> None:
        self.plane = plane
        self.minor = minor or plane.minor
        self.settings = settings or KubeletSettings()
        self.machine = self.own_machine = machine or Machine()
        self._kubelet_binary = build.binaries(self.minor) / "kubelet"
        taken = sum(name.startswith("namespace-") for name in list(plane.daemons))
        self.name = plane.node_name(taken)
        self.path = plane.path / self.name.replace("worker-", "w")
        self.path.mkdir()
        # The same directory as /var/lib/kubelet in the namespace, as the machine sees it.
        self.kubelet_dir = self.path / "kubelet"
        self.port = plane.place.port()
        behind = int(plane.server.rpartition(":")[2])
        self.gate = Gate(plane.place.port(), behind)
        self.cgroup = f"{plane.place.cgroup}/{self.name}"
        self._containerd_socket = self.path / "cd.sock"
        self._ready = self.path / "mounted"
        self.namespace = plane.daemon(f"namespace-{self.name}", self._hold_command())
        self.containerd: Daemon | None = None
        self.kubelet: Daemon | None = None

    # -- start and stop

    def start(self) -> None:
        """Bring the node up and wait until it is Ready."""
        self.prepare()
        self.plane.wait_ready()
        self.start_kubelet()

    def prepare(self) -> None:
        """Namespace, containerd and images: what needs no API server."""
        self.namespace.start()
        wait_for("the namespace", self._ready.exists, 10, [self.namespace])
        command = runtime.command(self.path, self._containerd_socket)
        self.containerd = self.process("containerd", command)
        answers = lambda: _accepts(self._containerd_socket)  # noqa: E731
        wait_for("containerd", answers, 30, [self.containerd])
        images.import_into(self._containerd_socket, self.entering)

    def start_kubelet(self, wait: bool = True, *, ask: bool = True) -> None:
        """Start the kubelet with the present settings.

        `ask`: wait, too, until it has heard of its running pods, since it comes up without them. It
        is asked by List, which makes a kubelet forget what ended pods had.
        """
        config = self.settings.config(
            port=self.port,
            cgroup=self.cgroup,
            containerd=self._containerd_socket,
            client_ca=self.plane.client_certificate,
            volumes=self.path / "volumes",
        )
        (self.kubelet_dir / "config.yaml").write_text(json.dumps(config, indent=1) + "\n")
        started = time.time()
        if self.kubelet is None:
            command = [
                *(str(self._kubelet_binary), "--config=/var/lib/kubelet/config.yaml"),
                *(f"--kubeconfig={self.kubeconfig}", f"--hostname-override={self.name}", "--v=2"),
            ]
            self.kubelet = self.process("kubelet", command)
        else:
            self.kubelet.start()
        if wait:
            self.wait_ready(started)
            if ask:
                listing = self.kubelet_dir / "pod-resources" / "kubelet.sock"
                wait_for(
                    f"{self.name} to hear of its pods",
                    lambda: self._running_pods() <= listed_pods(listing),
                    30,
                    [self._running_kubelet()],
                )

    def end(self) -> None:
        """Kill all of it, for one that did not come up: its name and its ports stay taken."""
        self.gate.close()
        for name, daemon in list(self.plane.daemons.items()):
            if f"-{self.name}-" in f"{name}-":
                daemon.kill()
        # Containers, which outlive a containerd.
        cgroups.kill(self.cgroup)

    def stop_kubelet(self) -> None:
        """Stop the kubelet as a service manager would."""
        self._running_kubelet().stop()

    def kill_kubelet(self) -> None:
        """Kill the kubelet with SIGKILL."""
        self._running_kubelet().kill()

    def restart_kubelet(self) -> None:
        """Stop the kubelet and start it again."""
        self.stop_kubelet()
        self.start_kubelet()

    def configure(
        self,
        settings: KubeletSettings | None = None,
        *,
        machine: Machine | None = None,
        **changes: object,
    ) -> None:
        """Restart the kubelet with other settings, or with some of them changed, or on another
        machine."""
        self.stop_kubelet()
        before = (self.settings.state_policies, self.machine)
        base = settings or self.settings
        self.settings = dataclasses.replace(base, **changes)  # type: ignore[arg-type]
        if machine is not None and machine != self.machine:
            self.machine = machine
            sysfs.write_trees(self.path / "sys", machine)
        if (self.settings.state_policies, self.machine) != before:
            for name in STATE_FILES:
                (self.kubelet_dir / name).unlink(missing_ok=True)
        self.start_kubelet()

    def wait_ready(self, since: float = 0.0, seconds: float = 60.0) -> None:
        """Wait until the node is Ready and both kubelet sockets were made after `since`."""
        sockets = [
            self.kubelet_dir / "device-plugins" / "kubelet.sock",
            self.kubelet_dir / "pod-resources" / "kubelet.sock",
        ]

        def probe() -> bool:
            return all(_is_new(path, since) for path in sockets) and self._is_ready()

        wait_for(f"{self.name} to be Ready", probe, seconds, [self._running_kubelet()])

    # -- commands and processes in the node's namespace

    @property
    def nsenter(self) -> list[str]:
        """The start of a command line that runs in the node's mount namespace: for a `Daemon`,
        which enters the control groups by itself, and for a person."""
        return ["nsenter", f"--target={self.namespace.pid}", "--mount", "--"]

    @property
    def entering(self) -> list[str]:
        """The same for any other process: it enters the control groups first, and so ends with
        the cluster."""
        return inside(self.plane.groups, self.nsenter)

    def run(
        self,
        *command: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        seconds: float = 60.0,
    ) -> Result:
        """Run a command in the node's namespace."""
        # Entering a namespace leaves the current directory.
        enter = ["sh", "-c", 'cd "$0" && exec "$@"', str(cwd or Path.cwd())]
        done = subprocess.run(
            [*self.entering, *enter, *command],
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, **(env or {})},
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def dpctl(
        self,
        *args: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        seconds: float = 60.0,
    ) -> Result:
        """Run this checkout's dpctl in the node's namespace."""
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "dpctl", *args]
        env = {"PYTHONPATH": path, **(env or {})}
        return self.run(*command, stdin=stdin, env=env, seconds=seconds)

    def process(
        self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> Daemon:
        """Start a process in the node's namespace; it ends with the cluster at the latest."""
        daemon = self.plane.daemon(f"{name}-{self.name}", [*self.nsenter, *command], env)
        daemon.start()
        return daemon

    def start_sample_plugin(
        self, env: Mapping[str, str] | None = None, wait: bool = True
    ) -> Daemon:
        """Start upstream's sample plugin: devices Dev-1 and Dev-2 of example.com/resource."""
        binary = self.plane.bin / "sample-device-plugin"
        plugin = self.process("sample-device-plugin", [str(binary)], env)
        if wait:
            self.wait_resource(SAMPLE_RESOURCE, "2", needs=[plugin])
        return plugin

    def start_dra_driver(self) -> Daemon:
        """Start upstream's DRA test driver, and wait until it has announced its devices."""
        (self.kubelet_dir / "plugins" / DRA_DRIVER).mkdir(parents=True, exist_ok=True)
        command = [
            *(str(self.plane.bin / "test-driver"), f"--kubeconfig={self.plane.kubeconfig()}"),
            *("kubelet-plugin", f"--node-name={self.name}"),
        ]
        driver = self.process("dra-test-driver", command)
        path = "/apis/resource.k8s.io/v1/resourceslices"
        selector = f"?fieldSelector=spec.nodeName%3D{self.name}"
        api = self.plane.api()
        wait_for("the ResourceSlice", lambda: api.get(path + selector)["items"], 30, [driver])
        return driver

    # -- the API's side

    @property
    def user(self) -> str:
        """The node's own user."""
        return f"system:node:{self.name}"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig that the kubelet itself uses."""
        return self.kubeconfig_of(self.user)

    def kubeconfig_of(self, user: str = ADMIN) -> Path:
        """A user's kubeconfig on this node: through the node's gate."""
        return self.plane.write_kubeconfig(self.path, user, f"https://127.0.0.1:{self.gate.port}")

    def get(self) -> JSON:
        """The Node object."""
        return self.plane.api().get(f"/api/v1/nodes/{self.name}")

    def wait_resource(
        self,
        resource: str,
        allocatable: str | None,
        capacity: str | None = None,
        seconds: float = 60.0,
        needs: Sequence[Daemon] = (),
    ) -> None:
        """Wait until the Node shows these counts; capacity is like allocatable if left out."""
        expected = (allocatable if capacity is None else capacity, allocatable)
        last: list[object] = []

        def probe() -> bool:
            status = self.get()["status"]
            shown = (status["capacity"].get(resource), status["allocatable"].get(resource))
            last[:] = shown
            return shown == expected

        what = f"{resource} to be {expected[0]}/{expected[1]} on {self.name}"
        try:
            wait_for(what, probe, seconds, needs)
        except ClusterError as error:
            error.add_note(f"last seen: {last}")
            if self.kubelet is not None:
                error.add_note(self.kubelet.log_tail())
            raise

    def wait_devices(self, resource: str, seconds: float = 30.0) -> None:
        """Wait until the kubelet, as it runs now, has heard of the resource's devices.

        The Node does not tell: after a restart it shows the old counts until the next update.
        """
        kubelet = self._running_kubelet()
        heard = re.compile(
            f'"Processed device updates for resource".* resourceName="{re.escape(resource)}"'
        )
        wait_for(
            f"{self.name}'s kubelet to hear of devices of {resource}",
            lambda: heard.search(kubelet.log_since_start()),
            seconds,
            [kubelet],
        )

    def create_pod(
        self,
        name: str,
        resources: Mapping[str, str | int] | None = None,
        *,
        phase: str | None = "Running",
        scheduled: bool = True,
        image: str = images.PAUSE,
        containers: Mapping[str, Mapping[str, str | int]] | None = None,
        init_containers: Mapping[str, Mapping[str, str | int]] | None = None,
    ) -> pods.Pod | None:
        """Create a pod on this node and wait for its phase; with `phase=None` do not wait."""
        pod = pods.manifest(
            name,
            self.name,
            resources,
            image=image,
            scheduled=scheduled,
            containers=containers,
            init_containers=init_containers,
        )
        pods.create(self.plane.api(), pod)
        return pods.wait_phase(self.plane.api(), name, phase) if phase else None

    def delete_pod(self, name: str) -> None:
        """Delete a pod and wait until it is gone."""
        pods.delete(self.plane.api(), name)

    # -- details

    def _hold_command(self) -> list[str]:
        pairs = []
        for folder, target in BOUND.items():
            (self.path / folder).mkdir()
            pairs += [str(self.path / folder), target]
        mounts = sysfs.write_trees(self.path / "sys", self.machine)
        # The group of all pods: a kubelet writes all its CPUs into it, and stops if it cannot.
        mounts |= cgroups.make_any_cpu(f"{self.cgroup}/kubepods", self.path / "cpus")
        for source, where in mounts.items():
            pairs += [str(source), str(where)]
        unshare = ["unshare", "--mount", "--propagation", "slave"]
        return [*unshare, "sh", "-c", _HOLD, "hold", str(self._ready), *pairs]

    def _running_kubelet(self) -> Daemon:
        if self.kubelet is None:
            raise ClusterError(f"the kubelet of {self.name} was never started")
        return self.kubelet

    def _running_pods(self) -> set[tuple[str, str]]:
        query = f"?fieldSelector=spec.nodeName%3D{self.name},status.phase%3DRunning"
        metas = [pod["metadata"] for pod in self.plane.api().get(f"/api/v1/pods{query}")["items"]]
        return {(m["namespace"], m["name"]) for m in metas if "deletionTimestamp" not in m}

    def _is_ready(self) -> bool:
        node = self.plane.api().find(f"/api/v1/nodes/{self.name}")
        conditions = node["status"].get("conditions", []) if node else []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _is_new(path: Path, since: float) -> bool:
    try:
        return path.stat().st_mtime >= since and _accepts(path)
    except OSError:
        return False
