"""One collection from the live node: which source is read when, and what became of it.

The one place that tolerates failure: a source that fails becomes a `SourceRow` with its reason, and
the rest goes on. No joins here, and nothing is decided.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from dpctl import ahead
from dpctl.child import Child
from dpctl.collect.fields import API, LOCAL, STATE_FILES
from dpctl.collect.threads import side_by_side
from dpctl.collect.whose import check_node, place_of
from dpctl.env import Env
from dpctl.errors import DpctlError
from dpctl.model import (
    DirectoryListing,
    Kubelet,
    Node,
    PodResources,
    Snapshot,
    Source,
    SourceRow,
)
from dpctl.model.node import minor_version
from dpctl.sources import evidence as kept
from dpctl.sources.evidence import Evidence
from dpctl.sources.files import NoFileError

# GetAllocatableResources could crash a kubelet of 1.21 (a pointer that was never set); its gate was
# on by default from 1.23.
_ALLOCATABLE_SINCE = 23


_Part = tuple[dict[str, Any], dict[Source, SourceRow]]
"""What one task of a collection found: fields of the snapshot, and how each source fared."""


class Live:
    """One collection from the live node. Every `read` fills a field and notes how it went."""

    def __init__(
        self,
        env: Env,
        want: frozenset[Source],
        again: bool,
        keep: Evidence | None = None,
        told: Callable[[SourceRow], None] | None = None,
    ) -> None:
        """`again`: see `collect`. `keep` takes what a bundle keeps as it came, `told` hears of
        each source, from any thread."""
        self.env = env
        self.want = want
        self.again = again
        self.keep = keep
        self.told = told
        self.fields: dict[str, Any] = {}
        self.rows: dict[Source, SourceRow] = {}

    def run(self) -> Snapshot:
        started = time.time()
        self._read_files()
        self._read_peers()
        check_node(self)
        order = [source for source in Source if source in self.rows]
        return Snapshot(
            collected_at=started, sources=tuple(self.rows[s] for s in order), **self.fields
        )

    # -- files, and the machine's own tables -------------------------------------------------------

    def _read_files(self) -> None:
        env = self.env
        directory = env.device_plugin_dir.value or ""
        if self.want & {Source.DIRECTORY, Source.PLUGINS, Source.SOCKETS}:
            from dpctl.sources.plugin_sockets import list_directory

            self.read(Source.DIRECTORY, "directory", directory, lambda: list_directory(directory))
        if Source.CHECKPOINT in self.want:
            from dpctl.sources.checkpoint import checkpoint_path, read_checkpoint

            where, keep = checkpoint_path(directory), self._keeps(kept.CHECKPOINT)
            self.read(
                Source.CHECKPOINT,
                "checkpoint",
                where,
                lambda: read_checkpoint(directory, keep=keep),
            )
        if Source.SOCKETS in self.want:
            self._read_sockets()
        if Source.KUBELET in self.want:
            self._read_kubelet()
        if Source.POD_NAMES in self.want:
            from dpctl.sources.podnames import read_pod_names

            logs = env.pod_logs.value or ""
            self.read(Source.POD_NAMES, "pod_names", logs, lambda: read_pod_names(logs))
        if self.want & {Source.CDI, Source.HOST_PATHS}:
            from dpctl.collect.asked import read_asked

            read_asked(env.host_root.value or "/", self.want, self.fields, self.read)
        sys_root = env.sys.value or "/sys"
        tree = self.keep.keep_tree if self.keep is not None else None
        if Source.NUMA in self.want:
            from dpctl.sources.sysfs import read_numa

            where = f"{sys_root}/devices/system/node"
            self.read(Source.NUMA, "numa", where, lambda: read_numa(sys_root, keep=tree))
        if Source.CPUS in self.want:
            from dpctl.sources.sysfs_cpus import read_cpus

            where = f"{sys_root}/devices/system/cpu"
            self.read(Source.CPUS, "cpus", where, lambda: read_cpus(sys_root, keep=tree))
        if Source.PCI in self.want:
            from dpctl.sources.sysfs import read_pci

            where = f"{sys_root}/bus/pci/devices"
            self.read(Source.PCI, "pci", where, lambda: read_pci(sys_root, keep=tree))
        if self.want & {*STATE_FILES, Source.POD_DIRS}:
            self._read_state()

    def _read_state(self) -> None:
        from dpctl.sources.state_files import read_pod_dirs, read_state, state_path

        root, host = self.env.kubelet_root.value or "", self.env.host_root.value or "/"
        # As the kubelet itself calls it, for the words that it would log.
        self.fields["state_root"] = "/" + root.removeprefix(host).strip("/")
        for source in STATE_FILES:
            if source in self.want:
                keep = self._keeps(kept.state_file(source))
                read = partial(read_state, root, source, keep=keep)
                self.read(source, LOCAL[source], state_path(root, source), read)
        if Source.POD_DIRS in self.want:
            self.read(Source.POD_DIRS, "pod_dirs", f"{root}/pods", lambda: read_pod_dirs(root))

    def _read_sockets(self) -> None:
        from dpctl.sources.proc import find_kubelets, kubelet_from_pid, read_socket_table

        def read() -> Any:
            table, processes = read_socket_table(self.env)
            self.fields["processes"] = processes
            return table

        self.read(Source.SOCKETS, "sockets", "the kernel's unix-socket table", read)
        kubelets = {k.pid: k for k in find_kubelets(self.env)}
        self.fields["kubelets"] = (*kubelets.values(),)
        pid = self._kubelet_pid()
        if pid is not None and pid not in kubelets:
            found = kubelet_from_pid(self.env, pid)
            if found is not None:
                kubelets[pid] = found
        self.fields["kubelets"] = tuple(kubelets.values())

    def _kubelet_pid(self) -> int | None:
        """The process behind kubelet.sock."""
        table, directory = self.fields.get("sockets"), self.fields.get("directory")
        if table is None or directory is None:
            return None
        known = [k.pid for k in self.fields.get("kubelets", ())]
        pid: int | None = table.kubelet_pid(directory.entry("kubelet.sock"), known)
        return pid

    def look_for_kubelet(self) -> Kubelet | None:
        """This kubelet, where the sockets that tell it were not wanted for themselves."""
        if Source.SOCKETS in self.want:
            return self.this_kubelet()
        look = Live(self.env, frozenset({Source.SOCKETS}), self.again)
        look._read_files()
        return look.this_kubelet()

    def this_kubelet(self) -> Kubelet | None:
        pid = self._kubelet_pid()
        return next((k for k in self.fields.get("kubelets", ()) if k.pid == pid), None)

    def _running_version(self) -> str | None:
        """That of the kubelet's own program: a Node may not have been read, or be behind."""
        from dpctl.sources.go_binary import version_of_process

        kubelet = self.this_kubelet()
        if kubelet is None:
            return None
        return version_of_process(self.env.proc.value or "/proc", kubelet.pid)

    def _read_kubelet(self) -> None:
        from dpctl.sources.kubelet_config import fields_of_flags, read_kubelet_config

        kubelet = self.this_kubelet()
        self.fields["kubelet_version"] = self._running_version()
        where = self.env.kubelet_config.value or ""
        # A kubelet names its file as it sees it; with --host-root that may be nowhere to be found.
        if kubelet and kubelet.config_path and (not where or os.path.exists(kubelet.config_path)):
            where = kubelet.config_path
        arguments = kubelet.arguments if kubelet else ()
        self.fields["kubelet_flags"] = fields_of_flags(arguments)
        self.read(
            Source.KUBELET,
            "kubelet_config",
            where or "the kubelet's command line",
            lambda: read_kubelet_config(self.env, where or None, arguments),
        )

    # -- peers: sockets and the API server ---------------------------------------------------------

    def _read_peers(self) -> None:
        asks_api = bool(self.want & API)
        tasks: list[Callable[[], None]] = []
        if asks_api:
            api = None if self.again else self._api_child()
            tasks.append(lambda: self._read_api(api))
        elif Source.ALLOCATABLE in self.want:
            tasks.append(self._read_allocatable)
        if Source.POD_RESOURCES in self.want:
            tasks.append(self._read_pod_resources)
        if Source.PLUGINS in self.want:
            tasks.append(self._probe_plugins)
        if Source.REGISTRY in self.want:
            tasks.append(self._probe_registry)
        if Source.PODS_API in self.want:
            tasks.append(self._list_kubelet_pods)
        if self.keep is not None:
            tasks.append(partial(self._keep_extras, self.keep))
        if len(tasks) == 1:
            tasks[0]()
        elif tasks:
            side_by_side(tasks)

    def _read_pod_resources(self) -> None:
        socket = self.env.pod_resources_socket.value or ""
        timeout, limit = self.env.request_timeout, self.env.max_message_size

        def read() -> PodResources:
            asked = ahead.take(socket, timeout, limit)
            if asked is not None:
                return asked
            from dpctl.sources.podresources import list_pod_resources

            keep = self.keep.keep_list if self.keep is not None else None
            return list_pod_resources(socket, timeout=timeout, max_message_size=limit, keep=keep)

        self.read(Source.POD_RESOURCES, "pod_resources", socket, read)

    def _read_allocatable(self) -> None:
        socket = self.env.pod_resources_socket.value or ""
        if self.env.no_allocatable:
            self.skip(Source.ALLOCATABLE, socket, "--no-allocatable")
            return
        node: Node | None = self.fields.get("node")
        minor = minor_version(node.kubelet_version if node else self._running_version())
        if minor is not None and minor < _ALLOCATABLE_SINCE:
            reason = f"kubelet 1.{minor} may crash on GetAllocatableResources"
            self.skip(Source.ALLOCATABLE, socket, reason)
            return
        from dpctl.sources.podresources import get_allocatable

        self.read(
            Source.ALLOCATABLE,
            "allocatable",
            socket,
            lambda: get_allocatable(
                socket,
                timeout=self.env.request_timeout,
                max_message_size=self.env.max_message_size,
                keep=self._keeps(kept.ALLOCATABLE),
            ),
        )

    def _list_kubelet_pods(self) -> None:
        from dpctl.sources.pods_api import list_kubelet_pods, pods_api_socket

        socket = pods_api_socket(self.env.kubelet_root.value or "")
        if not os.path.lexists(socket):
            self.skip(Source.PODS_API, socket, "this kubelet has no Pods API (1.37 has)")
            return
        timeout, limit = self.env.request_timeout, self.env.max_message_size
        self.read(
            Source.PODS_API,
            "kubelet_pods",
            socket,
            lambda: list_kubelet_pods(socket, timeout=timeout, max_message_size=limit),
        )

    def _probe_plugins(self) -> None:
        listing: DirectoryListing | None = self.fields.get("directory")
        if listing is None:
            return  # said already by the directory's own row
        from dpctl.sources.plugin_sockets import probe_sockets

        where = self.env.device_plugin_dir.value or ""
        timeout = min(2.0, self.env.request_timeout)
        self.read(Source.PLUGINS, "plugins", where, lambda: probe_sockets(listing, timeout=timeout))

    def _keep_extras(self, evidence: Evidence) -> None:
        from dpctl.collect.extras import keep_extras

        keep_extras(self.env, evidence, self.this_kubelet(), self.fields.get("checkpoint"))

    def _probe_registry(self) -> None:
        from dpctl.sources.registry import probe_registry

        where = self.env.plugins_registry.value or ""
        timeout = min(2.0, self.env.request_timeout)
        self.read(
            Source.REGISTRY, "registry", where, lambda: probe_registry(where, timeout=timeout)
        )

    def _api_child(self) -> Child[_Part] | None:
        """The API server asked by a process of its own; None: this one has to do it."""
        import threading

        if threading.active_count() > 1:
            return None  # forked threads are not there, and what they hold stays held
        try:
            return Child(self._ask_api)
        except OSError:
            return None

    def _read_api(self, child: Child[_Part] | None) -> None:
        if child is None:
            fields, rows = self._ask_api()
        else:
            try:
                fields, rows = child.result()
            finally:
                child.stop()
        self.fields.update(fields)
        self.rows.update(rows)
        if Source.ALLOCATABLE in self.want:
            self._read_allocatable()  # the Node's version says whether it may be asked

    def _ask_api(self) -> _Part:
        from dpctl.collect.api import ask_api

        part = Live(self.env, self.want, self.again, self.keep, self.told)
        ask_api(part, place_of(self.env.node_name, self.this_kubelet()))
        return part.fields, part.rows

    # -- bookkeeping -------------------------------------------------------------------------------

    def read(
        self, source: Source, name: str, where: str, read: Callable[[], object]
    ) -> DpctlError | None:
        """What it failed with, which has been noted."""
        started = time.monotonic()
        try:
            self.fields[name] = read()
        except DpctlError as error:
            if isinstance(error, NoFileError):
                self.fields.setdefault("unreadable", {})[source] = error.fails
            self.fail(source, where, error, time.monotonic() - started)
            return error
        self._note(SourceRow(source, where, "read", seconds=time.monotonic() - started))
        return None

    def fail(
        self, source: Source, where: str, error: DpctlError, seconds: float | None = None
    ) -> None:
        said = (error.message, error.hint, int(error.code))
        self._note(SourceRow(source, where, "failed", *said, seconds))

    def skip(self, source: Source, where: str, reason: str, hint: str | None = None) -> None:
        """A `hint` is for what a person did not mean to leave out, and is to be told."""
        self._note(SourceRow(source, where, "skipped", reason, hint))

    def _note(self, row: SourceRow) -> None:
        self.rows[Source(row.name)] = row
        if self.told is not None:
            self.told(row)

    def _keeps(self, name: str) -> Callable[[bytes], None] | None:
        return None if self.keep is None else self.keep.keeps(name)
