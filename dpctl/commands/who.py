"""`dpctl who`: which container holds a device, and which processes have its node open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl.errors import DpctlError, ExitCode, FoundError
from dpctl.inventory.rows import UserRow
from dpctl.model import Snapshot, Source
from dpctl.options import READS, Common, declare

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.model import Process

_WANT = frozenset({Source.POD_RESOURCES, Source.CHECKPOINT, Source.POD_NAMES})


@declare(
    *READS,
    examples="""
    dpctl who gpu-0
    dpctl who 'GPU-5a1c0d3e*'
    # Processes that have it open, and containers that were given it
    dpctl who /dev/vendor0
    """,
)
def command(
    common: Common,
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="A device ID (globs too), or a path below /dev.")
    ],
) -> int | None:
    """Say who holds a device ID or has a device node open.

    A device ID is looked up in the kubelet's PodResources API and checkpoint. A path below /dev is
    looked up among the device nodes that plugins asked for, and among the open files of every
    process that can be seen; the pod of a process is told by its cgroup.

    STATE says of a container whether its pod still counts for the kubelet: active, gone, or ? where
    that cannot be told. A kubelet that lists no pod of the API server may have just started, and
    has not heard of them yet: then the API server is asked.
    """
    from dpctl.commands._reading import Question, answer, ask_for_pods
    from dpctl.env import find_env
    from dpctl.inventory.users import resources_of, user_rows
    from dpctl.views import USERS

    env = find_env(common.settings)
    is_path = device.startswith("/")

    def rows(snap: Snapshot) -> Sequence[UserRow]:
        return user_rows(snap, device)

    def check(snap: Snapshot, shown: Sequence[UserRow]) -> DpctlError | None:
        if shown:
            return None
        hint = "dpctl devices lists every device that is known"
        if is_path:
            return FoundError(f'nobody holds or has open "{device}"', hint)
        known = resources_of(snap, device)
        if known:
            return FoundError(f'nobody holds "{device}" of {", ".join(known)}', hint)
        return FoundError(f'no device "{device}" here', _without_id(env) or hint)

    def more(_env: Env, snap: Snapshot) -> Snapshot:
        snap = ask_for_pods(env, snap)
        if not is_path:
            return snap
        if snap.complete:
            return _with_recorded(env, snap, device)
        return _with_openers(env, snap, device) if env.live else snap

    needs = (Source.POD_RESOURCES, Source.CHECKPOINT)
    return answer(common, Question(USERS, _WANT, needs, rows, check, more=more))


def _without_id(env: Env) -> str | None:
    """It may be one that only the plugin can name: unhealthy, and held by nobody. That there are
    any is seen by the Node's count, which is asked for where nothing else knew the device."""
    from dpctl.collect import collect
    from dpctl.commands._reading import INVENTORY
    from dpctl.inventory.devices import Devices

    unnamed = [row for row in Devices(collect(env, INVENTORY)).rows() if row.device is None]
    if not unnamed:
        return None
    counts = ", ".join(f"{row.count} of {row.resource}" for row in unnamed)
    return (
        f"unhealthy devices without a known ID: {counts};"
        f" `dpctl plugin devices {unnamed[0].resource}` asks the plugin"
    )


def _with_recorded(env: Env, snap: Snapshot, path: str) -> Snapshot:
    """What was found when the bundle was made, of the device nodes that plugins asked for."""
    from dpctl.bundle import read_openers
    from dpctl.model import SourceRow

    where = "openers.json"
    try:
        found = read_openers(env).get(path)
    except DpctlError as error:
        row = SourceRow("openers", where, "failed", error.message, error.hint, int(error.code))
        return snap._replace(sources=(*snap.sources, row))
    if found is None:
        reason = "a bundle tells who has open what a plugin asked for, and no other device"
        return snap._replace(
            sources=(*snap.sources, SourceRow("openers", where, "missing", reason))
        )
    if found.failed is not None:
        return snap._replace(sources=(*snap.sources, found.failed))
    return _opened(snap, found.processes, found.denied, where)


def _with_openers(env: Env, snap: Snapshot, path: str) -> Snapshot:
    from dpctl.model import SourceRow
    from dpctl.sources.proc import device_holders

    try:
        found = device_holders(env, path)
    except DpctlError as error:  # the containers that were given it are worth showing all the same
        row = SourceRow("openers", path, "failed", error.message, error.hint, int(error.code))
        return snap._replace(sources=(*snap.sources, row))
    return _opened(snap, found.processes, found.denied, env.proc.value or "/proc")


def _opened(snap: Snapshot, processes: tuple[Process, ...], denied: int, where: str) -> Snapshot:
    from dpctl.model import SourceRow

    row = SourceRow("openers", where, "read")
    if denied:
        reason = f"{denied} processes could not be looked at"
        row = row._replace(state="failed", reason=reason, hint="run as root", code=ExitCode.DENIED)
    return snap._replace(openers=processes, sources=(*snap.sources, row))
