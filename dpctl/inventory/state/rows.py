"""Row types of `dpctl state`. Field names are the JSON field names, as in `inventory.rows`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from dpctl.model.statefiles import StateChecksum


class StateRow(NamedTuple):
    """One entry of a state file."""

    file: str
    entry: str
    """`policy`, `shared CPUs`, `CPUs`, `pod CPUs`, `baseline`, `NUMA node`, `memory`, `pod memory`,
    `registered`, `devices`, `claim`, `health`, `resources`, `pod resources`, `fault`, `newer`."""
    namespace: str | None
    pod: str | None
    """Null: not of a pod, or only the UID is known."""
    uid: str | None
    container: str | None
    active: bool | None
    """Whether the pod still counts; null: not of a pod, or cannot be told. Entries of pods that are
    gone stay in the device checkpoint until the kubelet writes it next: no leak."""
    resource: str | None
    """Device resource, memory type, or a claim's driver."""
    value: str | None
    """The entry in words, as the table has it."""
    cpus: tuple[int, ...] | None
    devices: tuple[str, ...] | None
    numa_nodes: tuple[int, ...] | None
    size: int | None
    """Bytes."""
    quantities: Mapping[str, str] | None
    """Requests (and limits, `limits.` in front) of in-place resize; counters of a NUMA node."""
    alloc_resp: bytes | None
    """The plugin's Allocate answer, as it came."""
    version: str | None
    """Of the file's format."""
    modified_at: float | None
    """Of the file; null: not known (a bundle)."""


class StateVerdict(StrEnum):
    GOOD = "Good"
    ABSENT = "Absent"
    """No file: the kubelet makes one."""
    REFUSED = "Refused"
    """The kubelet exits with it."""
    IGNORED = "Ignored"
    """The kubelet starts, and with nothing of it."""
    LOSES = "Loses"
    """The kubelet starts, and passes over a part of it."""
    UNREAD = "Unread"
    """This kubelet does not read the file."""
    UNKNOWN = "Unknown"


class StateCheckRow(NamedTuple):
    """Whether a kubelet starts with one state file."""

    file: str
    path: str
    version: str | None
    """Of the file's format."""
    verdict: StateVerdict
    kubelet: str
    """Version of the kubelet in question."""
    form: str | None
    """Under which it reads the file; null: under none."""
    rule: str | None
    """Which of its rules the file breaks: `decode`, `checksum`, `policy`, `cpu list`, `reserved`,
    `overlap`, `cpus`, `memory`, `numa`, `machine`."""
    checksums: tuple[StateChecksum, ...]
    """Every number of the file, with what is computed for every form in which it may be read."""
    says: str | None
    """What the kubelet logs; `…` stands for words that are not known to the letter."""
    reason: str
    """In plain words."""
    remedy: str | None
    """The safe way out."""
    notes: tuple[str, ...]
    """What is odd without stopping this kubelet, and what could not be checked."""


class StateDifferenceRow(NamedTuple):
    """Something that a state file and the running kubelet do not agree about."""

    file: str
    namespace: str | None
    pod: str | None
    uid: str | None
    container: str | None
    what: str
    """`CPUs`, `memory`, a device resource, a claim, `policy`, `shared CPUs`, `registered`."""
    in_file: str | None
    """Null: the file has no such entry."""
    live: str | None
    """Null: the kubelet does not show it."""
    state: str
    """`Leftover` (of a pod that is gone; goes with the next write) or `Mismatch`."""
    meaning: str
