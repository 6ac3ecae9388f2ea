"""The scenario that a real kubelet and the lab's go through: `data/scenario.toml` as objects.

What each line of a step means on either side stands in `sides`; here is only its form.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from dpctl.lab.cues import device
from dpctl.lab.spec import PluginSpec, plugin_from_json

from . import images, pods
from .api import JSON

FILE = Path(__file__).with_name("data") / "scenario.toml"

Words = tuple[str, ...]
"""One line of a step: a verb and its arguments."""

Resources = Mapping[str, Mapping[str, int]]
"""Container to its resources."""


class PodSpec(NamedTuple):
    """A pod without the node it is for."""

    name: str
    containers: Resources
    init: Resources = MappingProxyType({})
    sidecars: Resources = MappingProxyType({})
    bound: bool = False
    """Sent to the node past the scheduler, so that the kubelet has to decide."""
    ends: bool = False
    """Its containers end by themselves, at once."""

    def named(self, node: str) -> str:
        """Its name on a node: one API server serves several."""
        return f"{self.name}-{node}"

    def manifest(self, node: str) -> JSON:
        """The object to create."""
        made = pods.manifest(
            self.named(node),
            node,
            containers=self.containers,
            init_containers=self.init,
            image=images.TRUE if self.ends else images.PAUSE,
            scheduled=not self.bound,
        )
        for name, resources in self.sidecars.items():
            first: JSON = pods.manifest("", "", containers={name: resources})["spec"]
            sidecar = {**first["containers"][0], "restartPolicy": "Always"}
            made["spec"].setdefault("initContainers", []).insert(0, sidecar)
        return made


class Step(NamedTuple):
    """What is done, and what has to come true before anybody looks."""

    say: str
    do: tuple[Words, ...]
    until: tuple[Words, ...]


class Scenario(NamedTuple):
    """Plugins and pods by name, and what happens to them."""

    plugins: Mapping[str, PluginSpec]
    pods: Mapping[str, PodSpec]
    steps: tuple[Step, ...]


def read(path: Path = FILE) -> Scenario:
    """Raises ValueError, TypeError, KeyError for what is no scenario."""
    document = tomllib.loads(path.read_text())
    plugins = [_plugin(given) for given in document["plugins"]]
    return Scenario(
        {plugin.name: plugin for plugin in plugins},
        {pod["name"]: PodSpec(**pod) for pod in document["pods"]},
        tuple(
            Step(step["say"], _lines(step["do"]), _lines(step["until"]))
            for step in document["steps"]
        ),
    )


def _plugin(given: JSON) -> PluginSpec:
    found = plugin_from_json({"endpoint": f"{given['name']}.sock", **given, "devices": ()})
    return replace(found, devices=tuple(device(text) for text in given["devices"]))


def _lines(lines: list[str]) -> tuple[Words, ...]:
    return tuple(tuple(shlex.split(line)) for line in lines)
