"""One JSON Patch to a Node's status: how it is written, and the one request that sends it.

On `/status` and nowhere else: the same patch on the Node itself answers 200 and changes nothing
(kubelet-facts §11). What an answer means is told in `changes.apply`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from dpctl.model.changes import KeyChange
from dpctl.sources.apiserver import Right
from dpctl.sources.json_fields import parse_json
from dpctl.sources.node_json import node_from_json

if TYPE_CHECKING:
    from dpctl.errors import DpctlError
    from dpctl.model import Node
    from dpctl.sources.apiserver import Api
    from dpctl.sources.connection import Answer

JSON_PATCH = "application/json-patch+json"
MOST_OPERATIONS = 10_000
"""The API server takes no more in one patch (413)."""


def status_path(node: str) -> str:
    return f"/api/v1/nodes/{quote(node, safe='')}/status"


def right(node: str) -> Right:
    """What it takes to send the patch."""
    return Right("patch", "nodes/status", name=node)


def operations(
    changes: tuple[KeyChange, ...], *, uid: str | None, boot_id: str | None = None
) -> list[dict[str, object]]:
    """Every `test` first, then the changes: as the exact text read, or null for a key that must not
    be there. The UID guards against a Node made anew, the boot ID against another machine."""
    tests: list[dict[str, object]] = []
    if uid is not None:
        tests.append({"op": "test", "path": "/metadata/uid", "value": uid})
    if boot_id is not None:
        tests.append({"op": "test", "path": "/status/nodeInfo/bootID", "value": boot_id})
    acts: list[dict[str, object]] = []
    for change in changes:
        path = f"/status/{change.part}/{_escaped(change.resource)}"
        tests.append({"op": "test", "path": path, "value": change.before})
        if change.after is not None:
            acts.append({"op": "add", "path": path, "value": change.after})
        elif change.before is not None:
            acts.append({"op": "remove", "path": path})
    return tests + acts


def patch_node_status(
    api: Api, node: str, patch: list[dict[str, object]], *, manager: str, dry_run: bool = False
) -> Answer:
    """Send it once. The answer may be any status; UnreachableError where none came, and then the
    patch may have been applied all the same."""
    query = [("fieldManager", manager)]
    if dry_run:
        query.append(("dryRun", "All"))
    return api.connection.exchange(
        "PATCH",
        status_path(node),
        query=query,
        body=json.dumps(patch).encode(),
        content_type=JSON_PATCH,
    )


def _escaped(name: str) -> str:
    """A name as one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def decode_node(api: Api, answer: Answer) -> Node:
    """The Node in a successful answer. Raises BadDataError."""
    what = f"the answer of {api.server}"
    return node_from_json(parse_json(answer.body, what))


def refusal(api: Api, answer: Answer, node: str) -> DpctlError:
    """The error for an answer other than success."""
    return api.refusal(answer, status_path(node), right(node))
