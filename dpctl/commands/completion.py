"""`dpctl completion`: print or install the generated script of a shell. Reads nothing of the node.

The scripts are written by `dpctl.gen` and shipped; here they are only found and copied.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dpctl.options import Common, declare

_FILES = {"bash": "dpctl.bash", "zsh": "_dpctl", "fish": "dpctl.fish"}


@declare(
    examples="""
    # For this session of bash
    source <(dpctl completion bash)

    # For good
    dpctl completion zsh --install
    """
)
def command(
    common: Common,
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False),
    ],
    install: Annotated[
        bool, typer.Option("--install", help="Write it where the shell looks for it.")
    ] = False,
) -> int | None:
    """Print the completion script of a shell.

    With --install it is written into your own directory: bash finds it there if bash-completion
    is installed, fish always, zsh once the directory is in fpath.

    As kubectl plugin: kubectl 1.26 and newer ask kubectl_complete-dp, which is installed with
    dpctl; there is nothing to set up.
    """
    from dpctl import output
    from dpctl.text import escape

    script = _script(shell)
    if not install:
        output.write_text(script)
        return None
    target, next_step = _target(shell)
    _write(target, script)
    output.write_text(f"completion/{shell} written to {escape(str(target))}")
    if next_step:
        output.write_text(escape(next_step))
    return None


def _script(shell: str) -> str:
    """The generated file: inside the package when installed, beside it in a checkout."""
    from dpctl.errors import UnreachableError

    package = Path(__file__).resolve().parents[1]
    for directory in (package / "_completions", package.parent / "completions"):
        try:
            return (directory / _FILES[shell]).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
    raise UnreachableError(
        f"the completion script for {shell} is missing from this installation",
        "install dpctl again, or run `make gen` in a checkout",
    )


def _target(shell: str) -> tuple[Path, str | None]:
    """Where the person's shell looks, and what is left to do."""
    import os

    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    if shell == "bash":
        target = data / "bash-completion/completions/dpctl"
        return target, f"without bash-completion, add to ~/.bashrc: source {target}"
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish/completions/dpctl.fish", None
    target = data / "zsh/site-functions/_dpctl"
    return target, f"unless it is there, add to ~/.zshrc before compinit: fpath+=({target.parent})"


def _write(target: Path, contents: str) -> None:
    """In one step, so that a shell that starts meanwhile never reads half a script."""
    import os
    import tempfile

    from dpctl.errors import DeniedError

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".dpctl-")
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(contents)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise DeniedError(
            f"cannot write {target}: {error.strerror}",
            "print it without --install and put it where your shell looks",
        ) from error
