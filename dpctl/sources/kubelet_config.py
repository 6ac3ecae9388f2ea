"""A kubelet's configuration: its file, drop-ins, and the flags that win over both.

YAML or JSON, also as `configz` gives it. What a policy means is the topology room's; only names and
values here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from dpctl.env import Env, resolve_inside
from dpctl.env.kubelets import parse_flags
from dpctl.errors import BadDataError, UnreachableError
from dpctl.sources.files import file_error, read_bounded
from dpctl.sources.yaml_document import parse_document

_LARGEST = 4 << 20
_MOST_DROP_INS = 256
_MOST_DIRECTORIES = 64

# Flag to field of KubeletConfiguration (kubelet-facts §9.1); the second group are maps.
_FIELDS = {
    "topology-manager-policy": "topologyManagerPolicy",
    "topology-manager-scope": "topologyManagerScope",
    "cpu-manager-policy": "cpuManagerPolicy",
    "memory-manager-policy": "memoryManagerPolicy",
    "reserved-cpus": "reservedSystemCPUs",
    "node-status-update-frequency": "nodeStatusUpdateFrequency",
}
_MAPS = {
    "topology-manager-policy-options": "topologyManagerPolicyOptions",
    "cpu-manager-policy-options": "cpuManagerPolicyOptions",
    "system-reserved": "systemReserved",
    "kube-reserved": "kubeReserved",
    "feature-gates": "featureGates",
}


def read_kubelet_config(
    env: Env, path: str | None, arguments: Sequence[str] = ()
) -> Mapping[str, object]:
    """The configuration in force, as far as file, drop-ins and command line tell.

    `path` is where dpctl finds the file (None: the one that `env` found), `arguments` the kubelet's
    command line. A field that nobody sets is absent: the kubelet's default. A kubelet that runs
    without a file has its flags alone. Raises UnreachableError (neither file nor command line),
    DeniedError, BadDataError.
    """
    path = path or env.kubelet_config.value
    flags = parse_flags(arguments[1:])
    config: dict[str, object] = {}
    if path is not None:
        config = parse_kubelet_config(read_bounded(path, _LARGEST), path)
    elif not arguments:
        raise UnreachableError(
            "no kubelet configuration found",
            f"tried: {', '.join(env.kubelet_config.tried) or 'nothing'}; `dpctl env` shows all",
        )
    if folder := flags.get("config-dir"):
        for name in _drop_ins(_beside(env, folder, path, flags.get("config"))):
            config = merged(config, parse_kubelet_config(read_bounded(name, _LARGEST), name))
    return with_flags(config, arguments)


def _beside(env: Env, folder: str, path: str | None, given: str | None) -> str:
    """A directory that the kubelet names, as dpctl finds it: the way its file was found.

    `path` is where dpctl reads the file that the kubelet calls `given`.
    """
    root = env.host_root.value or "/"
    if path and given and given.startswith("/") and path.endswith(given):
        root = path.removesuffix(given) or "/"
    if root == "/":
        return folder
    try:
        return resolve_inside(root, folder)
    except OSError as e:
        raise file_error(e, f"{root.rstrip('/')}{folder}") from e


def _drop_ins(folder: str) -> list[str]:
    """`*.conf` below it, in the order the kubelet merges them: by path."""
    found: list[str] = []
    pending = [folder]
    directories = 0
    while pending:
        directories += 1
        here = pending.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.name.endswith(".conf"):
                        found.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise file_error(e, here) from e
        if directories > _MOST_DIRECTORIES or len(found) > _MOST_DROP_INS:
            raise BadDataError(f"{folder} holds too much for a kubelet's drop-in directory")
    return sorted(found)


def parse_kubelet_config(data: bytes, where: str = "kubelet configuration") -> dict[str, object]:
    """A KubeletConfiguration in YAML or JSON, or configz's `{"kubeletconfig": {…}}`.

    Raises BadDataError, with the line where the text is bad.
    """
    document = parse_document(data, where)
    if isinstance(document, dict) and isinstance(document.get("kubeletconfig"), dict):
        document = document["kubeletconfig"]
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BadDataError(f"{where}: not a KubeletConfiguration")
    kind = document.get("kind", "KubeletConfiguration")
    if kind != "KubeletConfiguration":
        raise BadDataError(f"{where}: kind is {str(kind)[:80]!r}, not KubeletConfiguration")
    return document


def merged(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """A drop-in laid over a configuration: maps are merged, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def fields_of_flags(arguments: Sequence[str]) -> dict[str, str]:
    """Fields that the kubelet's command line sets, whatever the file says, each with its flag."""
    flags = parse_flags(arguments[1:])
    return {field: flag for flag, field in (_FIELDS | _MAPS).items() if flag in flags}


def with_flags(config: Mapping[str, object], arguments: Sequence[str]) -> dict[str, object]:
    """The command line wins over the file; of feature gates each by itself."""
    flags = parse_flags(arguments[1:])
    result = dict(config)
    for flag, field in _FIELDS.items():
        if flag in flags:
            result[field] = flags[flag]
    for flag, field in _MAPS.items():
        if flag not in flags:
            continue
        given: dict[str, object] = {
            name.strip(): value.strip()
            for part in flags[flag].split(",")
            for name, equals, value in (part.partition("="),)
            if equals and name.strip()
        }
        if flag == "feature-gates":
            old = result.get(field)
            gates = {
                name: str(value).lower() in ("true", "1", "t") for name, value in given.items()
            }
            result[field] = {**(old if isinstance(old, Mapping) else {}), **gates}
        else:
            result[field] = given
    return result
