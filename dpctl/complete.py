"""Values for TAB: `dpctl __complete KIND PREFIX`, and `kubectl_complete-dp` for kubectl.

Values come from files and directories: the device checkpoint, /var/log/pods, the plugin directory.
Only names of nodes need the API server. Whatever goes wrong, TAB offers nothing and says nothing.

Never loads typer or grpc; the whole process has about 44 ms. What the words of the command line
are (commands, flags) is generated: `_words.py` here, static scripts for the shells.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence

from dpctl.errors import DpctlError

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from dpctl.env import Env

# A peer may have announced IDs of 64 KiB; nobody wants those on the command line.
_LONGEST = 512
_LARGEST = 64 << 20
_NODE_TIMEOUT = 1.0

# cobra's directives, which kubectl reads from the last line.
_DIRECTIVE_FILES = 0
_DIRECTIVE_NO_FILES = 4
_DIRECTIVE_DIRECTORIES = 16


def main(arguments: Sequence[str]) -> int:
    """`__complete KIND [PREFIX]`: one value a line on stdout. Always 0."""
    kind = arguments[0] if arguments else ""
    prefix = arguments[1] if len(arguments) > 1 else ""
    _print(f"{value}\n" for value in values(kind, prefix))
    return 0


def values(kind: str, prefix: str) -> list[str]:
    """What may be typed for KIND, in natural order; empty for an unknown kind and on any failure.

    Values that a line of a shell cannot hold are left out: control characters, bidi marks, bytes
    that are no UTF-8, a leading dash.
    """
    if kind == "pods" and "/" in prefix:
        kind = "pods with namespace"
    source = _KINDS.get(kind)
    if source is None:
        return []
    try:
        found = list(source(_env()))
    except (DpctlError, OSError, ValueError, RecursionError, MemoryError):
        return []  # TAB is no place for messages; the command itself will say what is wrong
    if kind == "device-lists" and "," in prefix:
        # Those before the last comma are chosen by now.
        head = prefix[: prefix.rindex(",") + 1]
        chosen = head.split(",")
        found += [f"{head}{value}" for value in found if value not in chosen]
    return usable(found, prefix)


def usable(found: Iterable[str], prefix: str) -> list[str]:
    """Those with this prefix that can be typed, once each, in natural order."""
    from dpctl.text import natural_key

    return sorted({v for v in found if v.startswith(prefix) and _typable(v)}, key=natural_key)


def _typable(value: str) -> bool:
    return 0 < len(value) <= _LONGEST and value.isprintable() and not value.startswith("-")


def _plain(value: str) -> bool:
    """Whether a shell takes it for itself, quoted or not."""
    return all(character.isalnum() or character in "._:/@%+=,-" for character in value)


def _env() -> Env:
    from dpctl.env import Settings, find_env

    return find_env(Settings(request_timeout=_NODE_TIMEOUT), os.environ, scan=False)


def _resources(env: Env) -> Iterable[str]:
    """What plugins have registered."""
    return _registered(_checkpoint(env))


def _devices(env: Env) -> Iterable[str]:
    return announced_devices(_checkpoint(env))


def announced_devices(data: dict[str, object]) -> Iterable[str]:
    """IDs in the checkpoint's `Data`: healthy ones, and those that containers hold."""
    for ids in _registered(data).values():
        yield from _texts(ids)
    for entry in _list(data.get("PodDeviceEntries")):
        by_node = entry.get("DeviceIDs") if isinstance(entry, dict) else None
        # Before 1.20 a flat list, since then one by NUMA node (kubelet-facts §5.1).
        for ids in by_node.values() if isinstance(by_node, dict) else [by_node]:
            yield from _texts(ids)


def _checkpoint(env: Env) -> dict[str, object]:
    """`Data` of the device checkpoint, unchecked: `statefiles` and the model cost 30 ms."""
    import json

    directory = env.device_plugin_dir.value or os.devnull
    text = _read(os.path.join(directory, "kubelet_internal_checkpoint"))
    try:
        document = json.loads(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return {}
    data = document.get("Data") if isinstance(document, dict) else None
    return data if isinstance(data, dict) else {}


def _registered(data: dict[str, object]) -> dict[str, object]:
    registered = data.get("RegisteredDevices")
    return registered if isinstance(registered, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _texts(value: object) -> Iterable[str]:
    return (item for item in _list(value) if isinstance(item, str))


def _read(path: str) -> bytes:
    # O_NONBLOCK: a FIFO of that name must not hang the shell.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read(_LARGEST)


def _pods(env: Env) -> Iterable[str]:
    return [name for _, name in _pod_directories(env)]


def _pods_with_namespace(env: Env) -> Iterable[str]:
    return [f"{namespace}/{name}" for namespace, name in _pod_directories(env)]


def _namespaces(env: Env) -> Iterable[str]:
    return [namespace for namespace, _ in _pod_directories(env)]


def _pod_directories(env: Env) -> Iterable[tuple[str, str]]:
    """Namespace and name of `/var/log/pods/<namespace>_<name>_<uid>/`."""
    path = env.pod_logs.value
    if path is None:
        return []
    parts = (entry.split("_") for entry in os.listdir(path))
    return [(part[0], part[1]) for part in parts if len(part) == 3]


def _endpoints(env: Env) -> Iterable[str]:
    path = env.device_plugin_dir.value
    if path is None:
        return []
    with os.scandir(path) as entries:
        return [
            entry.name
            for entry in entries
            if entry.name != "kubelet.sock"
            and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
        ]


def _sockets(env: Env) -> Iterable[str]:
    """What `dpctl plugin` takes: a socket's name or what it serves."""
    try:
        served = list(_resources(env))
    except OSError:
        served = []  # no plugin has ever registered
    return [*_endpoints(env), *served]


def _nodes(env: Env) -> Iterable[str]:
    """This node, and whatever the API server tells within a second."""
    known = [env.node_name.value] if env.node_name.value else []
    if not env.live or (env.kubeconfig.value is None and env.kubeconfig.origin != "in-cluster"):
        return known
    from dpctl.sources.apiserver import connect

    try:
        answer = connect(env).get_json("/api/v1/nodes", [("limit", "500")])
    except DpctlError:
        return known
    items = answer.get("items") if isinstance(answer, dict) else None
    metadata = [i.get("metadata") for i in _list(items) if isinstance(i, dict)]
    return [*known, *_texts([m.get("name") for m in metadata if isinstance(m, dict)])]


_KINDS: dict[str, Callable[[Env], Iterable[str]]] = {
    "resources": _resources,
    "devices": _devices,
    "device-lists": _devices,
    "pods": _pods,
    "pods with namespace": _pods_with_namespace,
    "namespaces": _namespaces,
    "endpoints": _endpoints,
    "sockets": _sockets,
    "nodes": _nodes,
}


def kubectl_complete() -> int:
    """Entry point `kubectl_complete-dp`: the words after `dp`, the last one incomplete.

    Answers as cobra programs do: a candidate a line, its description behind a tab, and
    `:<directive>` at the end.
    """
    try:
        words = sys.argv[1:] or [""]
        candidates, directive = complete_words(words[:-1], words[-1])
        _print([*(f"{candidate}\n" for candidate in candidates), f":{directive}\n"])
    except KeyboardInterrupt:
        return 130
    return 0


def complete_words(before: Sequence[str], current: str) -> tuple[list[str], int]:
    """Candidates for `current` after the words `before`, and cobra's directive."""
    from dpctl._words import WORDS

    path, place, wanted = _walk(before)
    _, commands, options, arguments = WORDS[path]
    if wanted is not None:
        return _of_kind(wanted, current, "")
    if current.startswith("-"):
        option, equals, start = current.partition("=")
        if equals and options.get(option):
            return _of_kind(options[option], start, f"{option}=")
        return [name for name in options if name.startswith(current)], _DIRECTIVE_NO_FILES
    found: list[str] = []
    if place == 0:
        for name in commands:
            if name.startswith(current):
                found.append(f"{name}\t{WORDS[f'{path} {name}'.strip()][0]}")
    kind = _argument_kind(arguments, place)
    more, directive = _of_kind(kind, current, "") if kind else ([], _DIRECTIVE_NO_FILES)
    return found + more, directive


def _argument_kind(arguments: Sequence[str], place: int) -> str | None:
    """Kind of the argument at this place; a `...` at the end says that the one before repeats."""
    if arguments and arguments[-1] == "...":
        return arguments[min(place, len(arguments) - 2)]
    return arguments[place] if place < len(arguments) else None


def _walk(before: Sequence[str]) -> tuple[str, int, str | None]:
    """The command these words name, how many arguments it has by now, and the kind of the value
    that their last word waits for."""
    from dpctl._words import WORDS

    path, place, wanted = "", 0, None
    plain = False
    for word in before:
        _, commands, options, _ = WORDS[path]
        if wanted is not None:
            wanted = None
        elif word == "--" and not plain:
            plain = True
        elif word.startswith("-") and len(word) > 1 and not plain:
            wanted = options.get(word) or None
        elif place == 0 and word in commands:
            path = f"{path} {word}".strip()
        else:
            place += 1
    return path, place, wanted


def _of_kind(kind: str, current: str, front: str) -> tuple[list[str], int]:
    """`words:a b c` are fixed words, as are `files:a b c`, where a file may stand, too; `file` and
    `dir` are left to the shell."""
    if kind == "file":
        return [], _DIRECTIVE_FILES
    if kind == "dir":
        return [], _DIRECTIVE_DIRECTORIES
    name, _, words = kind.partition(":")
    if name == "files":
        return [word for word in words.split() if word.startswith(current)], _DIRECTIVE_FILES
    # kubectl's script for bash (cobra before 1.9) puts candidates on the line unescaped.
    offered = words.split() if name == "words" else [v for v in values(kind, current) if _plain(v)]
    return [front + word for word in offered if word.startswith(current)], _DIRECTIVE_NO_FILES


def _print(lines: Iterable[str]) -> None:
    # UTF-8 whatever the locale says: the checkpoint is JSON, and the line takes its bytes.
    data = "".join(lines).encode("utf-8", "replace")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (AttributeError, OSError, ValueError):  # closed, full, or nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
