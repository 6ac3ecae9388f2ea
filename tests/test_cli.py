"""Errors and exit codes: what reaches stderr, whatever it quotes; what happens to stdout."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpctl import cli, errors, streams
from dpctl.__main__ import main
from dpctl.options import Common, Declared
from dpctl.parser import build_leaf
from tests.run import TESTS, Result, dpctl


def test_every_command_of_the_table_can_be_built() -> None:
    for name in cli.COMMANDS:
        assert cli.load(name).name == name


@pytest.mark.parametrize(
    ("arguments", "first_line", "hint"),
    [
        (
            ["versoin"],
            'error: unknown command "versoin"',
            'hint: did you mean "version"? "dpctl --',
        ),
        (["zzz"], 'error: unknown command "zzz"', 'hint: "dpctl --help" lists the commands'),
        (["version", "--shrt"], "error: no such option: --shrt", 'hint: "dpctl version --help"'),
        (["version", "x"], "error: got unexpected extra argument", 'hint: "dpctl version --help"'),
        (
            ["config", "sett"],
            'error: unknown command "sett"',
            'hint: did you mean "set" or "unset"?',
        ),
        (["config", "set"], "error: missing argument 'KEY'", 'hint: "dpctl config set --help"'),
        (["env", "--color", "x"], "error: invalid value for '--color'", 'hint: "dpctl env --help"'),
        (
            ["env", "--color", "alwys"],
            "error: invalid value for '--color': 'alwys' is not one of",
            'hint: did you mean "always"? "dpctl env --help"',
        ),
        (
            ["env", "-o", "jsn"],
            "error: unknown output format 'jsn'",
            'hint: did you mean "json"? one of: table, wide',
        ),
        (["env", "-o"], "error: option '-o' requires an argument", 'hint: "dpctl env --help"'),
        (["env", "-o", "x"], "error: unknown output format 'x'", "hint: one of: table, wide"),
        (["--nothing"], "error: no such option: --nothing", 'hint: "dpctl --help"'),
    ],
)
def test_usage(arguments: list[str], first_line: str, hint: str) -> None:
    result = dpctl(*arguments)
    lines = result.err.splitlines()
    assert (result.code, result.out, len(lines)) == (2, "", 2), result
    assert lines[0].startswith(first_line)
    assert lines[1].startswith(hint)


def test_what_is_quoted_is_escaped() -> None:
    hostile = "a\x1b[31m\n\r\x07error: forged\u202e"
    for arguments in ([hostile], ["config", "set", hostile, "x"], ["version", hostile]):
        result = dpctl(*arguments)
        assert result.code == 2
        assert not set(result.err) & set("\x1b\r\x07\u202e"), result.err
        assert not any(line.startswith("error: forged") for line in result.err.splitlines())


def test_bytes_that_are_no_text() -> None:
    result = dpctl(os.fsdecode(b"a\xff"))
    assert (result.code, result.err.splitlines()[0]) == (2, 'error: unknown command "a\\xff"')


def test_a_message_of_64_kib_is_cut() -> None:
    result = dpctl("config", "unset", "x" * 65536)
    assert result.code == 2
    assert len(result.err) < 6000


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.FoundError, 1),
        (errors.UsageError, 2),
        (errors.UnreachableError, 3),
        (errors.PeerError, 4),
        (errors.DeniedError, 5),
        (errors.NotAppliedError, 6),
        (errors.BadDataError, 7),
    ],
)
def test_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: type[errors.DpctlError],
    code: int,
) -> None:
    result = run_failing(monkeypatch, capsys, error("it\nfailed", "do\tthis"))
    assert result == Result(code, "", "error: it\\nfailed\nhint: do\\tthis\n")


def run_failing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> Result:
    """`dpctl version`, whose function raises this."""

    def function(common: Common) -> int | None:
        raise error

    leaf = build_leaf("version", Declared(function, (), ""))
    monkeypatch.setattr(cli, "load", lambda name: leaf)
    code = cli.run(["version"])
    captured = capsys.readouterr()
    return Result(code, captured.out, captured.err)


def test_a_defect_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DPCTL_DEBUG", raising=False)
    result = run_failing(monkeypatch, capsys, ValueError("odd\x1b"))
    assert result.code == 4
    assert result.err.splitlines() == [
        "error: internal error: ValueError: odd\\e",
        "hint: this is a defect of dpctl, please report it; DPCTL_DEBUG=1 shows where it happened",
    ]


def test_debug_shows_the_traceback_escaped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPCTL_DEBUG", "1")
    result = run_failing(monkeypatch, capsys, ValueError("odd\x1b"))
    assert "Traceback" in result.err
    assert "run_failing" in result.err or "function" in result.err
    assert "\x1b" not in result.err


def test_an_oserror_of_somebody_else_is_no_broken_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_failing(monkeypatch, capsys, BrokenPipeError(32, "Broken pipe"))
    assert result.code == 4
    assert "internal error: BrokenPipeError" in result.err


def wrapped(error: OSError) -> RuntimeError:
    outer = RuntimeError("it did not work")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EMFILE, "x"), "error: too many open files\nhint: raise `ulimit -n`\n"),
        (wrapped(OSError(errno.EMFILE, "x")), "error: too many open files\n"),
        (OSError(errno.ENFILE, "x"), "error: too many open files on this machine\n"),
        (MemoryError(), "error: out of memory\n"),
    ],
)
def test_what_the_machine_has_run_out_of_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    result = run_failing(monkeypatch, capsys, error)
    assert result.code == 4
    assert result.err.startswith(said)
    assert "defect" not in result.err


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_failing(monkeypatch, capsys, KeyboardInterrupt()) == Result(130, "", "")


def test_what_an_interruption_broke_on_its_way_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`Condition.wait` may have been interrupted where it does not have its lock back."""
    broken = RuntimeError("cannot release un-acquired lock")
    broken.__context__ = KeyboardInterrupt()
    assert run_failing(monkeypatch, capsys, broken) == Result(130, "", "")


def test_ctrl_c_leaves_without_a_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SLEEPER],
        cwd=TESTS.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


# `main` with a command that waits, in a process of its own.
_SLEEPER = """
import sys, time
from dpctl import cli
from dpctl.options import Declared
from dpctl.parser import build_leaf
def function(common):
    print("ready", flush=True)
    time.sleep(30)
cli.load = lambda name: build_leaf(name, Declared(function, (), ""))
from dpctl.__main__ import main
sys.argv = ["dpctl", "version"]
sys.exit(main())
"""


def closed(stream: int) -> Callable[[], None]:
    return lambda: os.close(stream)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["--version"], ["version"], ["--help"], ["schema", "User"]])
def test_a_stdout_that_cannot_take_it(arguments: list[str], unbuffered: str) -> None:
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    program = [sys.executable, "-m", "dpctl", *arguments]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            program, stdout=full, stderr=subprocess.PIPE, cwd=TESTS.parent, env=environ
        )
    said = b"error: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (4, said)

    done = subprocess.run(
        program, stderr=subprocess.PIPE, cwd=TESTS.parent, env=environ, preexec_fn=closed(1)
    )
    assert done.returncode == 4
    assert done.stderr == b"error: cannot write to standard output: it is closed\n"

    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            program, stdout=writer, stderr=subprocess.PIPE, cwd=TESTS.parent, env=environ
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (streams.BROKEN_PIPE, b"")


def test_a_closed_stderr_changes_nothing() -> None:
    program = [sys.executable, "-m", "dpctl", "nothing"]
    done = subprocess.run(
        program, stdout=subprocess.PIPE, cwd=TESTS.parent, preexec_fn=closed(2), check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_the_root_shows_every_command(arguments: list[str]) -> None:
    result = dpctl(*arguments)
    assert (result.code, result.err) == (0, "")
    for name, entry in cli.COMMANDS.items():
        assert f"  {name} " in result.out
        assert entry.help in result.out


def test_the_version() -> None:
    assert dpctl("--version") == Result(0, "0.1.0\n", "")
    assert dpctl("--version", "-h") == Result(0, "0.1.0\n", "")


def test_shared_options_stand_before_the_command_too(tmp_path: Path) -> None:
    before = dpctl("--host-root", str(tmp_path), "-q", "--sort-by=NAME", "env")
    after = dpctl("env", "--host-root", str(tmp_path), "-q", "--sort-by=NAME")
    assert before == after
    assert before.code == 0
    assert dpctl("-o", "name", "config", "view", env={"HOME": str(tmp_path)}).code == 0
    assert "dpctl env [OPTIONS]" in dpctl("--help", "env").out


def test_as_kubectl_plugin(tmp_path: Path) -> None:
    link = tmp_path / "kubectl-dp"
    link.write_text(
        f"#!{sys.executable}\nimport sys\nfrom dpctl.__main__ import main\nsys.exit(main())\n"
    )
    link.chmod(0o755)
    done = subprocess.run(
        [link, "env", "--nothing"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
    )
    assert done.returncode == 2
    assert 'hint: "kubectl dp env --help" shows what it takes' in done.stderr


@pytest.mark.parametrize("arguments", [["env"], ["__complete", "pods"], ["--version"]])
def test_ctrl_c_before_there_is_a_command(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """While modules load, too."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    for name in ("cli.run", "complete.main", "__main__._version"):
        monkeypatch.setattr(f"dpctl.{name}", interrupted)
    monkeypatch.setattr(sys, "argv", ["dpctl", *arguments])
    assert main() == 130
