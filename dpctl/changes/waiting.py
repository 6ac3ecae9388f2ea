"""`--wait`: until the kubelet has let go of the keys in Grace, or it is clear that it will not.

The proof that it has let go is the name's absence from RegisteredDevices *and* capacity 0 on the
Node: before that a removed key comes back (kubelet-facts §4.5). Every look reads everything anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from dpctl.changes.grace import words_left
from dpctl.errors import DpctlError, FoundError, NotAppliedError
from dpctl.inventory.rows import ResourceState
from dpctl.model.changes import ChangePlan, PlanRow, Verdict
from dpctl.quantity import count

_SERVED = {
    str(state)
    for state in (
        ResourceState.READY,
        ResourceState.DEGRADED,
        ResourceState.MISMATCH,
        ResourceState.EMPTY,
        ResourceState.UNREGISTERED,
    )
}
_PATIENCE = 3.0
"""Status periods for which a thing that passes by itself may last: no evidence (a kubelet that is
being restarted), a Node that has not caught up."""
_OUTAGE = 30.0
"""Seconds that a kubelet may be away, whatever its status period: a restart by hand takes some."""
_TELL = 30.0


class Clock(NamedTuple):
    """Monotonic: the wall clock may jump."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep


def waits(plan: ChangePlan) -> tuple[str, ...]:
    """Resources that a plan would wait for."""
    return tuple(row.resource for row in plan.rows if row.verdict is Verdict.WAIT)


def wait_for_kubelet(
    plan_now: Callable[[], ChangePlan],
    first: ChangePlan,
    timeout: float,
    *,
    tell: Callable[[str], None],
    clock: Clock | None = None,
) -> ChangePlan:
    """The plan once every waited key may go (or is gone). Nothing is ever changed here.

    Raises NotAppliedError when a plugin came back, the kubelet is down or never noticed, a pod has
    taken the key; FoundError after `timeout` seconds.
    """
    return _Wait(plan_now, first, timeout, tell, clock or Clock()).run()


class _Wait:
    def __init__(
        self,
        plan_now: Callable[[], ChangePlan],
        first: ChangePlan,
        timeout: float,
        tell: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self.plan_now = plan_now
        self.plan = first
        self.names = waits(first)
        self.owners = {row.resource: row.owners for row in first.rows}
        self.local = first.boot_id is not None
        """Everything that tells was there at first."""
        self.clock = clock
        self.tell = tell
        self.end = clock.now() + timeout
        self.timeout = timeout
        self.odd_since: dict[tuple[str, str], float] = {}
        """(resource, kind of oddness) to when it was first seen."""
        self.told = float("-inf")
        self.last_error: DpctlError | None = None

    def run(self) -> ChangePlan:
        while True:
            rows = {row.resource: row for row in self.plan.rows}
            open_ = [rows[n] for n in self.names if n in rows and not self._settled(rows[n])]
            if not open_ and self.last_error is None:
                return self.plan
            self._say(open_)
            if self.clock.now() >= self.end:
                raise self._too_late(open_)
            pause = self._pause(open_)
            self.clock.sleep(min(pause, max(self.end - self.clock.now(), 0.01)))
            try:
                self.plan = self.plan_now()
            except DpctlError as error:
                self.last_error = error  # the next look may succeed
            else:
                self.last_error = None

    def _pause(self, open_: list[PlanRow]) -> float:
        """Seconds to the next look: a look costs a third of a second of CPU, on a node in trouble.

        Far from the end of the grace only news can come, and news may wait for some seconds; near
        it the key is to go soon after the kubelet lets go.
        """
        soon = min(max(self.plan.period / 4, 0.1), 5.0)
        left = min((row.time_left for row in open_ if row.time_left is not None), default=10.0)
        return min(max(left / 10, soon), 20.0)

    def _settled(self, row: PlanRow) -> bool:
        """Whether this key needs no more waiting. Raises NotAppliedError where it makes none."""
        if row.capacity is None and row.allocatable is None:
            return row.verdict is not Verdict.WAIT  # gone, by somebody else's hand
        if row.state in _SERVED:
            raise NotAppliedError(
                f"{row.resource}: its plugin came back during the wait, so nothing was removed"
                f" ({'; '.join(row.evidence)})",
                "stop the plugin for good (its DaemonSet), then run again with --wait",
            )
        if row.verdict is Verdict.WAIT:
            noticed = (count(row.allocatable) or 0) == 0
            if noticed:
                self._forget(row)
            elif self._lasts(row, "unnoticed"):
                raise NotAppliedError(
                    f"{row.resource}: the kubelet has not noticed that its plugin is gone"
                    f" (allocatable still {row.allocatable} after two status periods), and will"
                    " never let go of it",
                    "restart the kubelet, then run again with --wait",
                )
            return False
        if row.state == ResourceState.FOREIGN and row.owners != self.owners.get(row.resource):
            raise NotAppliedError(
                f"{row.resource}: it belongs to {', '.join(row.owners or ())} by now, so nothing"
                " was removed",
                f"dpctl node remove {row.resource} takes it all the same",
            )
        zero = count(row.capacity or "0") == 0 and count(row.allocatable or "0") == 0
        if row.state in (ResourceState.GHOST, ResourceState.UNKNOWN) or not zero:
            if row.state == ResourceState.UNKNOWN:
                self._say_unknown(row)
            if not self._lasts(row, row.state):
                return False
            if row.state == ResourceState.UNKNOWN:
                raise NotAppliedError(
                    f"{row.resource}: it cannot be told any more whether it may go, so nothing was"
                    f" removed: {row.reason} (a kubelet that is down lets go of nothing)",
                    self._way_back(row),
                )
            raise NotAppliedError(
                f"{row.resource}: the kubelet has let go of it, but its last word, 0, never reached"
                f" the Node: it is {row.capacity}/{row.allocatable}, and nobody behind it",
                f"dpctl node remove {row.resource} takes it now (prune: --include ghost)",
            )
        if row.verdict is Verdict.REFUSE:
            raise NotAppliedError(
                f"{row.resource}: {row.reason}; nothing was removed", row.next_step
            )
        return True

    def _lasts(self, row: PlanRow, kind: str) -> bool:
        """Whether it has been so for longer than what passes by itself."""
        self._forget(row, but=kind)
        since = self.odd_since.setdefault((row.resource, kind), self.clock.now())
        patience = _PATIENCE * self.plan.period
        if kind == ResourceState.UNKNOWN:
            patience = max(patience, _OUTAGE)
        return self.clock.now() - since > patience

    def _forget(self, row: PlanRow, but: str | None = None) -> None:
        """What has passed begins anew when it comes again."""
        for known in [k for k in self.odd_since if k[0] == row.resource and k[1] != but]:
            del self.odd_since[known]

    def _way_back(self, row: PlanRow) -> str | None:
        """What told at first tells no more: then nobody need go elsewhere to look."""
        if not self.local:
            return row.next_step
        return (
            f"see that the kubelet of {self.plan.node} runs (a restart writes its checkpoint"
            " anew), then run again with --wait"
        )

    def _say_unknown(self, row: PlanRow) -> None:
        if not any(kind == ResourceState.UNKNOWN for _, kind in self.odd_since):
            self.tell(f"waiting for the kubelet, which lets go of nothing while down: {row.reason}")

    def _say(self, open_: list[PlanRow]) -> None:
        if self.clock.now() - self.told < _TELL:
            return
        self.told = self.clock.now()
        if self.last_error is not None:
            self.tell(f"waiting: {self.last_error.message}")
        elif open_:
            left = max((row.time_left for row in open_ if row.time_left is not None), default=None)
            names = ", ".join(row.resource for row in open_[:3])
            more = f" and {len(open_) - 3} more" if len(open_) > 3 else ""
            self.tell(f"waiting for the kubelet to let go of {names}{more}: {words_left(left)}")

    def _too_late(self, open_: list[PlanRow]) -> FoundError:
        names = ", ".join(row.resource for row in open_[:3])
        why = f": {self.last_error.message}" if self.last_error is not None else ""
        what = f"the kubelet still holds {names}" if names else "the last look failed"
        return FoundError(
            f"{what} after {self.timeout:g} s{why}; nothing was removed",
            "wait longer: --timeout 10m; is the kubelet running?",
        )
