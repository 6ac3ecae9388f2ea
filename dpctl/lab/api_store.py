"""The lab's objects: Nodes, Pods, Events, DeviceClasses, with resource versions and a change log.

Everything about storing; nothing about HTTP, users or patch formats. An object handed out is never
changed afterwards: an update stores a new one, so readers need no copies.
"""

from __future__ import annotations

import copy
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpctl.lab import managed_fields
from dpctl.lab.api_errors import ApiError, Json, already_exists, conflict, not_found
from dpctl.lab.clock import timestamp
from dpctl.lab.quantities import canonical_status, validate_node

Key = tuple[str, str]
"""(namespace, name); the namespace of a cluster-wide object is empty."""

KINDS: Mapping[str, tuple[str, str, bool]] = {
    "nodes": ("v1", "Node", False),
    "pods": ("v1", "Pod", True),
    "events": ("v1", "Event", True),
    "namespaces": ("v1", "Namespace", False),
    "deviceclasses": ("resource.k8s.io/v1", "DeviceClass", False),
    "resourceclaims": ("resource.k8s.io/v1", "ResourceClaim", True),
    "resourceslices": ("resource.k8s.io/v1", "ResourceSlice", False),
}
"""Collection to (apiVersion, kind, whether it has namespaces)."""

_LOG_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class Change:
    version: int
    resource: str
    type: str
    """`ADDED`, `MODIFIED` or `DELETED`."""
    object: Json


class Store:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._version = 100
        self._objects: dict[str, dict[Key, Json]] = {resource: {} for resource in KINDS}
        self._log: deque[Change] = deque(maxlen=_LOG_LENGTH)

    @property
    def version(self) -> int:
        with self._lock:
            return self._version

    @property
    def oldest(self) -> int:
        """The first version that the log still reaches back to."""
        with self._lock:
            full = len(self._log) == _LOG_LENGTH
            return self._log[0].version if full else 0

    def get(self, resource: str, name: str, namespace: str = "") -> Json:
        """Raises ApiError 404."""
        with self._lock:
            found = self._objects[resource].get((namespace, name))
        if found is None:
            raise not_found(resource, name)
        return found

    def list(self, resource: str, namespace: str | None = None) -> tuple[list[Json], int]:
        """All objects by namespace and name, and the version they are of."""
        with self._lock:
            items = [
                found
                for (space, _), found in sorted(self._objects[resource].items())
                if namespace is None or space == namespace
            ]
            return items, self._version

    def create(self, resource: str, given: Json, manager: str, *, dry_run: bool = False) -> Json:
        """Raises ApiError 409, 422."""
        api_version, kind, namespaced = KINDS[resource]
        created: Json = copy.deepcopy(given) | {"apiVersion": api_version, "kind": kind}
        metadata = created.setdefault("metadata", {})
        if metadata.get("generateName") and not metadata.get("name"):
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        if not isinstance(metadata.get("name"), str) or not metadata["name"]:
            raise ApiError(422, "Invalid", f"{kind} is invalid: metadata.name: Required value")
        key = (metadata.get("namespace", "") if namespaced else "", metadata["name"])
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata["creationTimestamp"] = timestamp()
        self._check(resource, created)
        with self._lock:
            if key in self._objects[resource]:
                raise already_exists(resource, key[1])
            metadata["managedFields"] = managed_fields.updated(
                {}, created, manager, None, timestamp()
            )
            if not dry_run:
                self._store(resource, key, created, "ADDED")
        return created

    def update(
        self,
        resource: str,
        name: str,
        change: Callable[[Json], Json],
        *,
        namespace: str = "",
        manager: str,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Json:
        """`change` gets a copy and gives the new object; what the subresource may not touch is put
        back (a patch without `/status` changes nothing in status: kubelet-facts §11).

        Raises ApiError 404, 409, 422, and what `change` raises.
        """
        with self._lock:
            old = self.get(resource, name, namespace)
            new = change(copy.deepcopy(old))
            self._keep(old, new, subresource)
            if resource == "nodes" and isinstance(new.get("status"), dict):
                new["status"] = canonical_status(new["status"])
            self._check(resource, new)
            if _content(new) == _content(old):
                return old
            new["metadata"]["managedFields"] = managed_fields.updated(
                old, new, manager, subresource, timestamp()
            )
            if dry_run:
                return new
            if _was_let_go(old, new):
                return self.delete(resource, name, namespace)
            self._store(resource, (namespace, name), new, "MODIFIED")
            return new

    def delete(self, resource: str, name: str, namespace: str = "", *, uid: str = "") -> Json:
        """Raises ApiError 404, 409 (another UID)."""
        with self._lock:
            old = self.get(resource, name, namespace)
            if uid and old["metadata"].get("uid") != uid:
                raise conflict(resource, name)
            del self._objects[resource][(namespace, name)]
            self._log_change(resource, "DELETED", copy.deepcopy(old))
            return old

    def preload(self, resource: str, prepared: Json) -> None:
        """Put an object with its own managedFields, as if it had been there before the lab."""
        metadata = prepared["metadata"]
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", timestamp())
        with self._lock:
            key = (metadata.get("namespace", ""), metadata["name"])
            self._store(resource, key, prepared, "ADDED")

    def changes_since(self, resource: str, version: int, timeout: float) -> Sequence[Change]:
        """Changes after `version`, waiting for the first up to `timeout` seconds.

        Raises ApiError 410 when the log no longer reaches back that far.
        """
        with self._changed:
            if self._log and self._log[0].version > version + 1 and len(self._log) == _LOG_LENGTH:
                raise ApiError(410, "Expired", f"too old resource version: {version}")
            self._changed.wait_for(lambda: self._pending(resource, version), timeout)
            return [c for c in self._log if c.version > version and c.resource == resource]

    def _pending(self, resource: str, version: int) -> bool:
        for change in reversed(self._log):
            if change.version <= version:
                return False
            if change.resource == resource:
                return True
        return False

    def _store(self, resource: str, key: Key, new: Json, event: str) -> None:
        self._objects[resource][key] = new
        self._log_change(resource, event, new)

    def _log_change(self, resource: str, event: str, new: Json) -> None:
        self._version += 1
        new["metadata"]["resourceVersion"] = str(self._version)
        self._log.append(Change(self._version, resource, event, new))
        self._changed.notify_all()

    def _check(self, resource: str, new: Json) -> None:
        if resource == "nodes":
            if isinstance(new.get("status"), dict):
                new["status"] = canonical_status(new["status"])
            validate_node(new)

    def _keep(self, old: Json, new: Json, subresource: str | None) -> None:
        kept = ("apiVersion", "kind", "spec") if subresource == "status" else ("status",)
        for key in kept:
            if key in old:
                new[key] = old[key]
            else:
                new.pop(key, None)
        metadata = new.setdefault("metadata", {})
        wanted = metadata.get("resourceVersion")
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            raise conflict(str(old.get("kind")), old["metadata"]["name"])
        for key in ("name", "namespace", "uid", "creationTimestamp", "managedFields"):
            if key in old["metadata"]:
                metadata[key] = old["metadata"][key]
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]


def _was_let_go(old: Json, new: Json) -> bool:
    """Marked for deletion, and the last finalizer is off."""
    marked = bool(old["metadata"].get("deletionTimestamp"))
    held, holds = (bool(one["metadata"].get("finalizers")) for one in (old, new))
    return marked and held and not holds


def _content(document: Json) -> Json:
    metadata = {k: v for k, v in document["metadata"].items() if k != "managedFields"}
    return {**document, "metadata": metadata}
