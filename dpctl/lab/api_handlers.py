"""What a request to the lab's API server does: verbs on collections and objects.

HTTP itself is in `api_server`; discovery and reviews are in `api_discovery`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpctl.lab import api_auth, api_discovery, api_paths
from dpctl.lab.api_auth import Request, User
from dpctl.lab.api_errors import ApiError, Json, bad_request
from dpctl.lab.api_patches import change_of
from dpctl.lab.api_store import KINDS, Store
from dpctl.lab.clock import timestamp

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCES = {
    "nodes": ("", "status", "proxy/configz"),
    "pods": ("", "status", "binding", "eviction"),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, its sender known."""

    method: str
    path: str
    query: Mapping[str, str]
    content_type: str
    body: bytes
    user: User
    manager: str

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("true", "1")

    def json(self) -> Json:
        """Raises ApiError 400."""
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise bad_request(f"couldn't decode the body: {error}") from None
        if not isinstance(document, dict):
            raise bad_request("the object provided is unrecognized (must be of type object)")
        return document


@dataclass(slots=True)
class _Fault:
    left: int
    code: int
    method: str
    path_part: str
    user: str
    retry_after: int


class Faults:
    """Answers that go wrong on cue: `count` requests that match get `code` and do nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[_Fault] = []

    def add(
        self,
        *,
        count: int = 1,
        code: int = 503,
        method: str = "",
        path_part: str = "",
        user: str = "",
        retry_after: int = 0,
    ) -> None:
        """`path_part` and `user` match anywhere in path and user name; empty: everything."""
        with self._lock:
            self._faults.append(_Fault(count, code, method, path_part, user, retry_after))

    def strike(self, call: Call) -> None:
        """Raises the ApiError that somebody asked for."""
        with self._lock:
            for fault in self._faults:
                if (
                    fault.left > 0
                    and fault.method in ("", call.method)
                    and fault.path_part in call.path
                    and fault.user in call.user.name
                ):
                    fault.left -= 1
                    reasons = {429: "TooManyRequests", 409: "Conflict", 503: "ServiceUnavailable"}
                    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
                    reason = reasons.get(fault.code, "InternalError")
                    message = "the lab was asked to fail this request"
                    raise ApiError(fault.code, reason, message, headers=headers)


@dataclass(slots=True)
class Watch:
    """A running watch: what it shows and how far it has come."""

    store: Store
    resource: str
    version: int
    until: float
    shows: Callable[[Json], bool]
    namespace: str
    bookmarks: bool
    first: list[Json] = field(default_factory=list)
    _shown: set[str] = field(default_factory=set)

    def expired(self) -> bool:
        return time.monotonic() > self.until

    def next_events(self, timeout: float) -> list[Json]:
        """Watch events since the last call; an object that left the selection is DELETED."""
        if self.first:
            events, self.first = [self._event("ADDED", item) for item in self.first], []
            return [event for event in events if event is not None]
        try:
            changes = self.store.changes_since(self.resource, self.version, timeout)
        except ApiError as error:
            self.until = 0.0
            return [{"type": "ERROR", "object": error.status()}]
        events = []
        for change in changes:
            self.version = change.version
            events.append(self._event(change.type, change.object))
        return [event for event in events if event is not None]

    def _event(self, kind: str, item: Json) -> Json | None:
        uid = item["metadata"].get("uid", "")
        shown = self.shows(item) and self.namespace in ("", item["metadata"].get("namespace", ""))
        if kind != "DELETED" and shown:
            self._shown.add(uid)
            return {"type": kind, "object": item}
        if kind == "DELETED" and shown:
            return {"type": "DELETED", "object": item}
        if uid in self._shown:
            self._shown.discard(uid)
            return {"type": "DELETED", "object": item}
        return None


Answer = tuple[int, Json]


class Handlers:
    def __init__(self, store: Store, *, version: str, configz: Mapping[str, Json]) -> None:
        self.store = store
        self.faults = Faults()
        self._version = version
        self._configz = configz

    def handle(self, call: Call) -> Answer | Watch:
        """Raises ApiError for every answer that is not success."""
        if call.method == "GET":
            known = api_discovery.discover(call.path, self._version)
            if known is not None:
                return 200, known
        target = api_paths.target(call.path)
        fields = api_paths.field_selector(call.query.get("fieldSelector", ""))
        request = Request(
            verb=self._verb(call, target),
            resource=target.resource,
            group=target.group,
            subresource=target.subresource,
            namespace=target.namespace,
            name=target.name,
            fields={name: value for name, (equal, value) in fields.items() if equal},
        )
        review = api_discovery.REVIEWS.get(target.resource)
        if review is not None and call.method == "POST":
            return 201, review(call.user, call.json())
        if target.resource not in KINDS or target.subresource not in _SUBRESOURCES.get(
            target.resource, ("",)
        ):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        api_auth.authorize(call.user, request)
        return self._act(call, request, fields)

    def _verb(self, call: Call, target: api_paths.Target) -> str:
        if call.method == "GET":
            if target.name:
                return "get"
            return "watch" if call.flag("watch") else "list"
        return _VERBS[call.method]

    def _act(
        self, call: Call, request: Request, fields: Mapping[str, tuple[bool, str]]
    ) -> Answer | Watch:
        if request.verb in ("list", "watch"):
            return self._many(call, request, fields)
        if request.verb == "get":
            found = self.store.get(request.resource, request.name, request.namespace)
            if request.subresource == "proxy/configz":
                if request.name not in self._configz:
                    raise ApiError(503, "ServiceUnavailable", "error trying to reach service")
                return 200, {"kubeletconfig": self._configz[request.name]}
            return 200, found
        dry_run = "dryRun" in call.query
        if dry_run and call.query["dryRun"] != "All":
            raise bad_request(f"invalid dryRun value: {call.query['dryRun']}")
        if request.verb == "create":
            return self._create(call, request, dry_run)
        old = self.store.get(request.resource, request.name, request.namespace)
        api_auth.admit(call.user, request, old)
        if request.verb == "delete":
            return 200, self._delete(call, request, old, dry_run)
        if request.verb == "patch":
            change = change_of(call.content_type, call.body)
        else:
            given = call.json()

            def change(_: Json) -> Json:
                return given

        return 200, self.store.update(
            request.resource,
            request.name,
            change,
            namespace=request.namespace,
            manager=call.manager,
            subresource=request.subresource or None,
            dry_run=dry_run,
        )

    def _many(
        self, call: Call, request: Request, fields: Mapping[str, tuple[bool, str]]
    ) -> Answer | Watch:
        labels = call.query.get("labelSelector", "")

        def shows(item: Json) -> bool:
            return api_paths.matches_fields(item, fields) and api_paths.matches_labels(item, labels)

        items, version = self.store.list(request.resource, request.namespace or None)
        items = [item for item in items if shows(item)]
        if request.verb == "watch":
            return self._watch(call, request, shows, items, version)
        try:
            limit = int(call.query.get("limit") or 0)
        except ValueError:
            raise bad_request("limit is not a number") from None
        chosen, rest = api_paths.page(
            items,
            max(limit, 0),
            call.query.get("continue", ""),
            version=version,
            oldest=self.store.oldest,
        )
        api_version, kind, _ = KINDS[request.resource]
        return 200, {
            "kind": f"{kind}List",
            "apiVersion": api_version,
            "metadata": {"resourceVersion": str(version), **rest},
            "items": chosen,
        }

    def _watch(
        self,
        call: Call,
        request: Request,
        shows: Callable[[Json], bool],
        items: list[Json],
        version: int,
    ) -> Watch:
        since = call.query.get("resourceVersion", "")
        from_now = since in ("", "0")
        try:
            start = version if from_now else int(since)
            seconds = float(call.query.get("timeoutSeconds") or 1800)
        except ValueError:
            raise bad_request("resourceVersion or timeoutSeconds is not a number") from None
        watch = Watch(
            self.store,
            request.resource,
            start,
            time.monotonic() + seconds,
            shows,
            request.namespace,
            call.flag("allowWatchBookmarks"),
            first=items if from_now else [],
        )
        if not from_now:
            watch._shown.update(item["metadata"].get("uid", "") for item in items)
        return watch

    def _create(self, call: Call, request: Request, dry_run: bool) -> Answer:
        given = call.json()
        if request.resource == "pods" and request.subresource in ("binding", "eviction"):
            if request.subresource == "eviction":
                old = self.store.get("pods", request.name, request.namespace)
                self._delete(call, request, old, dry_run)
            else:
                node_name = str(given.get("target", {}).get("name", ""))
                bind(self.store, request.namespace, request.name, node_name)
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
        if request.name:
            raise ApiError(405, "MethodNotAllowed", "the server does not allow this method")
        if KINDS[request.resource][2]:
            given.setdefault("metadata", {})["namespace"] = request.namespace or "default"
        if request.resource == "pods":
            given = complete_pod(given)
        return 201, self.store.create(request.resource, given, call.manager, dry_run=dry_run)

    def _delete(self, call: Call, request: Request, old: Json, dry_run: bool) -> Json:
        options: Json = call.json() if call.body and request.subresource == "" else {}
        uid = str((options.get("preconditions") or {}).get("uid") or "")
        grace = call.query.get("gracePeriodSeconds", options.get("gracePeriodSeconds"))
        pod = request.resource == "pods"
        bound = pod and bool(old.get("spec", {}).get("nodeName"))
        # What has run its course needs no kubelet to end it.
        ended = pod and old.get("status", {}).get("phase") in ("Failed", "Succeeded")
        found = old["metadata"].get("uid", "")
        if uid and found != uid:
            details = {"name": request.name, "kind": request.resource}
            text = f"UID in precondition: {uid}, UID in object meta: {found}"
            message = (
                f'Operation cannot be fulfilled on {request.resource} "{request.name}": '
                f"the UID in the precondition ({uid}) does not match the UID in record ({found}). "
                "The object might have been deleted and then recreated"
            )
            raise ApiError(409, "Conflict", f"{message}: {text}", details)
        if dry_run or "All" in (options.get("dryRun") or []):
            return old
        held = pod and bool(old["metadata"].get("finalizers"))
        if not held and (not bound or ended or str(grace) == "0"):
            return self.store.delete(request.resource, request.name, request.namespace, uid=uid)

        def mark(pod: Json) -> Json:
            pod["metadata"].setdefault("deletionTimestamp", timestamp())
            return pod

        return self.store.update(
            "pods", request.name, mark, namespace=request.namespace, manager=call.manager
        )


def bind(store: Store, namespace: str, name: str, node_name: str) -> None:
    """What a scheduler's Binding does. Raises ApiError 404, 409 (already bound)."""

    def assign(pod: Json) -> Json:
        if pod["spec"].get("nodeName"):
            raise ApiError(409, "Conflict", f"pod {name} is already assigned to node")
        pod["spec"]["nodeName"] = node_name
        return pod

    store.update("pods", name, assign, namespace=namespace, manager="kube-scheduler")


def complete_pod(given: Json) -> Json:
    """Defaults that matter here: requests equal limits, phase Pending. Raises ApiError 422."""
    spec = given.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
        raise ApiError(422, "Invalid", "Pod is invalid: spec.containers: Required value")
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        if not isinstance(container, dict) or not isinstance(container.get("name"), str):
            raise ApiError(422, "Invalid", "Pod is invalid: spec.containers: Invalid value")
        container.setdefault("image", "lab/pause:1")
        resources: Any = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    given["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
    return given
