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
        found = _found(api, row)
        if found is None:
            return row._replace(outcome=Outcome.CHANGED)
        return _not_done(row, _held(found, row) or error.message)
    if answer.status in _DONE:
        held = _judged(answer.body, row)
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


def _judged(body: bytes, row: PodChangeRow) -> str | None:
    """Why the pod is there still although the server took the request. The answer holds the pod as
    it stands then, or a Status; a pod that is over goes at once, unless a finalizer keeps it."""
    try:
        answer = parse_json(body, "its answer")
        if Field(answer, "its answer").at("status").value == "Failure":
            return "the server took it, but its answer is a failure"
        return _held(answer, row)
    except BadDataError as error:
        return f"the server took it, but {error.message}"


def _held(answer: object, row: PodChangeRow) -> str | None:
    """What keeps this pod. Raises BadDataError."""
    metadata = Field(answer, "its answer").at("metadata")
    uid = metadata.at("uid").text()
    if uid and uid != row.uid:
        return "the server took it, but its answer is about another pod"
    names = [name or "a nameless one" for name in metadata.at("finalizers").texts()]
    return f"marked for deletion, held by {', '.join(names)} (finalizers)" if names else None


def _not_done(row: PodChangeRow, why: str) -> PodChangeRow:
    return row._replace(outcome=Outcome.NOT_APPLIED, detail=why)


def _found(api: Api, row: PodChangeRow) -> object | None:
    """This very pod as it stands, None when it is gone. Raises what reading raises."""
    try:
        found = api.get_json(pod_path(row.namespace, row.pod))
    except NotFoundError:
        return None
    return found if any(pod.uid == row.uid for pod in pods_from_json(found)) else None
