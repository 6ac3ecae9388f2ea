"""A served scenario: a TOML file that says what a sample plugin lists, and what happens to it. Pure
but for one reader.

    resource = "sample.example/gpu"
    devices = ["gpu-0@0", "gpu-1@1!Unhealthy"]

    [[cues]]
    after = 10
    do = ["health gpu-0 Unhealthy"]
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dpctl.env.reading import read_limited
from dpctl.errors import BadDataError, DeniedError, UnreachableError, UsageError
from dpctl.lab.api_errors import Json
from dpctl.lab.sample_plugin import METHODS
from dpctl.lab.spec import PluginSpec, SampleDevice
from dpctl.text import did_you_mean

SHIPPED = Path(__file__).parent / "scenarios"
_LARGEST = 16 << 20
_MOST_DEVICES = 200_000
_LARGEST_NODE = 2**31
_LONGEST_PAUSE = 7 * 86400.0
_SHORTEST_ROUND = 0.1
_MOST_MISTAKES = 5
_MOST_NEAR = 1000
"""IDs that a wrong one is compared with."""
_LONGEST_QUOTED = 1 << 16
_LARGEST_LIST = 64 << 20
"""Characters of all IDs: sixteen times what a kubelet takes."""
_DEVICE = re.compile(r"([^@!]*)(@[-\d,]*)?(!.*)?", re.DOTALL)
_ENDPOINT = re.compile(r"[^/\0]{1,80}")
_TEXTS = ("resource", "endpoint", "variable", "device_path", "cdi_kind", "allocate_error")
_FLAGS = ("preferred", "pre_start", "serve_info", "watch_kubelet", "shared_updates")
_OTHERS = ("about", "devices", "count", "id", "numa", "replicas", "mounts", "annotations")
_KEYS = frozenset((*_TEXTS, *_FLAGS, *_OTHERS, "cues", "repeat"))

VERBS = {
    "health": "health DEVICE WORD: only Healthy counts as healthy",
    "devices": "devices DEVICE...: the whole list anew, each as ID[@NUMA,NUMA][!HEALTH]",
    "add": "add DEVICE...",
    "remove": "remove ID...",
    "allocate-error": "allocate-error [TEXT]: Allocate fails with it; without a text no more",
    "hang": "hang METHOD: its calls get no answer",
    "answer": "answer METHOD: they do again",
    "end-streams": "end-streams: every open ListAndWatch ends",
    "down": "down: the socket goes, as if the plugin had ended",
    "up": "up: it is served and registered again",
    "register": "register: once more, on the same socket",
    "state": "state: devices, streams, and how registering went, as JSON",
    "exit": "exit [CODE]: a clean end",
    "crash": "crash: SIGKILL, the socket file stays",
}
"""What can be cued, by its first word."""


class Cue(NamedTuple):
    after: float
    """Seconds since the cue before; of the first since the plugin was first registered."""
    do: tuple[str, ...]


class Served(NamedTuple):
    spec: PluginSpec
    about: str
    cues: tuple[Cue, ...]
    repeat: bool
    """The cues begin anew after the last one."""


def device(text: str) -> SampleDevice:
    """`ID[@NUMA,NUMA][!HEALTH]`. Raises ValueError."""
    found = _DEVICE.fullmatch(text)
    try:
        name, nodes, health = found.groups() if found is not None else (text, "@?", None)
        numa = None if nodes is None else tuple(int(n) for n in nodes[1:].split(",") if n)
    except ValueError as error:
        raise ValueError(
            f"device {text[:80]!r}: behind @ stand NUMA nodes, as in nic-0@0 or nic-0@0,1"
        ) from error
    if any(abs(node) > _LARGEST_NODE for node in numa or ()):
        raise ValueError(f"no NUMA node: {text[:80]!r}")
    return SampleDevice(name, numa, health[1:] if health else "Healthy")


def shipped() -> list[str]:
    """Names of the scenarios that come with dpctl."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def find_scenario(name: str) -> Path:
    """The file that is meant: a path, or the name of one that is shipped. Raises UsageError."""
    if "/" in name or name.endswith(".toml"):
        return Path(name)
    if name not in shipped():
        raise UsageError(
            f"no scenario {name[:80]!r}",
            f"one of {', '.join(shipped())}, or a file: ./{name[:40] or 'my'}.toml",
        )
    return SHIPPED / f"{name}.toml"


def read_text(path: Path) -> str:
    """Raises UnreachableError, DeniedError, BadDataError."""
    try:
        return read_limited(str(path), _LARGEST).decode()
    except PermissionError as error:
        raise DeniedError(f"{path} may not be read", "look at its rights: ls -l") from error
    except OSError as error:
        raise UnreachableError(
            f"{path} cannot be read: {error.strerror or error}",
            f"a scenario is a TOML file, or one of {', '.join(shipped())}",
        ) from error
    except UnicodeDecodeError as error:
        raise BadDataError(f"{path} is no UTF-8", "a scenario is a TOML file") from error


def parse_scenario(text: str, where: str) -> Served:
    """Raises BadDataError, which names the key that is wrong, or all cues that are."""
    near, good = "", "gpus"
    try:
        return _served(tomllib.loads(text))
    except _MistakeError as error:
        why, near, good = str(error), error.near, error.good
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = _words_of(error)
    raise BadDataError(
        f"{where} is no scenario: {why}",
        f"{near}`dpctl plugin serve {good} --print` shows a good one",
    )


class _MistakeError(ValueError):
    """What is wrong in a file, what was meant, and which shipped scenario shows it done well."""

    def __init__(self, why: str, near: str = "", good: str = "gpus") -> None:
        super().__init__(why)
        self.near = near
        self.good = good


def _words_of(error: Exception) -> str:
    why = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
    return why[:300]


def _served(document: Mapping[str, Any]) -> Served:
    unknown = sorted(set(document) - _KEYS)
    if unknown:
        wrong = " and ".join(repr(key[:60]) for key in unknown[:3])
        raise _MistakeError(
            f"{wrong} {'is' if len(unknown) == 1 else 'are'} not one of {', '.join(sorted(_KEYS))}",
            did_you_mean(unknown[0], _KEYS),
        )
    texts = {key: _of(document, key, str) for key in _TEXTS if key in document}
    flags = {key: _of(document, key, bool) for key in _FLAGS if key in document}
    resource = str(document["resource"])
    name = resource.rpartition("/")[2] or resource
    given = {"endpoint": f"{name}.sock", "serve_info": True, **texts, **flags}
    bad = _endpoint_problem(given["endpoint"])
    if bad is not None:
        raise ValueError(bad)
    if re.search(r"[{}]", str(given.get("device_path", "")).replace("{}", "")):
        raise ValueError("device_path has braces other than {}")
    spec = PluginSpec(
        name=name,
        devices=tuple(_devices(document)),
        mounts=tuple((str(a), str(b)) for a, b in document.get("mounts", ())),
        annotations={str(k): str(v) for k, v in document.get("annotations", {}).items()},
        **given,
    )
    cues = _cues(document.get("cues", ()), spec.devices)
    about = _of(document, "about", str) if "about" in document else ""
    repeat = "repeat" in document and _of(document, "repeat", bool) and bool(cues)
    if repeat and sum(cue.after for cue in cues) < _SHORTEST_ROUND:
        raise ValueError(f"repeat: a round of the cues takes less than {_SHORTEST_ROUND} seconds")
    return Served(spec, about, cues, repeat)


def check_endpoint(name: str) -> None:
    """Raises UsageError for what no plugin may call its socket."""
    bad = _endpoint_problem(name)
    if bad is not None:
        raise UsageError(f"--endpoint: {bad}", "for example: --endpoint sample.sock")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _endpoint_problem(name: str) -> str | None:
    if not _ENDPOINT.fullmatch(name) or name in (".", ".."):
        return "endpoint is no file name of at most 80 characters"
    if not _is_utf8(name):
        return "endpoint is no UTF-8, which no kubelet could be told"
    if name in ("kubelet.sock", "kubelet_internal_checkpoint"):
        return f"endpoint {name} is the kubelet's own"
    return None


def _of(document: Mapping[str, Any], key: str, kind: type) -> Any:
    if not isinstance(document[key], kind):
        words = {str: "a text", bool: "true or false", int: "a whole number", list: "a list"}
        raise ValueError(f"{key} is not {words[kind]}")
    return document[key]


def _devices(document: Mapping[str, Any]) -> list[SampleDevice]:
    """Those that are listed, those that are counted, and their replicas."""
    listed = _of(document, "devices", list) if "devices" in document else []
    found = [device(text) for text in listed]
    count = _of(document, "count", int) if "count" in document else 0
    numa = _of(document, "numa", int) if "numa" in document else 0
    replicas = _of(document, "replicas", int) if "replicas" in document else 1
    if not 0 <= count <= _MOST_DEVICES or not 0 <= numa <= 64 or replicas < 1:
        raise ValueError(f"count is at most {_MOST_DEVICES}, numa 64, replicas at least 1")
    pattern = _of(document, "id", str) if "id" in document else "device-{}"
    if count * len(pattern) + sum(len(one.device_id) for one in found) > _LARGEST_LIST // replicas:
        raise ValueError(f"the IDs have more than {_LARGEST_LIST >> 20} MiB")
    for number in range(count):
        nodes = (number * numa // count,) if numa else None
        found.append(SampleDevice(pattern.replace("{}", str(number)), nodes))
    if len(found) * replicas > _MOST_DEVICES:
        raise ValueError(f"more than {_MOST_DEVICES} devices")
    if replicas == 1:
        return found
    return [
        SampleDevice(f"{one.device_id}::{number}", one.numa_nodes, one.health)
        for one in found
        for number in range(replicas)
    ]


def _cues(items: Sequence[Mapping[str, Any]], devices: Sequence[SampleDevice]) -> tuple[Cue, ...]:
    """All of them, or a _MistakeError that names each one that is wrong."""
    known = {one.device_id for one in devices}
    found: list[Cue] = []
    wrong: list[str] = []
    near = ""
    for number, item in enumerate(items, 1):
        try:
            found.append(_cue(item, known))
        except (ValueError, TypeError, KeyError) as error:
            wrong.append(f"cue {number}: {_words_of(error)}")
            near = near or getattr(error, "near", "")
    if wrong:
        more = f"; and {len(wrong) - _MOST_MISTAKES} more" if len(wrong) > _MOST_MISTAKES else ""
        raise _MistakeError("; ".join(wrong[:_MOST_MISTAKES]) + more, near, "flapping")
    return tuple(found)


def _cue(item: Mapping[str, Any], known: set[str]) -> Cue:
    """`known`: the IDs that are listed by then, and behind it."""
    after = item["after"]
    if isinstance(after, bool) or not isinstance(after, int | float):
        raise ValueError("after is not a number of seconds")
    if not 0 <= after <= _LONGEST_PAUSE:
        raise ValueError("after is not a number of seconds up to a week")
    lines = tuple(str(line) for line in _of(item, "do", list))
    for line in lines:
        _follow(*parse_cue(line), known)
    return Cue(float(after), lines)


def _follow(verb: str, words: Sequence[str], known: set[str]) -> None:
    """What a line makes of the IDs that are listed. Raises _MistakeError for one that is not."""
    if verb == "devices":
        known.clear()
    if verb in ("devices", "add"):
        known.update(device(word).device_id for word in words)
    for name in words[:1] if verb == "health" else words if verb == "remove" else ():
        if name not in known:
            near = did_you_mean(name, sorted(known)[:_MOST_NEAR])
            raise _MistakeError(f"no device {name[:80]!r} is listed by then", near)
    if verb == "remove":
        known.difference_update(words)


def repeated(served: Served) -> list[str]:
    """IDs that are listed more than once, in their order."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for one in served.spec.devices:
        if one.device_id in seen:
            twice[one.device_id] = None
        seen.add(one.device_id)
    return list(twice)


def parse_cue(line: str) -> tuple[str, list[str]]:
    """A verb and its words. Raises ValueError for what is none."""
    words = _words(line)
    verb = words[0] if words else ""
    if verb not in VERBS:
        raise _MistakeError(
            f"{verb[:60]!r} is not one of {', '.join(VERBS)}", did_you_mean(verb, VERBS)
        )
    rest = words[1:]
    needed = {"health": 2, "hang": 1, "answer": 1}.get(verb)
    if needed is not None and len(rest) != needed:
        raise ValueError(VERBS[verb])
    if verb in ("hang", "answer") and rest[0] not in METHODS:
        raise ValueError(f"{rest[0]!r} is not one of {', '.join(METHODS)}")
    if verb in ("devices", "add"):
        for text in rest:
            device(text)
    if verb == "exit" and rest and not (rest[0].isascii() and rest[0].isdigit()):
        raise ValueError(VERBS[verb])
    return verb, rest


def _words(line: str) -> list[str]:
    """As a shell takes them. `shlex` needs a minute for a word of 2 MiB: only where it must."""
    if not any(mark in line for mark in "'\"\\"):
        return re.findall(r"[^ \t\r\n]+", line)
    if len(line) > _LONGEST_QUOTED:
        raise ValueError(f"a line with quotes has at most {_LONGEST_QUOTED} characters")
    return shlex.split(line)


def as_json(devices: Sequence[SampleDevice]) -> list[Json]:
    """For a runner's `set-devices`."""
    return [
        {"device_id": d.device_id, "numa_nodes": d.numa_nodes, "health": d.health} for d in devices
    ]
