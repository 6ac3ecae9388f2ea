"""A plan to the API server, and what its answer means.

A 422 says nothing, so the Node is read again to explain it; a 200 is believed only where the
answer shows the change; a request that broke off is judged by what the Node says.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dpctl.errors import BadDataError, DeniedError, DpctlError, NotAppliedError, UnreachableError
from dpctl.model import Node
from dpctl.model.changes import AppliedChange, ChangePlan, KeyChange, Patch
from dpctl.quantity import count
from dpctl.sources.retries import LostError
from dpctl.text import named, shorten
from dpctl.writes.node_status import (
    MOST_OPERATIONS,
    decode_node,
    operations,
    patch_node_status,
    refusal,
)

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api
    from dpctl.sources.connection import Answer

_TRIES = 4
"""Of one patch that was surely not applied: a conflict; no answer, and the Node as it was."""
_PAUSE = 0.5
_TIMED_OUT = 408
_SAYS_NOTHING = "due to an error in our request"


class UncertainError(UnreachableError):
    """No answer, and the Node cannot be read either: the patch may have been applied."""


class DoubtfulError(NotAppliedError):
    """Not applied by the look of the Node, and never refused: it may be, or have been in part."""


def apply_plan(api: Api, plan: ChangePlan, *, dry_run: bool = False) -> AppliedChange:
    """Send the plan's patches. Raises NotAppliedError (with the reason found on the Node),
    DeniedError (with what to add), PeerError: surely nothing was changed; DoubtfulError,
    UncertainError (the outcome is not known)."""
    gone: list[str] = []
    for patch in plan.patches:
        if _send(api, plan, patch, dry_run):
            gone += dict.fromkeys(change.resource for change in patch.changes)
    return AppliedChange(
        node=plan.node,
        uid=plan.uid,
        changes=tuple(change for patch in plan.patches for change in patch.changes),
        at=time.time(),
        period=plan.period,
        kubelet_manager=plan.kubelet_manager,
        gone_already=tuple(gone),
        dry_run=dry_run,
    )


def _send(api: Api, plan: ChangePlan, patch: Patch, dry_run: bool) -> bool:
    """One patch; whether somebody else had done it all before."""
    sent = operations(patch.changes, uid=plan.uid, boot_id=plan.boot_id)
    if len(sent) > MOST_OPERATIONS:
        raise NotAppliedError(
            f"{len(sent)} operations are more than one patch takes ({MOST_OPERATIONS})",
            "take fewer keys at once: dpctl node prune --match GLOB",
        )
    doubts: list[DpctlError] = []
    try:
        return _attempts(api, plan, patch, sent, dry_run, doubts)
    except UncertainError:
        raise
    except DpctlError as error:
        if doubts and not dry_run:  # an earlier attempt may be under way still
            raise DoubtfulError(error.message, error.hint) from (error.__cause__ or error)
        if not isinstance(error, NotAppliedError):
            error.message = f"nothing was changed: {error.message}"
        raise


def _attempts(
    api: Api,
    plan: ChangePlan,
    patch: Patch,
    sent: list[dict[str, object]],
    dry_run: bool,
    doubts: list[DpctlError],
) -> bool:
    """`doubts` gets what may have been applied although no answer says so."""
    failure: DpctlError | None = None
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE * attempt)
        try:
            answer = patch_node_status(api, plan.node, sent, manager=patch.manager, dry_run=dry_run)
            if 200 <= answer.status < 300:
                _believe(api, answer, plan, patch, dry_run, doubts)
                return False
        except (UnreachableError, BadDataError) as error:
            failure = error
            if not isinstance(error, UnreachableError) or isinstance(error, LostError):
                doubts.append(error)
        else:
            failure = refusal(api, answer, plan.node)
            if answer.status == 422:
                return _explained(api, plan, patch, dry_run, failure)
            if answer.status == 404:
                raise NotAppliedError(
                    f"there is no Node {plan.node} any more", "kubectl get nodes"
                ) from failure
            if answer.status == 403:
                raise _denied(failure, plan) from failure
            if answer.status == 409:  # surely not applied; 429 has been waited for
                continue
            if 300 <= answer.status < 500 and answer.status != _TIMED_OUT:
                raise failure
            doubts.append(failure)  # a server, or a proxy before it, failed: at what is not said
        if dry_run:
            continue  # nothing can have happened
        if _happened(api, plan, patch, failure):
            return False
    assert failure is not None
    hint = failure.hint or f"try again; is {api.server} an API server?"
    raise NotAppliedError(f"nothing was changed: {failure.message}", hint) from failure


def _believe(
    api: Api,
    answer: Answer,
    plan: ChangePlan,
    patch: Patch,
    dry_run: bool,
    doubts: list[DpctlError],
) -> None:
    """Raises NotAppliedError for a success that changed nothing, BadDataError for one that does not
    show this Node. What was changed in part is applied: the keys that stand are told later."""
    node = decode_node(api, answer)
    if node.uid != plan.uid:
        raise BadDataError(f"{api.server} answered with another Node", "is it an API server?")
    if stands(node, patch.changes, after=True):
        return
    if not dry_run and not stands(node, patch.changes, after=False):
        return
    where = f"PATCH /api/v1/nodes/{plan.node}/status"
    error = NotAppliedError(
        f"{api.server} answered {where} with success and changed nothing",
        "something between dpctl and the API server drops /status, or an admission webhook puts the"
        " keys back: try kubectl patch node … --subresource=status against the server itself",
    )
    doubts.append(error)
    raise error


def _happened(api: Api, plan: ChangePlan, patch: Patch, failure: DpctlError) -> bool:
    """After a request without a usable answer: whether the Node shows the change."""
    try:
        node = api.get_node(plan.node)
    except DpctlError as error:
        raise UncertainError(
            f"whether the change of {plan.node} was made is not known: {failure.message}",
            "look when the server answers again: dpctl resources; dpctl node undo puts it back",
        ) from error
    if node.uid == plan.uid and stands(node, patch.changes, after=True):
        return True
    if node.uid == plan.uid and stands(node, patch.changes, after=False):
        return False
    raise NotAppliedError(explain(node, plan, patch), "run the same again") from failure


def _explained(
    api: Api, plan: ChangePlan, patch: Patch, dry_run: bool, failure: DpctlError
) -> bool:
    """A 422: True where the Node is as wished all the same. Raises NotAppliedError."""
    try:
        node = api.get_node(plan.node)
    except DpctlError as error:
        raise NotAppliedError(
            f"{api.server} refused the patch (422) and does not say why; the Node cannot be read"
            f" again: {error.message}",
            "run the same again",
        ) from error
    as_wished = node.uid == plan.uid and stands(node, patch.changes, after=True)
    if as_wished and not dry_run:
        return True
    # What failed a test is not named; what failed validation is.
    silent = failure.message.endswith(" 422") or _SAYS_NOTHING in failure.message
    raise NotAppliedError(
        f"nothing was changed: {explain(node, plan, patch, '' if silent else failure.message)}",
        "run the same again: it looks at the Node as it is now"
        if silent
        else "the API server does not take what was asked for, or a webhook does not",
    )


def stands(node: Node, changes: tuple[KeyChange, ...], *, after: bool) -> bool:
    """Whether every key is as it was before, or as it should be after; amounts as numbers."""
    return all(
        _same(_now(node, change), change.after if after else change.before) for change in changes
    )


def explain(node: Node, plan: ChangePlan, patch: Patch, said: str = "") -> str:
    """What on the Node does not fit the patch's tests, else what the server said. Pure."""
    if node.uid != plan.uid:
        return f"Node {plan.node} has been made anew meanwhile (another UID)"
    if plan.boot_id is not None and node.boot_id != plan.boot_id:
        return f"Node {plan.node} has another boot ID than a moment ago: it was restarted"
    words: list[str] = []
    for change in patch.changes:
        now = _now(node, change)
        if now == change.before:
            continue
        who = ", ".join((node.owners or {}).get(change.resource, ()))
        by = f" by {who}" if who and change.part == "capacity" else ""
        was, became = change.before or "no key", now or "no key"
        words.append(f"{change.part} of {named(change.resource)} was {was} and is {became}{by}")
    if not words and said:
        return said
    if not words:
        return (
            f"{plan.node}: the API server refused the patch (422) without saying why, and the Node"
            " is as it was when it was read (somebody may have changed it to and fro)"
        )
    return shorten("changed meanwhile: " + "; ".join(words), 1000)


def _denied(failure: DpctlError, plan: ChangePlan) -> DpctlError:
    if "is not allowed to modify node" in failure.message:
        return DeniedError(
            f"a node's own credentials may change that node alone: {failure.message}",
            f"run dpctl on {plan.node}, or use an administrator's kubeconfig: --kubeconfig FILE",
        )
    return failure


def _now(node: Node, change: KeyChange) -> str | None:
    part = node.capacity if change.part == "capacity" else node.allocatable
    return part.get(change.resource)


def _same(now: str | None, wanted: str | None) -> bool:
    """`1000` is stored as `1k`."""
    if now is None or wanted is None or now == wanted:
        return now == wanted
    return count(now) is not None and count(now) == count(wanted)
