"""`--from BUNDLE`: the facts of a captured node as a Snapshot, as if it were live.

Which file of a bundle answers for which source. How files are opened is `files`', what is in
them their sources' and `records`'. Every file is optional; one that is broken is a failed
source, and the rest goes on. Times come from the files' contents, never from the files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from typing import Any, TypeVar

from dpctl.bundle.files import BundleFiles, open_bundle
from dpctl.bundle.folders import Broken, read_plugins, read_registry, read_sys
from dpctl.bundle.machine import one_machine
from dpctl.bundle.records import (
    Meta,
    parse_cdi,
    parse_host_paths,
    parse_kubelet_pods,
    parse_meta,
    parse_pod_dirs,
    parse_pod_names,
    parse_proc,
    parse_sockets,
)
from dpctl.env import Env
from dpctl.errors import BadDataError, DpctlError, UsageError
from dpctl.model import (
    Allocatable,
    Checkpoint,
    CpuTree,
    DirectoryListing,
    Kubelet,
    Node,
    NumaTree,
    PluginSocket,
    Pod,
    PodResources,
    Process,
    RegistrySocket,
    Snapshot,
    SocketState,
    SocketTable,
    Source,
    SourceRow,
)
from dpctl.sources.json_fields import parse_json

META = "meta"
PROC = "proc"
"""Names of the SourceRows of `meta.json` and `proc.json`: present only when those are broken."""

_DEVICE_PLUGIN_DIR = "/var/lib/kubelet/device-plugins"
_LISTING = "device-plugins/ls.txt"
_SOCKETS = "device-plugins/sockets.json"
_KUBELET_SOCKET = "kubelet.sock"
_CHECKPOINT = "kubelet_internal_checkpoint"
_T = TypeVar("_T")


def read_bundle(env: Env, want: Collection[Source]) -> Snapshot:
    """The wanted sources out of the bundle that `env` names.

    Raises UnreachableError (no such path), DeniedError and BadDataError for the bundle as a whole;
    a file that is missing or broken becomes a SourceRow instead.
    """
    path = env.bundle.value
    if path is None:
        raise UsageError("no bundle is named", "name one with --from")
    named = env.node_name.value if env.node_name.origin == "flag" else None
    files = open_bundle(path, max_file_size=env.max_message_size)
    return one_machine(_Reader(files, frozenset(want), named).snapshot())


def read_bundle_file(env: Env, name: str) -> bytes | None:
    """One file by its name in the layout (`kubelet/cpu_manager_state`); None: not in the bundle.

    Errors as `read_bundle`, and DpctlError for a file that may not be read.
    """
    path = env.bundle.value
    if path is None:
        raise UsageError("no bundle is named", "name one with --from")
    return open_bundle(path, max_file_size=env.max_message_size).read(name)


def _order(row: SourceRow) -> int:
    return list(Source).index(Source(row.name)) if row.name in list(Source) else -1


class _MissingError(Exception):
    """Nothing in the bundle answers for a source; `args`: why, where that is not plain."""


class _Reader:
    def __init__(self, files: BundleFiles, want: frozenset[Source], node_name: str | None) -> None:
        self._files = files
        self._want = want
        self._named = node_name
        self._rows: list[SourceRow] = []
        self._place = ""
        self._broken: list[SourceRow] = []

    def snapshot(self) -> Snapshot:
        from dpctl.sources.kubelet_config import fields_of_flags
        from dpctl.sources.node_json import device_classes_from_json

        meta = self._meta
        node = self._take(Source.NODE, "api/node.json", self._node)
        kubelets, processes = self._processes() if self._wants_processes() else (None, {})
        # Of several kubelets, nothing here says whose configuration it is.
        arguments = kubelets[0].arguments if kubelets and len(kubelets) == 1 else ()
        return Snapshot(
            collected_at=meta.collected_at,
            from_bundle=True,
            pod_resources=self._take(
                Source.POD_RESOURCES, "podresources/list.json", self._pod_resources
            ),
            allocatable=self._take(
                Source.ALLOCATABLE, "podresources/allocatable.json", self._allocatable
            ),
            checkpoint=self._take(
                Source.CHECKPOINT, f"device-plugins/{_CHECKPOINT}", self._checkpoint
            ),
            directory=self._take(Source.DIRECTORY, _LISTING, self._listing),
            plugins=self._take(Source.PLUGINS, "plugins", self._plugins),
            registry=self._take(Source.REGISTRY, "plugins_registry", self._registry),
            sockets=self._take(Source.SOCKETS, _SOCKETS, self._socket_table),
            processes=processes,
            node=node,
            pods=self._take(Source.PODS, "api/pods.json", self._pods),
            device_classes=self._take(
                Source.DEVICE_CLASSES,
                "api/deviceclasses.json",
                lambda: device_classes_from_json(self._json("api/deviceclasses.json")),
            ),
            numa=self._take(Source.NUMA, "sys/devices/system/node", self._numa),
            cpus=self._take(Source.CPUS, "sys/devices/system/cpu", self._cpus),
            pci=self._take(Source.PCI, "sys/bus/pci/devices", self._pci),
            pod_names=self._take(
                Source.POD_NAMES,
                "podnames.json",
                lambda: parse_pod_names(self._needed("podnames.json")),
            ),
            host_paths=self._take(
                Source.HOST_PATHS,
                "hostpaths.json",
                lambda: parse_host_paths(self._needed("hostpaths.json")),
            ),
            cdi=self._take(Source.CDI, "cdi.json", lambda: parse_cdi(self._needed("cdi.json"))),
            kubelets=kubelets,
            kubelet_config=self._take(
                Source.KUBELET, "kubelet/config.json", partial(self._kubelet_config, arguments)
            ),
            kubelet_flags=fields_of_flags(arguments),
            kubelet_pods=self._take(
                Source.PODS_API,
                "podsapi.json",
                lambda: parse_kubelet_pods(self._needed("podsapi.json")),
            ),
            pod_dirs=self._take(
                Source.POD_DIRS,
                "poddirs.json",
                lambda: parse_pod_dirs(self._needed("poddirs.json")),
            ),
            **self._state_files(),
            boot_id=meta.boot_id,
            kubelet_version=meta.kubelet_version or (node.kubelet_version if node else None),
            sources=tuple(sorted(self._rows, key=_order)),
        )

    # --- bookkeeping ---

    def _take(self, source: Source, name: str, read: Callable[[], _T]) -> _T | None:
        """Reads a wanted source and notes how it went. `read` may name another file in `_place`."""
        if source not in self._want:
            return None
        self._place = name
        started = time.monotonic()
        found: _T | None = None
        try:
            found = read()
        except _MissingError as e:
            reason = str(e) or f"the bundle has no {name}"
            row = SourceRow(source, self._files.where(self._place), "missing", reason)
        except DpctlError as e:
            row = self._failed(source, self._place, e)
        else:
            seconds = time.monotonic() - started
            row = SourceRow(source, self._files.where(self._place), "read", seconds=seconds)
        # A broken file among many of one source gets a row of its own, behind the source's.
        self._rows += [row, *self._broken]
        self._broken.clear()
        return found

    def _failed(self, source: str, name: str, e: DpctlError) -> SourceRow:
        where = self._files.where(name)
        return SourceRow(source, where, "failed", e.message, e.hint, int(e.code))

    def _needed(self, name: str) -> bytes:
        data = self._files.read(name)
        if data is None:
            raise _MissingError
        return data

    def _json(self, name: str) -> object:
        return parse_json(self._needed(name), name)

    def _first(self, *candidates: tuple[str, Callable[[bytes], _T]]) -> _T:
        """What the first file says that the bundle has."""
        for name, parse in candidates:
            self._place = name
            data = self._files.read(name)
            if data is not None:
                return parse(data)
        raise _MissingError

    # --- auxiliary files ---

    @cached_property
    def _meta(self) -> Meta:
        try:
            data = self._files.read("meta.json")
            return Meta() if data is None else parse_meta(data)
        except DpctlError as e:
            self._rows.append(self._failed(META, "meta.json", e))
            return Meta()

    @cached_property
    def _recorded(self) -> tuple[DirectoryListing | None, SocketTable | None]:
        """`sockets.json`. Raises."""
        return parse_sockets(self._needed(_SOCKETS))

    def _wants_processes(self) -> bool:
        return bool(self._want & {Source.SOCKETS, Source.KUBELET})

    def _processes(self) -> tuple[tuple[Kubelet, ...] | None, Mapping[int, Process]]:
        try:
            data = self._files.read("proc.json")
            return (None, {}) if data is None else parse_proc(data)
        except DpctlError as e:
            self._rows.append(self._failed(PROC, "proc.json", e))
            return None, {}

    # --- sources ---

    def _pod_resources(self) -> PodResources:
        from dpctl.sources.podresources import parse_list_binpb, parse_list_json

        # The answer's own bytes before their rendering.
        return self._first(
            ("podresources/list.binpb", parse_list_binpb),
            ("podresources/list.json", parse_list_json),
        )

    def _allocatable(self) -> Allocatable:
        from dpctl.sources.podresources import parse_allocatable_binpb, parse_allocatable_json

        return self._first(
            ("podresources/allocatable.binpb", parse_allocatable_binpb),
            ("podresources/allocatable.json", parse_allocatable_json),
        )

    def _listing(self) -> DirectoryListing:
        """The directory with inodes where `sockets.json` has it, else as `ls` printed it."""
        from dpctl.sources.plugin_sockets import parse_ls

        try:
            recorded = self._recorded[0]
        except (DpctlError, _MissingError):
            recorded = None  # its own source, the socket table, says what is wrong
        if recorded is not None:
            self._place = _SOCKETS
            return recorded
        return parse_ls(self._needed(_LISTING), _DEVICE_PLUGIN_DIR)

    def _listed(self) -> DirectoryListing | None:
        """The listing as a help for another source, which does without it where it is broken."""
        place = self._place
        try:
            return self._listing()
        except (DpctlError, _MissingError):
            return None
        finally:
            self._place = place

    def _checkpoint(self) -> Checkpoint:
        from dpctl.statefiles.device_checkpoint import parse_checkpoint

        data = self._needed(f"device-plugins/{_CHECKPOINT}")
        listing = self._listed()
        entry = listing.entry(_CHECKPOINT) if listing else None
        return parse_checkpoint(data, modified=entry.modified if entry else None)

    def _node(self) -> Node:
        from dpctl.sources.node_json import node_from_json

        node = node_from_json(self._json("api/node.json"), name=self._named or self._meta.node_name)
        if self._named not in (None, node.name):
            raise BadDataError(
                f"it holds Node {node.name}, not {self._named}", "leave --node out, or correct it"
            )
        return node

    def _pods(self) -> tuple[Pod, ...]:
        """Those bound to the bundle's node: `kubectl get pods -A` has every node's."""
        from dpctl.sources.node_json import pods_from_json

        bound = [pod for pod in pods_from_json(self._json("api/pods.json")) if pod.node_name]
        name = self._node_name()
        nodes = sorted({pod.node_name for pod in bound if pod.node_name})
        if name is None and len(nodes) > 1:
            raise BadDataError(
                f"it holds pods of {len(nodes)} nodes, and nothing says which one is meant",
                "name it with --node, or nodeName in meta.json",
            )
        return tuple(pod for pod in bound if name in (None, pod.node_name))

    def _node_name(self) -> str | None:
        if self._named or self._meta.node_name:
            return self._named or self._meta.node_name
        try:
            return self._node().name
        except (DpctlError, _MissingError):
            return None

    def _socket_table(self) -> SocketTable:
        table = self._recorded[1]
        if table is None:
            raise _MissingError("the socket table was not read when the bundle was made")
        return table

    def _kubelet_config(self, arguments: tuple[str, ...]) -> Mapping[str, object]:
        from dpctl.sources.kubelet_config import parse_kubelet_config, with_flags

        name = "kubelet/config.json"
        return with_flags(parse_kubelet_config(self._needed(name), name), arguments)

    def _state_files(self) -> dict[str, Any]:
        from dpctl.sources.state_files import STATE_FILES

        found: dict[str, Any] = {}
        for source, file in STATE_FILES.items():
            name = f"kubelet/{source}"
            read = partial(self._state, name, file.parse)
            found[file.field] = self._take(source, name, read)
        return found

    def _state(self, name: str, parse: Callable[[bytes, float | None], _T]) -> _T:
        return parse(self._needed(name), None)

    def _numa(self) -> NumaTree:
        from dpctl.sources.sysfs import parse_numa

        # All or nothing: without its cpulist a NUMA node would look like one without CPUs.
        return parse_numa(self._sys("sys/devices/system/node", None))

    def _cpus(self) -> CpuTree:
        from dpctl.sources.sysfs_cpus import parse_cpus

        return parse_cpus(self._sys("sys/devices/system/cpu", None))

    def _pci(self) -> Mapping[str, int | None]:
        from dpctl.sources.sysfs import parse_pci

        return parse_pci(self._sys("sys/bus/pci/devices", self._note_broken(Source.PCI)))

    def _sys(self, folder: str, broken: Broken | None) -> dict[str, bytes]:
        found = read_sys(self._files, folder, broken)
        if not found:
            raise _MissingError
        return found

    def _plugins(self) -> tuple[PluginSocket, ...]:
        found = read_plugins(self._files, self._note_broken(Source.PLUGINS))
        if not found:
            raise _MissingError
        listing = self._listed()
        for entry in listing.entries if listing else ():
            if entry.kind == "socket" and entry.name != _KUBELET_SOCKET:
                unasked = PluginSocket(entry.name, SocketState.UNKNOWN, None, None, "not recorded")
                found.setdefault(entry.name, unasked)
        return tuple(found[endpoint] for endpoint in sorted(found))

    def _registry(self) -> tuple[RegistrySocket, ...]:
        found = read_registry(self._files, self._note_broken(Source.REGISTRY))
        if not found:
            raise _MissingError
        return found

    def _note_broken(self, source: Source) -> Broken:
        return lambda name, error: self._broken.append(self._failed(source, name, error))
