"""What a change of many Nodes says: the cases before it, the outcomes after it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpctl import streams
from dpctl.commands._changing import PAST, WORDS, show_aside
from dpctl.model.changes import (
    Action,
    AppliedChange,
    ChangePlan,
    ChangeRow,
    KeyOutcome,
    Outcome,
    Verdict,
    change_rows,
)
from dpctl.model.fleet import FleetKind, FleetSum

if TYPE_CHECKING:
    from dpctl.changes.fleet import NodeResult
    from dpctl.output import OutputOptions, RowPrinter

_MOST_KINDS = 40
_MOST_REASONS = 10
_MOST_NAMED = 3

Outcomes = Mapping[str, tuple[KeyOutcome, ...]]
"""By Node."""


class Report:
    """stdout has the rows (or a line a key), stderr the sums."""

    def __init__(self, options: OutputOptions, action: Action) -> None:
        from dpctl.output import RowPrinter
        from dpctl.views.fleet import FLEET_CHANGES

        self.documents = not options.is_table
        """Whether rows are printed, and not a line a key."""
        self._action = action
        self._printer: RowPrinter[ChangeRow] = RowPrinter(FLEET_CHANGES, options=options)
        self._kinds: Counter[FleetKind] = Counter()

    # -- the plan

    def see(self, plan: ChangePlan) -> None:
        """Counts its cases; a row of its own has in a document what is refused."""
        for row in plan.rows:
            if row.verdict is Verdict.KEEP:
                continue
            value = (row.capacity, row.allocatable)
            kind = FleetKind(row.resource, row.state, *value, str(row.verdict), 0, row.reason)
            if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
                kind = FleetKind("…", "…", None, None, str(row.verdict), 0, "other cases")
            self._kinds[kind] += 1
        if self.documents:
            self._printer.add([r for r in change_rows(plan) if r.verdict is Verdict.REFUSE])

    def see_all(self, plan: ChangePlan) -> None:
        """Prints every row but those of keys that are not there (`--dry-run=client`)."""
        rows = change_rows(plan)
        self._printer.add(
            [r for r in rows if r.verdict is not Verdict.KEEP or r.capacity is not None]
        )

    def show_kinds(self) -> None:
        from dpctl.views.fleet import FLEET_KINDS

        if self._kinds:
            found = [kind._replace(nodes=nodes) for kind, nodes in self._kinds.items()]
            show_aside(found, FLEET_KINDS)

    # -- the end

    def tell(
        self,
        results: Mapping[str, NodeResult],
        outcomes: Outcomes,
        made: Mapping[str, tuple[AppliedChange, str | None]],
    ) -> None:
        """What was done: to every key a line, or its row; then each reason once, and the sums.
        `made`: by an earlier run, and looked at again by this one; with the undo file."""
        from dpctl import output
        from dpctl.text import escape, named, natural_key

        if not self.documents:
            done = PAST[self._action]
            said = {outcome: word.format(done=done) for outcome, word in WORDS.items()}
            lines = [
                f"node/{escape(name)} {escape(named(o.resource))} {said[o.outcome]}"
                for name in sorted(outcomes, key=natural_key)
                for o in outcomes[name]
            ]
            output.write_text("\n".join(lines))
        else:
            for name, result in results.items():
                rows = change_rows(result.plan, outcomes.get(name, ()), result.undo_file)
                self._printer.add([row for row in rows if row.outcome is not None])
            earlier = outcomes.keys() - results.keys()
            self._printer.add(
                [_earlier(self._action, n, o, made[n][1]) for n in earlier for o in outcomes[n]]
            )
        _tell_reasons(outcomes)
        _tell_sums(outcomes)

    def abandon(self, at: float) -> None:
        """The run ends with an error: what has been printed is a whole document all the same."""
        if self._printer.begun:
            self.close(at)

    def close(self, at: float) -> None:
        from dpctl.documents import Envelope

        self._printer.close(Envelope(at))
        sys.stdout.flush()


def _earlier(action: Action, node: str, found: KeyOutcome, undo_file: str | None) -> ChangeRow:
    return ChangeRow(
        node=node,
        resource=found.resource,
        state="-",
        verdict=Verdict.CHANGE,
        outcome=found.outcome,
        capacity=found.capacity,
        allocatable=found.allocatable,
        new_capacity=found.capacity,
        new_allocatable=found.allocatable,
        owners=found.owners,
        requested=None,
        reason=found.detail or "an earlier run changed it",
        next_step=found.next_step,
        evidence=(),
        forced=False,
        waiting_pods=(),
        time_left=None,
        action=action,
        undo_file=undo_file,
    )


def _tell_reasons(outcomes: Outcomes) -> None:
    from dpctl.text import named

    reasons: dict[tuple[str, str | None], list[str]] = {}
    for name, each in outcomes.items():
        for o in each:
            if o.outcome in (Outcome.NOT_APPLIED, Outcome.CAME_BACK) and o.detail:
                nodes = reasons.setdefault((f"{named(o.resource)}: {o.detail}", o.next_step), [])
                nodes.append(name)
    for (text, step), nodes in list(reasons.items())[:_MOST_REASONS]:
        more = f" and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
        streams.say("error", f"{', '.join(nodes[:_MOST_NAMED])}{more}: {text}", step)
    if len(reasons) > _MOST_REASONS:
        streams.say("error", f"and {len(reasons) - _MOST_REASONS} more reasons: -o json has all")


def _tell_sums(outcomes: Outcomes) -> None:
    from dpctl.views.fleet import FLEET_SUMS

    nodes: dict[Outcome, set[str]] = {}
    keys: Counter[Outcome] = Counter()
    for name, each in outcomes.items():
        for o in each:
            nodes.setdefault(o.outcome, set()).add(name)
            keys[o.outcome] += 1
    if keys:
        show_aside([FleetSum(str(o), len(nodes[o]), keys[o]) for o in keys], FLEET_SUMS)


def counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
