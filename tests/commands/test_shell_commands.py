"""`version`, `completion`, `env`, `config`, `schema`: commands that read nothing of the node."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from dpctl.views.kinds import VIEWS
from tests.run import TESTS, Result, dpctl

COMPLETIONS = TESTS.parent / "completions"


def test_version() -> None:
    assert dpctl("version", "--short") == Result(0, "0.1.0\n", "")
    assert dpctl("version").out.startswith("dpctl 0.1.0\nPython 3.")


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", "dpctl.bash"), ("zsh", "_dpctl"), ("fish", "dpctl.fish")]
)
def test_completion_prints_the_generated_script(shell: str, file: str) -> None:
    assert dpctl("completion", shell) == Result(0, (COMPLETIONS / file).read_text(), "")


def test_an_unknown_shell() -> None:
    result = dpctl("completion", "tcsh")
    assert (result.code, result.out) == (2, "")
    assert "'bash', 'zsh', 'fish'" in result.err


@pytest.mark.parametrize(
    ("shell", "target"),
    [
        ("bash", ".local/share/bash-completion/completions/dpctl"),
        ("zsh", ".local/share/zsh/site-functions/_dpctl"),
        ("fish", ".config/fish/completions/dpctl.fish"),
    ],
)
def test_completion_installs(tmp_path: Path, shell: str, target: str) -> None:
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    for _ in range(2):
        result = dpctl("completion", shell, "--install", env=env)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"completion/{shell} written to {tmp_path / target}\n")
        assert (tmp_path / target).read_text() == dpctl("completion", shell).out
        assert stat.S_IMODE((tmp_path / target).stat().st_mode) == 0o644
        assert [p.name for p in (tmp_path / target).parent.iterdir()] == [Path(target).name]


def test_completion_cannot_be_installed_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = dpctl("completion", "bash", "--install", env={"XDG_DATA_HOME": str(tmp_path / "file")})
    assert (result.code, result.out) == (5, "")
    assert result.err.startswith("error: cannot write ")


def test_env_names_the_origin(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "DPCTL_HOST_ROOT": str(tmp_path), "NODE_NAME": "worker-0"}
    assert dpctl("config", "set", "device-plugin-dir", "/from/file", env=env).code == 0
    result = dpctl("env", "--kubelet-root", "/given", "-o", "json", env=env)
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    assert (document["apiVersion"], document["kind"]) == ("dpctl/v1", "SettingList")
    found = {row["name"]: (row["value"], row["origin"]) for row in document["items"]}
    assert found["kubelet-root"] == ("/given", "flag")
    assert found["host-root"] == (str(tmp_path), "environment DPCTL_HOST_ROOT")
    assert found["node"] == ("worker-0", "environment NODE_NAME")
    config = tmp_path / ".config/dpctl/config.toml"
    assert found["device-plugin-dir"] == ("/from/file", f"config {config}")


@pytest.mark.parametrize(
    ("format", "first"),
    [
        ("table", "NAME   VALUE   ORIGIN"),
        ("wide", "NAME   VALUE   ORIGIN   EXISTS   TRIED   NOTE"),
        ("csv", "NAME,VALUE,ORIGIN,EXISTS,TRIED,NOTE"),
        ("name", "setting/as"),
        ("yaml", "apiVersion: dpctl/v1"),
        ("json", "{"),
        ("jsonpath={.kind}", "SettingList"),
        ("custom-columns=N:.name", "N"),
    ],
)
def test_env_in_every_format(tmp_path: Path, format: str, first: str) -> None:
    result = dpctl("env", "-o", format, env={"DPCTL_HOST_ROOT": str(tmp_path)})
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[0].split() == first.split()


def test_env_with_a_broken_configuration(tmp_path: Path) -> None:
    config = tmp_path / ".config/dpctl/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("kubelet-root = [\n")
    result = dpctl("env", env={"HOME": str(tmp_path)})
    assert (result.code, result.out) == (7, "")
    assert str(config) in result.err
    assert "\nhint: " in result.err


def test_config(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "COLUMNS": "200"}
    file = tmp_path / ".config/dpctl/config.toml"
    empty = dpctl("config", "view", env=env)
    assert (empty.code, empty.out) == (0, "")
    assert empty.err == f"note: nothing is configured; looked at /etc/dpctl.toml, {file}\n"

    said = dpctl("config", "set", "--", "host_root", "/ho st", env=env)
    assert said == Result(0, f"config/host-root set in {file}\n", "")
    assert dpctl("config", "set", "as-group", "a", "b", env=env).code == 0
    assert dpctl("config", "set", "request-timeout", "1m", env=env).code == 0
    shown = dpctl("config", "view", "--no-headers", env=env).out.splitlines()
    assert [line.split("   ")[:1] for line in shown] == [
        ["as-group"],
        ["host-root"],
        ["request-timeout"],
    ]
    assert [line.split("   ")[-1].strip() for line in shown] == [f"config {file}"] * 3
    assert "/ho st" in shown[1]
    assert dpctl("env", "-q", env=env).code == 0

    assert dpctl("config", "unset", "as-group", env=env).out == f"config/as-group unset in {file}\n"
    assert dpctl("config", "unset", "as-group", env=env).out.startswith(
        "config/as-group is not set"
    )
    assert file.read_text() == 'host-root = "/ho st"\nrequest-timeout = 60\n'


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "host-root", "/a", "/b"],
        ["set", "nothing", "x"],
        ["set", "request-timeout", "soon"],
        ["unset", "nothing"],
        ["set", "host-root"],
    ],
)
def test_config_refuses(tmp_path: Path, arguments: list[str]) -> None:
    result = dpctl("config", *arguments, env={"HOME": str(tmp_path)})
    assert (result.code, result.out) == (2, "")
    assert "\nhint: " in result.err
    assert list(tmp_path.iterdir()) == []


def test_schema() -> None:
    kinds = [view.kind for view in VIEWS]
    assert dpctl("schema") == Result(0, "".join(f"{kind}\n" for kind in kinds), "")
    for name in ("Resource", "resource", "ResourceList", "resourcelist"):
        result = dpctl("schema", name)
        assert (result.code, result.err) == (0, "")
        assert json.loads(result.out)["title"] == "ResourceList"
    assert "title: DeviceList\n" in dpctl("schema", "device", "-o", "yaml").out
    assert dpctl("schema", "nothing").code == 2


@pytest.mark.parametrize("kind", [view.kind for view in VIEWS])
def test_every_kind_has_a_schema(kind: str) -> None:
    document = json.loads(dpctl("schema", kind).out)
    assert document["properties"]["kind"] == {"const": f"{kind}List"}


def test_env_of_this_very_machine() -> None:
    """No setting at all: whatever the machine has, an answer."""
    result = dpctl("env", "-o", "wide", env={"HOME": os.environ.get("HOME", "/")})
    assert result.code == 0
