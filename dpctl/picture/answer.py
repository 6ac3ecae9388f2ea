"""The answer to `dpctl topology --fit` as text."""

from __future__ import annotations

from collections.abc import Iterable

from dpctl import cpuset
from dpctl.inventory.topology_rows import FitChoice, FitContainer, FitQuestion, FitRow
from dpctl.outputs.describe import Part, describe_text
from dpctl.topology.requests import amount_text

_MOST = 32


def answer_text(row: FitRow, *, named: bool = False) -> str:
    """Verdict first, then why, what each container would get, and what is not certain. `named`: it
    is one of several."""
    entries: list[tuple[str, object]] = [
        *([("Pod", row.pod)] if named else []),
        ("Admitted", _verdict(row)),
        ("Policy", f"{row.policy}, scope {row.scope} ({row.policy_origin})"),
        ("Guaranteed", "yes" if row.guaranteed else "no (no exclusive CPUs, no pinned memory)"),
    ]
    if not row.admitted:
        entries.append(("Reason", row.reason))
        entries.append(("Message", row.message))
        if row.container is not None:
            entries.append(("Container", row.container))
    if row.why:
        entries.append(("Why", list(row.why)))
    for question in row.questions:
        title = "Pod" if question.container is None else f"Container {question.container}"
        entries.append((f"{title} on NUMA nodes", Part.of(_choices(question))))
    if row.admitted:
        for container in row.containers:
            entries.append((f"Container {container.container} gets", Part.of(_gets(container))))
    if row.warnings:
        entries.append(("Careful", list(row.warnings)))
    return describe_text(entries)


def _verdict(row: FitRow) -> str:
    if not row.admitted:
        return "NO"
    return f"yes, but WITHOUT {', '.join(row.unserved)}" if row.unserved else "yes"


def _choices(question: FitQuestion) -> Iterable[tuple[str, object]]:
    for choice in question.choices:
        yield choice.resource, _choice(choice)
    if not question.choices:
        yield "Wants", "nothing that has a NUMA node"
    where = "any" if question.numa_nodes is None else "+".join(map(str, question.numa_nodes))
    if question.preferred:
        yield "Together", where
    else:
        yield "Together", f"{where}, not as good as possible" if question.admitted else "nowhere"


def _choice(choice: FitChoice) -> str:
    name = choice.resource
    free = "" if choice.available is None else f", {amount_text(name, choice.available)} free"
    head = f"{amount_text(name, choice.requested)} requested{free}: "
    if choice.any:
        return head + "any (its devices have no NUMA node)"
    best = _sets(choice.preferred)
    rest = _sets(choice.possible)
    if not best and not rest:
        return head + "nowhere"
    if not best:
        return f"{head}{rest}, though an empty machine would need fewer"
    return head + best + (f" (or wider: {rest})" if rest else "")


def _sets(sets: tuple[tuple[int, ...], ...]) -> str:
    shown = ["+".join(map(str, nodes)) for nodes in sets[:8]]
    if len(sets) > len(shown):
        shown.append(f"{len(sets) - len(shown)} more sets")
    return " or ".join(shown)


def _gets(container: FitContainer) -> Iterable[tuple[str, object]]:
    for share in container.devices:
        eligible = list(share.eligible[:_MOST])
        if len(share.eligible) > _MOST:
            eligible.append(f"and {len(share.eligible) - _MOST} more")
        yield share.resource, f"{share.requested} of {', '.join(eligible) or '-'}"
    yield "CPUs", cpuset.render(container.cpus) or "shared pool"
    if container.memory_numa_nodes:
        yield "Memory", f"pinned to NUMA {cpuset.render(container.memory_numa_nodes)}"
