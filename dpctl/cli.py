"""The command table, the lazy root, and the one place where an error becomes an exit code.

`dpctl --help` reads the table and imports no command; a command's module is imported when it is
named. How a module declares its command: see `dpctl/commands/__init__.py`. What a command does,
prints or reads does not belong here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer._click import Command, Context, HelpFormatter, Parameter  # typer's own (0.26 to 0.28)
from typer._click.exceptions import ClickException, UsageError
from typer.core import TyperGroup, TyperOption

from dpctl import streams
from dpctl.errors import DpctlError, ExitCode

if TYPE_CHECKING:
    from dpctl.parser import Branch, Leaf


class Entry(NamedTuple):
    help: str
    section: str


NODE = "What is on the node"
BY_HAND = "Plugins, by hand"
TRY = "Try it out"
SELF = "dpctl itself"

COMMANDS: Mapping[str, Entry] = {
    "resources": Entry("Which resources exist here, how many, do all agree", NODE),
    "devices": Entry("Which devices, healthy or not, where, held by which container", NODE),
    "pods": Entry("What each container holds: devices, CPUs, memory, claims", NODE),
    "plugins": Entry("Which plugins are alive, registered, orphaned or dead", NODE),
    "topology": Entry("The NUMA picture, and whether a pod would be admitted", NODE),
    "node": Entry("What Nodes offer and what is left; remove what nothing backs", NODE),
    "who": Entry("Who holds a device ID or has a device node open", NODE),
    "state": Entry("The state files of the kubelet, and would it start with them", NODE),
    "snapshot": Entry("A bundle of all that the node says, to look at elsewhere", NODE),
    "diff": Entry("What changed between two bundles, or since one was made", NODE),
    "dashboard": Entry("All of it live, full screen, with the keys of k9s", NODE),
    "plugin": Entry("Speak to one plugin: its options, devices, answers; or be one", BY_HAND),
    "lab": Entry("A whole small node without Kubernetes, to learn and to test on", TRY),
    "env": Entry("Every path and endpoint, and where it came from", SELF),
    "config": Entry("View and change the configuration file", SELF),
    "schema": Entry("The JSON Schema of what -o json prints", SELF),
    "completion": Entry("Print or install completion for bash, zsh or fish", SELF),
    "version": Entry("Print the version", SELF),
}

EPILOG = "dpctl COMMAND --help tells more; dpctl env shows what dpctl looks at."


class Root(TyperGroup):
    """The lazy group: names and one-line helps from the table, commands when they are named."""

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(section):
                formatter.write_dl(
                    [(n, entry.help) for n, entry in COMMANDS.items() if entry.section == section]
                )

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Shared options may stand before the command's name, as kubectl has it."""
        if args and args[0].startswith("-") and not all(word.startswith("-") for word in args):
            from dpctl.parser import hoist, shared_value_flags

            args = hoist(args, shared_value_flags())
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        from dpctl.parser import resolve

        return resolve(self, ctx, args)


def root() -> Root:
    """The command tree's root. Children load when they are asked for."""
    version = TyperOption(
        param_decls=["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version and leave.",
    )
    return Root(
        name="dpctl",
        help="What crictl is for containers, dpctl is for the devices of a Kubernetes node.",
        epilog=EPILOG,
        params=[version],
        invoke_without_command=True,
        callback=_no_command,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def load(name: str) -> Leaf | Branch:
    """Import a command's module and build its parser."""
    import importlib

    from dpctl.parser import build

    return build(name, importlib.import_module(f"dpctl.commands.{name}"), COMMANDS[name].help)


def run(arguments: Sequence[str], program: str = "dpctl") -> int:
    """Run one command line. Returns the exit code; every failure has been said on stderr."""
    try:
        streams.take_stdout()
        code = _run(list(arguments), program)
        streams.finish_stdout()
    except streams.StdoutError as failure:
        return streams.report_stdout(failure)
    return code


def _run(arguments: list[str], program: str) -> int:
    """The one place where a failure becomes a message and an exit code."""
    try:
        return _dispatch(arguments, program)
    except DpctlError as error:
        return streams.report(error)
    except UsageError as error:
        return _report_usage(error, program)
    except ClickException as error:
        streams.say("error", " ".join(error.format_message().split()))
        return int(ExitCode.USAGE)
    except (typer.Abort, KeyboardInterrupt):
        return int(ExitCode.INTERRUPTED)
    except streams.StdoutError:
        raise
    except Exception as error:
        if _is_interruption(error):
            return int(ExitCode.INTERRUPTED)
        return streams.report_crash(error)


def _is_interruption(error: BaseException | None) -> bool:
    """Ctrl-C comes between any two steps, also inside a library's `finally`: what fails there on
    the way out (a lock that is not held yet) is no defect, but what is left of the Ctrl-C."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


_CHANGING = ("node", "plugins", "pods")
_DRY_RUN = ("none", "client", "server")


def dry_runs(arguments: Sequence[str]) -> list[str]:
    """`--dry-run` alone is `--dry-run=client`: people type it both ways, and half asleep."""
    if not arguments or arguments[0] not in _CHANGING:
        return list(arguments)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [
        "--dry-run=client"
        if word == "--dry-run" and at < end and [*arguments, ""][at + 1] not in _DRY_RUN
        else word
        for at, word in enumerate(arguments)
    ]


def _dispatch(arguments: list[str], program: str) -> int:
    command = root()
    try:
        with command.make_context(program, dry_runs(arguments)) as context:
            result = command.invoke(context)
    except typer.Exit as leave:
        return leave.exit_code
    return int(result or 0)


def _report_usage(error: UsageError, program: str) -> int:
    path = error.ctx.command_path if error.ctx is not None else program
    message = " ".join(error.format_message().split()).rstrip(".")
    hint = f'{_meant(error, message)}"{path} --help" shows what it takes'
    streams.say("error", message[:1].lower() + message[1:], hint)
    return int(ExitCode.USAGE)


def _meant(error: UsageError, message: str) -> str:
    """For a word that is none of a few."""
    from dpctl.text import did_you_mean

    choices = getattr(getattr(getattr(error, "param", None), "type", None), "choices", ())
    given = re.search(r": '(.*)' is not one of ", message)
    return did_you_mean(given[1], map(str, choices)) if given else ""


def _print_version(_context: Context, _parameter: Parameter, value: bool) -> None:
    if value:
        from dpctl import __version__

        typer.echo(__version__)
        raise typer.Exit


def _no_command(**_: Any) -> None:
    """`dpctl` alone shows what there is."""
    context = _current()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _current() -> Context:
    from typer._click.globals import get_current_context

    return get_current_context()
