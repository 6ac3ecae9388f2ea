"""The command tree as plain data, read from the parsers. What one page or script needs, no more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from typer._click import Command, Context

from dpctl import cli
from dpctl.options import ORDER, Declared
from dpctl.parser import Branch, Leaf, build_leaf, section_of

# A metavar's first word tells what may stand there. Anything else is free text.
KINDS = {
    "RESOURCE": "resources",
    "DEVICE": "devices",
    "DEVICE-ID": "devices",
    "POD": "pods",
    "NAMESPACE": "namespaces",
    "NODE": "nodes",
    "ENDPOINT": "endpoints",
    "SOCKET": "sockets",
    "FILE": "file",
    "SCENARIO": "files:faulty flapping gpus replicas shared-updates too-large",
    "BUNDLE": "file",
    "DIR": "dir",
    "FORMAT": "words:table wide json yaml name csv jsonpath= custom-columns=",
    "SHELL": "words:bash zsh fish",
    "STATE": "words:devices cpu memory dra pods",
    "WHAT": "words:physical numa pod",
    "POLICY": "words:none best-effort restricted single-numa-node",
    "SCOPE": "words:container pod",
    "CONDITION": "words:allocatable healthy gone",
    "VIEW": "words:resources devices pods plugins numa node failed sources",
    "KEY": "words:kubelet-root device-plugin-dir pod-resources-socket host-root from kubeconfig"
    " context as as-group node request-timeout max-message-size no-allocatable",
    "KIND": "words:Resource Device DeviceGroup Container FailedPod Plugin User NodeResource "
    "NodeChange SocketChange PodChange StateEntry StateCheck StateDifference "
    "Difference Setting Topology NumaNode Alignment Fit ListedDevice PluginDevices "
    "PluginOptions PluginPreference PluginAllocation Wait",
}
FREE = "text"


@dataclass(frozen=True, slots=True)
class Option:
    names: tuple[str, ...]
    """Short ones first."""
    kind: str
    """Of its value: one of `dpctl __complete`, `file`, `dir`, `words:…`, `files:…`
    (such words, else a file), `text`; empty: a flag."""
    metavar: str
    help: str
    section: str
    """Heading in the help."""
    default: str | None


@dataclass(frozen=True, slots=True)
class Argument:
    kind: str
    metavar: str
    help: str
    repeats: bool


@dataclass(frozen=True, slots=True)
class Node:
    """One command; the root has no words."""

    words: tuple[str, ...]
    summary: str
    text: str
    """Paragraphs, separated by empty lines."""
    usage: tuple[str, ...]
    """Argument pieces of the usage line."""
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    children: tuple[Node, ...]
    examples: tuple[str, ...]
    section: str = ""
    before: tuple[Option, ...] = ()
    """Shared options, which may also stand before a command's name: the root has them."""

    @property
    def kinds(self) -> dict[str, str]:
        """Option name to the kind of its value, for those that take one."""
        found = (*self.options, *self.before)
        return {name: option.kind for option in found if option.kind for name in option.names}

    @property
    def path(self) -> str:
        return " ".join(self.words)

    def walk(self) -> tuple[Node, ...]:
        """This node and all below it, parents first."""
        return (self, *(found for child in self.children for found in child.walk()))


def command_tree() -> Node:
    """Every command, by importing them all."""
    root = cli.root()
    context = Context(root, info_name="dpctl", **root.context_settings)
    shared = build_leaf("shared", Declared(lambda common: None, ORDER, ""))
    children = []
    for name, entry in cli.COMMANDS.items():
        child = node((name,), cli.load(name), context, entry.help, entry.section)
        children.append(child)
    return Node(
        words=(),
        summary=_first_line(root.help),
        text=(root.help or "").strip(),
        usage=("COMMAND", "[ARG]..."),
        options=_options(root, context),
        arguments=(),
        children=tuple(children),
        examples=(),
        before=tuple(o for o in _options(shared, context) if o.section != "Options"),
    )


def node(
    words: tuple[str, ...], command: Leaf | Branch, parent: Context, summary: str, section: str = ""
) -> Node:
    """One command with its subcommands. `summary`: the table's line, which help and pages share."""
    shown: Command = command
    children: tuple[Node, ...] = ()
    usage: tuple[str, ...] = ()
    if isinstance(command, Branch):
        context = Context(command, info_name=words[-1], parent=parent)
        children = tuple(
            node((*words, key), sub, context, _first_line(sub.help))
            for key, sub in command.commands.items()
            if isinstance(sub, Leaf | Branch) and not sub.hidden
        )
        if command.default is None:
            usage = ("COMMAND", "[ARG]...")
        shown = command.default or command
    context = Context(shown, info_name=words[-1], parent=parent)
    arguments = _arguments(shown, context)
    examples = shown.declared.examples.splitlines() if isinstance(shown, Leaf) else []
    return Node(
        words=words,
        summary=summary,
        text=(shown.help or summary).strip(),
        usage=usage or tuple(shown.collect_usage_pieces(context)[1:]),
        options=_options(shown, context),
        arguments=arguments,
        children=children,
        examples=tuple(examples),
        section=section,
    )


def kind_of(parameter: Any, context: Context) -> str:
    """What TAB offers for the value of an option or argument."""
    choices = getattr(parameter.type, "choices", None)
    if choices:
        return "words:" + " ".join(str(choice) for choice in choices)
    metavar = _metavar(parameter, context)
    if "|" in metavar and metavar.islower():
        return "words:" + metavar.replace("|", " ")
    word = re.search(r"[A-Z][A-Z-]*", metavar)
    kind = KINDS.get(word.group() if word else "", FREE)
    if kind == "devices" and "," in _metavar(parameter, context):
        return "device-lists"
    if word and word.group() == "FORMAT" and isinstance(context.command, Leaf):
        return " ".join((kind, *context.command.declared.formats))
    return kind


def _options(command: Command, context: Context) -> tuple[Option, ...]:
    found = [
        Option(
            names=tuple(sorted((*p.opts, *p.secondary_opts), key=lambda n: (n[:2] == "--", n))),
            kind="" if p.is_flag or p.count else kind_of(p, context),
            metavar="" if p.is_flag or p.count else _metavar(p, context),
            help=p.help or "",
            section=section_of(p),
            default=_default(p),
        )
        for p in (_any(parameter) for parameter in command.get_params(context))
        if p.param_type_name == "option" and not p.hidden
    ]
    order = ("Options", *ORDER)
    return tuple(sorted(found, key=lambda option: order.index(option.section)))


def _arguments(command: Command, context: Context) -> tuple[Argument, ...]:
    return tuple(
        Argument(kind_of(p, context), _metavar(p, context), p.help or "", p.nargs != 1)
        for p in (_any(parameter) for parameter in command.params)
        if _is_argument(p) and not p.hidden
    )


def _default(parameter: Any) -> str | None:
    if parameter.is_flag or parameter.default in (None, [], ()) or not parameter.show_default:
        return None
    return str(getattr(parameter.default, "value", parameter.default))


def _metavar(parameter: Any, context: Context) -> str:
    text: str = parameter.make_metavar(ctx=context)
    return text


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _any(parameter: Any) -> Any:
    return parameter


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0].rstrip(".") if text else ""
