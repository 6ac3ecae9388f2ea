"""TAB in the real shells, with dpctl installed from its wheel, and its manual as `man` finds it."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpctl import cli
from dpctl.statefiles.device_checkpoint import encode_checkpoint
from tests.gen.terminals import Terminal
from tests.needs import BASH_COMPLETION, needs
from tests.run import TESTS

ROOT = TESTS.parent
LOAD = {
    "bash": f"source {BASH_COMPLETION}",
    "zsh": "fpath+=($HOME/.local/share/zsh/site-functions); autoload -Uz compinit; compinit -u",
    "fish": "set -g fish_greeting",
}
"""What a person has in ~/.bashrc and ~/.zshrc; fish needs nothing."""


SHELLS = [
    pytest.param("bash", marks=needs("bash-completion")),
    pytest.param("zsh", marks=needs("zsh")),
    pytest.param("fish", marks=needs("fish")),
]


@dataclass(frozen=True)
class Installed:
    """A person on a node, who has installed the wheel."""

    home: Path
    prefix: Path

    @property
    def env(self) -> Mapping[str, str]:
        return {
            "PATH": f"{self.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "DPCTL_HOST_ROOT": str(self.home / "node"),
            "LANG": "C.UTF-8",
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=120, cwd=self.home
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own; its dependencies are ours."""
    home = tmp_path_factory.mktemp("home")
    prefix = home / "env"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    [wheel] = home.glob("*.whl")
    venv.create(prefix, with_pip=True)
    pip = [str(prefix / "bin/python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=300)
    [packages] = (prefix / "lib").glob("python*/site-packages")
    # Not as a .pth file: an editable dpctl among ours would then be found, too.
    for entry in Path(site.getsitepackages()[0]).iterdir():
        if "dpctl" not in entry.name and not (packages / entry.name).exists():
            (packages / entry.name).symlink_to(entry)
    plugins = home / "node/var/lib/kubelet/device-plugins"
    plugins.mkdir(parents=True)
    registered = {
        "vendor.example/gpu": ["gpu-2", "gpu-10", "0000:3b:00.1"],
        "other.example/nic": [],
    }
    (plugins / "kubelet_internal_checkpoint").write_bytes(encode_checkpoint([], registered))
    (home / "mine.toml").write_text('resource = "a.example/x"')
    (home / "node/var/log/pods/training_run-0_uid").mkdir(parents=True)
    return Installed(home, prefix)


def test_what_is_installed_is_the_wheel(installed: Installed) -> None:
    code = "import dpctl; print(dpctl.__file__)"
    shown = installed.run(str(installed.prefix / "bin/python"), "-c", code)
    assert shown.stdout.startswith(str(installed.prefix)), shown
    for program in ("dpctl", "kubectl-dp"):
        assert installed.run(program, "version", "--short").returncode == 0


LINES = [
    ("dpctl resour", "dpctl resources"),
    ("dpctl resources vend", "dpctl resources vendor.example/gpu"),
    ("dpctl resources --expe", "dpctl resources --expect"),
    ("dpctl devices --group-by phys", "dpctl devices --group-by physical"),
    ("dpctl pods -n train", "dpctl pods -n training"),
    ("dpctl pods training/r", "dpctl pods training/run-0"),
    ("dpctl who gpu-2", "dpctl who gpu-2"),
    ("dpctl node rem", "dpctl node remove"),
    ("dpctl node remove oth", "dpctl node remove other.example/nic"),
    ("dpctl plugin opt", "dpctl plugin options"),
    ("dpctl plugin options vend", "dpctl plugin options vendor.example/gpu"),
    ("dpctl plugin wait --for heal", "dpctl plugin wait --for healthy"),
    # Shipped scenarios, and then files (--list: it ends at once, and asks nothing).
    ("dpctl plugin serve --list flapp", "dpctl plugin serve --list flapping"),
    ("dpctl plugin serve --list ./mi", "dpctl plugin serve --list ./mine.toml"),
    # After a comma it goes on.
    ("dpctl plugin prefer x --must gpu-2", "dpctl plugin prefer x --must gpu-2"),
    ("dpctl plugin prefer x --must gpu-2,gpu-1", "dpctl plugin prefer x --must gpu-2,gpu-10"),
    ("dpctl dashboard --view num", "dpctl dashboard --view numa"),
    ("dpctl state ver", "dpctl state verify"),
    ("dpctl topology --policy singl", "dpctl topology --policy single-numa-node"),
    ("dpctl schema NumaN", "dpctl schema NumaNode"),
]


@pytest.mark.parametrize("shell", SHELLS)
def test_tab(shell: str, installed: Installed) -> None:
    """`dpctl completion SHELL --install`, a new shell, TAB."""
    done = installed.run("dpctl", "completion", shell, "--install")
    assert (done.returncode, done.stderr) == (0, "")
    with Terminal(shell, installed.env, LOAD[shell], installed.home) as terminal:
        found = [(line, terminal.tab(line)) for line, _ in LINES]
    assert found == LINES


SHIPPED = {
    "bash": "export XDG_DATA_DIRS={share}:/usr/share; source {bash_completion}",
    "zsh": "fpath+=({share}/zsh/site-functions); autoload -Uz compinit; compinit -u",
    "fish": "set -gx XDG_DATA_DIRS {share} /usr/share",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_with_the_shipped_files(shell: str, installed: Installed, tmp_path: Path) -> None:
    """Somebody who installs to a prefix that the shell knows has to do nothing."""
    share = installed.prefix / "share"
    load = SHIPPED[shell].format(share=share, bash_completion=BASH_COMPLETION)
    env = {**installed.env, "HOME": str(tmp_path)}
    if shell == "fish":
        env["XDG_DATA_DIRS"], load = f"{share}:/usr/share", LOAD["fish"]
    with Terminal(shell, env, load, tmp_path) as terminal:
        assert terminal.tab("dpctl plugin allo") == "dpctl plugin allocate"
        assert terminal.tab("dpctl resources vend") == "dpctl resources vendor.example/gpu"


@needs("man")
def test_man_finds_the_pages(installed: Installed) -> None:
    """By the prefix of the program on PATH, as man does."""
    for name in ("dpctl", *(f"dpctl-{command}" for command in cli.COMMANDS)):
        where = installed.run("man", "-w", name)
        assert where.stdout.strip() == f"{installed.prefix}/share/man/man1/{name}.1", where
    page = installed.run("man", "-P", "cat", "dpctl-plugin")
    assert page.returncode == 0, page.stderr
    assert "dpctl plugin serve" in page.stdout
    assert os.fspath(ROOT) not in page.stdout


@needs("mandoc")
@pytest.mark.parametrize("page", sorted((ROOT / "man").glob("*.1")), ids=lambda page: page.name)
def test_mandoc_has_nothing_to_say(page: Path) -> None:
    done = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
