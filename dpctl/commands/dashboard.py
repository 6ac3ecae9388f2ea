"""`dpctl dashboard`: the same views, live, on a whole screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from dpctl.errors import DpctlError, ExitCode, UsageError
from dpctl.model import Source
from dpctl.options import CLUSTER, PLACES, READING, ColorWhen, Common, declare, duration

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.model import Snapshot, SourceRow
    from dpctl.tui.dashboard import Options
    from dpctl.tui.facts import Reading

_INTERVAL = 2.0
_SIZE = (110, 26)
_MOST_CELLS = 1000
_LAST_SECONDS = 1.0
_OTHER_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".bmp")


@declare(
    PLACES,
    CLUSTER,
    READING,
    examples="""
    dpctl dashboard
    # Nothing can be changed by a slip
    dpctl dashboard --readonly
    # A captured node; the device plugins first
    dpctl dashboard --from bundle.tgz --view plugins
    # A picture of one view, without a terminal
    dpctl dashboard --view devices --screenshot devices.svg
    """,
)
def command(
    common: Common,
    view: Annotated[
        str,
        typer.Option(
            "--view",
            metavar="VIEW",
            help="What to show first: resources, devices, pods, plugins, numa, node, failed or "
            "sources.",
        ),
    ] = "resources",
    readonly: Annotated[
        bool, typer.Option("--readonly", help="Leave out everything that changes something.")
    ] = False,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw with ASCII characters alone.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="DURATION",
            parser=duration,
            help="Time between two readings (2s); longer by itself where a reading is dear.",
        ),
    ] = None,
    color: Annotated[
        ColorWhen,
        typer.Option("--color", metavar="WHEN", help="auto, always or never; NO_COLOR is heeded."),
    ] = "auto",
    screenshot: Annotated[
        str | None,
        typer.Option(
            "--screenshot",
            metavar="FILE",
            help="Write the view as SVG (COLUMNS by LINES, else 110 by 26) and end.",
        ),
    ] = None,
) -> int | None:
    """Show resources, devices, pods, plugins, NUMA nodes and the Node's keys, live, full screen.

    The rows are those of the commands, and so are the changes: p plans what dpctl node prune,
    plugins prune or pods prune --failed would do on that page, x what dpctl node remove would; the
    plan is shown, and nothing is done before you have typed the word that it asks for.

    The keys are those of k9s: a colon and a name for a page, / to filter, Enter to go deeper, Esc
    to go back, d to describe, y for YAML and JSON, Shift and a column's first letter to sort, ? for
    all of them, q or Ctrl-C to leave at once.

    The age of the data is always on the screen. A source that cannot be read is named in the third
    line and on the page sources, and what could not be read shows as ?. If nothing can be read any
    more, the last reading stays, marked with its age. A reading that costs more than a tenth of the
    time between two makes that time longer.
    """
    from dpctl.env import find_env
    from dpctl.tui.pages import find_page, page_names

    if find_page(view) is None:
        raise UsageError(f"--view {view!r}: not one of {', '.join(page_names())}")
    env = find_env(common.settings)
    if screenshot is not None and screenshot.lower().endswith(_OTHER_PICTURES):
        raise UsageError(f"--screenshot {screenshot!r}: only SVG is written", "name it ….svg")
    if screenshot is not None:
        return _draw(common, env, view, screenshot, ascii_only, readonly)
    _check_terminal()
    _check_textual()
    return _run(common, env, _options(common, env, ascii_only, readonly), view, interval, color)


def _run(
    common: Common,
    env: Env,
    options: Options,
    view: str,
    interval: float | None,
    when: ColorWhen,
) -> int:
    import os
    import sys
    import time

    from dpctl.outputs.terminal import wants_color
    from dpctl.tui.dashboard import Dashboard
    from dpctl.tui.opening import opened

    color = wants_color(sys.stdout, when)
    # grpc's own log goes to descriptor 2, past textual, into the middle of the screen.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.pop("NO_COLOR", None)  # heeded here; textual would turn plain texts into colours
    board = Dashboard(options, view)
    columns, lines = os.get_terminal_size(sys.stdout.fileno())
    with opened(board.lines(columns, lines, time.monotonic()), color=color) as curtain:
        from dpctl.tui.app import DashboardApp

        app = DashboardApp(board, reader(env), interval or _INTERVAL, color=color)
        app.mounted = curtain.lift
        code = app.run(mouse=False)
    if board.at_work is not None:
        app.let_go(_LAST_SECONDS)
    _say_what_was_left(board.at_work)
    if app.crash is not None:
        raise app.crash
    return code if code is not None else ExitCode.OK


def _options(common: Common, env: Env, ascii_only: bool, readonly: bool) -> Options:
    from dpctl.commands._dashboard_changes import changes
    from dpctl.commands._pod_text import pod_text
    from dpctl.tui.dashboard import Options

    return Options(
        node=env.node_name.value or "this node",
        live=env.live,
        ascii_only=ascii_only,
        changes=changes(common, env) if env.live and not readonly else None,
        pod_text=pod_text,
    )


def reader(env: Env) -> Callable[[], Reading]:
    """What the poller calls: everything that any page shows, read once."""
    import time

    from dpctl.collect import collect
    from dpctl.commands._reading import (
        INVENTORY,
        agreeing,
        missing,
        no_kubelet,
        unread,
        with_next_step,
    )
    from dpctl.errors import UnreachableError
    from dpctl.tui.facts import Reading

    want = INVENTORY | {
        Source.NUMA,
        Source.CPUS,
        Source.CPU_STATE,
        Source.MEMORY_STATE,
        Source.HOST_PATHS,
        Source.CDI,
    }
    needs = (Source.NODE, Source.CHECKPOINT, Source.POD_RESOURCES, Source.DIRECTORY)

    name = _NodeName(env)

    def read() -> Reading:
        began = time.monotonic()
        snap: Snapshot = agreeing(name.env, collect(name.env, want, again=True))
        note = name.heard(snap)
        snap = snap._replace(sources=tuple(with_next_step(row, snap) for row in snap.sources))
        error = missing(snap, needs)
        if error is not None and env.live and no_kubelet(env):
            error = UnreachableError(
                "no kubelet here",
                "run on a node; in a container with --host-root; --from a captured node; or try "
                "one: `dpctl lab run -- bash`",
            )
        # The page has a column for the place, and the line of warnings no room for it.
        snap = snap._replace(sources=tuple(_reason_alone(row) for row in snap.sources))
        warnings = tuple(text for text, _ in unread(snap, error))
        if note:
            warnings = (*warnings, note)
            snap = snap._replace(sources=tuple(_noted(row, note) for row in snap.sources))
        return Reading(snap, began, time.monotonic(), warnings, error)

    return read


def _reason_alone(row: SourceRow) -> SourceRow:
    """Without the place that the row names besides."""
    reason = row.reason or ""
    bare = reason.removeprefix(row.where).lstrip(" :") if row.where else reason
    return row._replace(reason=bare) if bare else row


def _noted(row: SourceRow, note: str) -> SourceRow:
    """The page sources says it, too."""
    about_it = row.name == Source.NODE and row.reason is None
    return row._replace(reason=note) if about_it else row


class _NodeName:
    """The Node's name as a kubelet of this machine had it. Without one only the host name is left,
    and that may be no Node at all."""

    def __init__(self, env: Env) -> None:
        self.env = env
        """To read with: a name that a person gave, or that a running kubelet has, counts more."""
        self._learnt: str | None = None

    def heard(self, snap: Snapshot) -> str | None:
        """Take the name from a reading. A sentence where the kubelet that had it is gone."""
        here = {kubelet.node_name for kubelet in snap.kubelets or ()}
        place = self.env.node_name
        if place.origin.startswith(("flag", "environment", "config")):
            return None
        if snap.node is not None and snap.node.name in here:
            self._learnt = snap.node.name
            self.env = self.env._replace(
                node_name=place._replace(value=self._learnt, origin="an earlier reading")
            )
        if self._learnt is None or self._learnt in here:
            return None
        return f"Node {self._learnt}, as the kubelet that is gone had it"


def _draw(common: Common, env: Env, view: str, path: str, ascii_only: bool, readonly: bool) -> int:
    """One reading, one screen, one file. It takes neither a terminal nor textual."""
    import sys

    from dpctl.outputs.terminal import size
    from dpctl.tui.dashboard import Dashboard
    from dpctl.tui.facts import Facts
    from dpctl.tui.shot import screen_svg

    reading = reader(env)()
    if reading.error is not None:
        raise reading.error
    dashboard = Dashboard(_options(common, env, ascii_only, readonly), view)
    dashboard.take(Facts(reading))
    found = size(sys.stdin) if _from_environment() else _SIZE
    columns, lines = (min(max(n, 1), _MOST_CELLS) for n in found)
    drawn = dashboard.lines(columns, lines, reading.began)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(screen_svg(drawn, columns, f"dpctl dashboard: {view}"))
    except OSError as error:
        raise DpctlError(
            f"cannot write {path}: {error.strerror or error}", "name another file: --screenshot"
        ) from error
    return ExitCode.OK


def _from_environment() -> bool:
    import os

    return bool(os.environ.get("COLUMNS") and os.environ.get("LINES"))


def _check_terminal() -> None:
    """Raises UsageError."""
    import os
    import sys

    from dpctl.outputs.terminal import is_terminal

    others = "the commands print the same: dpctl resources, dpctl devices -w, …"
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if any(stream is None or not is_terminal(stream) for stream in streams):
        raise UsageError(
            "the dashboard needs a terminal on standard input, output and error", others
        )
    if os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        raise UsageError("the dashboard needs more than a dumb terminal (TERM)", others)


def _check_textual() -> None:
    """Raises UsageError where the extra is not installed. Does not import it."""
    from importlib.util import find_spec

    if find_spec("textual") is None:
        raise UsageError(
            "the dashboard needs textual, which is not installed",
            "pipx inject kube-dpctl 'textual>=8', or pip install 'kube-dpctl[dashboard]'",
        )


def _say_what_was_left(left: object) -> None:
    """After an end in the middle of a change: what is known of it."""
    from dpctl import streams
    from dpctl.tui.plan import PlanPage

    if isinstance(left, PlanPage):
        said = "; ".join(left.said)
        streams.warn(
            f"{left.title} was still at work when you left{f' ({said})' if said else ''}",
            left.proposal.if_left if left.proposal is not None else None,
        )
