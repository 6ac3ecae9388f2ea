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

SHIPPED = Path(__file__).parent / "scenarios"
_LARGEST = 16 << 20
_MOST_DEVICES = 200_000
_LARGEST_NODE = 2**31
_LONGEST_PAUSE = 7 * 86400.0
_SHORTEST_ROUND = 0.1
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
    if found is None:
        raise ValueError(f"no device: {text!r}")
    name, nodes, health = found.groups()
    numa = None if nodes is None else tuple(int(n) for n in nodes[1:].split(",") if n)
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
    """Raises BadDataError, which names the key that is wrong."""
    try:
        return _served(tomllib.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise BadDataError(
            f"{where} is no scenario: {why[:300]}",
            "`dpctl plugin serve gpus --print` shows a good one",
        ) from error


def _served(document: Mapping[str, Any]) -> Served:
    unknown = sorted(set(document) - _KEYS)
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of {', '.join(sorted(_KEYS))}")
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
    cues = tuple(_cue(item) for item in document.get("cues", ()))
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


def _cue(item: Mapping[str, Any]) -> Cue:
    after = item["after"]
    if isinstance(after, bool) or not isinstance(after, int | float):
        raise ValueError("after is not a number of seconds")
    if not 0 <= after <= _LONGEST_PAUSE:
        raise ValueError("after is not a number of seconds up to a week")
    lines = tuple(str(line) for line in _of(item, "do", list))
    for line in lines:
        parse_cue(line)
    return Cue(float(after), lines)


def parse_cue(line: str) -> tuple[str, list[str]]:
    """A verb and its words. Raises ValueError for what is none."""
    words = _words(line)
    verb = words[0] if words else ""
    if verb not in VERBS:
        raise ValueError(f"cue {verb[:60]!r} is not one of {', '.join(VERBS)}")
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
