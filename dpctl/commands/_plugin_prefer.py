"""`dpctl plugin prefer`: which devices a plugin would have the kubelet take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl import streams
from dpctl.commands._plugin_target import GROUPS, Asked, Socket
from dpctl.errors import ExitCode, FoundError, UsageError
from dpctl.model import Source
from dpctl.options import Common, declare

if TYPE_CHECKING:
    from dpctl.inventory.by_hand_rows import PreferenceRow

_MORE = frozenset(
    {
        Source.POD_RESOURCES,
        Source.ALLOCATABLE,
        Source.NODE,
        Source.PODS,
        Source.KUBELET,
        Source.NUMA,
        Source.CPUS,
        Source.CPU_STATE,
        Source.MEMORY_STATE,
    }
)
_LARGEST_SIZE = 2**31 - 1

Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--available",
        metavar="DEVICE[,DEVICE]",
        help="Devices to choose from, may be repeated; those that are free now.",
    ),
]


@declare(
    *GROUPS,
    examples="""
    # Which two of the free GPUs would a pod get?
    dpctl plugin prefer vendor.example/gpu --size 2
    # With a device that an init container had, out of three
    dpctl plugin prefer vendor.example/gpu --size 2 --must gpu-1 --available gpu-1,gpu-2,gpu-3
    """,
)
def prefer(
    common: Common,
    socket: Socket,
    size: Annotated[
        int,
        typer.Option("--size", metavar="N", help="How many devices.", min=1, max=_LARGEST_SIZE),
    ],
    available: Ids = None,
    must: Annotated[
        list[str] | None,
        typer.Option(
            "--must",
            metavar="DEVICE[,DEVICE]",
            help="Devices that have to be among them, may be repeated.",
        ),
    ] = None,
) -> int | None:
    """Ask a plugin which devices it would choose.

    GetPreferredAllocation, as the kubelet asks it before it allocates, and which reads by contract.
    The answer is checked: right size, each device once, only available ones, and all of --must.
    Exit code 1 when a check fails; the kubelet then fills up by itself, and says nothing.

    Beside it stands what the kubelet would do without the plugin, by the topology manager's policy
    in force: devices on the NUMA nodes that it wants, else any, at random.
    """
    from dpctl import output
    from dpctl.commands._plugin_target import find
    from dpctl.documents import Envelope
    from dpctl.views.plugin import PREFERENCE

    options = common.output
    given, needed = _ids(available), _ids(must)
    if available is not None and not given:
        raise UsageError("--available is empty", "leave it out for the devices that are free now")
    asked = find(common, socket, _MORE)
    choices = given or _free(asked, needed)
    _check(choices, needed, size, bool(given))
    row = _ask(asked, choices, needed, size)
    if options.format == "table":
        from dpctl.outputs.describe import describe_text

        output.write_text(describe_text(_text(row)))
    else:
        output.write([row], PREFERENCE, options=options, snapshot_meta=Envelope.of(asked.snap))
    return ExitCode.OK if row.good else ExitCode.FOUND


def _ids(given: Sequence[str] | None) -> tuple[str, ...]:
    """Comma-separated and repeated, each once, in order."""
    found = (part for text in given or () for part in text.split(","))
    return tuple(dict.fromkeys(part for part in found if part))


def _free(asked: Asked, must: Sequence[str]) -> tuple[str, ...]:
    """What a pod could get now. Those of --must are its already, as an init container's are."""
    from dpctl.inventory.preferring import free_devices

    resource = asked.target.resource
    if resource is None:
        raise UsageError(
            f"what {asked.target.path} serves could not be told, so nobody knows what is free",
            "name the devices: --available ID,ID",
        )
    free, known = free_devices(asked.snap, resource)
    unknown = [device_id for device_id in must if device_id not in known]
    if unknown:
        raise UsageError(
            f"--must {unknown[0]} is no device of {resource} that is known here",
            f"`dpctl devices {resource}` lists them; or name all with --available",
        )
    found = tuple(dict.fromkeys((*must, *free)))
    if not found:
        raise FoundError(
            f"no device of {resource} is free now",
            "name some: --available ID,ID; `dpctl devices` shows who has them",
        )
    return found


def _check(available: Sequence[str], must: Sequence[str], size: int, given: bool) -> None:
    """The question must be one that a kubelet could ask. Raises UsageError, FoundError."""
    outside = [device_id for device_id in must if device_id not in set(available)]
    if outside:
        raise UsageError(
            f"--must {outside[0]} is not among the available devices",
            "the kubelet only insists on devices that it may give: name them with --available too",
        )
    if len(must) > size:
        raise UsageError(f"--must names {len(must)} devices, --size is {size}", "raise --size")
    if len(available) < size:
        what = "available" if given else "free now"
        error = UsageError if given else FoundError
        raise error(
            f"{size} devices are asked for and {len(available)} are {what}",
            "the kubelet would refuse such a pod without asking the plugin",
        )


def _ask(asked: Asked, available: Sequence[str], must: Sequence[str], size: int) -> PreferenceRow:
    from dpctl.inventory.by_hand_rows import PreferenceRow
    from dpctl.inventory.preferring import check_answer, kubelet_choice
    from dpctl.sources.plugin_calls import get_options, get_preferred

    target = asked.target
    offered = get_options(target.path, **asked.how).preferred_allocation
    answer = None
    if offered:
        answer = get_preferred(target.path, available, must, size, **asked.how)
    else:
        streams.note(
            "the plugin does not offer GetPreferredAllocation, so the kubelet never asks it and "
            "nor does dpctl"
        )
    checks = check_answer(answer, available, must, size) if offered else ()
    choice, takes, unknown = kubelet_choice(
        asked.snap, target.resource, available, must, size, answer
    )
    return PreferenceRow(
        socket=target.path,
        resource=target.resource,
        size=size,
        available=tuple(available),
        must=tuple(must),
        offered=offered,
        answer=answer,
        checks=checks,
        good=all(check.good for check in checks),
        takes=takes,
        kubelet=choice,
        kubelet_unknown=unknown,
    )


def _text(row: PreferenceRow) -> list[tuple[str, object]]:
    from dpctl.inventory.preferring import choice_words, takes_words
    from dpctl.outputs.describe import Part

    entries: list[tuple[str, object]] = [
        ("Socket", row.socket),
        ("Resource", row.resource or "?"),
        ("Asked for", f"{row.size} of {len(row.available)}"),
        ("Must include", _shown(row.must)),
    ]
    if row.offered:
        entries.append(("Answer", "no container" if row.answer is None else _shown(row.answer)))
        entries.append(
            (
                "Checks",
                Part.of((c.check, "yes" if c.good else f"NO: {c.detail}") for c in row.checks),
            )
        )
        entries.append(("The kubelet takes", takes_words(row)))
    entries.append(("Without the plugin", choice_words(row)))
    return entries


_MOST = 32


def _shown(ids: Sequence[str]) -> object:
    """One a line; of a great many the first ones."""
    if len(ids) <= _MOST:
        return tuple(ids) or None
    return (*ids[:_MOST], f"and {len(ids) - _MOST} more")
