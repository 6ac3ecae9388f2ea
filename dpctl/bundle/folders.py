"""The sources that are a folder of a bundle: recorded answers of plugins, registrations, `sys/`.

One broken file of many is handed to `broken` and the rest goes on; the rows are `reader`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from dpctl.bundle.files import BundleFiles, MissingError
from dpctl.bundle.records import folder_endpoint, parse_socket_state, root_of, with_file
from dpctl.errors import BadDataError, DpctlError
from dpctl.model import CpuTree, NumaTree, PluginSocket, RegistrySocket, SocketState

PLUGIN_FILES = ("options.json", "devices.json", "info.json", "state.json")
# What counts below a folder of sys/: a link there hides something; others (`cpu0`, `subsystem`) are
# sysfs's own ways from one device to the next.
_SYS_NAMES = {
    "sys/devices/system/node": re.compile(
        r"/(node[0-9]+|hugepages-[0-9]+kB|cpulist|meminfo|distance|online|nr_hugepages)$"
    ),
    "sys/devices/system/cpu": re.compile(
        r"/(cpu/(cpu[0-9]+|online|offline)|topology|core_id|physical_package_id)$"
    ),
    "sys/bus/pci/devices": re.compile(r"/(pci/devices/[^/]+|numa_node)$"),
}

Broken = Callable[[str, DpctlError], None]
"""Takes the file's name in the bundle, and what is wrong with it."""
_T = TypeVar("_T")


def read_plugins(files: BundleFiles, broken: Broken) -> dict[str, PluginSocket]:
    """Endpoint to what `plugins/<endpoint>/` recorded of it; empty: nothing is recorded."""
    records: dict[str, list[str]] = {}
    for entry in files.entries("plugins"):
        _, _, rest = entry.name.partition("/")
        folder, _, file = rest.partition("/")
        if file in PLUGIN_FILES:
            records.setdefault(folder, []).append(file)
    return {
        folder_endpoint(folder): _plugin(files, folder, present, broken)
        for folder, present in records.items()
    }


def _plugin(files: BundleFiles, folder: str, present: list[str], broken: Broken) -> PluginSocket:
    """Who answered was serving, unless `state.json` says how the socket behaved instead."""
    from dpctl.sources import plugin_sockets as sources

    endpoint = folder_endpoint(folder)

    def parsed(file: str, parse: Callable[[bytes], _T]) -> _T | None:
        if file not in present:
            return None
        name = f"plugins/{folder}/{file}"
        try:
            return parse(_needed(files, name))
        except DpctlError as e:
            broken(name, e)
            return None

    options = parsed("options.json", sources.parse_options_json)
    devices = parsed("devices.json", sources.parse_devices_json)
    info = parsed(
        "info.json",
        lambda data: with_file(
            sources.parse_info_json(data, endpoint), root_of(data, "the plugin's registration")
        ),
    )
    stated = parsed("state.json", parse_socket_state)
    if stated is not None:
        state, detail = stated
    elif options is None and devices is None and info is None:
        state, detail = SocketState.UNKNOWN, "its record is broken"
    else:
        state, detail = SocketState.SERVING, None
    return PluginSocket(endpoint, state, options, info, detail, devices)


def read_registry(files: BundleFiles, broken: Broken) -> tuple[RegistrySocket, ...]:
    """`plugins_registry/<socket>.json`: the GetInfo answer, or `{"state": …, "detail": …}`."""
    found: list[RegistrySocket] = []
    for entry in files.entries("plugins_registry"):
        if not entry.name.endswith(".json"):
            continue
        path = entry.name.removeprefix("plugins_registry/").removesuffix(".json")
        try:
            found.append(_registration(_needed(files, entry.name), path))
        except DpctlError as e:
            broken(entry.name, e)
            found.append(RegistrySocket(path, SocketState.UNKNOWN, detail="its record is broken"))
    return tuple(found)


def _registration(data: bytes, path: str) -> RegistrySocket:
    from dpctl.sources.registry import parse_registry_json

    root = root_of(data, "the socket's record")
    if root.at("state").value is not None:  # no field of GetInfo
        state, detail = parse_socket_state(data)
        return with_file(RegistrySocket(path, state, detail=detail), root)
    return with_file(parse_registry_json(data, path), root)


def read_numa(files: BundleFiles) -> NumaTree:
    """Raises MissingError, as all of `sys/`. All or nothing: without its cpulist a NUMA node would
    look like one without CPUs."""
    from dpctl.sources.sysfs import parse_numa

    return parse_numa(_read_sys(files, "sys/devices/system/node", None))


def read_cpus(files: BundleFiles) -> CpuTree:
    from dpctl.sources.sysfs_cpus import parse_cpus

    return parse_cpus(_read_sys(files, "sys/devices/system/cpu", None))


def read_pci(files: BundleFiles, broken: Broken) -> Mapping[str, int | None]:
    from dpctl.sources.sysfs import parse_pci

    return parse_pci(_read_sys(files, "sys/bus/pci/devices", broken))


def _read_sys(files: BundleFiles, folder: str, broken: Broken | None) -> dict[str, bytes]:
    """The files below a folder of `sys/` that `sources.sysfs` reads, by path below `sys/`.

    Where `broken` is None every one counts: BadDataError when one is a link.
    """
    names = _SYS_NAMES[folder]
    entries = [entry for entry in files.entries(folder) if names.search(entry.name)]
    links = [entry for entry in entries if entry.kind != "file"]
    if links:
        more = f" ({len(links) - 1} more like it)" if len(links) > 1 else ""
        error = BadDataError(
            f"{links[0].name} is a {links[0].kind}{more}",
            "links in a bundle are not followed: put the files themselves there",
        )
        if broken is None:
            raise error
        broken(folder, error)
    found = [entry.name for entry in entries if entry.kind == "file"]
    if not found:
        raise MissingError
    return {name.removeprefix("sys/"): _needed(files, name) for name in found}


def _needed(files: BundleFiles, name: str) -> bytes:
    data = files.read(name)
    if data is None:
        raise BadDataError(f"{name} vanished while the bundle was read")
    return data
