"""The bash completion as readline calls it: real bash, COMP_LINE and COMP_WORDS as bash sets them,
and once with a terminal and a TAB."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpctl.statefiles.device_checkpoint import encode_checkpoint
from tests.run import TESTS

SCRIPT = TESTS.parent / "completions/dpctl.bash"
TRAP = "$(touch {})"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    plugins = tmp_path / "var/lib/kubelet/device-plugins"
    plugins.mkdir(parents=True)
    trap = TRAP.format(tmp_path / "sprung")
    registered = {
        "vendor.example/gpu": ["gpu-2", "gpu-10", "0000:3b:00.0", "0000:3b:00.1", trap, "`id`"],
        "other.example/nic": [],
    }
    (plugins / "kubelet_internal_checkpoint").write_bytes(encode_checkpoint([], registered))
    (tmp_path / "var/log/pods/training_job_uid").mkdir(parents=True)
    program = tmp_path / "bin/dpctl"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(TESTS.parent)!r})\n"
        "from dpctl.__main__ import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    return tmp_path


def environment(host: Path) -> dict[str, str]:
    return {
        "PATH": f"{host}/bin:{os.environ['PATH']}",
        "HOME": str(host),
        "DPCTL_HOST_ROOT": str(host),
        "PS1": "$ ",
        "TERM": "dumb",
    }


def replies(host: Path, line: str) -> list[str]:
    """COMPREPLY for the line, cursor at its end."""
    code = f"""
        source {SCRIPT}
        compopt() {{ printf 'compopt %s\\n' "$*"; }}
        COMP_LINE=$1 COMP_POINT=${{#1}}
        _dpctl
        ((${{#COMPREPLY[@]}})) && printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", code, "bash", line],
        capture_output=True,
        text=True,
        env=environment(host),
        cwd=host,
        timeout=60,
    )
    assert done.stderr == "", done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dpctl res", ["resources"]),
        ("dpctl config ", ["view", "set", "unset"]),
        ("dpctl resources v", ["vendor.example/gpu"]),
        ("dpctl resources vendor.example/gpu o", ["other.example/nic"]),
        ("dpctl resources --expect=v", ["vendor.example/gpu"]),
        ("dpctl -n x resources o", ["other.example/nic"]),
        ("dpctl resources --col", ["--color"]),
        ("dpctl resources --color ", ["auto", "always", "never"]),
        ("dpctl resources -o custom", ["custom-columns=", "compopt -o nospace"]),
        ("dpctl topology -o s", ["svg"]),
        ("dpctl pods -o s", []),
        ("dpctl who gpu-", ["gpu-2", "gpu-10"]),
        ("dpctl who 0000:3b:00.", ["00.0", "00.1"]),
        ("dpctl who '0000:3b:00.", ["0000:3b:00.0", "0000:3b:00.1"]),
        ('dpctl who "gpu-', ["gpu-2", "gpu-10"]),
        ('dpctl resources --expect="v', ["vendor.example/gpu"]),
        ("dpctl resources 'a' \"b\\\"\" \\' v", ["vendor.example/gpu"]),
        ("dpctl pods -n t", ["training"]),
        ("dpctl plugin serve fl", ["flapping", "compopt -o default"]),
        ("dpctl plugin serve ./x", ["compopt -o default"]),
        ("dpctl plugin prefer x --must gpu-2,g", ["gpu-2,gpu-10"]),
        ("dpctl pods -- --", []),
        ("dpctl env --from x", ["compopt -o default"]),
        ("dpctl env --host-root x", ["compopt -o dirnames"]),
        ("dpctl resources --host-root /nonexistent v", []),
        ("dpctl resources --host-root=/nonexistent v", []),
        ("dpctl version ", []),
        ("dpctl", []),
        ("", []),
    ],
)
def test_replies(host: Path, line: str, expected: list[str]) -> None:
    assert sorted(replies(host, line)) == sorted(expected)


def test_a_hostile_id_is_quoted_and_never_run(host: Path) -> None:
    assert replies(host, "dpctl who $") == [f"\\$\\(touch\\ {host}/sprung\\)"]
    for quoted in ("'$", '"$', "--x '`", 'x"$', "x '", '"'):
        assert not [r for r in replies(host, f"dpctl who {quoted}") if set(r) & set("$`\\'\"")]
    assert "\\`id\\`" in replies(host, "dpctl who ")
    assert not (host / "sprung").exists()


def test_with_a_terminal(host: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment(host))
    try:
        os.write(terminal, f"source {SCRIPT}; echo re''ady\n".encode())
        read_until(terminal, b"ready\r\n")
        os.write(terminal, b"dpctl who 0000:3b:00.1\t")
        read_until(terminal, b"dpctl who 0000:3b:00.1 ")
        os.write(terminal, b"\x15dpctl resources vend\t")
        read_until(terminal, b"dpctl resources vendor.example/gpu ")
        os.write(terminal, b"\x15exit\n")
        os.waitpid(process, 0)
    finally:
        os.close(terminal)
    assert not (host / "sprung").exists()


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize(
    "hostile", ["$(touch sprung)", "`touch sprung`", "a';touch sprung;'", 'a";touch sprung;"']
)
def test_enter_after_tab_in_a_quote_runs_nothing(host: Path, quote: str, hostile: str) -> None:
    checkpoint = host / "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
    checkpoint.write_bytes(encode_checkpoint([], {"vendor.example/gpu": [hostile]}))
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(host)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment(host))
    try:
        os.write(terminal, f"source {SCRIPT}; dpctl() {{ :; }}; echo re''ady\n".encode())
        read_until(terminal, b"ready\r\n")
        os.write(terminal, f"dpctl who {quote}\t\t".encode())
        time.sleep(0.6)
        os.write(terminal, f"\n{quote}\necho do''ne\n".encode())
        read_until(terminal, b"done\r\n")
        os.write(terminal, b"exit\n")
        os.waitpid(process, 0)
    finally:
        os.close(terminal)
    assert not (host / "sprung").exists()


def read_until(terminal: int, wanted: bytes) -> None:
    seen, end = b"", time.monotonic() + 30
    while wanted not in seen:
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 4096)
