"""`dpctl plugin serve`: be a device plugin, for a real kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpctl import streams
from dpctl.commands._plugin_target import Yes, check_resource
from dpctl.errors import DpctlError, ExitCode, NotAppliedError, UsageError
from dpctl.model import Snapshot, Source
from dpctl.options import CLUSTER, OUTPUT, PLACES, READING, Common, declare

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.lab.cues import Served

_WANT = frozenset(
    {
        Source.DIRECTORY,
        Source.PLUGINS,
        Source.REGISTRY,
        Source.SOCKETS,
        Source.CHECKPOINT,
        Source.POD_RESOURCES,
        Source.ALLOCATABLE,
        Source.POD_NAMES,
    }
)


@declare(
    OUTPUT,
    PLACES,
    CLUSTER,
    READING,
    examples="""
    # What is shipped, and one of them as a beginning for your own
    dpctl plugin serve --list
    dpctl plugin serve gpus --print > mine.toml
    # Be that plugin until Ctrl-C
    dpctl plugin serve ./mine.toml
    # Devices fall ill when you say so
    (sleep 3; echo health gpu-3 Unhealthy; sleep 60) | dpctl plugin serve gpus --yes --control -
    """,
)
def serve(
    common: Common,
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="A TOML file (with a / or ending in .toml), or the name of a shipped scenario.",
            show_default=False,
        ),
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", metavar="NAME", help="Another resource than the scenario's."),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option("--endpoint", metavar="NAME", help="Another file name for the socket."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            "--control",
            metavar="FILE",
            help="Take cues from a socket made there, a line each; - is standard input.",
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False,
    shown: Annotated[bool, typer.Option("--print", help="Print the scenario's file.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also for a name that another plugin serves or a pod holds."),
    ] = False,
    yes: Yes = False,
) -> int | None:
    """Be a sample device plugin.

    The scenario says which devices it lists, on which NUMA nodes, how often each is shared, what
    Allocate answers, and what happens when: devices fall ill, come, go, calls fail or hang, the
    plugin ends. It serves a socket in device-plugins, registers with the kubelet, and does so again
    whenever kubelet.sock is made anew; it waits for a kubelet that is not there yet. What happens
    is printed, every call of the kubelet too; -o json prints a line of JSON for each.

    Cues, in the file or on the control socket: health, devices, add, remove, allocate-error, hang,
    answer, end-streams, down, up, register, state, exit, crash; the line `help` explains them.

    Pods can be scheduled to such devices. A name that a plugin serves or a pod holds is refused
    without --force. After the end (Ctrl-C, SIGTERM) the resource stays on the Node: at 0 at once,
    and to be removed five minutes later with dpctl node prune.
    """
    from dataclasses import replace

    from dpctl import output
    from dpctl.lab import cues
    from dpctl.text import shorten

    how = common.output
    if listed:
        output.write_text("\n".join(_about(name) for name in cues.shipped()))
        return None
    if scenario is None:
        raise UsageError(
            "which scenario?", f"a file, or one of {', '.join(cues.shipped())}; --list tells more"
        )
    path = cues.find_scenario(scenario)
    text = cues.read_text(path)
    if shown:
        output.write_text(_safe(text))
        return None
    served = cues.parse_scenario(text, scenario)
    twice = cues.repeated(served)
    if twice and path.parent != cues.SHIPPED:  # `faulty` means it
        names = shorten(", ".join(twice[:5]), 200)
        streams.warn(f"{scenario} lists twice: {names}", "a kubelet counts an ID once")
    changes = {"resource": resource, "endpoint": endpoint}
    given = {key: value for key, value in changes.items() if value is not None}
    served = served._replace(spec=replace(served.spec, **given))  # type: ignore[arg-type]
    if endpoint is not None:
        cues.check_endpoint(endpoint)
    check_resource(served.spec.resource, "for example: --resource sample.example/gpu")
    return _serve(common, served, control, force, yes, as_json=how.format == "json")


def _about(name: str) -> str:
    from dpctl.lab import cues

    path = cues.find_scenario(name)
    return f"{name:<16}{cues.parse_scenario(cues.read_text(path), name).about}"


def _safe(text: str) -> str:
    """A file as it is, unless a terminal would obey it."""
    import sys

    from dpctl.outputs.terminal import is_terminal
    from dpctl.text import escape

    if not is_terminal(sys.stdout):
        return text
    return "\n".join(escape(line) for line in text.splitlines())


def _serve(
    common: Common,
    served: Served,
    control: str | None,
    force: bool,
    yes: bool,
    *,
    as_json: bool,
) -> int:
    import os
    import signal
    from pathlib import Path

    from dpctl.commands._confirm import confirm
    from dpctl.env import find_env

    env = find_env(common.settings)
    if not env.live:
        raise UsageError("a bundle has no kubelet to register with", "leave out --from")
    spec = served.spec
    why = _in_the_way(env, spec.resource, spec.endpoint, force)
    if why is not None:
        raise why
    directory = env.device_plugin_dir.value or ""
    devices = "1 device" if len(spec.devices) == 1 else f"{len(spec.devices)} devices"
    question = f"Register {devices} of {spec.resource} with the kubelet of {directory}?"
    if not confirm(question, yes, only_show="--print", shows="scenario's file"):
        streams.plain("nothing was registered")
        return ExitCode.NOT_APPLIED
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from dpctl.lab.serve import Server

    server = Server(served, Path(directory), _json if as_json else _Printer(spec.resource))
    before = signal.signal(signal.SIGTERM, lambda *_: server.stopped.set())
    try:
        if not os.path.lexists(os.path.join(directory, "kubelet.sock")):
            streams.note(f"no kubelet.sock in {directory} yet: waiting for the kubelet")
        return server.run(control)
    finally:
        signal.signal(signal.SIGTERM, before)
        if server.registered:
            streams.note(
                f"{spec.resource} stays on the Node, at 0: five minutes from now `dpctl node "
                "prune` removes it"
            )


def _in_the_way(env: Env, resource: str, endpoint: str, force: bool) -> DpctlError | None:
    """What a second plugin would do harm to; None: nothing."""
    from dpctl.changes.evidence import unaccounted
    from dpctl.collect import collect
    from dpctl.inventory.devices import Devices
    from dpctl.inventory.plugins import plugin_rows

    # A kubelet or a directory that is not there yet has nothing that could be harmed.
    snap: Snapshot = collect(env, _WANT, again=True)
    entry = snap.directory.entry(endpoint) if snap.directory is not None else None
    if entry is not None and entry.kind != "socket":
        return NotAppliedError(
            f"{endpoint} is there and is no socket: it is left alone",
            "choose another name: --endpoint NAME",
        )
    rows = [row for row in plugin_rows(snap) if row.directory == "device-plugins"]
    for row in rows:
        if row.endpoint == endpoint and row.state not in ("Dead", "Gone", "Unlinked"):
            return NotAppliedError(
                f"{endpoint} is another plugin's socket ({row.state})",
                "choose another name: --endpoint NAME",
            )
    if force:
        return None
    joined = Devices(snap)
    serving = [r for r in rows if r.resource == resource and r.state != "Dead"]
    another = "choose another name: --resource NAME; --force does it all the same"
    if serving or joined.connected(resource) or resource in joined.offered:
        by = serving[0].endpoint if serving else "a plugin"
        return NotAppliedError(
            f"{resource} is served by {by}: a second plugin would take it over", another
        )
    if resource in joined.held:
        return NotAppliedError(
            f"a pod holds devices of {resource}: they are not this plugin's", another
        )
    strangers = unaccounted(joined)
    if strangers:
        where = strangers[0].endpoint
        return NotAppliedError(
            f"the kubelet is connected to {where}, and which resource that plugin serves is not "
            f"known for sure: it may be {resource}",
            "wait until its devices are there (dpctl resources); --force does it all the same",
        )
    return None


def _json(event: dict[str, Any]) -> None:
    from dpctl import output
    from dpctl.documents import json_text

    output.write_text(json_text(event))


class _Printer:
    """Events as sentences, a line each."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def __call__(self, event: dict[str, Any]) -> None:
        import time

        from dpctl import output
        from dpctl.text import escape, shorten

        words = shorten(self._words(event), 2000)
        output.write_text(f"{time.strftime('%H:%M:%S')} {escape(words)}")

    def _words(self, event: dict[str, Any]) -> str:
        kind = event["event"]
        if kind == "call":
            devices = event.get("devices")
            return f"{event['method']} {','.join(devices or ())}".rstrip()
        if kind == "cue":
            failed = f": {event['error']}" if "error" in event else ""
            return f"cue: {event['line']}{failed}"
        if kind == "refused":
            again = "" if event["final"] else " (trying again)"
            return f"not registered: {event['error']}{again}"
        if kind == "answer":
            return str(event["text"])
        words = {
            "serving": f"serving {self._resource}",
            "registered": "registered with the kubelet",
            "stream-ended": "a ListAndWatch stream ended",
        }
        return words.get(kind, str(kind))
