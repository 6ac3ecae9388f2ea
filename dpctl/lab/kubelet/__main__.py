"""`python -m dpctl.lab.kubelet`: the emulated kubelet's process, its orders as JSON on stdin.

Its arguments are those of a real kubelet (`--hostname-override`, `--root-dir`, `--config`), so that
whoever looks for a kubelet's node and directories in /proc finds them; paths in them are seen from
the node's /, which the first line of stdin names.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dpctl.lab import node_tree, process
from dpctl.lab.api_errors import Json
from dpctl.lab.clock import Clock, timestamp
from dpctl.lab.kubelet import pod_resources_server, registration
from dpctl.lab.kubelet.allocation import Allocator
from dpctl.lab.kubelet.api_client import ApiClient
from dpctl.lab.kubelet.behaviour import behaviour_of
from dpctl.lab.kubelet.device_manager import DeviceManager
from dpctl.lab.kubelet.node_status import NodeStatus
from dpctl.lab.kubelet.plugin_client import PluginServer
from dpctl.lab.kubelet.pods import Pods
from dpctl.lab.kubelet.topology import TopologyManager
from dpctl.model.node import minor_version
from dpctl.topology.settings import settings_of


class Kubelet:
    def __init__(self, orders: Json) -> None:
        root = Path(orders["root"])
        self._period = float(orders["status_period"])
        self.clock = Clock(frozen=bool(orders["frozen_clock"]))
        api = ApiClient(orders["port"], orders["token"], orders["version"])
        behaviour = behaviour_of(orders["version"])
        self.pods = Pods(api, orders["node_name"], root, log, behaviour)
        self.manager = DeviceManager(
            root / "var/lib/kubelet/device-plugins",
            self.clock,
            log,
            self.pods.active,
            self.pods.refresh_health,
            behaviour.plugins_by_socket,
        )
        self.pods.manager = self.manager
        config = json.loads((root / node_tree.KUBELET_ROOT / "config.yaml").read_bytes())
        topology = TopologyManager(
            settings_of(config), node_tree.DISTANCES, minor_version(orders["version"])
        )
        choice = random.Random(orders["seed"])
        self.pods.allocator = Allocator(self.manager, topology, choice)
        self.plugins = PluginServer(self.manager, log, by_socket=behaviour.plugins_by_socket)
        self.node = NodeStatus(
            api, orders["node_name"], orders["version"], self.manager.capacity, log
        )
        self._root = root
        self._servers: list[Any] = []

    def start(self) -> None:
        """In a real kubelet's order: PodResources, checkpoint, kubelet.sock, pods, Node."""
        self._servers.append(
            pod_resources_server.serve(
                self._root / "var/lib/kubelet/pod-resources", self.pods, self.manager
            )
        )
        self.manager.read_checkpoint()
        self._servers.append(registration.serve(self.manager.directory, self.plugins, log))
        self.node.register()
        self.pods.run()
        self.pods.started.wait(30)
        self.node.sync()
        process.tell({"event": "ready"})
        while True:
            time.sleep(self._period)
            self.node.sync()

    def command(self, op: str, arguments: Json) -> Any:
        """What the lab can ask of its kubelet."""
        if op == "state":
            return self.state()
        if op == "advance":
            self.clock.advance(float(arguments["seconds"]))
        elif op == "sync":
            return self.node.sync()
        elif op == "finish":
            self.pods.finish(arguments["namespace"], arguments["name"], arguments["phase"])
        else:
            raise ValueError(op)
        return None

    def state(self) -> Json:
        """What the device manager has in memory."""
        manager, connected = self.manager, self.plugins.connected()
        with manager.lock:
            return {
                name: {
                    "healthy": sorted(manager.healthy.get(name, ())),
                    "unhealthy": sorted(manager.unhealthy.get(name, ())),
                    "running": endpoint.stopped_at is None,
                    "socket": connected.get(name),
                    "messages": manager.messages.get(name, 0),
                    "allocated": sorted(manager.allocated.get(name, ())),
                }
                for name, endpoint in manager.endpoints.items()
            }


def log(text: str) -> None:
    sys.stderr.write(f"{timestamp()} {text}\n")
    sys.stderr.flush()


def main() -> None:
    orders = process.first_line()
    process.set_command("lab-kubelet")
    kubelet = Kubelet(orders)
    threading.Thread(target=process.or_leave, args=(kubelet.start,), daemon=True).start()
    process.serve(kubelet.command)


if __name__ == "__main__":
    main()
