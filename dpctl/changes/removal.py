"""Which keys of a Node may go: pure, over one snapshot (`remove`, `prune`).

The contract's step 2. What a state means is the inventory's; here each state meets what a person
asked for, and every refusal says why and what to do.
"""

from __future__ import annotations

from typing import NamedTuple

from dpctl import names
from dpctl.changes.evidence import Evidence, evidence_of
from dpctl.changes.grace import time_left, told_by, words_left
from dpctl.errors import BadDataError
from dpctl.inventory.ages import status_period
from dpctl.inventory.devices import Devices
from dpctl.inventory.resources import requests, resource_rows
from dpctl.inventory.rows import ResourceRow, ResourceState
from dpctl.model import Node, Snapshot, Source, SourceRow
from dpctl.model.changes import Action, ChangePlan, KeyChange, Patch, PlanRow, Verdict
from dpctl.quantity import count
from dpctl.text import did_you_mean, matches_any, natural_key

NATIVE = "Native"
"""State of Kubernetes' own resources in a plan."""
INCLUDE = {
    ResourceState.GHOST: "ghost",
    ResourceState.MALFORMED: "malformed",
    ResourceState.FOREIGN: "foreign",
}
"""What `prune` takes only with `--include`."""
_SERVED = (
    ResourceState.READY,
    ResourceState.DEGRADED,
    ResourceState.MISMATCH,
    ResourceState.EMPTY,
    ResourceState.UNREGISTERED,
)
_LATER = "run again when that time is over, or now with --wait"
_MOST_NAMED = 3


class Removal(NamedTuple):
    """What a person asked for."""

    action: Action
    """REMOVE or PRUNE."""
    names: tuple[str, ...] = ()
    """REMOVE: keys in full."""
    match: tuple[str, ...] = ()
    """PRUNE: globs, none for all."""
    include: frozenset[str] = frozenset()
    """PRUNE: of `ghost`, `malformed`, `foreign`."""
    force_in_use: bool = False
    assume_gone: bool = False
    waits: bool = False
    """For keys in Grace (`--wait`)."""
    manager: str = "dpctl"


def plan_removal(snap: Snapshot, wanted: Removal) -> ChangePlan:
    """Every key asked about with state, evidence, verdict and reason. For a fleet a Snapshot with
    `node` and `pods` alone will do: then there is no local evidence, and the plan says so.

    Raises BadDataError for a snapshot without a Node.
    """
    node = snap.node
    if node is None:
        raise BadDataError("no Node was read", "dpctl env shows which API server is asked")
    planner = _Planner(snap, node, wanted)
    rows = planner.rows()
    changes = tuple(
        change
        for row in rows
        if row.verdict is Verdict.CHANGE
        for change in removal_of(node, row.resource)
    )
    return ChangePlan(
        action=wanted.action,
        node=node.name,
        uid=node.uid,
        boot_id=node.boot_id if planner.evidence.local else None,
        rows=rows,
        patches=(Patch(wanted.manager, changes),) if changes else (),
        notes=notes_of(snap, planner.evidence),
        period=status_period(snap),
        kubelet_manager=node.kubelet_manager,
    )


def removal_of(node: Node, resource: str) -> tuple[KeyChange, ...]:
    """Both parts of one key, the one that is not there too: it must not have come meanwhile."""
    return (
        KeyChange("capacity", resource, node.capacity.get(resource), None),
        KeyChange("allocatable", resource, node.allocatable.get(resource), None),
    )


def notes_of(snap: Snapshot, evidence: Evidence) -> tuple[str, ...]:
    """What could not be looked at, in sentences."""
    notes: list[str] = []
    if evidence.why_not is not None:
        notes.append(f"no local evidence: {evidence.why_not}")
        notes.append("only the pods can be looked at before the change, not the plugins")
    else:
        listed, offered = snap.source(Source.POD_RESOURCES), snap.source(Source.ALLOCATABLE)
        if snap.pod_resources is None:
            words = "use is told by the pods and the checkpoint alone"
            notes.append(f"PodResources was not read{_why(listed)}: {words}{_step(listed)}")
        if offered is not None and offered.state == "failed":
            words = "its checkpoint alone tells what it has"
            notes.append(
                f"what the kubelet offers was not read{_why(offered)}: {words}{_step(offered)}"
            )
    if snap.unscheduled is None:
        notes.append("unscheduled pods were not seen: some may request what goes")
    return tuple(notes)


def _why(row: SourceRow | None) -> str:
    return f" ({row.reason})" if row is not None and row.reason else ""


def _step(row: SourceRow | None) -> str:
    return f"; {row.hint}" if row is not None and row.hint else ""


class _Planner:
    """One snapshot, joined once, and what is asked of it."""

    def __init__(self, snap: Snapshot, node: Node, wanted: Removal) -> None:
        self.snap = snap
        self.node = node
        self.wanted = wanted
        self.joined = Devices(snap)
        self.evidence = evidence_of(snap, self.joined)
        self.found = {row.resource: row for row in resource_rows(snap, self.joined)}
        self.asked = requests(snap)

    def rows(self) -> tuple[PlanRow, ...]:
        if self.wanted.action is Action.PRUNE:
            on_node = {**self.node.capacity, **self.node.allocatable}
            chosen = [n for n in on_node if not names.is_native(n)]
            chosen = [n for n in chosen if matches_any(n, self.wanted.match)]
        else:
            chosen = list(dict.fromkeys(self.wanted.names))
        return tuple(self._row(name) for name in sorted(chosen, key=natural_key))

    def _row(self, resource: str) -> PlanRow:
        found = self.found.get(resource)
        state = _state(resource, found, self.evidence)
        verdict, reason, step, forced = self._verdict(resource, found, state)
        node = self.node
        return PlanRow(
            resource=resource,
            state=str(state),
            verdict=verdict,
            reason=reason,
            next_step=step,
            capacity=node.capacity.get(resource),
            allocatable=node.allocatable.get(resource),
            owners=None if node.owners is None else tuple(node.owners.get(resource, ())),
            requested=None if self.snap.pods is None else self.asked.get(resource, 0),
            evidence=found.evidence if found is not None else (),
            named=self.wanted.action is Action.REMOVE,
            forced=forced,
            waiting_pods=waiting_pods(self.snap, resource),
            time_left=time_left(self.snap, resource) if state is ResourceState.GRACE else None,
        )

    def _verdict(
        self, resource: str, found: ResourceRow | None, state: ResourceState | str
    ) -> tuple[Verdict, str, str | None, bool]:
        """(verdict, reason, next step, forced)"""
        if names.is_native(resource):
            words = "it is Kubernetes' own: the node cannot work without it"
            return Verdict.REFUSE, words, "leave it alone", False
        if found is None or not (self._on_node(resource) or state is ResourceState.GRACE):
            if state in (ResourceState.ABSENT, ResourceState.DRA):
                assert found is not None
                words = f"the Node has no such key ({', '.join(found.evidence)})"
                return Verdict.REFUSE, words, "dpctl resources -o wide shows who knows it", False
            known = {*self.node.capacity, *self.node.allocatable}
            near = did_you_mean(resource, known, 0.85)
            return Verdict.KEEP, "the Node has no such key", near.rstrip() or None, False
        refusal = self._refusal(resource, found, state)
        if refusal is not None:
            verdict, reason, step = refusal
            return verdict, reason, step, False
        if self.snap.pods is None:
            return (
                Verdict.REFUSE,
                "the pods were not read, so whether one uses it is not known",
                "check the rights to list pods; dpctl -v says why",
                False,
            )
        serving = state in _SERVED
        users = self._users(resource)
        if (serving or users) and not self.wanted.force_in_use:
            if serving:
                return Verdict.REFUSE, *_served_words(found, state), False
            step = (
                "start its plugin again, or if that is gone for good, delete these pods first (or "
                "wait until they have ended)"
            )
            return Verdict.REFUSE, f"in use: {users}", step, False
        if self.evidence.unclaimed:
            return Verdict.REFUSE, *self._unclaimed(), False
        why = [summary(found, state)]
        if state is ResourceState.UNKNOWN:
            why = ["on your word that its plugin is gone for good (--assume-gone)"]
        why += [f"in use: {users}"] if users else []
        return Verdict.CHANGE, "; ".join(why), None, serving or bool(users)

    def _unclaimed(self) -> tuple[str, str]:
        where = ", ".join(self.evidence.unclaimed[:_MOST_NAMED])
        return (
            f"a plugin listens on {where}, and which resource it serves is not known for sure",
            "restart that plugin so that it registers anew, or stop it: dpctl plugins --all",
        )

    def _on_node(self, resource: str) -> bool:
        return resource in self.node.capacity or resource in self.node.allocatable

    def _refusal(
        self, resource: str, found: ResourceRow, state: ResourceState | str
    ) -> tuple[Verdict, str, str | None] | None:
        """By the state alone; None: it may go, as far as the state is concerned."""
        if state is ResourceState.GRACE:
            return (Verdict.WAIT, *self._grace(found))
        if state is ResourceState.DRA:
            return Verdict.REFUSE, summary(found, state), "dpctl resources -o wide"
        if state is ResourceState.UNKNOWN:
            return self._unknown(resource, found)
        included = INCLUDE.get(state) if isinstance(state, ResourceState) else None
        if self.wanted.action is Action.PRUNE:
            if state in _SERVED:
                return Verdict.KEEP, summary(found, state), None
            if included is not None and included not in self.wanted.include:
                if self.evidence.unclaimed:
                    return Verdict.KEEP, *self._unclaimed()
                step = f"prune takes it with --include {included}"
                return Verdict.KEEP, summary(found, state), step
        if included in ("malformed", "foreign") and self.evidence.here and not self.evidence.local:
            return Verdict.REFUSE, self.evidence.why_not or "", self.evidence.hint
        unclear = found.connected is None or found.served is None
        if state is ResourceState.FOREIGN and self.evidence.local and unclear:
            words = "whether a plugin serves it cannot be told"
            return Verdict.REFUSE, words, "dpctl resources -o wide shows the evidence"
        return None

    def _grace(self, found: ResourceRow) -> tuple[str, str | None]:
        if (count(found.allocatable) or 0) > 0:
            why = (
                "its plugin is gone, and the kubelet has not noticed: allocatable is still"
                f" {found.allocatable}"
            )
            step: str | None = (
                "if that stays so for two status periods, restart the kubelet; then wait"
            )
        else:
            left = time_left(self.snap, found.resource)
            words = words_left(left, told_by(self.snap, found.resource))
            why = f"the kubelet still tracks it and would put it back; {words}"
            step = None if self.wanted.waits else _LATER
        users = self._users(found.resource)
        if users and not self.wanted.force_in_use:
            why += f"; in use: {users}, and refused for as long as it is"
            step = "delete these pods first, or wait until they have ended"
        return why, step

    def _unknown(self, resource: str, found: ResourceRow) -> tuple[Verdict, str, str | None] | None:
        zero = count(found.capacity or "0") == 0 and count(found.allocatable or "0") == 0
        why, step = self._why_unknown(found)
        contradicted = found.tracked or found.connected or found.served
        may_assume = zero and not contradicted and self.snap.pods is not None
        may_assume = may_assume and not self._users(resource)
        if may_assume and self.wanted.assume_gone:
            return None
        if self.wanted.action is Action.REMOVE and self.wanted.assume_gone:
            if not zero:
                why = f"{why}; --assume-gone is for keys that are 0/0"
            elif contradicted:
                why = f"{why}; --assume-gone does not hold: {', '.join(found.evidence)}"
        elif may_assume and self.wanted.action is Action.REMOVE:
            step = f"{step}; if you know that its plugin is gone for good: --assume-gone"
        elif may_assume:
            gone = f"dpctl node remove {resource} --assume-gone"
            step = f"{step}; if you know that its plugin is gone for good: {gone}"
        verdict = Verdict.REFUSE if self.wanted.action is Action.REMOVE else Verdict.KEEP
        if self.wanted.action is Action.PRUNE and zero:
            verdict = Verdict.REFUSE  # it would go, were it known
        return verdict, why, step

    def _why_unknown(self, found: ResourceRow) -> tuple[str, str]:
        step = "dpctl resources -o wide shows the evidence"
        if self.evidence.why_not is not None:
            return self.evidence.why_not, self.evidence.hint or step
        return "; ".join(found.evidence), step

    def _users(self, resource: str) -> str:
        """Pods that request or hold it; empty: none."""
        found = [
            f"requested by {pod.namespace}/{pod.name}"
            for pod in self.snap.pods or ()
            if not pod.terminal
            and (
                resource in pod.pod_requests or any(resource in c.requests for c in pod.containers)
            )
            and self.asked.get(resource, 0) > 0
        ]
        holders = {
            holder.label
            for (name, _), held in self.joined.holders.items()
            if name == resource
            for holder in held
            if holder.active is not False
        }
        found += [f"held by {label}" for label in sorted(holders)]
        if not found and self.asked.get(resource, 0) > 0:
            found.append("requested by pods")
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        return ", ".join(found[:_MOST_NAMED]) + more


def _state(resource: str, found: ResourceRow | None, evidence: Evidence) -> ResourceState | str:
    """The inventory's state; Unknown where it hangs on evidence that does not count."""
    if names.is_native(resource):
        return NATIVE
    if found is None:
        return "-"
    if found.state in (ResourceState.STALE, ResourceState.GHOST) and not evidence.local:
        return ResourceState.UNKNOWN
    return found.state


def _served_words(found: ResourceRow, state: ResourceState | str) -> tuple[str, str]:
    if state is ResourceState.UNREGISTERED:
        step = "restart its plugin so that it registers, or stop it and run again"
    else:
        step = "stop its plugin, then wait five minutes: dpctl node remove NAME --wait"
    return summary(found, state), step


def summary(found: ResourceRow, state: ResourceState | str) -> str:
    """The state's case in half a sentence; the row's evidence has the rest."""
    where = ", ".join(found.endpoints) or "a socket"
    guess = " (inferred)" if found.endpoints_inferred else ""
    if state is ResourceState.UNREGISTERED:
        return f"a plugin serves it on {where}{guess}, unregistered"
    if state in _SERVED:
        return f"a plugin serves it on {where}{guess}"
    if state is ResourceState.STALE:
        return "nobody tracks or serves it"
    if state is ResourceState.GHOST:
        return "nobody tracks or serves it: pods are sent to nothing"
    if not found.evidence:
        return str(state)
    first = state in (ResourceState.DRA, ResourceState.UNKNOWN)
    return found.evidence[0 if first else -1]


def waiting_pods(snap: Snapshot, resource: str) -> tuple[str, ...]:
    """Unscheduled pods that request it."""
    return tuple(
        f"{pod.namespace}/{pod.name}"
        for pod in snap.unscheduled or ()
        if not pod.terminal
        and (resource in pod.pod_requests or any(resource in c.requests for c in pod.containers))
    )
