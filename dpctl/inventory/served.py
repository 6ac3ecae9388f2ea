"""Which resource a plugin socket serves. No API says so, hence in this order: the plugin's own
GetInfo, elimination (one listener and one name left), then the process's arguments and
environment, and the socket's name. All but GetInfo and a sound elimination are marked inferred.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from dpctl.model import Process


class Candidate(NamedTuple):
    """A plugin socket whose resource is wanted."""

    key: str
    """Unique among the candidates: the endpoint, or the listener's inode."""
    endpoint: str
    info_name: str | None
    process: Process | None
    connected: bool | None
    """None: cannot be told (a bundle without a table)."""


Proof = Literal["info", "process", "elimination", "name"]


class Service(NamedTuple):
    resource: str
    inferred: bool
    evidence: str
    proof: Proof = "name"
    """What it rests on. The name of a socket (or what such a name left over) is good enough to
    show, never to remove another key by."""


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
            result[candidate.key] = Service(
                candidate.info_name, False, "says so itself (GetInfo)", "info"
            )
    by_evidence = by_name = False
    while True:
        left = [c for c in candidates if c.key not in result]
        taken = {service.resource for service in result.values()}
        step = _eliminate(left, taken, tracked, others, sound=not by_evidence, by_name=by_name)
        if not step:
            step = _by_evidence(left, (*tracked, *others), taken)
            by_evidence = by_evidence or bool(step)
            by_name = by_name or any(service.proof == "name" for service in step.values())
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
    by_name: bool,
) -> dict[str, Service]:
    proof: Proof = "name" if by_name else "elimination"
    connected = [c for c in left if c.connected]
    names = [n for n in tracked if n not in taken]
    if len(connected) == 1 and len(names) == 1:
        why = "the one connected socket and the one tracked name left"
        return {connected[0].key: Service(names[0], not sound, why, proof)}
    if connected:
        return {}
    names = list(dict.fromkeys(n for n in (*tracked, *others) if n not in taken))
    if len(left) == 1 and len(names) == 1:
        return {left[0].key: Service(names[0], True, "the one socket and the one name left", proof)}
    return {}


def _by_evidence(
    left: list[Candidate], names: Collection[str], taken: Collection[str]
) -> dict[str, Service]:
    """The best-founded matches of one pass; a tie decides nothing. A second instance of a resource
    that has its socket already must name it in full, by its process."""
    known = dict.fromkeys(names)
    free = [name for name in known if name not in taken]
    look_at_names = len(left) * len(free) <= _MOST_PAIRS
    scored: dict[str, list[tuple[int, str, str]]] = {}
    for candidate in left:
        found = _by_process(candidate.process, known)
        if not found and look_at_names:
            scores = ((name, *_socket_name_score(candidate.endpoint, name)) for name in free)
            found = [(score, name, why) for name, score, why in scores if score]
        if found:
            scored[candidate.key] = found
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
                key: Service(name, True, best[key][2], _proof(score))
                for score, key in claims
                if score == claims[0][0]
            }
        )
    return result


def _proof(score: int) -> Proof:
    return "process" if score >= _PROCESS_SCORE else "name"


# A claim below this rests on the name of a socket.
_PROCESS_SCORE = 5

# Which names a process mentions: whole words of its texts, so that a name is never found as a part
# of a longer one (`nvidia.com/gpu` in `nvidia.com/gpu.shared`).
_WORD = re.compile(r"[A-Za-z0-9._/-]+")

# A hostile Node may have 10^5 keys and a directory 10^3 sockets: beyond this the sockets' names,
# which have to be held against every key, are not looked at.
_MOST_PAIRS = 500_000


def _by_process(process: Process | None, known: Mapping[str, None]) -> list[tuple[int, str, str]]:
    if process is None:
        return []
    named = [w for w in _words(process.arguments) if w in known]
    if named:
        return [(6, name, "named in the arguments of its process") for name in named]
    named = [w for w in _words(process.environment.values()) if w in known]
    return [(5, name, "named in the environment of its process") for name in named]


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word.rstrip(".") for text in texts for word in _WORD.findall(text))


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
