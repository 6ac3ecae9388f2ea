"""A Node, pods and DeviceClasses with nothing left but what dpctl reads, and names replaced. Pure.

Manifests hold too much that is somebody's business: what is not known here does not stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dpctl.bundle.names import Names

_NODE_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeletVersion",
    "operatingSystem",
    "osImage",
)
_CONFIG_HASH = "kubernetes.io/config.hash"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_STATUSES = ("initContainerStatuses", "containerStatuses")


def environment_values(pods: object) -> Iterator[str]:
    """Of every container of a list of pods."""
    for pod in _items(pods):
        for name in _CONTAINERS:
            for container in _list(_dict(pod.get("spec")).get(name)):
                for entry in _list(container.get("env")):
                    value = entry.get("value")
                    if isinstance(value, str) and value:
                        yield value


def node_addresses(node: object) -> Iterator[str]:
    """Host names among the addresses of a Node, and its host name label."""
    for entry in _list(_dict(_dict(node).get("status")).get("addresses")):
        address = entry.get("address")
        if isinstance(address, str):
            yield address
    label = _dict(_dict(_dict(node).get("metadata")).get("labels")).get("kubernetes.io/hostname")
    if isinstance(label, str):
        yield label


def redacted_node(node: object, names: Names) -> object:
    meta, status = _dict(_dict(node).get("metadata")), _dict(_dict(node).get("status"))
    info = _dict(status.get("nodeInfo"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": names.word("node", str(meta.get("name") or "")),
            **_some(meta, "uid"),
            "managedFields": [_managed(entry, names) for entry in _list(meta.get("managedFields"))],
        },
        "status": {
            **_some(status, "capacity", "allocatable"),
            "conditions": [
                _some(c, "type", "status", "lastHeartbeatTime", "lastTransitionTime", "reason")
                for c in _list(status.get("conditions"))
            ],
            "nodeInfo": {k: info[k] for k in _NODE_INFO if k in info},
        },
    }


def _managed(entry: dict[str, Any], names: Names) -> object:
    manager = entry.get("manager")
    status = _dict(_dict(entry.get("fieldsV1")).get("f:status"))
    return {
        **_some(entry, "operation", "apiVersion", "time", "fieldsType", "subresource"),
        "manager": names.text(manager) if isinstance(manager, str) else manager,
        "fieldsV1": {"f:status": _some(status, "f:capacity", "f:allocatable", "f:conditions")},
    }


def redacted_pods(pods: object, names: Names) -> object:
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [_pod(pod, names) for pod in _items(pods)],
    }


def _pod(pod: dict[str, Any], names: Names) -> object:
    meta, spec, status = (_dict(pod.get(key)) for key in ("metadata", "spec", "status"))
    annotations = _dict(meta.get("annotations"))
    owners = [
        {**_some(owner, "apiVersion", "kind", "uid", "controller"), **_named(owner, names, "owner")}
        for owner in _list(meta.get("ownerReferences"))
    ]
    return {
        "metadata": {
            **_named(meta, names, "pod"),
            "namespace": names.word("namespace", str(meta.get("namespace") or "")),
            **_some(meta, "uid", "creationTimestamp", "deletionTimestamp"),
            "annotations": _some(annotations, _CONFIG_HASH),
            "ownerReferences": owners,
        },
        "spec": {
            **(
                {"nodeName": names.word("node", str(spec["nodeName"]))}
                if "nodeName" in spec
                else {}
            ),
            **_some(spec, "overhead", "resources", "restartPolicy", "schedulerName"),
            **{
                name: [_container(c, names) for c in _list(spec.get(name))]
                for name in _CONTAINERS
                if name in spec
            },
        },
        "status": {
            **_some(status, "phase", "startTime", "qosClass"),
            **_texts(status, names.free, "reason", "message"),
            **{
                name: [_status(c, names) for c in _list(status.get(name))]
                for name in _STATUSES
                if name in status
            },
        },
    }


def _container(container: dict[str, Any], names: Names) -> object:
    env = [
        {
            **_some(entry, "name"),
            **({"value": names.value(str(entry["value"]))} if entry.get("value") else {}),
        }
        for entry in _list(container.get("env"))
    ]
    return {
        **_texts(container, names.text, "name"),
        **_some(container, "resources", "restartPolicy"),
        **({"env": env} if env else {}),
    }


def _status(status: dict[str, Any], names: Names) -> object:
    state = {
        name: {
            **_some(_dict(found), "exitCode", "startedAt", "finishedAt"),
            **_texts(_dict(found), names.free, "reason", "message"),
        }
        for name, found in _dict(status.get("state")).items()
    }
    health = [
        {
            **_some(entry, "name"),
            "resources": [
                {
                    **_texts(item, names.device, "resourceID"),
                    **_texts(item, names.free, "message"),
                    **_some(item, "health"),
                }
                for item in _list(entry.get("resources"))
            ],
        }
        for entry in _list(status.get("allocatedResourcesStatus"))
    ]
    return {
        **_texts(status, names.text, "name"),
        **_some(status, "ready", "started", "restartCount", "allocatedResources", "resources"),
        "state": state,
        **({"allocatedResourcesStatus": health} if health else {}),
    }


def redacted_device_classes(classes: object) -> object:
    """What they are called is the cluster's own, and no name of a pod, namespace or node."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "metadata": _some(_dict(item.get("metadata")), "name"),
                "spec": _some(_dict(item.get("spec")), "extendedResourceName"),
            }
            for item in _items(classes)
        ],
    }


def _items(value: object) -> list[dict[str, Any]]:
    return _list(_dict(value).get("items"))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _some(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


def _texts(value: dict[str, Any], change: Callable[[str], str], *keys: str) -> dict[str, Any]:
    return {key: change(value[key]) for key in keys if isinstance(value.get(key), str)}


def _named(value: dict[str, Any], names: Names, kind: str) -> dict[str, str]:
    name = value.get("name")
    return {"name": names.word(kind, name)} if isinstance(name, str) else {}
