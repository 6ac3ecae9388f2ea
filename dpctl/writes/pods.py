"""Deleting one pod. Which pods may go is decided in `changes.failed_pods`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from dpctl.sources.apiserver import Right

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api
    from dpctl.sources.connection import Answer


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def right(namespace: str | None = None) -> Right:
    """What it takes."""
    return Right("delete", "pods", namespace=namespace)


def delete_pod(api: Api, namespace: str, name: str, *, uid: str, dry_run: bool = False) -> Answer:
    """Sent once. The UID is a precondition: a pod of the same name that was made since stays.
    LostError where no answer came: it may be gone all the same."""
    options: dict[str, object] = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": uid},
    }
    if dry_run:
        options["dryRun"] = ["All"]
    return api.connection.exchange(
        "DELETE",
        pod_path(namespace, name),
        query=[("dryRun", "All")] if dry_run else [],
        body=json.dumps(options).encode(),
    )
