"""Pods that the kubelet rejected at admission: found by the inventory, deleted here one by one.

A rejected pod is final: it never started and never will, and its controller has made another one
(kubelet-facts §12.33). Nothing else that failed is touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpctl.errors import BadDataError
from dpctl.inventory.rows import FailedPodRow
from dpctl.model.changes import Outcome
from dpctl.model.leftovers import PodChangeRow
from dpctl.sources.apiserver import NotFoundError
from dpctl.sources.json_fields import Field, parse_json
from dpctl.sources.node_json import pods_from_json
from dpctl.sources.retries import LostError
from dpctl.writes.pods import delete_pod, pod_path, right

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api

_CONFLICT = 409
_NOT_FOUND = 404
_DONE = (200, 202)


def planned(row: FailedPodRow) -> PodChangeRow:
    return PodChangeRow(
        row.namespace, row.pod, row.uid, row.reason, row.message, row.owner, None, None
    )


def delete_failed(api: Api, row: PodChangeRow, *, dry_run: bool = False) -> PodChangeRow:
    """The row with its outcome. Raises DeniedError (the next pod would be refused, too) and
    UnreachableError; a pod that is another one by now is NOT_APPLIED."""
    try:
        answer = delete_pod(api, row.namespace, row.pod, uid=row.uid, dry_run=dry_run)
    except LostError as error:
        if _is_there(api, row):
            return _not_done(row, error.message)
        return row._replace(outcome=Outcome.CHANGED)
    if answer.status in _DONE:
        held = None if dry_run else _held(answer.body)
        if held is not None:
            return _not_done(row, held)
        return row._replace(outcome=Outcome.DRY_RUN if dry_run else Outcome.CHANGED)
    if answer.status == _NOT_FOUND:
        return row._replace(outcome=Outcome.GONE_ALREADY, detail="it was gone already")
    refusal = api.refusal(answer, pod_path(row.namespace, row.pod), right(row.namespace))
    if answer.status == _CONFLICT:
        return _not_done(row, f"another pod has the name by now: {refusal.message}")
    if answer.status in (401, 403):
        raise refusal
    return _not_done(row, refusal.message)


def _held(body: bytes) -> str | None:
    """Why the pod is there still although the server took the request. The answer holds the pod as
    it stands then; a pod that is over goes at once, unless a finalizer keeps it."""
    try:
        answer = Field(parse_json(body, "its answer"), "its answer")
        finalizers = answer.at("metadata", "finalizers").texts()
    except BadDataError as error:
        return f"the server took it, but {error.message}"
    if finalizers:
        return f"marked for deletion, held by {', '.join(finalizers)} (finalizers)"
    return None


def _not_done(row: PodChangeRow, why: str) -> PodChangeRow:
    return row._replace(outcome=Outcome.NOT_APPLIED, detail=why)


def _is_there(api: Api, row: PodChangeRow) -> bool:
    """Whether this very pod stands there still. Raises what reading raises."""
    try:
        found = pods_from_json(api.get_json(pod_path(row.namespace, row.pod)))
    except NotFoundError:
        return False
    return any(pod.uid == row.uid and not pod.deleted for pod in found)
