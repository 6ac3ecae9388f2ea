"""The shared options, declared once, and the decorator that hands them to a command.

A command asks for groups of options and receives one `Common`; only its own options stand in its
signature. What belongs here: an option that more than one command takes. What does not: anything
that reads the node, prints, or knows a single command.

    @declare(OUTPUT, NAMESPACES, PLACES, examples="dpctl pods -A")
    def command(common: Common, pods: PodNames = None) -> int | None:
        '''List what containers hold.'''
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Literal

import typer

if TYPE_CHECKING:
    from dpctl.env import Settings
    from dpctl.output import OutputOptions

# Groups: the heading in --help, and what `declare` takes.
OUTPUT = "Output"
WATCH = "Watching"
NAMESPACES = "Namespaces"
PLACES = "Where things are found"
CLUSTER = "The API server"
READING = "Reading"
READS = (OUTPUT, WATCH, PLACES, CLUSTER, READING)
"""All that a reading command takes, namespaces apart."""
ORDER = (NAMESPACES, *READS)
"""In which the groups stand in --help."""

ColorWhen = Literal["auto", "always", "never"]


def duration(text: str) -> float:
    """Seconds of a Go duration (`5s`, `1m30s`, `500ms`) or a plain number of seconds; above 0.

    Raises typer.BadParameter (exit 2).
    """
    import re

    scale = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
    number = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    seconds = 0.0
    if len(text) <= 40 and re.fullmatch(number, text):
        seconds = float(text)
    elif len(text) <= 40 and re.fullmatch(rf"(?:{number}(?:h|ms|us|µs|ns|m|s))+", text):
        parts = re.findall(rf"({number})(h|ms|us|µs|ns|m|s)", text)
        seconds = sum(float(value) * scale[unit] for value, unit in parts)
    else:
        raise typer.BadParameter(f"{_quote(text)} is not a duration such as 5s or 1m30s")
    if not 0 < seconds <= 366 * 86400:
        raise typer.BadParameter(f"{_quote(text)} is out of range: above 0, at most a year")
    return seconds


def byte_size(text: str) -> int:
    """Bytes of `64Mi`, `16M` or a plain number; 1 to 2 GiB - 1 (gRPC counts in 32 bits).

    Raises typer.BadParameter (exit 2).
    """
    from dpctl import quantity

    try:
        value = quantity.parse(text)
    except ValueError:
        raise typer.BadParameter(f"{_quote(text)} is not a size such as 64Mi or 67108864") from None
    if value.denominator != 1 or not 1 <= value < 1 << 31:
        raise typer.BadParameter(f"{_quote(text)} is out of range: 1 to 2147483647 bytes")
    return int(value)


def _quote(text: str) -> str:
    return f'"{text if len(text) <= 60 else text[:59] + "…"}"'


@dataclass(frozen=True, slots=True)
class Common:
    """The shared options of one run; those of groups that a command did not ask for have their
    defaults. `None`: the flag was not given."""

    # --- Output
    output_format: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            rich_help_panel=OUTPUT,
            help="table, wide, json, yaml, name, csv, jsonpath=EXPR or custom-columns=NAME:PATH,…",
        ),
    ] = "table"
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", rich_help_panel=OUTPUT, help="Print names only.")
    ] = False
    no_headers: Annotated[
        bool,
        typer.Option("--no-headers", rich_help_panel=OUTPUT, help="Leave out the header line."),
    ] = False
    no_trunc: Annotated[
        bool,
        typer.Option(
            "--no-trunc", rich_help_panel=OUTPUT, help="Full values on a narrow terminal too."
        ),
    ] = False
    sort_by: Annotated[
        str | None,
        typer.Option(
            "--sort-by",
            metavar="COLUMN",
            rich_help_panel=OUTPUT,
            help="A column's title or a JSON path, instead of the name in natural order.",
        ),
    ] = None
    color: Annotated[
        ColorWhen,
        typer.Option(
            "--color",
            metavar="WHEN",
            rich_help_panel=OUTPUT,
            help="auto, always or never; NO_COLOR is heeded.",
        ),
    ] = "auto"

    # --- Watching
    watch: Annotated[
        bool,
        typer.Option(
            "-w", "--watch", rich_help_panel=WATCH, help="Read again and again, show changes."
        ),
    ] = False
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="DURATION",
            parser=duration,
            rich_help_panel=WATCH,
            help="Time between two reads of --watch (2s).",
        ),
    ] = None

    # --- Namespaces
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAMESPACE",
            rich_help_panel=NAMESPACES,
            help="Only pods of this namespace.",
        ),
    ] = None
    all_namespaces: Annotated[
        bool,
        typer.Option(
            "-A", "--all-namespaces", rich_help_panel=NAMESPACES, help="Pods of every namespace."
        ),
    ] = False

    # --- Where things are found
    bundle: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="BUNDLE",
            rich_help_panel=PLACES,
            help="Read this captured directory or .tgz, not the live node (DPCTL_FROM).",
        ),
    ] = None
    host_root: Annotated[
        str | None,
        typer.Option(
            "--host-root",
            metavar="DIR",
            rich_help_panel=PLACES,
            help="Where the host's / is mounted (DPCTL_HOST_ROOT).",
        ),
    ] = None
    kubelet_root: Annotated[
        str | None,
        typer.Option(
            "--kubelet-root",
            metavar="DIR",
            rich_help_panel=PLACES,
            help="The kubelet's root directory (DPCTL_KUBELET_ROOT).",
        ),
    ] = None
    device_plugin_dir: Annotated[
        str | None,
        typer.Option(
            "--device-plugin-dir",
            metavar="DIR",
            rich_help_panel=PLACES,
            help="Directory of plugin sockets and the checkpoint (DPCTL_DEVICE_PLUGIN_DIR).",
        ),
    ] = None
    pod_resources_socket: Annotated[
        str | None,
        typer.Option(
            "--pod-resources-socket",
            metavar="FILE",
            rich_help_panel=PLACES,
            help="The kubelet's PodResources socket (DPCTL_POD_RESOURCES_SOCKET).",
        ),
    ] = None

    # --- The API server
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            "--kubeconfig",
            metavar="FILE",
            rich_help_panel=CLUSTER,
            help="Credentials, instead of kubectl's order (KUBECONFIG).",
        ),
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            "--context", metavar="NAME", rich_help_panel=CLUSTER, help="Context of the kubeconfig."
        ),
    ] = None
    as_user: Annotated[
        str | None,
        typer.Option("--as", metavar="USER", rich_help_panel=CLUSTER, help="User to impersonate."),
    ] = None
    as_group: Annotated[
        list[str] | None,
        typer.Option(
            "--as-group",
            metavar="GROUP",
            rich_help_panel=CLUSTER,
            help="Group to impersonate; may be repeated.",
        ),
    ] = None
    node_name: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NODE",
            rich_help_panel=CLUSTER,
            help="Name of the Node object (NODE_NAME).",
        ),
    ] = None

    # --- Reading
    request_timeout: Annotated[
        float | None,
        typer.Option(
            "--request-timeout",
            metavar="DURATION",
            parser=duration,
            rich_help_panel=READING,
            help="Longest wait for one call (5s).",
        ),
    ] = None
    max_message_size: Annotated[
        int | None,
        typer.Option(
            "--max-message-size",
            metavar="SIZE",
            parser=byte_size,
            rich_help_panel=READING,
            help="Largest answer taken from a socket (64Mi).",
        ),
    ] = None
    no_allocatable: Annotated[
        bool,
        typer.Option(
            "--no-allocatable",
            rich_help_panel=READING,
            help="Never call GetAllocatableResources (it could crash kubelet 1.21).",
        ),
    ] = False
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            rich_help_panel=READING,
            help="Fail when a source is missing, even if there is something to print.",
        ),
    ] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "-v",
            "--verbose",
            rich_help_panel=READING,
            help="Say on stderr what was read where, and how long it took.",
        ),
    ] = False

    @property
    def settings(self) -> Settings:
        """What the flags say of places and endpoints, for `env.find_env`."""
        from dpctl.env import Settings

        return Settings(
            bundle=self.bundle,
            host_root=self.host_root,
            kubelet_root=self.kubelet_root,
            device_plugin_dir=self.device_plugin_dir,
            pod_resources_socket=self.pod_resources_socket,
            kubeconfig=self.kubeconfig,
            context=self.context,
            as_user=self.as_user,
            as_groups=tuple(self.as_group) if self.as_group else None,
            node_name=self.node_name,
            request_timeout=self.request_timeout,
            max_message_size=self.max_message_size,
            no_allocatable=self.no_allocatable or None,
        )

    @property
    def output(self) -> OutputOptions:
        """How to print, for `output.write`. Raises errors.UsageError for an unknown format, so
        look at it before anything is read."""
        from dpctl.output import OutputOptions

        return OutputOptions(
            output=self.output_format,
            quiet=self.quiet,
            no_headers=self.no_headers,
            no_trunc=self.no_trunc,
            sort_by=self.sort_by,
            color=self.color,
        )


CommandFunction = Callable[..., int | None]


@dataclass(frozen=True, slots=True)
class Declared:
    """A command as its module declares it; `cli.py` makes the parser of it."""

    function: CommandFunction
    """Takes `Common` first, then its own options by name; returns the exit code, None for 0."""
    groups: tuple[str, ...]
    examples: str
    """Command lines, one a line, `#` lines explain; kept as they are in --help and man page."""
    formats: tuple[str, ...] = ()
    """What `-o` takes here besides the formats that rows have."""

    def __call__(self, common: Common, **own: Any) -> int | None:
        return self.function(common, **own)


def declare(
    *groups: str, examples: str = "", formats: tuple[str, ...] = ()
) -> Callable[[Callable[Concatenate[Common, ...], int | None]], Declared]:
    """Make a function a command that takes the shared options of these groups.

    The function's own options are `Annotated[…, typer.Option(…)]` parameters after `common`; its
    docstring is the help (first line: what it answers).
    """
    import inspect

    def decorate(function: Callable[Concatenate[Common, ...], int | None]) -> Declared:
        return Declared(function, groups, inspect.cleandoc(examples), formats)

    return decorate


def shared_parameters() -> Mapping[str, tuple[Any, Any]]:
    """Field name to (annotation with its typer option, default), in the order of declaration."""
    from dataclasses import fields
    from typing import get_type_hints

    hints = get_type_hints(Common, include_extras=True)
    return {field.name: (hints[field.name], field.default) for field in fields(Common)}
