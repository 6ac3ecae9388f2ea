"""Which resource a plugin socket serves. No API says so, hence in this order: the plugin's own
GetInfo, elimination (one listener and one name left), then the process's arguments and
environment, and the socket's name. All but GetInfo and a sound elimination are marked inferred.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dpctl.model import Process

_BY_PROCESS = 5
"""Score of a name that the process itself tells; below: only its socket's name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin socket whose resource is wanted."""

    key: str
    """Unique among the candidates: the endpoint, or the listener's inode."""
    endpoint: str
    info_name: str | None
    process: Process | None
    connected: bool | None
    """None: cannot be told (a bundle without a table)."""


@dataclass(frozen=True, slots=True)
class Service:
    resource: str
    inferred: bool
    evidence: str


def attribute(
    candidates: Collection[Candidate], tracked: Collection[str], others: Collection[str]
) -> dict[str, Service]:
    """Candidate key to the resource it serves, for all that can be told.

    `tracked`: names of the checkpoint, which a connected listener must have one of. `others`: names
    an unconnected listener could have as well (kubelet-owned keys of the Node). Foreign names are
    in neither: a hand-made key has no listener.
    """
    result: dict[str, Service] = {}
    for candidate in candidates:
        if candidate.info_name:
            result[candidate.key] = Service(candidate.info_name, False, "says so itself (GetInfo)")
    by_evidence = False
    while True:
        left = [c for c in candidates if c.key not in result]
        taken = {service.resource for service in result.values()}
        step = _eliminate(left, taken, tracked, others, sound=not by_evidence)
        if not step:
            step = _by_evidence(left, (*tracked, *others), taken)
            by_evidence = by_evidence or bool(step)
        if not step:
            return result
        result.update(step)


def _eliminate(
    left: list[Candidate],
    taken: Collection[str],
    tracked: Collection[str],
    others: Collection[str],
    *,
    sound: bool,
) -> dict[str, Service]:
    connected = [c for c in left if c.connected]
    names = [n for n in tracked if n not in taken]
    if len(connected) == 1 and len(names) == 1:
        why = "the one connected socket and the one tracked name left"
        return {connected[0].key: Service(names[0], not sound, why)}
    if connected:
        return {}
    names = list(dict.fromkeys(n for n in (*tracked, *others) if n not in taken))
    if len(left) == 1 and len(names) == 1:
        return {left[0].key: Service(names[0], True, "the one socket and the one name left")}
    return {}


def _by_evidence(
    left: list[Candidate], names: Collection[str], taken: Collection[str]
) -> dict[str, Service]:
    """The best-founded matches of one pass; a tie decides nothing. A second instance of a resource
    that has its socket already must name it in full, by its process."""
    scored: dict[str, list[tuple[int, str, str]]] = {}
    for candidate in left:
        for name in dict.fromkeys(names):
            score, why = _score(candidate, name)
            if score and (name not in taken or score >= _BY_PROCESS):
                scored.setdefault(candidate.key, []).append((score, name, why))
    best: dict[str, tuple[int, str, str]] = {}
    for key, found in scored.items():
        found.sort(key=lambda item: -item[0])
        if len(found) == 1 or found[0][0] > found[1][0]:
            best[key] = found[0]
    winners: dict[str, list[tuple[int, str]]] = {}
    for key, (score, name, _) in best.items():
        winners.setdefault(name, []).append((score, key))
    result: dict[str, Service] = {}
    for name, claims in winners.items():
        claims.sort(reverse=True)
        # Two instances may serve one name; a weaker claim by another socket waits for elimination.
        result.update(
            {
                key: Service(name, True, best[key][2])
                for score, key in claims
                if score == claims[0][0]
            }
        )
    return result


def _score(candidate: Candidate, name: str) -> tuple[int, str]:
    process = candidate.process
    if process is not None:
        if any(_mentions(argument, name) for argument in process.arguments):
            return _BY_PROCESS + 1, "named in the arguments of its process"
        if any(_mentions(value, name) for value in process.environment.values()):
            return _BY_PROCESS, "named in the environment of its process"
    return _socket_name_score(candidate.endpoint, name)


def _mentions(text: str, name: str) -> bool:
    """Whether the whole resource name stands in the text, not as a part of a longer one."""
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)", text) is not None


def _socket_name_score(endpoint: str, name: str) -> tuple[int, str]:
    stem = endpoint.rsplit("/", 1)[-1].removesuffix(".sock")
    lowered = stem.lower()
    domain, _, short = name.lower().partition("/")
    if any(decoded == name for decoded in _decoded_parts(stem)):
        return 4, "its socket's name spells the resource (base64)"
    flat = _flatten(lowered)
    if _flatten(f"{domain}/{short}") in flat:
        return 4, "its socket's name spells the resource"
    words = set(re.split(r"[^a-z0-9]+", lowered))
    vendor = domain.split(".")[0]
    short_words = {w for w in re.split(r"[^a-z0-9]+", short) if w}
    if short_words and short_words <= words:
        if vendor in words:
            return 3, "its socket's name has vendor and name of the resource"
        return 2, "its socket's name has the name of the resource"
    return 0, ""


def _flatten(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "-", text)


def _decoded_parts(stem: str) -> list[str]:
    """Readable base64 in the parts of a socket name: some plugins put the resource there."""
    found: list[str] = []
    for part in re.split(r"[-_.]", stem):
        if not 8 <= len(part) <= 512:
            continue
        try:
            found.append(base64.b64decode(part + "=" * (-len(part) % 4), validate=True).decode())
        except (binascii.Error, UnicodeDecodeError, ValueError):
            continue
    return found


def names_by_resource(services: Mapping[str, Service]) -> dict[str, list[str]]:
    """Resource to the keys of the candidates that serve it."""
    result: dict[str, list[str]] = {}
    for key, service in services.items():
        result.setdefault(service.resource, []).append(key)
    return result
