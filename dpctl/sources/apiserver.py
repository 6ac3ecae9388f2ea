"""The API server, read: Node, Pods and DeviceClasses as raw JSON and as the model.

Credentials are resolved in `credentials`, bytes move in `connection`, JSON becomes the model in
`node_json`. Here: which path, which right it takes, and what a refusal means. Nothing here changes
anything.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from dpctl.env import Env
from dpctl.errors import (
    BadDataError,
    DeniedError,
    DpctlError,
    PeerError,
    UsageError,
)
from dpctl.model import DeviceClass, Node, Pod
from dpctl.sources.connection import Answer, Connection
from dpctl.sources.credentials import load_credentials
from dpctl.sources.json_fields import Field, parse_json
from dpctl.sources.node_json import (
    device_classes_from_json,
    node_from_json,
    nodes_from_json,
    pods_from_json,
)
from dpctl.sources.pages import Bounds, ExpiredError, Page, Query, read_pages
from dpctl.text import shorten

# A whole list may take so many times the timeout of one exchange.
_LIST_TIMEOUTS = 6
_MESSAGE_LENGTH = 400
_DEVICE_CLASS_VERSIONS = ("v1", "v1beta2", "v1beta1")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_NAME = 253
_GONE = 410
_OWN_CREDENTIALS = "system:node:"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Right:
    """What RBAC must allow for a request."""

    verb: str
    resource: str
    """`nodes`, `nodes/status`."""
    group: str = ""
    name: str | None = None
    namespace: str | None = None
    """None: in every namespace (or the resource has none)."""

    def rule(self) -> str:
        """A rule of a ClusterRole that gives it."""
        return (
            f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"],'
            f' verbs: ["{self.verb}"]}}'
        )

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{named}" + (
            f" in {self.namespace}" if self.namespace else ""
        )


def connect(env: Env, *, connections: int | None = None, patience: float = 0.0) -> Api:
    """Credentials loaded, nothing sent yet. One Api serves a whole run, from any thread.

    `connections` are kept open, for as many threads; a busy server is waited for up to `patience`
    seconds where that is more than `--request-timeout`.

    Errors as `load_credentials`: UnreachableError, DeniedError, BadDataError, UsageError.
    """
    return Api(
        Connection(
            lambda: load_credentials(env, connections=connections),
            timeout=env.request_timeout,
            max_body_size=env.max_message_size,
            patience=patience,
        )
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

        `origin` says where the name came from, for the message when there is no such Node
        (NotFoundError).
        """
        _check_name(name)
        path = f"/api/v1/nodes/{quote(name, safe='')}"
        right = Right("get", "nodes", name=name)
        try:
            return self.get_json(path, right=right)
        except NotFoundError as e:
            came = f" (the name is from: {origin})" if origin else ""
            raise NotFoundError(
                f"{self.server} has no Node {name}{came}",
                "name it with --node, or another cluster with --context: kubectl get nodes",
            ) from e

    def get_node(
        self, name: str, *, origin: str | None = None, keep: Callable[[object], None] | None = None
    ) -> Node:
        """`keep` takes the document as it came."""
        document = self.get_node_json(name, origin=origin)
        node = self._decoded(node_from_json, document)
        if node.name != name:
            found = shorten(node.name, 80)
            raise BadDataError(
                f"{self.server} was asked for Node {name} and answered with {found}",
                f"check that the server in {self.connection.where} is an API server",
            )
        if keep is not None:
            keep(document)
        return node

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

    def list_pods(
        self, node: str, *, keep: Callable[[list[object]], None] | None = None
    ) -> tuple[Pod, ...]:
        items = self.list_pods_json(node)
        if keep is not None:
            keep(items)
        return self._decoded(pods_from_json, items)

    def list_unscheduled_pods(self) -> tuple[Pod, ...]:
        """Pods of the whole cluster that are bound to no node and not over. DeniedError for a
        node's own credentials."""
        selector = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
        items = self.list_json(
            "/api/v1/pods", [("fieldSelector", selector)], right=Right("list", "pods")
        )
        return self._decoded(pods_from_json, items)

    def list_device_classes(
        self, *, keep: Callable[[list[object]], None] | None = None
    ) -> tuple[DeviceClass, ...]:
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
            if keep is not None:
                keep(items)
            return self._decoded(device_classes_from_json, items)
        return ()

    def list_json(
        self, path: str, query: Query = (), *, right: Right | None = None
    ) -> list[object]:
        """All items of a list, page by page. A page token that has expired starts it again.

        The list as a whole is bounded by `_LIST_TIMEOUTS` and by the bytes of one answer.
        """
        seconds = _LIST_TIMEOUTS * self.connection.timeout
        bounds = Bounds(time.monotonic() + seconds, seconds, self.connection.max_body_size)
        items: list[object] = []
        for page in self._pages(path, query, right, bounds):
            if page.first:
                items.clear()
            items += page.items
        return items

    def node_pages(self, selection: Selection) -> Iterator[tuple[Node, ...]]:
        """The Nodes that were selected, 500 at a time, each once, in the server's order (by name).

        A list of any length: each page is bounded, not the whole. A page token that expires while
        the caller is busy goes on behind the last page.
        """
        if selection.name is not None:
            yield (self.get_node(selection.name, origin=selection.origin),)
            return
        query = [("labelSelector", selection.labels), ("fieldSelector", selection.fields)]
        asked = [(key, text) for key, text in query if text]
        seen: set[str] = set()
        right = Right("list", "nodes")
        for page in self._pages("/api/v1/nodes", asked, right, Bounds(), goes_on=True):
            nodes = self._decoded(nodes_from_json, page.items)
            new = tuple(node for node in nodes if node.name not in seen)
            seen.update(node.name for node in new)
            del page, nodes  # the next page is read while this frame waits
            yield new

    def pod_pages(self, node: str | None = None) -> Iterator[PodPage]:
        """Pods that have not ended, of one Node or of all (unscheduled ones, too), 500 at a time.

        The selectors are also what keeps pods that have run their course off the wire; a node's
        own credentials may list with `node` alone.
        """
        if node is not None:
            _check_name(node)
        terms = [f"spec.nodeName={node}"] if node is not None else []
        terms += ["status.phase!=Succeeded", "status.phase!=Failed"]
        right = Right("list", "pods")
        query = [("fieldSelector", ",".join(terms))]
        for page in self._pages("/api/v1/pods", query, right, Bounds()):
            pods, first = self._decoded(pods_from_json, page.items), page.first
            del page
            yield PodPage(pods, first)

    def _pages(
        self,
        path: str,
        query: Query,
        right: Right | None,
        bounds: Bounds,
        *,
        goes_on: bool = False,
    ) -> Iterator[Page]:
        return read_pages(
            lambda where, asked: self._get(where, asked, right),
            path,
            query,
            server=self.server,
            where=self.connection.where,
            bounds=bounds,
            goes_on=goes_on,
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
            return ExpiredError(
                f"{server}: {path} has expired{text}", "try again", _following(answer)
            )
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


class Selection(NamedTuple):
    """Which Nodes: the one of that name, else those that the selectors match (none: all)."""

    name: str | None = None
    origin: str | None = None
    """Where the name came from, for the message when there is no such Node."""
    labels: str | None = None
    """`-l`: `pool=gpu,zone!=a`."""
    fields: str | None = None
    """`metadata.name!=worker-0,spec.unschedulable=false`."""


class PodPage(NamedTuple):
    pods: tuple[Pod, ...]
    first: bool
    """The list begins here, maybe anew: what came before is void."""


def _check_name(name: str) -> None:
    if len(name) > _LONGEST_NAME or not _NODE_NAME.fullmatch(name):
        raise UsageError(
            f"no Node can be called {shorten(name, 80)!r}",
            "names have lower-case letters, digits, '-' and '.'; name the Node with --node",
        )


def _following(answer: Answer) -> str | None:
    """The token that a 410 brings for going on with what the server has now."""
    try:
        status = Field(parse_json(answer.body, "the answer"), "")
        return status.at("metadata", "continue").text() or None
    except BadDataError:
        return None


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
