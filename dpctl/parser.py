"""From what a command module declares to a parser; help pages; the first-word rule.

`cli.py` holds the table and the errors, this file the shape of one command. Nothing here knows a
particular command or option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import typer
from typer._click import Command, Context, HelpFormatter
from typer._click.exceptions import UsageError
from typer.core import TyperCommand, TyperGroup

from dpctl import errors
from dpctl.options import ORDER, Common, Declared, shared_parameters
from dpctl.text import did_you_mean, shorten


class Leaf(TyperCommand):
    """One command that runs."""

    declared: Declared
    branch: Branch | None = None
    """The branch whose default it is: its subcommands are shown in the help."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = error.ctx or ctx  # an option without its argument does not know whose it is
            raise

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """`KEY` for what must be given, as kubectl writes it (typer has `{KEY}`)."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The command's own arguments and options first, the shared ones by group."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(section_of(parameter), []).append(record)
        order = ("Arguments", "Options", *ORDER)
        for title in sorted(sections, key=order.index):
            with formatter.section(title):
                formatter.write_dl(sections[title])
        if self.branch is not None:
            self.branch.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        if self.declared.examples:
            with formatter.section("Examples"):
                for line in self.declared.examples.splitlines():
                    formatter.write(f"  {line}\n" if line else "\n")


class Branch(TyperGroup):
    """Subcommands; with a default, a first word that names none of them is the default's."""

    default: Leaf | None = None
    instead: str | None = None
    """What else may have been meant, for whoever types a subcommand that there is not."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Context | None = None, **extra: Any
    ) -> Context:
        flags = value_flags(list(self.commands.values()) + ([self.default] if self.default else []))
        word = first_word(args, flags)
        if self.default is not None and (word is None or args[word] not in self.commands):
            return self.default.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, hoist(args, flags), parent, **extra)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        return resolve(self, ctx, args)


def resolve(group: TyperGroup, ctx: Context, args: list[str]) -> tuple[str, Command, list[str]]:
    """The command that the first word names. Raises errors.UsageError with what was meant."""
    name = args[0]
    command = group.get_command(ctx, name)
    if command is not None:
        return name, command, args[1:]
    meant = did_you_mean(name, group.list_commands(ctx))
    instead = group.instead if isinstance(group, Branch) else None
    if instead is not None:
        meant = f"{meant}{instead}; "
    raise errors.UsageError(
        f"unknown command {_quote(shorten(name, 60))}",
        f"{meant}{_quote(f'{ctx.command_path} --help')} lists the commands",
    )


def _quote(text: str) -> str:
    return f'"{text}"'


def build(name: str, module: ModuleType, summary: str) -> Leaf | Branch:
    """The parser of one command module (`command`, `SUBCOMMANDS`, or both)."""
    declared: Declared | None = getattr(module, "command", None)
    subcommands: Mapping[str, Declared] = getattr(module, "SUBCOMMANDS", {})
    if not subcommands:
        if declared is None:
            raise TypeError(f"dpctl.commands.{name} declares no command")
        return build_leaf(name, declared)
    import inspect

    branch = Branch(
        name=name,
        help=inspect.cleandoc(module.__dict__.get("HELP", summary)),
        commands={key: build_leaf(key, value) for key, value in subcommands.items()},
        no_args_is_help=False,
        invoke_without_command=True,
        callback=_show_help,
        rich_markup_mode=None,
    )
    branch.instead = module.__dict__.get("INSTEAD")
    if declared is not None:
        branch.default = build_leaf(name, declared)
        branch.default.branch = branch
    return branch


def build_leaf(name: str, declared: Declared) -> Leaf:
    """Typer reads a signature: the command's own parameters, then the shared ones asked for."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, cls=Leaf)(_runner(declared))
    leaf = typer.main.get_command(app)
    assert isinstance(leaf, Leaf)
    leaf.declared = declared
    return leaf


def _runner(declared: Declared) -> Callable[..., int | None]:
    import inspect

    signature = inspect.signature(declared.function, eval_str=True)
    own = list(signature.parameters.values())[1:]
    shared = {
        name: (annotation, default)
        for name, (annotation, default) in shared_parameters().items()
        if annotation.__metadata__[0].rich_help_panel in declared.groups
    }

    def run(**values: Any) -> int | None:
        common = Common(**{name: values.pop(name) for name in shared})
        return declared.function(common, **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=keyword) for parameter in own] + [
        inspect.Parameter(name, keyword, annotation=annotation, default=default)
        for name, (annotation, default) in shared.items()
    ]
    run.__doc__ = declared.function.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def section_of(parameter: Any) -> str:
    """Heading under which --help and the manual page show a parameter."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def value_flags(commands: Sequence[Command]) -> frozenset[str]:
    """Option names that take a value, of all these commands."""
    return frozenset(
        name
        for command in commands
        for parameter in command.params
        if parameter.param_type_name == "option" and not getattr(parameter, "is_flag", False)
        for name in parameter.opts
    )


def shared_value_flags() -> frozenset[str]:
    """Shared option names that take a value, without building a command."""
    return frozenset(
        name
        for annotation, _ in shared_parameters().values()
        if annotation.__origin__ is not bool
        for name in (annotation.__metadata__[0].default, *annotation.__metadata__[0].param_decls)
    )


def first_word(args: Sequence[str], flags: frozenset[str]) -> int | None:
    """Index of the first word that is neither an option nor an option's value."""
    index = 0
    while index < len(args):
        word = args[index]
        if word == "--":
            return None
        if not word.startswith("-") or word == "-":
            return index
        index += 2 if _wants_next(word, flags) else 1
    return None


def _wants_next(word: str, flags: frozenset[str]) -> bool:
    if word.startswith("--"):
        return word in flags
    for place, letter in enumerate(word[1:], 1):
        if f"-{letter}" in flags:  # the rest of the word is its value, else the next word
            return place == len(word) - 1
    return False


def hoist(args: Sequence[str], flags: frozenset[str]) -> list[str]:
    """The first word in front, the options before it behind: `-n x pods` as `pods -n x`."""
    index = first_word(args, flags)
    if index is None:
        return list(args)
    return [args[index], *args[:index], *args[index + 1 :]]


def _show_help() -> None:
    from typer._click.globals import get_current_context

    context = get_current_context()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
