"""What the lab's API server says of itself, and the self reviews. Pure."""

from __future__ import annotations

from collections.abc import Callable

from dpctl.lab.api_auth import Request, User, allows
from dpctl.lab.api_errors import Json
from dpctl.lab.api_store import KINDS

_READ_VERBS = ["get", "list", "watch"]
_ALL_VERBS = [*_READ_VERBS, "create", "delete", "patch", "update"]
_SHORT = {"nodes": ["no"], "pods": ["po"], "events": ["ev"], "namespaces": ["ns"]}


def discover(path: str, version: str) -> Json | None:
    """The answer to a discovery path, None for any other."""
    path = path.rstrip("/")
    if path == "/version":
        major, minor = version.lstrip("v").split(".")[:2]
        return {"major": major, "minor": minor, "gitVersion": version, "platform": "linux/amd64"}
    if path in ("/healthz", "/livez", "/readyz"):
        return {"status": "ok"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group("resource.k8s.io")]}
    if path == "/api/v1":
        return _resources("v1")
    if path == "/apis/resource.k8s.io/v1":
        return _resources("resource.k8s.io/v1")
    return None


def _group(name: str) -> Json:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resources(group_version: str) -> Json:
    found = []
    for resource, (api_version, kind, namespaced) in KINDS.items():
        if api_version != group_version:
            continue
        entry = {"name": resource, "singularName": kind.lower(), "namespaced": namespaced}
        entry |= {"kind": kind, "verbs": _ALL_VERBS, "shortNames": _SHORT.get(resource, [])}
        found.append(entry)
        if resource in ("nodes", "pods"):
            status = {"name": f"{resource}/status", "singularName": "", "namespaced": namespaced}
            found.append({**status, "kind": kind, "verbs": ["get", "patch", "update"]})
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": found,
    }


def _subject_review(user: User, given: Json) -> Json:
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": given.get("apiVersion", "authentication.k8s.io/v1"),
        "metadata": {},
        "status": {"userInfo": {"username": user.name, "groups": list(user.groups)}},
    }


def _access_review(user: User, given: Json) -> Json:
    spec = given.get("spec") or {}
    attributes = spec.get("resourceAttributes") or {}

    def text(name: str) -> str:
        return str(attributes.get(name) or "")

    request = Request(
        verb=text("verb"),
        resource=text("resource"),
        group=text("group"),
        subresource=text("subresource"),
        namespace=text("namespace"),
        name=text("name"),
    )
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": given.get("apiVersion", "authorization.k8s.io/v1"),
        "metadata": {},
        "spec": spec,
        "status": {"allowed": allows(user, request)},
    }


REVIEWS: dict[str, Callable[[User, Json], Json]] = {
    "selfsubjectreviews": _subject_review,
    "selfsubjectaccessreviews": _access_review,
}
