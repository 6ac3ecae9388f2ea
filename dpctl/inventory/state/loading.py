"""What reading a file comes to, before its content is looked at: `Loaded` or `Stopped`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from dpctl.inventory.state.reader import StateReader
from dpctl.inventory.state.rows import StateVerdict
from dpctl.model.statefiles import (
    CpuAssignments,
    MemoryAssignments,
    StateChecksum,
    StateFault,
    checksum_of,
)

Content = TypeVar("Content")
Pinned = TypeVar("Pinned", CpuAssignments, MemoryAssignments)
CORRUPT = "checkpoint is corrupted"
UNTOLD = "…"
"""Stands for Go's words where they are not known to the letter."""


class Loaded(NamedTuple, Generic[Content]):
    content: Content
    form: str
    """`v1` to `v4`."""
    lost: str | None = None
    """What this reader passes over."""


class Stopped(NamedTuple):
    """The kubelet, or this reading of it, ends here."""

    rule: str
    says: str | None
    """The error inside of the kubelet's sentence."""
    reason: str
    verdict: StateVerdict = StateVerdict.REFUSED
    remedy: str | None = None
    """None: the file's usual one."""


def undecodable(fault: StateFault, prefix: str = "") -> Stopped:
    """A file that is no JSON, or not of the shape that is wanted."""
    verdict = StateVerdict.REFUSED if fault.certain else StateVerdict.UNKNOWN
    return Stopped("decode", f"{prefix}{fault.kubelet or UNTOLD}", fault.words, verdict)


def numbers_text(checksum: StateChecksum | None) -> str:
    if checksum is None:
        return "the number does not fit"
    return (
        f"{checksum.key} says {checksum.stored}, the content gives {checksum.computed}:"
        " the file was changed, or is damaged"
    )


# -- what the CPU and the memory manager have in common ----------------------------------------


def fits(checksums: Iterable[StateChecksum], *forms: str) -> bool:
    return any(one.form in forms and one.fits for one in checksums)


def load_data(
    manager: str,
    form: str,
    data: Pinned | None,
    fault: StateFault | None,
    checksums: tuple[StateChecksum, ...],
    reader: StateReader,
) -> Loaded[Pinned] | Stopped:
    """The inner half, which 1.37 reads where a file has one: it does not fall back. `manager`:
    `cpu` or `memory`."""
    prefix = f"could not load {form} checkpoint: "
    if fault is not None:
        inner = f"{prefix}failed to deserialize {manager} manager checkpoint data: "
        return undecodable(fault, inner)
    if not fits(checksums, form) or data is None:
        return Stopped("checksum", prefix + CORRUPT, numbers_text(checksum_of(checksums, form)))
    return with_pods(manager, data, form, reader)


def with_pods(manager: str, content: Pinned, form: str, reader: StateReader) -> Loaded[Pinned]:
    if content.pods and not reader.pod_level:
        return _passed_over(manager, content, form, "PodLevelResourceManagers is off")
    return Loaded(content, form)


def without_pods(manager: str, content: Pinned, form: str) -> Loaded[Pinned]:
    """As a form that has none."""
    if content.pods:
        return _passed_over(manager, content, form, f"the file is read as {form}")
    return Loaded(content, form)


def _passed_over(manager: str, content: Pinned, form: str, why: str) -> Loaded[Pinned]:
    what = "CPUs are" if manager == "cpu" else "memory is"
    return Loaded(content._replace(pods={}), form, f"pod-level {what} passed over: {why}")


def check_policy(
    reader: StateReader, field: str, default: str, recorded: str, prefix: str = ""
) -> tuple[Stopped | None, list[str]]:
    """The policy that the file was written under against the configured one; and what is odd."""
    configured = reader.text(field, default)
    if configured is None:
        return None, ["the configured policy is not known: taken to be the recorded one"]
    if configured == recorded:
        return None, []
    says = (
        f'{prefix}configured policy "{configured}" differs from state checkpoint policy'
        f' "{recorded}"'
    )
    stopped = Stopped(
        "policy",
        says,
        f"{field} was changed from {recorded or 'nothing'} to {configured}, and the file stayed",
        remedy=f"either set {field} back to {recorded}; or, to change it,",
    )
    return stopped, []
