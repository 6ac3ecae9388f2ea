"""A node with nothing on it, and what a test does to it: plugins, pods, hand-made keys.

Everything that a test leaves behind is taken away before the next one: its pods, its plugins, the
kubelet's memory of them (checkpoint and restart) and the keys on the Node.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dpctl.lab.spec import PluginSpec, SampleDevice

from . import pods
from .api import JSON
from .forked import Forked
from .node import REPOSITORY, Node, Result
from .plane import ADMIN
from .plugins import LabPlugin, devices
from .processes import Daemon, wait_for
from .settings import KubeletSettings

# What a kubelet writes that knows no resource (kubelet-facts §5.2, `dev-empty`).
EMPTY_CHECKPOINT = '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}'
NATIVE = ("cpu", "memory", "pods", "ephemeral-storage")


class Bench:
    """One node for one test at a time."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.plane = node.plane
        self.minor = node.minor
        self.plugins: list[LabPlugin] = []
        self.daemons: list[Daemon] = []

    @cached_property
    def forked(self) -> Forked:
        """Runs dpctl and plugins; made when the node's namespace is there."""
        return Forked(self.node)

    # -- plugins

    def plugin(
        self,
        resource: str,
        listed: Sequence[SampleDevice] | Sequence[str] = (),
        *,
        wait: bool = True,
        arguments: Sequence[str] = (),
        endpoint: str | None = None,
        **spec: Any,
    ) -> LabPlugin:
        """Start a plugin, and wait until the Node shows its devices."""
        found = tuple(d if isinstance(d, SampleDevice) else devices([d])[0] for d in listed)
        name = resource.rpartition("/")[2]
        made = PluginSpec(
            name=name, resource=resource, endpoint=endpoint or f"{name}.sock", devices=found, **spec
        )
        plugin = LabPlugin(self.node, made, arguments, forked=self.forked)
        self.plugins.append(plugin)
        plugin.start()
        if wait:
            plugin.wait_registered()
            healthy = sum(device.health == "Healthy" for device in found)
            self.node.wait_resource(resource, str(healthy), str(len(found)), needs=[plugin])
            # The Node may be told before the file is written: a kubelet that ended in between
            # would know nothing of the plugin when it comes back.
            wait_for(f"{resource} to be in the checkpoint", lambda: self._tracks(resource), 30)
        return plugin

    def _tracks(self, resource: str) -> bool:
        if not self.checkpoint_file.exists():
            return False
        return resource in (self.checkpoint()["Data"]["RegisteredDevices"] or {})

    def sample_plugin(self) -> Daemon:
        """Upstream's sample plugin, with its two devices on the Node."""
        plugin = self.node.start_sample_plugin()
        self.daemons.append(plugin)
        return plugin

    # -- dpctl

    def dpctl(
        self,
        *args: str,
        user: str | None = ADMIN,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> Result:
        """Run dpctl in the node's namespace as a user of the API; None: with what it finds."""
        return self.forked.run(*args, env=self.environment(user, env), stdin=stdin)

    def started(self, *args: str, user: str | None = ADMIN) -> Result:
        """The same, started as a person would."""
        return self.node.dpctl(*args, env=self.environment(user))

    def environment(
        self, user: str | None = ADMIN, env: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Variables for dpctl: nothing of the caller's own kubeconfig."""
        config = "" if user is None else str(self.node.kubeconfig_of(user))
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
        found = {"HOME": "/nonexistent", "KUBECONFIG": config, "PYTHONPATH": path}
        return {**found, **(env or {})}

    def command(self, *before: str) -> tuple[str, ...]:
        """dpctl's command line, run by the commands before it (`unshare --net`)."""
        return (*before, sys.executable, "-m", "dpctl")

    # -- the Node

    def set_keys(self, keys: Mapping[str, str | None]) -> None:
        """Write capacity keys by hand, as an operator would; None takes one away."""
        self.plane.api().patch(
            f"/api/v1/nodes/{self.node.name}/status",
            {"status": {"capacity": dict(keys)}},
            "application/merge-patch+json",
        )

    def extended_keys(self) -> set[str]:
        """Every key of the Node that is not native."""
        status = self.node.get()["status"]
        found = {*status["capacity"], *status["allocatable"]}
        return {key for key in found if not is_native(key)}

    @property
    def checkpoint_file(self) -> Path:
        """Where that lies."""
        return self.node.kubelet_dir / "device-plugins" / "kubelet_internal_checkpoint"

    def checkpoint(self) -> JSON:
        """The kubelet's device checkpoint as it lies there."""
        found: JSON = json.loads(self.checkpoint_file.read_text())
        return found

    def pod_uid(self, name: str) -> str:
        """The UID that the API server gave a pod."""
        pod = pods.find(self.plane.api(), name)
        assert pod is not None
        uid: str = pod["metadata"]["uid"]
        return uid

    # -- clean

    def settle(self) -> None:
        """End what a test has started; the rest is cleaned when the node is needed again."""
        for daemon in [*self.plugins, *self.daemons]:
            daemon.kill()

    def clean(self) -> None:
        """As after the node's first start."""
        node = self.node
        if node.kubelet is not None and not node.kubelet.alive:
            # Its settings may be what ended it.
            node.configure(KubeletSettings(), machine=node.own_machine)
        api = self.plane.api()
        listed = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.node.name}")["items"]
        unbound = api.get("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D")["items"]
        wanted = {"kubernetes.io/hostname": self.node.name}
        left = [*listed, *(p for p in unbound if p["spec"].get("nodeSelector") == wanted)]
        for pod in left:
            api.delete(_path(pod))
        for pod in left:
            wait_for(
                f"pod {pod['metadata']['name']} to be gone",
                lambda pod=pod: api.find(_path(pod)) is None,  # type: ignore[misc]
                60,
            )
        for plugin in [*self.plugins, *self.daemons]:
            plugin.kill()
        self.plugins, self.daemons = [], []
        for path in (self.node.kubelet_dir / "plugins_registry").iterdir():
            path.unlink()
        dirty = self.extended_keys()
        known = self.checkpoint_file.exists() and self.checkpoint_file.read_text()
        standard = (node.settings, node.machine) == (KubeletSettings(), node.own_machine)
        if not dirty and known == EMPTY_CHECKPOINT and standard:
            return
        self.node.stop_kubelet()
        for path in (self.node.kubelet_dir / "device-plugins").iterdir():
            path.unlink()
        self.checkpoint_file.write_text(EMPTY_CHECKPOINT)
        node.configure(KubeletSettings(), machine=node.own_machine)
        if dirty:
            gone = dict.fromkeys(dirty)
            api.patch(
                f"/api/v1/nodes/{self.node.name}/status",
                {"status": {"capacity": gone, "allocatable": gone}},
                "application/merge-patch+json",
            )
        wait_for("the Node to be clean", lambda: not self.extended_keys(), 30)


def is_native(key: str) -> bool:
    """Whether a key of the Node is one of the kubelet's own."""
    return key in NATIVE or key.startswith("hugepages-")


def _path(pod: JSON) -> str:
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
