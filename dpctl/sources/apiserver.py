"""The API server, read: Node, Pods and DeviceClasses as raw JSON and as the model.

Credentials are resolved in `credentials`, bytes move in `connection`, JSON becomes the model in
`node_json`. Here: which path, which right it takes, and what a refusal means. Nothing here changes
anything.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from dpctl.env import Env
from dpctl.errors import (
    BadDataError,
    DeniedError,
    DpctlError,
    PeerError,
    UnreachableError,
    UsageError,
)
from dpctl.model import DeviceClass, Node, Pod
from dpctl.sources.connection import Answer, Connection
from dpctl.sources.credentials import load_credentials
from dpctl.sources.json_fields import Field, parse_json
from dpctl.sources.node_json import device_classes_from_json, node_from_json, pods_from_json
from dpctl.text import shorten

PAGE = 500
_MOST_PAGES = 1000
_MOST_RESTARTS = 3
# Pages without an item, one after the other; a real server has none, or one at the end.
_MOST_EMPTY = 10
# A whole list may take so many times the timeout of one exchange.
_LIST_TIMEOUTS = 6
_MESSAGE_LENGTH = 400
_DEVICE_CLASS_VERSIONS = ("v1", "v1beta2", "v1beta1")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_NAME = 253
_GONE = 410
_OWN_CREDENTIALS = "system:node:"

Query = Sequence[tuple[str, str]]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Right:
    """What RBAC must allow for a request."""

    verb: str
    resource: str
    """`nodes`, `nodes/status`."""
    group: str = ""
    name: str | None = None

    def rule(self) -> str:
        """A rule of a ClusterRole that gives it."""
        return (
            f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"],'
            f' verbs: ["{self.verb}"]}}'
        )

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}" + (f" {self.name}" if self.name else "")


def connect(env: Env) -> Api:
    """Credentials loaded, nothing sent yet. One Api serves a whole run, from any thread.

    Errors as `load_credentials`: UnreachableError, DeniedError, BadDataError, UsageError.
    """
    return Api(
        Connection(
            lambda: load_credentials(env),
            timeout=env.request_timeout,
            max_body_size=env.max_message_size,
        ),
    )


class Api:
    """Reads; each call is bounded in time (`--request-timeout`) and in bytes.

    All methods raise UnreachableError, DeniedError (401, 403: the right that is missing),
    PeerError (any other refusal) and BadDataError (an answer that cannot be decoded).
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def server(self) -> str:
        """`https://192.0.2.1:6443`."""
        return self.connection.server

    def get_json(self, path: str, query: Query = (), *, right: Right | None = None) -> object:
        """The decoded answer to one GET."""
        return self._get(path, query, right)[0]

    def _get(self, path: str, query: Query, right: Right | None) -> tuple[object, int]:
        """The document, and its size in bytes."""
        answer = self.connection.exchange("GET", path, query=query)
        if answer.status != 200:
            raise self.refusal(answer, path, right)
        document = parse_json(answer.body, f"the answer of {self.server} to {path}")
        return document, len(answer.body)

    def get_node_json(self, name: str, *, origin: str | None = None) -> object:
        """The Node as the API server gives it, managedFields included.

        `origin` says where the name came from, for the message when there is no such Node.
        """
        _check_name(name)
        path = f"/api/v1/nodes/{quote(name, safe='')}"
        right = Right("get", "nodes", name=name)
        try:
            return self.get_json(path, right=right)
        except NotFoundError as e:
            came = f" (the name is from: {origin})" if origin else ""
            raise PeerError(
                f"{self.server} has no Node {name}{came}",
                "name it with --node, or another cluster with --context: kubectl get nodes",
            ) from e

    def get_node(self, name: str, *, origin: str | None = None) -> Node:
        return self._decoded(node_from_json, self.get_node_json(name, origin=origin))

    def list_pods_json(self, node: str) -> list[object]:
        """Pods bound to the node, in the server's order.

        The selector is also what lets a node's own credentials list them (kubelet-facts §15).
        UsageError for a name that no Node has, which could also say more than a name there.
        """
        _check_name(node)
        return self.list_json(
            "/api/v1/pods",
            [("fieldSelector", f"spec.nodeName={node}")],
            right=Right("list", "pods"),
        )

    def list_pods(self, node: str) -> tuple[Pod, ...]:
        return self._decoded(pods_from_json, self.list_pods_json(node))

    def list_device_classes(self) -> tuple[DeviceClass, ...]:
        """None where the server has no such API. DeniedError for a node's own credentials."""
        group = "resource.k8s.io"
        for version in _DEVICE_CLASS_VERSIONS:
            try:
                items = self.list_json(
                    f"/apis/{group}/{version}/deviceclasses",
                    right=Right("list", "deviceclasses", group),
                )
            except NotFoundError:
                continue
            return self._decoded(device_classes_from_json, items)
        return ()

    def list_json(
        self, path: str, query: Query = (), *, right: Right | None = None
    ) -> list[object]:
        """All items of a list, page by page. A page token that has expired starts it again.

        The list as a whole is bounded by `_LIST_TIMEOUTS` and by the bytes of one answer.
        """
        deadline = time.monotonic() + _LIST_TIMEOUTS * self.connection.timeout
        for _ in range(_MOST_RESTARTS):
            items = self._pages(path, query, right, deadline)
            if items is not None:
                return items
        raise PeerError(
            f"{self.server}: the list {path} expired {_MOST_RESTARTS} times while it was read",
            "try again when the API server is less busy",
        )

    def _pages(
        self, path: str, query: Query, right: Right | None, deadline: float
    ) -> list[object] | None:
        """All items, or None when the token expired on the way (410)."""
        items: list[object] = []
        token = ""
        size = empty = 0
        for _ in range(_MOST_PAGES):
            if time.monotonic() > deadline:
                seconds = _LIST_TIMEOUTS * self.connection.timeout
                raise UnreachableError(
                    f"{self.server} did not come to the end of the list {path} within"
                    f" {seconds:g} s",
                    "raise --request-timeout, or try again when the API server is less busy",
                )
            asked = [*query, ("limit", str(PAGE)), *([("continue", token)] if token else [])]
            try:
                document, length = self._get(path, asked, right)
            except ExpiredError:
                if token:
                    return None
                raise
            size += length
            if size > self.connection.max_body_size:
                raise BadDataError(
                    f"the list {path} of {self.server} is larger than"
                    f" {self.connection.max_body_size} bytes",
                    "raise --max-message-size if that is right",
                )
            page = Field(document, "")
            found = self._decoded(lambda f: list(f.at("items").items()), page)
            items += [item.value for item in found]
            empty = 0 if found else empty + 1
            following = self._decoded(lambda f: f.at("metadata", "continue").text(), page)
            if not following:
                return items
            token = following
            if empty == _MOST_EMPTY:
                break
        raise BadDataError(
            f"{self.server}: the list {path} does not end",
            f"check that the server in {self.connection.where} is an API server",
        )

    def refusal(self, answer: Answer, path: str, right: Right | None) -> DpctlError:
        """The error for an answer other than success."""
        server, where = self.connection.server, self.connection.where
        said = _status_message(answer)
        text = f": {said}" if said else ""
        if answer.status == 401:
            return DeniedError(
                f"{server} does not accept the credentials of {where}{text}",
                "log in again, or name other credentials with --kubeconfig or --context",
            )
        if answer.status == 403:
            needed = f"; it takes the right to {right}" if right else ""
            return DeniedError(f"{server} refuses {path}{needed}{text}", _how_to_allow(said, right))
        if answer.status == 404:
            return NotFoundError(
                f"{server} has no {path}{text}", "check --context: kubectl version"
            )
        if answer.status == _GONE:
            return ExpiredError(f"{server}: {path} has expired{text}", "try again")
        if answer.status == 429:
            return PeerError(
                f"{server} is too busy (429 Too Many Requests){text}",
                "try again later, or raise --request-timeout to wait longer",
            )
        if 300 <= answer.status < 400:
            target = shorten(answer.headers.get("location", "nowhere"), 120)
            return PeerError(
                f"{server} redirects to {target}, which dpctl does not follow",
                f"check the server address in {where}: a login page is no API server",
            )
        return PeerError(
            f"{server} answers {path} with status {answer.status}{text}",
            f"check the server's health: kubectl get --raw /readyz (credentials: {where})",
        )

    def _decoded(self, decode: Callable[[_I], _T], value: _I) -> _T:
        try:
            return decode(value)
        except BadDataError as e:
            raise BadDataError(f"the answer of {self.server}: {e.message}", e.hint) from e


_I = TypeVar("_I")


class NotFoundError(PeerError):
    """404: no such object, or no such API."""


class ExpiredError(PeerError):
    """410: the page token is too old."""


def _check_name(name: str) -> None:
    if len(name) > _LONGEST_NAME or not _NODE_NAME.fullmatch(name):
        raise UsageError(
            f"no Node can be called {shorten(name, 80)!r}",
            "names have lower-case letters, digits, '-' and '.'; name the Node with --node",
        )


def _how_to_allow(said: str, right: Right | None) -> str:
    if _OWN_CREDENTIALS in said:
        return (
            "a node's own credentials see their own Node and its pods only: use an"
            " administrator's kubeconfig with --kubeconfig"
        )
    if right is None:
        return "use other credentials with --kubeconfig, --context or --as"
    return f"have this rule added to the user's ClusterRole: {right.rule()}"


def _status_message(answer: Answer) -> str:
    """The `message` of a Status, else the beginning of a text."""
    try:
        message = Field(parse_json(answer.body, "the answer"), "").at("message").text()
    except BadDataError:
        message = answer.body[:_MESSAGE_LENGTH].decode("utf-8", "surrogateescape")
        if message.lstrip().startswith("<"):
            return ""  # a proxy's page
    return shorten(" ".join((message or "").split()), _MESSAGE_LENGTH)
