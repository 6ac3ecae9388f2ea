"""What a sample plugin and a lab are made of, and their JSON forms. A leaf.

The supervisor hands a `PluginSpec` to a plugin process as one JSON line on its standard input, so
that a plugin's arguments can hold the resource's name or not, as real ones do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dpctl.lab.api_errors import Json

Shown = Literal["argument", "environment", "nowhere"]
"""Where an onlooker can read a plugin's resource name."""


@dataclass(frozen=True, slots=True)
class SampleDevice:
    device_id: str
    numa_nodes: tuple[int, ...] | None = None
    """None: without topology; empty: `topology: {}`."""
    health: str = "Healthy"


@dataclass(frozen=True, slots=True)
class PluginSpec:
    name: str
    """The lab's word for it."""
    resource: str
    endpoint: str
    """File name of its socket."""
    devices: tuple[SampleDevice, ...] = ()
    preferred: bool = False
    """Offers GetPreferredAllocation: packs on as few NUMA nodes as possible, natural order."""
    pre_start: bool = False
    watch_kubelet: bool = True
    """Registers again when the kubelet comes back. Off: it stays what it was."""
    register: bool = True
    serve_info: bool = False
    """Answers GetInfo on the same socket."""
    shown: Shown = "nowhere"
    command: str = "python"
    """Process name (`comm`)."""
    variable: str = "LAB_DEVICES"
    """Environment variable that containers get with the IDs."""
    device_path: str = ""
    """Device node per device in Allocate's answer, `{}` is the device's place in the list."""
    mounts: tuple[tuple[str, str], ...] = ()
    """(container path, host path), read-only."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_kind: str = ""
    """CDI names `<kind>=<ID>` in Allocate's answer."""
    allocate_error: str = ""
    """Allocate fails with this text."""
    shared_updates: bool = False
    """All ListAndWatch streams read one channel, as in many plugins: each update reaches one of
    them, or nobody when that one has left."""

    def to_json(self) -> Json:
        return asdict(self)


def plugin_from_json(document: Mapping[str, Any]) -> PluginSpec:
    """Raises TypeError, KeyError for what `to_json` did not write."""
    fields = dict(document)
    fields["devices"] = tuple(device_from_json(item) for item in fields.get("devices", ()))
    fields["mounts"] = tuple((str(a), str(b)) for a, b in fields.get("mounts", ()))
    return PluginSpec(**fields)


def device_from_json(document: Mapping[str, Any]) -> SampleDevice:
    nodes = document.get("numa_nodes")
    return SampleDevice(
        document["device_id"],
        None if nodes is None else tuple(nodes),
        document.get("health", "Healthy"),
    )


@dataclass(frozen=True, slots=True)
class LabSpec:
    """How a lab behaves; what stands in it is the scenario's."""

    scenario: str = "sample"
    """`sample` or `empty`."""
    node_name: str = "lab-0"
    kubelet_version: str = "v1.36.2"
    status_period: float = 1.0
    """Seconds between two node status syncs (10 on a real kubelet)."""
    topology_policy: str = "none"
    """topologyManagerPolicy; the device manager is the only hint provider."""
    topology_scope: str = "container"
    frozen_clock: bool = False
    """The kubelet's clock stands still until advanced: no five-minute grace ends by itself."""
    seed: int = 0
    """Of the kubelet's choices among equal devices."""
    watch_parent: bool = False
    """The supervisor ends when its standard input does."""

    def to_json(self) -> Json:
        return asdict(self)
