"""Node, Pod and DeviceClass JSON (the API server's, or kubectl's output) to the model; pure.

Takes what people have: one object, a `NodeList` or `PodList`, kubectl's `List`, or a bare array.
A wrong type anywhere is a BadDataError that names the path: nothing is skipped silently. Talking to
the API server belongs to `apiserver`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from dpctl import quantity
from dpctl.errors import BadDataError
from dpctl.model import DeviceClass, HealthWord, Node, Pod, PodContainer
from dpctl.sources.json_fields import Field
from dpctl.text import shorten

_CONFIG_HASH = "kubernetes.io/config.hash"
_KUBELET = "kubelet"
_READY = "Ready"


def node_from_json(obj: object, *, name: str | None = None) -> Node:
    """The one Node in `obj`; of several, the one called `name`.

    Raises BadDataError when there is none, more than one and no `name`, or a wrong type.
    """
    nodes = nodes_from_json(obj)
    if name is not None and len(nodes) > 1:
        nodes = tuple(node for node in nodes if node.name == name)
        if not nodes:
            raise BadDataError(f"no Node is called {name}")
    if not nodes:
        raise BadDataError("holds no Node")
    if len(nodes) > 1:
        names = shorten(", ".join(node.name for node in nodes), 200)
        raise BadDataError(
            f"holds {len(nodes)} Nodes: {names}",
            "keep one of them: kubectl get node NAME -o json --show-managed-fields",
        )
    return nodes[0]


def nodes_from_json(obj: object) -> tuple[Node, ...]:
    """Every Node in `obj`, in its order."""
    return tuple(_node(item) for item in _objects(obj, "Node"))


def pods_from_json(obj: object) -> tuple[Pod, ...]:
    """Every Pod in `obj`, in its order. Ephemeral containers are left out: they request nothing."""
    return tuple(_pod(item) for item in _objects(obj, "Pod"))


def device_classes_from_json(obj: object) -> tuple[DeviceClass, ...]:
    """Every DeviceClass in `obj` (resource.k8s.io/v1, v1beta2 or v1beta1), in its order."""
    return tuple(
        DeviceClass(
            name=item.at("metadata", "name").needed_text(),
            extended_resource_name=item.at("spec", "extendedResourceName").text() or None,
        )
        for item in _objects(obj, "DeviceClass")
    )


def _objects(obj: object, kind: str) -> Iterator[Field]:
    root = Field(obj, "")
    if isinstance(obj, list):
        items = list(Field(obj, "items").items())
    elif not isinstance(obj, dict):
        raise Field(obj, "the document").wrong("an object")
    else:
        found = root.at("kind").text()
        if found == "Status":
            message = shorten(root.at("message").text() or "no message", 300)
            raise BadDataError(f"holds an error of the API server, no {kind}: {message}")
        if found in ("List", f"{kind}List") or (found is None and "items" in obj):
            items = list(root.at("items").items())
        else:
            items = [root]
    for item in items:
        found = item.at("kind").text()
        if found not in (None, kind):
            place = f"{item.path} is" if item.path else "holds"
            raise BadDataError(f"{place} a {shorten(found or '', 60)}, not a {kind}")
        yield item


# --- Node ---


def _node(node: Field) -> Node:
    info = node.at("status", "nodeInfo")
    managed = node.at("metadata", "managedFields")
    entries = [(entry.at("manager").text() or "", entry) for entry in managed.items()]
    ready = _ready_condition(node)
    return Node(
        name=node.at("metadata", "name").needed_text(),
        uid=node.at("metadata", "uid").text() or None,
        boot_id=info.at("bootID").text() or None,
        kubelet_version=info.at("kubeletVersion").text() or None,
        capacity=node.at("status", "capacity").quantities(),
        allocatable=node.at("status", "allocatable").quantities(),
        # Without entries nothing is known: `kubectl get -o json` leaves managedFields out.
        owners=_owners(entries) if entries else None,
        kubelet_manager=_kubelet_manager(entries),
        ready=None if ready is None else _READY_WORDS.get(ready.at("status").text() or ""),
        heartbeat=None if ready is None else ready.at("lastHeartbeatTime").time(),
    )


_READY_WORDS = {"True": True, "False": False}


def _ready_condition(node: Field) -> Field | None:
    conditions = node.at("status", "conditions").items()
    return next((c for c in conditions if c.at("type").text() == _READY), None)


def _owners(entries: list[tuple[str, Field]]) -> dict[str, tuple[str, ...]]:
    """Resource to the managers of its capacity key, whatever operation or subresource.

    Allocatable says nothing: the kubelet owns that of every key (kubelet-facts §15).
    """
    owners: dict[str, list[str]] = {}
    for manager, entry in entries:
        for key in entry.at("fieldsV1", "f:status", "f:capacity").members():
            if key.startswith("f:"):
                found = owners.setdefault(key[2:], [])
                if manager not in found:
                    found.append(manager)
    return {resource: tuple(managers) for resource, managers in owners.items()}


def _kubelet_manager(entries: list[tuple[str, Field]]) -> str:
    """The manager that owns the Ready condition, by its heartbeat where several share it.

    The node controller takes over `status` and `reason` of Ready when a kubelet falls silent, but
    never `lastHeartbeatTime`.
    """
    sharers: list[str] = []
    for manager, entry in entries:
        for key, condition in entry.at("fieldsV1", "f:status", "f:conditions").fields():
            if _is_ready_key(key):
                if "f:lastHeartbeatTime" in condition.members():
                    return manager
                sharers.append(manager)
    return sharers[0] if sharers and _KUBELET not in sharers else _KUBELET


def _is_ready_key(key: str) -> bool:
    """`k:{"type":"Ready"}`, however it is spaced."""
    if not key.startswith("k:"):
        return False
    try:
        parsed = json.loads(key[2:])
    except (ValueError, RecursionError):
        return False  # another list's key, in a form of its own
    return isinstance(parsed, dict) and parsed.get("type") == _READY


# --- Pod ---


def _pod(pod: Field) -> Pod:
    meta, spec, status = pod.at("metadata"), pod.at("spec"), pod.at("status")
    init_statuses = _by_name(status.at("initContainerStatuses"))
    statuses = _by_name(status.at("containerStatuses"))
    containers = [
        _container(
            c, "sidecar" if c.at("restartPolicy").text() == "Always" else "init", init_statuses
        )
        for c in spec.at("initContainers").items()
    ]
    containers += [_container(c, "app", statuses) for c in spec.at("containers").items()]
    return Pod(
        namespace=meta.at("namespace").needed_text(),
        name=meta.at("name").needed_text(),
        uid=meta.at("uid").needed_text(),
        config_hash=meta.at("annotations").text_map().get(_CONFIG_HASH) or None,
        node_name=spec.at("nodeName").text() or None,
        # A pod always has a phase; what was cut off by hand must not count as terminal.
        phase=status.at("phase").text() or "Unknown",
        reason=status.at("reason").text() or None,
        message=status.at("message").text() or None,
        deleted=meta.at("deletionTimestamp").text() is not None,
        containers=tuple(containers),
        pod_requests=_requests(spec.at("resources", "requests")),
        overhead=_requests(spec.at("overhead")),
        owner=_owner(meta.at("ownerReferences")),
    )


def _init_kind(container: Field) -> str:
    return "sidecar" if container.at("restartPolicy").text() == "Always" else "init"


def _by_name(statuses: Field) -> dict[str, Field]:
    return {status.at("name").needed_text(): status for status in statuses.items()}


def _container(container: Field, kind: str, statuses: Mapping[str, Field]) -> PodContainer:
    name = container.at("name").needed_text()
    limits = _requests(container.at("resources", "limits"))
    requests = _requests(container.at("resources", "requests"))
    status = statuses.get(name)
    state, reason = _state(status) if status else (None, None)
    return PodContainer(
        name=name,
        kind=kind,
        requests={**limits, **requests},
        limits=limits,
        state=state,
        reason=reason,
        health=tuple(_health(status)) if status else (),
    )


def _requests(field: Field) -> dict[str, str]:
    """Quantities that can be added up later without a second check."""
    quantities = field.quantities()
    for name, text in quantities.items():
        try:
            quantity.parse(text)
        except ValueError as e:
            path = shorten(f"{field.path}.{name}", 200)
            raise BadDataError(f"{path} is not a quantity: {shorten(text, 60)}") from e
    return quantities


def _state(status: Field) -> tuple[str | None, str | None]:
    state = status.at("state")
    for word in ("running", "terminated", "waiting"):
        detail = state.at(word)
        if detail.value is not None:
            return word, detail.at("reason").text() or None
    return None, None


def _health(status: Field) -> Iterator[HealthWord]:
    """`allocatedResourcesStatus` (kubelet-facts §8); a missing word is the API's `Unknown`."""
    for resource in status.at("allocatedResourcesStatus").items():
        name = resource.at("name").needed_text()
        for device in resource.at("resources").items():
            yield HealthWord(
                resource=name,
                device_id=device.at("resourceID").text() or "",
                health=device.at("health").text() or "Unknown",
                message=device.at("message").text() or None,
            )


def _owner(references: Field) -> str | None:
    for reference in references.items():
        if reference.at("controller").flag():
            kind = reference.at("kind").needed_text()
            return f"{kind}/{reference.at('name').needed_text()}"
    return None
