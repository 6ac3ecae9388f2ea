"""`node set --keep`: hold an operator's count on the Node for as long as this process runs.

It is lost when the Node object is made anew, when somebody removes the key, and when a kubelet
resets what it does not know to 0 at its start (kubelet-facts §4.4). Against another writer's
number, or a plugin's, nothing is held: two that write one key would never end.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from dpctl.changes.apply import apply_plan
from dpctl.errors import DeniedError, DpctlError, NotAppliedError
from dpctl.model import Node, Snapshot
from dpctl.model.changes import ChangePlan, Verdict
from dpctl.quantity import count as number_of

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api


class Holding(NamedTuple):
    api: Api
    node: str
    resource: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    look: Callable[[], Snapshot]
    plan: Callable[[Snapshot], ChangePlan]
    tell: Callable[[str], None]
    interval: float


def keep(holding: Holding, stop: Event) -> None:
    """Until `stop`. Errors of the API server are told and outlived. Raises NotAppliedError when the
    name is somebody else's by now, DeniedError when the right is gone."""
    said: str | None = None
    while not stop.is_set():
        try:
            node = holding.api.get_node(holding.node)
            if not _stands(node, holding):
                _refuse_strangers(node, holding)
                _advertise(holding)
            if said is not None:
                holding.tell(f"node/{holding.node} can be read again")
            said = None
        except (NotAppliedError, DeniedError):
            raise
        except DpctlError as error:
            if said != error.message:
                holding.tell(f"waiting: {error.message}")
            said = error.message
        stop.wait(holding.interval)


def _stands(node: Node, holding: Holding) -> bool:
    # The kubelet writes allocatable after capacity; only a count that is there and differs is loss.
    found = number_of(node.capacity.get(holding.resource))
    return found == holding.count and node.allocatable.get(holding.resource) is not None


def _refuse_strangers(node: Node, holding: Holding) -> None:
    found = node.capacity.get(holding.resource)
    owners = (node.owners or {}).get(holding.resource, ())
    if found is None or number_of(found) in (0, holding.count):
        return
    by = ", ".join(owners) or "nobody known"
    raise NotAppliedError(
        f"{holding.resource} is {found} by now, written by {by}: it is not kept any longer",
        f"have {by} stop writing it, then start --keep again",
    )


def _advertise(holding: Holding) -> None:
    plan = holding.plan(holding.look())
    row = plan.rows[0]
    if row.verdict is Verdict.KEEP:
        return
    if row.verdict is not Verdict.CHANGE:
        raise NotAppliedError(
            f"{holding.resource} is not kept any longer: {row.reason}", row.next_step
        )
    was = f"{row.capacity or 'gone'}"
    try:
        apply_plan(holding.api, plan)
    except NotAppliedError as error:  # somebody was quicker: look again
        holding.tell(error.message)
        return
    holding.tell(f"node/{plan.node} {holding.resource} was {was}: set to {holding.count} again")
