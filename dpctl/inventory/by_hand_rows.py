"""The rows of `dpctl plugin`: what one plugin answered, and what came of a wait.

Field names are the JSON field names (in camelCase) and so are stable.
"""

from __future__ import annotations

from typing import NamedTuple

from dpctl.inventory.rows import AskedCdi, PluginAnswer


class OptionsRow(NamedTuple):
    """What a plugin offers."""

    socket: str
    resource: str | None
    """Null: could not be told."""
    resource_inferred: bool
    pre_start: bool
    """The kubelet calls PreStartContainer before each start of a container."""
    preferred_allocation: bool
    """The kubelet asks it which devices fit together."""


class AllocationRow(NamedTuple):
    """An Allocate by hand."""

    socket: str
    resource: str | None
    devices: tuple[str, ...]
    answer: PluginAnswer | None
    """What a container would get, each thing against the host; null: there is none."""
    cdi: tuple[AskedCdi, ...]
    """Its CDI names against the host."""
    pre_started: bool
    """PreStartContainer was called, too, and answered."""
    refused: str | None
    """Why a kubelet would refuse the pod over this answer."""
    problems: tuple[str, ...]
    """What of it is wrong here."""


class ListedRow(NamedTuple):
    """One device of a plugin's list."""

    device: str
    health: str
    """As sent; only `Healthy` counts as healthy."""
    numa_nodes: tuple[int, ...] | None
    """As sent, numbers below 0 too; null: no topology; empty: a topology without nodes."""
    entries: int
    """How often the list has it; the last one counts."""
    notes: tuple[str, ...]


class DeviceListRow(NamedTuple):
    """A plugin's list as a whole."""

    socket: str
    resource: str | None
    kubelet: str | None
    """`Connected`, `NotConnected` when it was asked for; null: could not be told."""
    message_bytes: int
    limit_bytes: int
    """What a kubelet takes; a larger message ends the stream."""
    accepted: bool
    """Whether a kubelet can take the message at all."""
    capacity: int
    """What a kubelet counts from it."""
    allocatable: int
    findings: tuple[str, ...]
    devices: tuple[ListedRow, ...]


class Check(NamedTuple):
    """One rule that the kubelet relies on."""

    check: str
    good: bool
    detail: str | None
    """What breaks it."""


class KubeletChoice(NamedTuple):
    """What the kubelet does by itself, for a pod with one container that asks for so many."""

    admitted: bool
    devices: tuple[str, ...]
    """One choice; among equal devices it picks at random."""
    eligible: tuple[str, ...]
    """All that the choice is from."""
    numa_nodes: tuple[int, ...] | None
    """Where the topology manager wants them; null: anywhere."""
    asks: bool
    """Whether it would ask the plugin: not when exactly the aligned devices do."""
    message: str | None
    """Why it would refuse the pod."""
    policy: str
    policy_known: bool


class PreferenceRow(NamedTuple):
    """One what-if."""

    socket: str
    resource: str | None
    size: int
    available: tuple[str, ...]
    must: tuple[str, ...]
    offered: bool
    """By the plugin's options: else the kubelet never asks it."""
    answer: tuple[str, ...] | None
    """As the plugin gave it; null: not asked, or it answered for no container."""
    checks: tuple[Check, ...]
    good: bool
    """Whether every check holds; true where the plugin was not asked."""
    takes: tuple[str, ...] | None
    """What the kubelet would take with this answer, one choice where it has to fill up."""
    kubelet: KubeletChoice | None
    """Without the plugin; null: nothing could be said."""
    kubelet_unknown: str | None
    """Why nothing could be said."""


class WaitRow(NamedTuple):
    """How a wait stands, or how it ended."""

    resource: str
    condition: str
    """`allocatable`, `healthy` or `gone`."""
    wanted: int | None
    """How many; null for `gone`."""
    seen: int | None
    """How many there are; null: could not be told."""
    met: bool
    waiting_for: str | None
    """What is missing, in words; null once met."""
