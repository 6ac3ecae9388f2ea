"""`--from BUNDLE`: the facts of a captured node as a Snapshot, as if it were live.

Which file of a bundle answers for which source. How files are opened is `files`', what is in
them their sources' and `records`'. Every file is optional; one that is broken is a failed
source, and the rest goes on. Times come from the files' contents, never from the files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from dpctl.bundle.files import BundleFiles, MissingError
from dpctl.bundle.folders import (
    Broken,
    read_cpus,
    read_numa,
    read_pci,
    read_plugins,
    read_registry,
)
from dpctl.bundle.machine import one_machine, pods_of_node
from dpctl.bundle.meta import Meta, Record, parse_meta
from dpctl.bundle.opened import opened
from dpctl.bundle.records import (
    parse_cdi,
    parse_host_paths,
    parse_kubelet_pods,
    parse_pod_dirs,
    parse_pod_names,
    parse_proc,
    parse_sockets,
)
from dpctl.env import Env
from dpctl.errors import BadDataError, DpctlError
from dpctl.model import (
    Allocatable,
    Checkpoint,
    DirectoryListing,
    Kubelet,
    Node,
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

if TYPE_CHECKING:
    from dpctl.sources.state_files import StateFile

META = "meta"
PROC = "proc"
"""Names of the SourceRows of `meta.json` and `proc.json`: present only when those are broken."""

_DEVICE_PLUGIN_DIR = "/var/lib/kubelet/device-plugins"
_LISTING = "device-plugins/ls.txt"
_SOCKETS = "device-plugins/sockets.json"
_KUBELET_SOCKET = "kubelet.sock"
_CHECKPOINT = "kubelet_internal_checkpoint"
_T = TypeVar("_T")


def read_bundle(env: Env, want: Collection[Source], recorded: Collection[Source] = ()) -> Snapshot:
    """The wanted sources out of the bundle that `env` names; of one that was put together by hand,
    those in `recorded` too.

    Raises UnreachableError (no such path), DeniedError and BadDataError for the bundle as a whole;
    a file that is missing or broken becomes a SourceRow instead.
    """
    named = env.node_name.value if env.node_name.origin == "flag" else None
    reader = _Reader(opened(env), frozenset(want), frozenset(recorded), named)
    snap = reader.snapshot()
    return snap if snap.complete else one_machine(snap)  # looked at when it was made


def _order(row: SourceRow) -> int:
    return list(Source).index(Source(row.name)) if row.name in list(Source) else -1


class _Reader:
    def __init__(
        self,
        files: BundleFiles,
        want: frozenset[Source],
        recorded: frozenset[Source],
        node_name: str | None,
    ) -> None:
        self._files = files
        self._want = want
        self._named = node_name
        self._rows: list[SourceRow] = []
        self._place = ""
        self._broken: list[SourceRow] = []
        self._fared = self._meta.sources
        if self._fared is None:
            self._want |= recorded
        elif self._want & {Source.PLUGINS, Source.SOCKETS}:
            self._want |= {Source.DIRECTORY}  # as `collect` does

    def snapshot(self) -> Snapshot:
        from dpctl.sources.kubelet_config import fields_of_flags
        from dpctl.sources.node_json import device_classes_from_json

        meta = self._meta
        node = self._take(Source.NODE, "api/node.json", self._node)
        wants = {Source.SOCKETS} if self._fared is not None else {Source.SOCKETS, Source.KUBELET}
        kubelets, processes = self._processes() if self._want & wants else (None, {})
        # Of several kubelets, nothing here says whose configuration it is.
        arguments = kubelets[0].arguments if kubelets and len(kubelets) == 1 else ()
        return Snapshot(
            collected_at=meta.collected_at,
            from_bundle=True,
            complete=meta.sources is not None,
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
            numa=self._take(Source.NUMA, "sys/devices/system/node", lambda: read_numa(self._files)),
            cpus=self._take(Source.CPUS, "sys/devices/system/cpu", lambda: read_cpus(self._files)),
            pci=self._take(
                Source.PCI,
                "sys/bus/pci/devices",
                lambda: read_pci(self._files, self._note_broken(Source.PCI)),
            ),
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
            kubelet_version=self._kubelet_version(node),
            sources=tuple(sorted(self._rows, key=_order)),
        )

    # --- bookkeeping ---

    def _take(self, source: Source, name: str, read: Callable[[], _T]) -> _T | None:
        """Reads a wanted source and notes how it went. `read` may name another file in `_place`."""
        if source not in self._want:
            return None
        if self._fared is not None:
            record = self._fared.get(source)
            if record is None:
                return None
            if not record.row.read:
                self._rows.append(record.row)
                return None
        self._place = name
        started = time.monotonic()
        found: _T | None = None
        try:
            found = read()
        except MissingError as e:
            left_out = self._meta.left_out_of(name)
            reason = str(e) or left_out or f"the bundle has no {name}"
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
            raise MissingError
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
        raise MissingError

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

    def _record(self, source: Source) -> Record:
        return (self._fared or {}).get(source) or Record(SourceRow(source, "", "missing"))

    def _kubelet_version(self, node: Node | None) -> str | None:
        if self._fared is not None and Source.KUBELET not in self._want:
            return None  # looked for with it alone
        said = self._meta.kubelet_version
        return said or (node.kubelet_version if node and self._fared is None else None)

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

        version = self._meta.pod_resources_version or "v1"
        # The answer's own bytes before their rendering.
        return self._first(
            ("podresources/list.binpb", partial(parse_list_binpb, version=version)),
            ("podresources/list.json", partial(parse_list_json, version=version)),
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
        except (DpctlError, MissingError):
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
        except (DpctlError, MissingError):
            return None
        finally:
            self._place = place

    def _checkpoint(self) -> Checkpoint:
        from dpctl.statefiles.device_checkpoint import parse_checkpoint

        record = self._record(Source.CHECKPOINT)
        if record.absent:
            return Checkpoint((), {}, 0, 0, absent=True)
        data = self._needed(f"device-plugins/{_CHECKPOINT}")
        if record.modified is not None:
            return parse_checkpoint(data, modified=record.modified)
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
        from dpctl.sources.node_json import pods_from_json

        return pods_of_node(pods_from_json(self._json("api/pods.json")), self._node_name())

    def _node_name(self) -> str | None:
        if self._named or self._meta.node_name:
            return self._named or self._meta.node_name
        try:
            return self._node().name
        except (DpctlError, MissingError):
            return None

    def _socket_table(self) -> SocketTable:
        table = self._recorded[1]
        if table is None:
            raise MissingError("the socket table was not read when the bundle was made")
        return table

    def _kubelet_config(self, arguments: tuple[str, ...]) -> Mapping[str, object]:
        from dpctl.sources.kubelet_config import parse_kubelet_config, with_flags

        name = "kubelet/config.json"
        return with_flags(parse_kubelet_config(self._needed(name), name), arguments)

    def _state_files(self) -> dict[str, Any]:
        from dpctl.sources.state_files import STATE_FILES

        found: dict[str, Any] = {}
        for source, file in STATE_FILES.items():
            read = partial(self._state, source, file)
            found[file.field] = self._take(source, f"kubelet/{source}", read)
        if self._meta.state_root is not None:
            found["state_root"] = self._meta.state_root
        return found

    def _state(self, source: Source, file: StateFile) -> object:
        record = self._record(source)
        if record.absent:
            return file.absent
        return file.parse(self._needed(f"kubelet/{source}"), record.modified)

    def _plugins(self) -> tuple[PluginSocket, ...]:
        found = read_plugins(self._files, self._note_broken(Source.PLUGINS))
        if self._fared is not None:
            return tuple(found[endpoint] for endpoint in sorted(found))
        if not found:
            raise MissingError
        listing = self._listed()
        for entry in listing.entries if listing else ():
            if entry.kind == "socket" and entry.name != _KUBELET_SOCKET:
                unasked = PluginSocket(entry.name, SocketState.UNKNOWN, None, None, "not recorded")
                found.setdefault(entry.name, unasked)
        return tuple(found[endpoint] for endpoint in sorted(found))

    def _registry(self) -> tuple[RegistrySocket, ...]:
        found = read_registry(self._files, self._note_broken(Source.REGISTRY))
        if not found and self._fared is None:
            raise MissingError
        return found

    def _note_broken(self, source: Source) -> Broken:
        return lambda name, error: self._broken.append(self._failed(source, name, error))
