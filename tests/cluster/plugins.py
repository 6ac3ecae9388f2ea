"""A device plugin that does what a test tells it: the lab's, run in a node's namespace.

Upstream's sample plugin has two devices and no will of its own. This one changes health, lists,
topology and answers on cue, registers anew or keeps quiet after a kubelet restart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from dpctl.lab.spec import PluginSpec, SampleDevice

from .forked import Forked, Spawned
from .node import REPOSITORY, Node
from .processes import ClusterError, Daemon, wait_for

ANSWER_SECONDS = 30.0
PLUGIN_DIR = "/var/lib/kubelet/device-plugins"


def devices(names: Sequence[str], numa: Sequence[int | None] = ()) -> tuple[SampleDevice, ...]:
    """Healthy devices; `numa` gives each one's NUMA node, None and left out: no topology."""
    nodes = [*numa, *([None] * (len(names) - len(numa)))]
    return tuple(
        SampleDevice(name, None if node is None else (node,))
        for name, node in zip(names, nodes, strict=True)
    )


class LabPlugin(Daemon):
    """A `python -m dpctl.lab.plugin`; it ends with the test runner at the latest."""

    def __init__(
        self,
        node: Node,
        spec: PluginSpec,
        arguments: Sequence[str] = (),
        directory: str = PLUGIN_DIR,
        forked: Forked | None = None,
    ) -> None:
        self.node = node
        self.spec = spec
        self._directory = directory
        # What stands on the command line of a forked process is not its own.
        self._forked = forked if not arguments else None
        self._lock = threading.Lock()
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0
        self.events: list[dict[str, Any]] = []
        plane = node.plane
        name = f"plugin-{node.name}-{len(plane.daemons)}"
        command = [*node.nsenter, sys.executable, "-m", "dpctl.lab.plugin", *arguments]
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
        log = plane.path / "log" / f"{name}.log"
        super().__init__(name, command, log, plane.groups, {"PYTHONPATH": path})
        plane.daemons[name] = self

    def start(self) -> None:
        """Start it and tell it what it is."""
        if self.alive:
            raise ClusterError(f"{self.name} runs already")
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = (
                self._forked.plugin(self.log)
                if self._forked is not None
                else subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._env,
                    cwd="/",
                    start_new_session=True,
                )
            )
        self.events = []
        self._send({"spec": self.spec.to_json(), "directory": self._directory})
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def wait_registered(self, seconds: float = 30.0) -> None:
        """Wait until the kubelet has accepted the registration."""
        wait_for(
            f"{self.spec.resource} to be registered on {self.node.name}",
            lambda: any(event["event"] == "registered" for event in self.events),
            seconds,
            [self],
        )

    def refusal(self, seconds: float = 30.0) -> str:
        """Wait for the kubelet's refusal; what it said."""
        found = wait_for(
            f"{self.spec.resource} to be refused on {self.node.name}",
            lambda: next((e for e in self.events if e["event"] == "refused"), None),
            seconds,
            [self],
        )
        return str(found["error"])

    def set_health(self, device: str, health: str) -> None:
        """Send the list anew with another health word for one device."""
        self.ask("set-health", device=device, health=health)

    def set_devices(self, listed: Sequence[SampleDevice]) -> None:
        """Send another list."""
        self.ask("set-devices", devices=[asdict(device) for device in listed])

    def ask(self, op: str, **arguments: Any) -> Any:
        """The plugin's answer to one of its commands."""
        with self._lock:
            self._number += 1
            number = self._number
        self._send({"id": number, "op": op, **arguments})
        answer = wait_for(
            f"{self.name} to answer {op}",
            lambda: self._answers.pop(number, None),
            ANSWER_SECONDS,
            [self],
            interval=0.01,
        )
        if "error" in answer:
            raise ClusterError(f"{self.name}: {op}: {answer['error']}")
        return answer["value"]

    def _send(self, document: Mapping[str, Any]) -> None:
        assert self._process is not None
        stdin = self._process.stdin
        assert stdin is not None
        with self._lock:
            if stdin.closed:
                raise ClusterError(f"{self.name} has ended: {self.log_tail()}")
            stdin.write(json.dumps(document).encode() + b"\n")
            stdin.flush()

    def _read(self, process: subprocess.Popen[bytes] | Spawned) -> None:
        """Take what it says until it ends, and close both pipes: a run has some hundred plugins."""
        assert process.stdout is not None
        assert process.stdin is not None
        with process.stdout:
            for line in process.stdout:
                document = json.loads(line)
                if "event" in document:
                    self.events.append(document)
                else:
                    self._answers[document["id"]] = document
        # What could not be written to it any more is given up.
        with self._lock, suppress(BrokenPipeError):
            process.stdin.close()
