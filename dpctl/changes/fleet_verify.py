"""Many Nodes looked at together, by list pages, after the last patch: did it stay?

`verify.judge` says it of one reading of one Node; here are the looks and their times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dpctl.changes.apply import stands
from dpctl.changes.verify import judge, window
from dpctl.errors import DpctlError
from dpctl.model import Node
from dpctl.model.changes import AppliedChange, KeyOutcome, Outcome
from dpctl.sources.apiserver import Selection

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api

_LOOKS = 2
"""In the window, the last one at its end: each reads every Node."""

Outcomes = dict[str, tuple[KeyOutcome, ...]]


def verify_all(
    api: Api,
    selection: Selection,
    applied: Mapping[str, AppliedChange],
    *,
    doubtful: frozenset[str] = frozenset(),
    seconds: float | None = None,
    wait: Callable[[float], bool],
) -> Outcomes:
    """The outcomes of each Node. `seconds` None: two of the longest status periods, counted from
    now, which is after the last patch. `wait` sleeps and says whether to stop looking; then what
    was not seen to the end is UNVERIFIED. `doubtful`: Nodes whose patch may have been lost.

    A key that was back once has come back, however it ends. Never raises for a list that cannot be
    read: the Nodes are UNVERIFIED then.
    """
    if not applied:
        return {}
    length = max(window(each, seconds) for each in applied.values())
    back: dict[str, dict[str, KeyOutcome]] = {}
    end = time.monotonic() + length
    outcomes = {name: judge(None, each, final=False) for name, each in applied.items()}
    for look in range(_LOOKS if length > 0 else 1):
        left = end - time.monotonic()
        part = left if look == _LOOKS - 1 else length / _LOOKS
        if length > 0 and wait(max(part, 0.0)):
            break
        final = length > 0 and look == _LOOKS - 1
        outcomes = _look(api, selection, applied, doubtful, final)
        for name, found in outcomes.items():
            for outcome in found:
                if outcome.outcome is Outcome.CAME_BACK:
                    back.setdefault(name, {})[outcome.resource] = outcome
    return {
        name: tuple(back.get(name, {}).get(each.resource, each) for each in found)
        for name, found in outcomes.items()
    }


def _look(
    api: Api,
    selection: Selection,
    applied: Mapping[str, AppliedChange],
    doubtful: frozenset[str],
    final: bool,
) -> Outcomes:
    found: Outcomes = {}
    try:
        for page in api.node_pages(selection):
            for node in page:
                if node.name in applied:
                    found[node.name] = _judged(node, applied[node.name], doubtful, final)
    except DpctlError:
        pass  # those that were not reached are read one by one, or stay unverified
    # A label that a selector named may have gone together with the key.
    failures = 0
    for name in applied.keys() - found.keys():
        try:
            if failures < _LOOKS:
                found[name] = _judged(api.get_node(name), applied[name], doubtful, final)
                continue
        except DpctlError:
            failures += 1
        found[name] = judge(None, applied[name], final=final)
    return found


def _judged(
    node: Node, applied: AppliedChange, doubtful: frozenset[str], final: bool
) -> tuple[KeyOutcome, ...]:
    outcomes = judge(node, applied, final=final)
    if node.name not in doubtful or not stands(node, applied.changes, after=False):
        return outcomes
    words = "the request was lost on its way, and the Node is as it was"
    return tuple(
        each._replace(outcome=Outcome.NOT_APPLIED, detail=words, next_step="run the same again")
        for each in outcomes
    )
