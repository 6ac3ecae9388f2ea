"""`dpctl config view|set|unset`: dpctl's own configuration files. What they mean is in `env`."""

from __future__ import annotations

from typing import Annotated

import typer

from dpctl.options import OUTPUT, Common, declare

HELP = """View and change dpctl's configuration.

    Two TOML files are read: /etc/dpctl.toml, and ~/.config/dpctl/config.toml, which wins. Keys are
    named like the flags; the environment and flags go before both.
    """

_Key = Annotated[
    str,
    typer.Argument(metavar="KEY", help="Named like the flag: kubelet-root.", show_default=False),
]
_System = Annotated[
    bool, typer.Option("--system", help="Change /etc/dpctl.toml, not your own file.")
]


@declare(
    OUTPUT,
    examples="""
    dpctl config view
    """,
)
def view(common: Common) -> int | None:
    """Show what the configuration files say, and which of them.

    dpctl env shows what is in force.
    """
    import os

    from dpctl import output, streams
    from dpctl.documents import Envelope
    from dpctl.env.config_file import read_settings
    from dpctl.env.layouts import config_files, home_of
    from dpctl.model import EnvRow
    from dpctl.views import ENVIRONMENT

    options = common.output
    files = config_files(os.environ)
    rows = [
        EnvRow(key, _text(value), f"config {file}", None)
        for key, (value, file) in read_settings(files, home_of(os.environ)).items()
    ]
    output.write(rows, ENVIRONMENT, options=options, snapshot_meta=Envelope())
    if not rows and options.is_table:
        streams.note(f"nothing is configured; looked at {', '.join(files)}")
    return None


@declare(
    examples="""
    dpctl config set host-root /host
    dpctl config set as-group ops system:masters
    """
)
def set_key(
    common: Common,
    key: _Key,
    value: Annotated[
        list[str],
        typer.Argument(metavar="VALUE...", help="Several only for as-group.", show_default=False),
    ],
    system: _System = False,
) -> int | None:
    """Set one key, in your own file.

    Comments in the file are kept.
    """
    from dpctl import output
    from dpctl.env.config_file import KEYS, known_key, write_config
    from dpctl.errors import UsageError

    name = known_key(key)
    if len(value) > 1 and KEYS[name] != "list":
        raise UsageError(f"{name} takes one value", f"quote it: dpctl config set {name} 'VALUE'")
    path = _file(system)
    write_config(path, name, value if KEYS[name] == "list" else value[0])
    output.write_text(f"config/{name} set in {_shown(path)}")
    return None


@declare(
    examples="""
    dpctl config unset host-root
    """
)
def unset_key(common: Common, key: _Key, system: _System = False) -> int | None:
    """Remove one key from your own file.

    A key that is not there is no error.
    """
    from dpctl import output
    from dpctl.env.config_file import known_key, unset_config

    name = known_key(key)
    path = _file(system)
    done = "unset" if unset_config(path, name) else "is not set"
    output.write_text(f"config/{name} {done} in {_shown(path)}")
    return None


SUBCOMMANDS = {"view": view, "set": set_key, "unset": unset_key}


def _file(system: bool) -> str:
    import os

    from dpctl.env.layouts import SYSTEM_FILE, user_file
    from dpctl.errors import UsageError

    if system:
        return SYSTEM_FILE
    path = user_file(os.environ)
    if path is None:
        raise UsageError(
            "there is no home directory for your own file", "set HOME, or use --system"
        )
    return path


def _shown(path: str) -> str:
    from dpctl.text import escape

    return escape(path)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else f"{value}"
