"""Who dpctl is to the API server, and what it may do there: SelfSubjectReview, access reviews.

Both are POSTs and both only read. An access review alone lies for a node's own credentials: it says
yes for the status of every Node, and admission refuses all but its own (kubelet-facts §11).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dpctl.errors import DeniedError
from dpctl.sources.apiserver import Api, NotFoundError, Right
from dpctl.sources.json_fields import Field, parse_json
from dpctl.text import shorten

NODE_ROLE = "dpctl-node-changes"
"""Name of the ClusterRole for changing Nodes, in messages and in the manual."""
_CREATED = (200, 201)
_REVIEWS = "/apis/authentication.k8s.io/{}/selfsubjectreviews"
# v1 since Kubernetes 1.28, v1beta1 in 1.27; older servers do not tell.
_VERSIONS = ("v1", "v1beta1")
_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_NODE = "system:node:"
_NODES = "system:nodes"
_SERVICE_ACCOUNT = "system:serviceaccount:"


class Identity(NamedTuple):
    """With `--as`, the user impersonated."""

    user: str | None
    """None: the server does not tell (it is older than 1.27)."""
    groups: tuple[str, ...] = ()

    @property
    def node(self) -> str | None:
        """The node whose own credentials these are."""
        if self.user is not None and self.user.startswith(_NODE) and _NODES in self.groups:
            return self.user.removeprefix(_NODE)
        return None


class _NoReviewsError(Exception):
    """Somebody took away the right that everybody has by default (system:basic-user)."""


class MissingRightsError(DeniedError):
    """Rights that the user lacks. `lines`: the manifest that gives them."""


def who_am_i(api: Api) -> Identity:
    """Raises DeniedError (not logged in, `--as` not allowed), UnreachableError, BadDataError."""
    for version in _VERSIONS:
        path = _REVIEWS.format(version)
        document = {"kind": "SelfSubjectReview", "apiVersion": f"authentication.k8s.io/{version}"}
        try:
            info = _post(api, path, document).at("status", "userInfo")
        except (NotFoundError, _NoReviewsError):
            continue
        return Identity(info.at("username").text() or None, info.at("groups").texts())
    return Identity(None)


def may(api: Api, right: Right) -> bool:
    """What RBAC and the other authorizers say; admission may still refuse. Where nobody may ask:
    yes, since the request itself will tell. Raises as `who_am_i`."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "name": right.name,
        "namespace": right.namespace,
    }
    spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    document = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    try:
        return _post(api, _ACCESS, {**document, "spec": spec}).at("status", "allowed").flag()
    except _NoReviewsError:
        return True


def preflight(
    api: Api,
    rights: Sequence[Right],
    *,
    role: str,
    node: str | None = None,
    besides: Sequence[Right] = (),
) -> Identity:
    """Whether all of it may be done, before any of it is. `node`: the one Node to be changed; None:
    many, or none at all. `role`: name of the ClusterRole that the message offers; it has the rights
    `besides`, too, which have been used already.

    Raises MissingRightsError with the ClusterRole that gives every right and its binding, and
    DeniedError for a node's own credentials where another Node is to be changed.
    """
    me = who_am_i(api)
    changes_nodes = any(right.resource == "nodes/status" for right in rights)
    if me.node is not None and changes_nodes and me.node != node:
        other = f"not {node}" if node is not None else "and many are meant"
        raise DeniedError(
            f"{api.connection.where} holds the credentials of Node {me.node}, which may change"
            f" that Node only, {other}",
            "use an administrator's kubeconfig: --kubeconfig FILE, or --context NAME",
        )
    missing = [right for right in rights if not may(api, right)]
    if not missing:
        return me
    user = me.user or "this user"
    error = MissingRightsError(
        f"{shorten(user, 200)} may not {', nor '.join(str(right) for right in missing)}",
        "have an administrator apply this (kubectl apply -f -), or use other credentials with"
        " --kubeconfig, --context or --as",
    )
    error.lines = tuple(cluster_role(role, (*besides, *rights), me).splitlines())
    raise error


def cluster_role(role: str, rights: Iterable[Right], identity: Identity) -> str:
    """A ClusterRole with these rights, and its binding to this user, as YAML."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in rights:
        found = verbs.setdefault((right.group, right.resource), [])
        if right.verb not in found:
            found.append(right.verb)
    rules = "".join(
        f"- apiGroups: [{json.dumps(group)}]\n"
        f"  resources: [{json.dumps(resource)}]\n"
        f"  verbs: {json.dumps(allowed)}\n"
        for (group, resource), allowed in verbs.items()
    )
    return (
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRole\n"
        f"metadata:\n  name: {role}\n"
        f"rules:\n{rules}"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRoleBinding\n"
        f"metadata:\n  name: {role}\n"
        "roleRef:\n"
        "  apiGroup: rbac.authorization.k8s.io\n"
        "  kind: ClusterRole\n"
        f"  name: {role}\n"
        f"subjects:\n{_subject(identity.user)}"
    )


def _subject(user: str | None) -> str:
    if user is not None and user.startswith(_SERVICE_ACCOUNT):
        namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return (
            "- kind: ServiceAccount\n"
            f"  namespace: {json.dumps(namespace)}\n"
            f"  name: {json.dumps(name)}\n"
        )
    return (
        "- kind: User\n"
        "  apiGroup: rbac.authorization.k8s.io\n"
        f"  name: {json.dumps(user or 'USER')}\n"
    )


def _post(api: Api, path: str, document: object) -> Field:
    """A review changes nothing, so it may be repeated."""
    body = json.dumps(document).encode()
    answer = api.connection.exchange("POST", path, body=body, repeatable=True)
    if answer.status not in _CREATED:
        refusal = api.refusal(answer, path, None)
        if answer.status == 403 and "impersonate" not in refusal.message:
            raise _NoReviewsError(refusal.message) from refusal
        raise refusal
    return Field(parse_json(answer.body, f"the answer of {api.server} to {path}"), "")
