"""What a bundle keeps as records of its own, with names replaced: sockets, processes, names of
pods, the kubelet's configuration, how sources fared. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpctl import names as legal
from dpctl.bundle.names import Names
from dpctl.model import (
    CdiDevice,
    CdiSpec,
    DirectoryListing,
    Kubelet,
    PluginSocket,
    Process,
    RegistrySocket,
    Snapshot,
    SocketTable,
    SourceRow,
)


def redacted_snapshot(snap: Snapshot, names: Names) -> Snapshot:
    """Only the fields that `writer` writes are changed; the others stand in files of their own."""
    node = snap.node
    return snap._replace(
        sources=tuple(_source(row, names) for row in snap.sources),
        node=node and node._replace(name=names.word("node", node.name)),
        directory=snap.directory and _listing(snap.directory, names),
        sockets=snap.sockets and _table(snap.sockets, names),
        plugins=snap.plugins and tuple(_plugin(p, names) for p in snap.plugins),
        registry=snap.registry and tuple(_registry(s, names) for s in snap.registry),
        processes={pid: redacted_process(p, names) for pid, p in snap.processes.items()},
        kubelets=snap.kubelets and tuple(_kubelet(k, names) for k in snap.kubelets),
        pod_names=_pods(snap.pod_names, names),
        kubelet_pods=_pods(snap.kubelet_pods, names),
        host_paths=snap.host_paths
        and {
            names.text(path): there._replace(reason=there.reason and names.free(there.reason))
            for path, there in snap.host_paths.items()
        },
        cdi=snap.cdi and tuple(_cdi(spec, names) for spec in snap.cdi),
        kubelet_config=snap.kubelet_config and _config(snap.kubelet_config, names),
        state_root=names.device(snap.state_root),
    )


def _source(row: SourceRow, names: Names) -> SourceRow:
    return row._replace(
        where=names.text(row.where),
        reason=row.reason and names.free(row.reason),
        hint=row.hint and names.free(row.hint),
    )


def _cdi(spec: CdiSpec, names: Names) -> CdiSpec:
    return spec._replace(
        path=names.text(spec.path),
        # As in the names that containers asked for (`vendor.example/gpu=0`): they must still meet.
        kind=names.text(spec.kind),
        device_nodes=tuple(map(names.text, spec.device_nodes)),
        devices=tuple(
            CdiDevice(names.text(each.name), tuple(map(names.text, each.device_nodes)))
            for each in spec.devices
        ),
        error=spec.error and names.free(spec.error),
    )


def _listing(listing: DirectoryListing, names: Names) -> DirectoryListing:
    return listing._replace(
        path=names.device(listing.path),
        entries=tuple(
            entry._replace(
                name=names.device(entry.name),
                link_target=entry.link_target and names.device(entry.link_target),
            )
            for entry in listing.entries
        ),
    )


def _table(table: SocketTable, names: Names) -> SocketTable:
    return SocketTable(
        tuple(
            socket._replace(name=socket.name and names.device(socket.name))
            for socket in table.sockets
        )
    )


def _plugin(plugin: PluginSocket, names: Names) -> PluginSocket:
    return plugin._replace(
        endpoint=names.device(plugin.endpoint),
        info=plugin.info and _registry(plugin.info, names),
        detail=plugin.detail and names.free(plugin.detail),
    )


def _registry(socket: RegistrySocket, names: Names) -> RegistrySocket:
    return socket._replace(
        path=names.device(socket.path),
        service_endpoint=socket.service_endpoint and names.device(socket.service_endpoint),
        detail=socket.detail and names.free(socket.detail),
    )


def redacted_process(process: Process, names: Names) -> Process:
    """Of its arguments only what tells which plugin it is."""
    return process._replace(
        command=names.text(process.command),
        arguments=tuple(
            names.device(word) if _tells(word) else "redacted" for word in process.arguments
        ),
        environment={key: names.device(value) for key, value in process.environment.items()},
    )


def _tells(argument: str) -> bool:
    value = argument.rpartition("=")[2]
    return value.endswith(".sock") or all(map(legal.is_extended, value.split(",")))


def _kubelet(kubelet: Kubelet, names: Names) -> Kubelet:
    return kubelet._replace(
        arguments=tuple(map(names.free, kubelet.arguments)),
        node_name=kubelet.node_name and names.word("node", kubelet.node_name),
        config_path=kubelet.config_path and names.device(kubelet.config_path),
        root_dir=kubelet.root_dir and names.device(kubelet.root_dir),
    )


def _pods(pods: Any, names: Names) -> Any:
    """Anything with a namespace and a name."""
    if pods is None:
        return None
    return tuple(
        pod._replace(
            namespace=names.word("namespace", pod.namespace), name=names.word("pod", pod.name)
        )
        for pod in pods
    )


def _config(config: Mapping[str, object], names: Names) -> Mapping[str, object]:
    changed = names.tree(dict(config))
    assert isinstance(changed, dict)
    return changed
