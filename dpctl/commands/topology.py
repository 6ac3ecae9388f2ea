"""`dpctl topology`: the NUMA picture, and whether a pod would be admitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl.errors import ExitCode, UnreachableError, UsageError
from dpctl.model import Pod, Snapshot, Source
from dpctl.options import READS, Common, declare

if TYPE_CHECKING:
    from dpctl.inventory.topology_rows import FitRow

_WANT = frozenset(
    {
        Source.POD_RESOURCES,
        Source.ALLOCATABLE,
        Source.CHECKPOINT,
        Source.DIRECTORY,
        Source.SOCKETS,
        Source.NODE,
        Source.PODS,
        Source.POD_NAMES,
        Source.KUBELET,
        Source.NUMA,
        Source.CPUS,
        Source.CPU_STATE,
        Source.MEMORY_STATE,
    }
)
_NEEDS = (Source.NUMA,)
_DOCUMENTS = ("json", "yaml", "jsonpath", "custom-columns")


@declare(
    *READS,
    formats=("svg",),
    examples="""
    # The NUMA nodes: CPUs, memory, devices, and who has them
    dpctl topology
    dpctl topology -o svg > numa.svg
    # Would a container that asks for this be admitted now?
    dpctl topology --fit vendor.example/gpu=2,cpu=8,memory=16Gi
    dpctl topology --fit vendor.example/gpu=2 --policy single-numa-node
    # The same for a pod with several containers
    dpctl topology -f pod.yaml
    """,
)
def command(
    common: Common,
    fit: Annotated[
        str | None,
        typer.Option(
            "--fit",
            metavar="NAME=N[,NAME=N]",
            help="Say whether a container with these limits would be admitted, and why not.",
        ),
    ] = None,
    manifest: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="FILE",
            help="The same for each pod of a manifest, as if it came alone; - is standard input.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Topology manager policy to answer for, instead of the one in force: none, "
            "best-effort, restricted or single-numa-node.",
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="SCOPE", help="The same for its scope: container or pod."),
    ] = None,
) -> int | None:
    """Show the NUMA nodes: what each has, who has it, and how containers lie on them.

    CPUs are reserved (no container gets them alone), shared, or alone with a container; devices
    stand with their holders. ALIGNMENT says of what a container holds (of a pod, where the topology
    manager's scope is pod): Aligned, on one NUMA node; TooBig, on several since more was asked for
    than any has; Apart, since no NUMA node has all of its resources; Spread, on more NUMA nodes
    than needed. Policy restricted refuses the last two, none and best-effort admit them, and pods
    keep their place when a policy changes.

    -o svg draws the picture; wide, csv and -w give a row per NUMA node; json and yaml everything.

    --fit and -f answer by the kubelet's own arithmetic whether a pod that comes now would be
    admitted: hints of devices, exclusive CPUs and pinned memory, merged by the policy, then what
    the Node has left. Exit code 1 when it would be refused, or admitted without devices that it
    asks for. Nothing is created.
    """
    if fit is None and manifest is None:
        if policy is not None or scope is not None:
            raise UsageError(
                "--policy and --scope are for --fit and -f",
                "dpctl topology --fit NAME=N --policy P",
            )
        return _picture(common)
    if fit is not None and manifest is not None:
        raise UsageError("--fit and -f say the same thing twice", "give one of them")
    pods = (_pod_of(fit),) if fit is not None else _read(manifest or "-")
    return _fit(common, pods, policy, scope)


# -- the picture -----------------------------------------------------------------------------------


def _picture(common: Common) -> int:
    from dpctl import output
    from dpctl.commands._reading import Question, answer, finish, look
    from dpctl.env import find_env
    from dpctl.inventory.numa import topology_row
    from dpctl.inventory.topology_rows import NumaRow, TopologyRow
    from dpctl.views.numa import NUMA_NODES, TOPOLOGY

    drawn = common.output_format == "svg"
    options = (replace(common, output_format="table") if drawn else common).output

    def whole(snap: Snapshot) -> TopologyRow:
        try:
            return topology_row(snap)
        except ValueError as e:
            raise UnreachableError(str(e), "dpctl env shows where dpctl looks") from e

    def one(snap: Snapshot) -> list[TopologyRow]:
        return [whole(snap)]

    def nodes(snap: Snapshot) -> tuple[NumaRow, ...]:
        return whole(snap).numa_nodes

    if options.format in _DOCUMENTS:
        return answer(common, Question(TOPOLOGY, _WANT, _NEEDS, one))
    if not drawn and (common.watch or options.format != "table"):
        return answer(common, Question(NUMA_NODES, _WANT, _NEEDS, nodes))
    if common.watch:
        raise UsageError("-o svg draws one moment: it does not go with -w", "leave out one of them")
    snap = look(common, find_env(common.settings), _WANT, _NEEDS)
    row = whole(snap)
    output.write_text(_drawn(row) if drawn else _text(common, row))
    return finish(common, options, snap, [row])


def _text(common: Common, row: object) -> str:
    import sys

    from dpctl.inventory.topology_rows import TopologyRow
    from dpctl.outputs import terminal
    from dpctl.picture.boxes import in_ascii, picture_text

    assert isinstance(row, TopologyRow)
    on_terminal = terminal.is_terminal(sys.stdout) and not common.no_trunc
    columns = terminal.size(sys.stdout)[0] if on_terminal else 0
    text = picture_text(row, columns=columns, complete=common.no_trunc)
    return text if terminal.takes(sys.stdout, "┌") else in_ascii(text)


def _drawn(row: object) -> str:
    from dpctl.inventory.topology_rows import TopologyRow
    from dpctl.picture.svg import picture_svg

    assert isinstance(row, TopologyRow)
    return picture_svg(row)


# -- would it fit ----------------------------------------------------------------------------------


def _pod_of(text: str) -> Pod:
    """One container with these limits, and requests equal to them."""
    from dpctl import names
    from dpctl.model import PodContainer

    amounts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        fault = "not NAME=N"
        if equals and name and amount:
            fault = _amount_fault(name, amount)
        if fault:
            raise UsageError(
                f"--fit {part.strip()[:80]!r}: {fault}",
                "for example: --fit nvidia.com/gpu=2,cpu=8,memory=16Gi",
            )
        if "/" not in name and not names.is_native(name):
            raise UsageError(
                f"--fit {name!r}: no resource is called so, and the API server refuses such pods",
                "extended resources have a domain: nvidia.com/gpu",
            )
        amounts[name] = amount
    container = PodContainer("main", "app", amounts, amounts, None, None, ())
    return Pod(
        namespace="default",
        name="new",
        uid="new",
        config_hash=None,
        node_name=None,
        phase="Pending",
        reason=None,
        message=None,
        deleted=False,
        containers=(container,),
        pod_requests={},
        overhead={},
        owner=None,
    )


def _amount_fault(name: str, amount: str) -> str:
    """What the API server would not take; empty: nothing."""
    from dpctl import names, quantity

    try:
        number = quantity.parse(amount)
    except ValueError:
        return f"{amount[:80]!r} is no quantity"
    if number < 0:
        return f"{amount[:80]} is less than 0"
    # Of what plugins serve there are whole ones alone.
    whole = not names.is_extended(name) or number == int(number)
    return "" if whole else f"{name[:80]} comes in whole numbers"


def _read(path: str) -> tuple[Pod, ...]:
    from dpctl.sources.pod_manifest import read_manifest

    return read_manifest(path)


def _fit(common: Common, pods: tuple[Pod, ...], policy: str | None, scope: str | None) -> int:
    from dpctl import output
    from dpctl.commands._reading import finish, look, one_of
    from dpctl.documents import Envelope
    from dpctl.env import find_env
    from dpctl.picture.answer import answer_text
    from dpctl.topology.merge import Policy
    from dpctl.topology.settings import SCOPES
    from dpctl.views.numa import FIT

    one_of("--policy", policy, tuple(Policy))
    one_of("--scope", scope, SCOPES)
    if common.watch:
        raise UsageError("--fit answers once: it does not go with -w", "leave out -w")
    options = common.output
    snap = look(common, find_env(common.settings), _WANT, _NEEDS)
    rows = [_answer(snap, pod, policy, scope) for pod in pods]
    if options.format == "table":
        output.write_text("\n".join(answer_text(row, named=len(rows) > 1) for row in rows))
    else:
        output.write(rows, FIT, options=options, snapshot_meta=Envelope.of(snap))
    code = finish(common, options, snap, rows)
    refused = any(not row.admitted or row.unserved for row in rows)
    return ExitCode.FOUND if refused and code == ExitCode.OK else code


def _answer(snap: Snapshot, pod: Pod, policy: str | None, scope: str | None) -> FitRow:
    from dpctl.inventory.fit import fit_row
    from dpctl.inventory.numa import policies
    from dpctl.topology.merge import Policy

    try:
        found = policies(snap)
        settings, origin = found.settings, found.origin("topologyManagerPolicy")
        if policy is not None:
            settings, origin = settings._replace(policy=Policy(policy)), "--policy"
        elif not found.known:
            raise UnreachableError(
                "the topology manager's policy is unknown: the kubelet's configuration was not "
                "read",
                "name it: --policy POLICY",
            )
        if scope is not None:
            settings = settings._replace(scope=scope)
        return fit_row(snap, pod, settings, origin)
    except ValueError as e:
        raise UnreachableError(f"no answer: {e}", "dpctl env shows where dpctl looks") from e
