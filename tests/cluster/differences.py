"""What two nodes show, field by field; and what may differ, with the reason. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from .api import JSON

_NOTHING = "(nothing)"


class Difference(NamedTuple):
    """One field that is not the same; a side that lacks it says `(nothing)`."""

    path: str
    """`STEP > field > … > field`."""
    kubelet: str
    lab: str

    def __str__(self) -> str:
        return f"{self.path}\n    kubelet: {self.kubelet}\n    lab:     {self.lab}"


class Accepted(NamedTuple):
    """A difference that stays."""

    path: str
    """Glob over the path."""
    reason: str
    both: str = ""
    """What either side has to say all the same."""
    kubelet: tuple[str, ...] = ()
    """What the kubelet has to say; empty: anything."""
    minors: tuple[str, ...] = ()
    """Empty: all."""
    sometimes: bool = False
    """It falls out either way: no entry to be taken out when nothing needed it."""


REJECTED_WHILE_RUNNING = (
    "it is back: most plugins notice, one does not, two are gone",
    "the others come, too",
    "a pod takes what a refused one held",
    "its plugin is killed, it goes",
    "the kubelet starts on a checkpoint that somebody wrote in, two plugins are gone",
    "one sends its list again",
    "a pod wants what it has forgotten",
)
"""The steps from the restart that refuses the pod `several` until it is deleted."""

REGISTERED_AT_ONCE = (
    "plugins come",
    "it is back: most plugins notice, one does not, two are gone",
    "the others come, too",
    "the kubelet starts on a checkpoint that somebody wrote in, two plugins are gone",
)
"""The steps in which several plugins do. After each the kubelet writes once more, alone."""

ACCEPTED = (
    Accepted("* > node > capacity > memory", "the memory of the machine; the lab has 64 GiB"),
    Accepted("* > node > allocatable > memory", "as above, and nothing is reserved in the lab"),
    Accepted("* > node > capacity > ephemeral-storage", "the disk of the machine; 200 GiB"),
    Accepted("* > node > allocatable > ephemeral-storage", "the disk of the machine; 200 GiB"),
    Accepted(
        "* > pods > hopeful > conditions > PodScheduled > message",
        "the real scheduler counts the nodes of other tests, too",
        "1 Insufficient s.test/gpu",
    ),
    Accepted(
        "* > warnings > hopeful",
        "the real scheduler counts the nodes of other tests, too",
        "1 Insufficient s.test/gpu",
    ),
    *(
        Accepted(
            f"{step} > checkpoint > registered > *",
            "the kubelet gathers and writes its checkpoint in two steps: where several plugins"
            " register at once, the file may lack one of them until the next write; what it knows"
            " is compared below podresources > allocatable",
            kubelet=("[]", _NOTHING),
            sometimes=True,
        )
        for step in REGISTERED_AT_ONCE
    ),
    *(
        Accepted(
            f"{step} > pods > several > *",
            "the kubelet's refusal and the end of the containers race for the last word: Failed"
            " with the reason, or whatever the containers ended with",
            sometimes=True,
        )
        for step in REJECTED_WHILE_RUNNING
    ),
)


def differences(kubelet: Any, lab: Any, path: str) -> Iterator[Difference]:
    """Every field in which they differ."""
    if isinstance(kubelet, dict) and isinstance(lab, dict):
        for key in sorted({*kubelet, *lab}):
            below = f"{path} > {key}"
            if key not in kubelet or key not in lab:
                yield Difference(below, _shown(kubelet, key), _shown(lab, key))
            else:
                yield from differences(kubelet[key], lab[key], below)
    elif kubelet != lab:
        yield Difference(path, _text(kubelet), _text(lab))


def accepted_by(difference: Difference, minor: str) -> Accepted | None:
    """The table's entry for it."""
    return next((entry for entry in _entries(minor) if _covers(entry, difference)), None)


def unexplained(found: Iterable[Difference], minor: str) -> list[Difference]:
    """Those that the table does not have."""
    return [one for one in found if accepted_by(one, minor) is None]


def outlived(found: Iterable[Difference], minor: str) -> list[Accepted]:
    """Entries for a minor that nothing needs any more."""
    used = {accepted_by(one, minor) for one in found}
    return [entry for entry in _entries(minor) if entry not in used and not entry.sometimes]


def report(found: Iterable[Difference]) -> str:
    """For people."""
    return "\n".join(str(one) for one in found)


def _entries(minor: str) -> list[Accepted]:
    return [entry for entry in ACCEPTED if not entry.minors or minor in entry.minors]


def _covers(entry: Accepted, found: Difference) -> bool:
    if not fnmatchcase(found.path, entry.path):
        return False
    if entry.kubelet and found.kubelet not in entry.kubelet:
        return False
    return entry.both in found.kubelet and entry.both in found.lab


def _shown(document: JSON, key: str) -> str:
    return _text(document[key]) if key in document else _NOTHING


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
