"""`man/dpctl.1` and `man/dpctl-<command>.1`, in man(7). Checked with `mandoc -T lint`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from dpctl.gen.manifests import SECTIONS
from dpctl.gen.tree import Node, Option

WRITTEN = "2026-11-29"
"""mandoc asks for a date, and today's would make every regeneration a change: the day on which the
wording was last changed by hand."""

EXIT_STATUS = (
    ("0", "Done, nothing wrong found."),
    (
        "1",
        "It worked, and it found something: an expectation unmet, a name that is not there.",
    ),
    ("2", "Usage."),
    (
        "3",
        "A source that the command needs is not there or does not answer: no socket, refused, "
        "deadline, API server down.",
    ),
    ("4", "The peer answered with an error. Also a defect of dpctl, and output nobody can take."),
    ("5", "Permission denied."),
    (
        "6",
        "A change was not applied (something named was refused, too), or was undone by somebody "
        "within the verify window.",
    ),
    ("7", "Bad data: a corrupt checkpoint, an undecodable bundle."),
    ("130", "Interrupted."),
    ("141", "The reader of standard output went away, as with SIGPIPE."),
)
PARTIAL = (
    "A partial answer prints what there is, names what is missing on standard error, and exits 0; "
    "with --strict it exits with the code of what is missing."
)
FILES = (
    ("/etc/dpctl.toml", "Configuration of the machine."),
    ("~/.config/dpctl/config.toml", "Configuration of the person; it wins over the machine's."),
    (
        "/var/lib/kubelet/device-plugins",
        "Sockets of the plugins, kubelet.sock, and the kubelet's checkpoint of devices.",
    ),
    ("/var/lib/kubelet/pod-resources/kubelet.sock", "The kubelet's PodResources service."),
    ("/var/lib/kubelet/plugins_registry", "Sockets of plugins that the kubelet finds by itself."),
    ("/var/log/pods", "Names of the pods of this node."),
    (
        "/var/lib/dpctl/undo, ~/.local/state/dpctl/undo",
        "What changes of Nodes took, for dpctl node undo; XDG_STATE_HOME names another place.",
    ),
)
ENVIRONMENT = (
    ("DPCTL_FROM", "A captured bundle to read, as --from."),
    ("DPCTL_HOST_ROOT", "Where the host's root directory is mounted, as --host-root."),
    ("DPCTL_KUBELET_ROOT", "The kubelet's root directory, as --kubelet-root."),
    ("DPCTL_DEVICE_PLUGIN_DIR", "As --device-plugin-dir."),
    ("DPCTL_POD_RESOURCES_SOCKET", "As --pod-resources-socket."),
    ("KUBECONFIG", "Credentials for the API server, as for kubectl."),
    ("NODE_NAME", "Name of the Node object, as --node."),
    ("NO_COLOR", "No colour, whatever the terminal."),
    ("DPCTL_DEBUG", "1 shows the traceback of an internal error."),
)
INTRODUCTION = """\
dpctl answers for one node, from live sockets or from a captured bundle: which resources its device
plugins offer and how many, which devices are healthy, who holds them, and whether the plugin, the
kubelet, its checkpoint and the Node object agree.

Reading never disturbs the node: dpctl calls what only reads, and opens files. What changes
something is a command of its own (dpctl node set, remove, prune, undo; dpctl plugins prune; dpctl
pods prune): it shows what it would do and asks, and --dry-run goes no further.

As kubectl plugin the same commands are kubectl dp COMMAND. Options that several commands share may
also stand before the command's name."""


def pages(root: Node, version: str) -> dict[str, str]:
    """File name to contents."""
    found = {"dpctl.1": _root_page(root, version)}
    for child in root.children:
        found[f"dpctl-{child.words[0]}.1"] = _command_page(root, child, version)
    return found


def _root_page(root: Node, version: str) -> str:
    lines = _head("dpctl", "see the devices of a Kubernetes node", version)
    lines += [".SH SYNOPSIS", *_usage(root), ".SH DESCRIPTION", *_paragraphs(INTRODUCTION)]
    lines.append(".SH COMMANDS")
    for section in dict.fromkeys(child.section for child in root.children):
        lines.append(f".SS {_quoted(section)}")
        for child in root.children:
            if child.section == section:
                lines += _item(_bold(f"dpctl {child.path}"), f"{child.summary}.")
    lines += [".SH OPTIONS", *_options(root.options), *_tail()]
    others = ", ".join(f"dpctl-{child.words[0]}(1)" for child in root.children)
    return _page([*lines, ".SH SEE ALSO", *_paragraphs(f"{others}, kubectl(1)")])


def _command_page(root: Node, node: Node, version: str) -> str:
    lines = _head(f"dpctl-{node.words[0]}", node.summary, version)
    lines.append(".SH SYNOPSIS")
    for each in node.walk():
        if each.usage[:1] != ("COMMAND",):
            lines += _usage(each)
    lines += [".SH DESCRIPTION", *_paragraphs(node.text)]
    if node.children:
        lines.append(".SH COMMANDS")
        for child in node.walk()[1:]:
            lines.append(f".SS {_quoted(f'dpctl {child.path}')}")
            lines += _paragraphs(child.text)
            lines += _arguments(child) + _options(_own(child), heading=False)
    arguments = _arguments(node)
    lines += [".SH OPTIONS", *arguments, *_options(_all_options(node))]
    examples = [line for each in node.walk() for line in (*each.examples, "") if each.examples]
    if examples:
        lines += [".SH EXAMPLES", ".nf", *(escaped(line) for line in examples[:-1]), ".fi"]
    manifests = SECTIONS.get(node.words[0], ())
    if manifests:
        lines.append(".SH MANIFESTS")
        for meaning, text in manifests:
            lines += [*_paragraphs(meaning), ".PP", ".nf"]
            lines += [*(escaped(line) for line in text.splitlines()), ".fi"]
    related = [c.words[0] for c in root.children if c.section == node.section and c != node]
    others = ", ".join(["dpctl(1)", *(f"dpctl-{name}(1)" for name in related)])
    return _page([*lines, *_tail(), ".SH SEE ALSO", *_paragraphs(others)])


def _own(node: Node) -> tuple[Option, ...]:
    return tuple(o for o in node.options if o.section == "Options" and "--help" not in o.names)


def _all_options(node: Node) -> tuple[Option, ...]:
    """The command's own options, and every shared one of it or a subcommand, once."""
    shared = {o.names: o for each in node.walk() for o in each.options if o.section != "Options"}
    help_option = tuple(o for o in node.options if "--help" in o.names)
    return (*_own(node), *help_option, *shared.values())


def _head(name: str, summary: str, version: str) -> list[str]:
    return [
        '.\\" Generated by `python -m dpctl.gen`, do not edit.',
        f'.TH {_quoted(name.upper())} 1 {WRITTEN} {_quoted(f"dpctl {version}")} "dpctl manual"',
        ".SH NAME",
        f"{escaped(name)} \\- {escaped(summary.rstrip('.'))}",
    ]


def _usage(node: Node) -> list[str]:
    words = _bold(" ".join(("dpctl", *node.words)))
    pieces = " ".join(escaped(piece) for piece in ("[OPTION]...", *node.usage))
    return [".PP", f"{words} {pieces}"]


def _options(options: Iterable[Option], *, heading: bool = True) -> list[str]:
    lines: list[str] = []
    section = "Options"
    for option in options:
        if heading and option.section != section:
            section = option.section
            lines.append(f".SS {_quoted(section)}")
        names = ", ".join(_bold(name) for name in option.names)
        value = f" \\fI{escaped(option.metavar)}\\fR" if option.metavar else ""
        default = f" Default: {option.default}." if option.default else ""
        lines += _item(names + value, f"{option.help}{default}")
    return lines


def _arguments(node: Node) -> list[str]:
    return [
        line
        for argument in node.arguments
        if argument.help
        for line in _item(f"\\fI{escaped(argument.metavar)}\\fR", argument.help)
    ]


def _tail() -> list[str]:
    lines = [".SH EXIT STATUS"]
    for code, meaning in EXIT_STATUS:
        lines += _item(_bold(code), meaning)
    lines += [*_paragraphs(PARTIAL), ".SH FILES"]
    for path, meaning in FILES:
        lines += _item(f"\\fI{escaped(path)}\\fR", meaning)
    lines.append(".SH ENVIRONMENT")
    for name, meaning in ENVIRONMENT:
        lines += _item(_bold(name), meaning)
    return lines


def _item(term: str, text: str) -> list[str]:
    return [".TP", term, *_wrapped(text)]


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [".PP", *_wrapped(paragraph)]
    return lines


def _wrapped(text: str) -> list[str]:
    """Short input lines, as mandoc's style asks; escapes come after, so 60 leaves room for them."""
    lines = textwrap.wrap(
        " ".join(text.split()), 60, break_long_words=False, break_on_hyphens=False
    )
    return [escaped(line) for line in lines]


def _bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def escaped(text: str) -> str:
    """Text that roff leaves alone: backslashes, dashes, and a dot or quote that starts a line."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


def _quoted(text: str) -> str:
    return '"' + escaped(text).replace('"', '""') + '"'


def _page(lines: list[str]) -> str:
    # A .PP right after a heading is noise to mandoc.
    kept = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if not (line == ".PP" and before.startswith((".SH", ".SS")))
    ]
    return "\n".join(kept) + "\n"
