"""What reading a file comes to, before its content is looked at: `Loaded` or `Stopped`."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from dpctl.inventory.state.rows import StateVerdict
from dpctl.model.statefiles import StateChecksum, StateFault

Content = TypeVar("Content")
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
