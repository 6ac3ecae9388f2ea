"""`dpctl pods`: what each container holds, and one pod in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dpctl.commands._pod_names import matches, pattern
from dpctl.commands._pods_prune import prune
from dpctl.errors import DpctlError
from dpctl.inventory.rows import ContainerRow, FailedPodRow
from dpctl.model import Snapshot, Source
from dpctl.options import NAMESPACES, READS, Common, declare

_LOCAL = frozenset({Source.POD_RESOURCES, Source.CHECKPOINT, Source.POD_NAMES, Source.NUMA})
# What plugins asked for, against the host.
_HOST = frozenset({Source.HOST_PATHS, Source.CDI})
# The kubelet behind the socket is the one that names the Node whose pods these are.
_CLUSTER = frozenset({Source.NODE, Source.PODS, Source.SOCKETS, Source.DIRECTORY})


@declare(
    NAMESPACES,
    *READS,
    examples="""
    # What every container holds
    dpctl pods
    # One pod in full: what its plugins asked for, and whether it is there
    dpctl pods ml/trainer
    dpctl pods -n ml 'train*' -o wide
    # Pods that the kubelet refused, and why
    dpctl pods --failed
    """,
)
def command(
    common: Common,
    pods: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[POD]...", help="POD or NAMESPACE/POD, globs too; pod/NAME for any name."
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Pods that the kubelet rejected at admission.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Containers that hold nothing, too.")
    ] = False,
) -> int | None:
    """List what each container holds: devices, NUMA nodes, CPUs, memory, claims, CDI names.

    One row per container and resource; pods of every namespace unless -n says otherwise. CPUS are
    the exclusive ones (- is the shared pool), ALIGNED says whether everything lies on one NUMA
    node. With one POD and no -o, that pod in full: what its plugins asked the runtime for is looked
    up on this machine (device nodes and their /dev/char links, mounts, CDI names in /etc/cdi and
    /var/run/cdi) and against each other, with what is wrong and what to do; the documents have it,
    too. Sources are the kubelet's PodResources API, its checkpoint and the log directories; only
    -o wide, the documents, the full view and --failed ask the API server, and a table whose pods
    may be gone: a kubelet that lists no pod of the API server may have just started.
    """
    patterns = [pattern(text) for text in pods or ()]
    if failed:
        return _failed(common, patterns)
    if _is_one_pod(common, patterns):
        return _describe(common, patterns[0])
    return _list(common, patterns, everything)


def _list(common: Common, patterns: list[str], everything: bool) -> int:
    from dpctl.commands._reading import Question, answer, ask_for_pods, not_found
    from dpctl.inventory.containers import container_rows, holds_something
    from dpctl.views import CONTAINERS

    def matching(snap: Snapshot) -> list[ContainerRow]:
        return [
            row
            for row in container_rows(snap)
            if matches(common, patterns, row.namespace, row.pod or row.uid)
        ]

    def rows(snap: Snapshot) -> Sequence[ContainerRow]:
        found = matching(snap)
        # A pod that was named is shown whatever it holds.
        return found if everything or patterns else [r for r in found if holds_something(r)]

    def check(snap: Snapshot, shown: Sequence[ContainerRow]) -> DpctlError | None:
        names = {f"{row.namespace}/{row.pod}" for row in shown}
        names |= {row.pod or row.uid or "" for row in shown}
        return not_found("pod", patterns, names)

    want = _LOCAL
    if common.output.complete:
        want = _LOCAL | _CLUSTER | _HOST
    needs = (Source.POD_RESOURCES, Source.CHECKPOINT)
    question = Question(CONTAINERS, want, needs, rows, check, more=ask_for_pods, recorded=_CLUSTER)
    return answer(common, question)


def _failed(common: Common, patterns: list[str]) -> int:
    from dpctl.commands._reading import Question, answer, not_found
    from dpctl.inventory.containers import failed_pod_rows
    from dpctl.views import FAILED_PODS

    def rows(snap: Snapshot) -> Sequence[FailedPodRow]:
        return [
            row
            for row in failed_pod_rows(snap)
            if matches(common, patterns, row.namespace, row.pod)
        ]

    def check(_snap: Snapshot, shown: Sequence[FailedPodRow]) -> DpctlError | None:
        names = {f"{row.namespace}/{row.pod}" for row in shown} | {row.pod for row in shown}
        return not_found("pod", patterns, names)

    return answer(common, Question(FAILED_PODS, _CLUSTER, (Source.PODS,), rows, check))


def _describe(common: Common, wanted: str) -> int:
    from dpctl import output
    from dpctl.commands._pod_text import pod_text
    from dpctl.commands._reading import finish, look, not_found
    from dpctl.env import find_env
    from dpctl.inventory.containers import container_rows

    options = common.output
    want = _LOCAL | _CLUSTER | _HOST
    snap = look(common, find_env(common.settings), want, (Source.POD_RESOURCES, Source.CHECKPOINT))
    rows = [
        row
        for row in container_rows(snap)
        if matches(common, [wanted], row.namespace, row.pod or row.uid)
    ]
    if not rows:
        error = not_found("pod", [wanted], ())
        assert error is not None
        error.hint = _elsewhere(common, snap, wanted) or error.hint
        raise error
    output.write_text(pod_text(snap, rows))
    return finish(common, options, snap, rows)


def _elsewhere(common: Common, snap: Snapshot, wanted: str) -> str | None:
    """Where to look for a pod that the API server has, and that holds nothing here."""
    from shlex import quote

    from dpctl.inventory.containers import failed_pod_rows

    for row in failed_pod_rows(snap):
        if matches(common, [wanted], row.namespace, row.pod):
            place = quote(f"{row.namespace}/{row.pod}")
            return f"the kubelet rejected it: dpctl pods --failed {place}"
    for pod in snap.pods or ():
        if matches(common, [wanted], pod.namespace, pod.name):
            place = quote(f"{pod.namespace}/{pod.name}")
            if pod.terminal:
                return f"it is over; what it may hold still: dpctl devices --held-by {place}"
            return f"it is {pod.phase}, and the kubelet has given it nothing (yet)"
    return None


def _is_one_pod(common: Common, patterns: list[str]) -> bool:
    from dpctl.text import is_glob

    single = len(patterns) == 1 and not is_glob(patterns[0])
    return single and not common.watch and not common.quiet and common.output.format == "table"


SUBCOMMANDS = {"prune": prune}
