"""Who may do what at the lab's API server: tokens, users, and the answers of RBAC, the Node
authorizer and NodeRestriction (kubelet-facts §11, §15). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dpctl.lab.api_errors import ApiError, Json

NODE_PREFIX: Final = "system:node:"
_READABLE = frozenset({"nodes", "pods", "events", "deviceclasses", "resourceclaims", "namespaces"})
_SELF = frozenset({"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"})
_READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()

    @property
    def node(self) -> str | None:
        """The node whose own credentials these are."""
        if "system:nodes" in self.groups and self.name.startswith(NODE_PREFIX):
            return self.name.removeprefix(NODE_PREFIX)
        return None


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants to do, in the authorizer's words."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    """The field selector's equalities."""


def users(node_name: str) -> dict[str, User]:
    """The lab's users by the name of their kubeconfig context."""
    return {
        "admin": User("admin", ("system:masters", "system:authenticated")),
        "viewer": User("viewer", ("lab:viewers", "system:authenticated")),
        "nobody": User("nobody", ("system:authenticated",)),
        "node": User(NODE_PREFIX + node_name, ("system:nodes", "system:authenticated")),
    }


def impersonated(user: User, name: str | None, groups: tuple[str, ...]) -> User:
    """The user to answer for. Raises ApiError 403."""
    if name is None:
        if groups:
            raise ApiError(400, "BadRequest", "requested groups without impersonating a user")
        return user
    if "system:masters" not in user.groups:
        message = (
            f'users "{name}" is forbidden: User "{user.name}" cannot impersonate '
            'resource "users" in API group "" at the cluster scope'
        )
        raise ApiError(403, "Forbidden", message, {"name": name, "kind": "users"})
    return User(name, (*groups, "system:authenticated"))


def allows(user: User, request: Request) -> bool:
    """RBAC and the Node authorizer, as a SelfSubjectAccessReview answers: yes for *any* node's
    status to a node's credentials (admission refuses it later)."""
    if "system:masters" in user.groups or request.resource in _SELF:
        return True
    if user.node is not None:
        return _node_allows(user.node, request)
    if "lab:viewers" in user.groups:
        return (
            request.verb in _READS
            and request.resource in _READABLE
            and request.subresource in ("", "status")
        )
    return False


def _node_allows(node: str, request: Request) -> bool:
    if request.resource == "nodes":
        if request.subresource in ("", "status") and request.verb in ("create", "patch", "update"):
            return True
        wanted = request.name or request.fields.get("metadata.name")
        return request.verb in _READS and request.subresource == "" and wanted == node
    if request.resource == "pods":
        if request.verb in ("list", "watch"):
            return request.fields.get("spec.nodeName") == node
        return request.verb in ("get", "patch", "update", "delete", "create")
    return request.resource == "events" and request.verb in ("create", "patch", "update")


def authorize(user: User, request: Request) -> None:
    """Raises ApiError 403 with the server's sentence."""
    if not allows(user, request):
        raise forbidden(user, request)


def admit(user: User, request: Request, old: Json) -> None:
    """NodeRestriction: a node changes itself and the pods bound to it. Raises ApiError 403."""
    node = user.node
    if node is None or request.verb not in ("patch", "update", "delete", "create"):
        return
    if request.resource == "nodes" and request.name != node:
        message = (
            f'nodes "{request.name}" is forbidden: node "{node}" is not allowed to modify '
            f'node "{request.name}"'
        )
    elif request.resource == "pods" and old.get("spec", {}).get("nodeName") != node:
        message = (
            f'pods "{request.name}" is forbidden: node "{node}" can only change pods '
            "with spec.nodeName set to itself"
        )
    else:
        return
    raise ApiError(403, "Forbidden", message, {"name": request.name, "kind": request.resource})


def forbidden(user: User, request: Request) -> ApiError:
    what = request.resource + (f"/{request.subresource}" if request.subresource else "")
    where = (
        f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    )
    named = f' "{request.name}"' if request.name else ""
    group = f".{request.group}" if request.group else ""
    message = (
        f'{request.resource}{group}{named} is forbidden: User "{user.name}" cannot {request.verb} '
        f'resource "{what}" in API group "{request.group}" {where}'
    )
    return ApiError(403, "Forbidden", message, {"name": request.name, "kind": request.resource})
