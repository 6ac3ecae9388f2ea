"""Labs come up, and nothing of them stays: `dpctl lab up`, `down`, `run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpctl.errors import DpctlError, UsageError
from dpctl.lab import directory as lab_directory
from dpctl.lab import up
from dpctl.lab.spec import LabSpec

DPCTL = [sys.executable, "-m", "dpctl", "lab"]
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def short() -> Iterator[Path]:
    """A short directory, for sockets' sake; whatever runs there ends with the test."""
    with tempfile.TemporaryDirectory(prefix="dpu-", dir="/tmp") as made:
        yield Path(made)
        up.stop(Path(made) / "lab")


def lab(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [*DPCTL, *arguments], capture_output=True, text=True, cwd=REPOSITORY, timeout=60, **options
    )


def processes(directory: Path) -> list[str]:
    """Command lines of processes that belong to the lab in `directory`, by what they have open."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            links = [os.readlink(fd) for fd in (entry / "fd").iterdir()]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if any(link.startswith(f"{directory}/") for link in links):
            found.append(command)
    return found


def gone(directory: Path) -> bool:
    until = time.monotonic() + 10
    while directory.exists() or processes(directory):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_up_and_down(short: Path) -> None:
    where = short / "lab"
    first = lab("up", "--dir", str(where))
    assert first.returncode == 0, first.stderr
    assert first.stdout == (
        f"export DPCTL_HOST_ROOT={where}/root\nexport KUBECONFIG={where}/kubeconfig\n"
    )
    assert where.stat().st_mode & 0o777 == 0o700
    assert len(processes(where)) >= 8
    for private in ("kubeconfig", "lab.json", "ctl.sock", "root/etc/kubernetes/kubelet.conf"):
        assert (where / private).stat().st_mode & 0o777 == 0o600
    second = lab("up", "--dir", str(where))
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert "runs already" in second.stderr
    assert lab("down", "--dir", str(where)).returncode == 0
    assert gone(where)
    again = lab("down", "--dir", str(where))
    assert again.returncode == 0
    assert "no lab runs" in again.stderr


def test_killed_supervisor_leaves_no_process_and_the_next_up_cleans(short: Path) -> None:
    where = short / "lab"
    assert lab("up", "--dir", str(where)).returncode == 0
    pid = json.loads((where / "lab.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 30
    while processes(where) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes(where) == []
    assert lab("up", "--dir", str(where)).returncode == 0
    assert lab("down", "--dir", str(where)).returncode == 0
    assert gone(where)


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_run_gives_the_commands_exit_code(short: Path, script: str, code: int) -> None:
    where = short / "lab"
    result = lab("run", "--dir", str(where), "--", "sh", "-c", f'echo "$DPCTL_HOST_ROOT"; {script}')
    assert result.returncode == code, result.stderr
    assert result.stdout == f"{where}/root\n"
    assert gone(where)


def test_run_of_nothing(short: Path) -> None:
    where = short / "lab"
    result = lab("run", "--dir", str(where), "--", "/no/such/command")
    assert result.returncode == 2
    assert "cannot run /no/such/command" in result.stderr
    assert gone(where)


def started_run(where: Path, script: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*DPCTL, "run", "--dir", str(where), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


@pytest.mark.parametrize("at_once", ["", "kill -9 $PPID; "])
def test_run_killed(short: Path, at_once: str) -> None:
    """kill -9 of `lab run`, as soon as the command is there, too: the lab ends, and so does it."""
    where = short / "lab"
    process = started_run(where, f"echo here; echo $$; {at_once}exec sleep 60")
    assert process.stdout is not None
    command = int(process.stdout.readline())
    process.kill()
    process.wait()
    assert gone(where)
    until = time.monotonic() + 30
    while Path(f"/proc/{command}").exists() and "Z" not in state(command):
        assert time.monotonic() < until
        time.sleep(0.05)


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_run_interrupted(short: Path) -> None:
    """Ctrl-C goes to the whole foreground group: the command's to handle, then the lab ends."""
    where = short / "lab"
    process = started_run(
        where, "trap 'echo caught; exit 5' INT; echo here; sleep 60 >/dev/null & wait"
    )
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(20) == 5
    assert process.stdout is not None
    assert process.stdout.read() == "caught\n"
    assert gone(where)


def test_run_terminated(short: Path) -> None:
    where = short / "lab"
    process = started_run(where, "trap 'exit 6' TERM; echo here; sleep 60 >/dev/null & wait")
    process.terminate()
    assert process.wait(20) == 6
    assert gone(where)


def test_interrupted_while_it_comes_up(short: Path) -> None:
    where = short / "lab"
    process = subprocess.Popen(
        [*DPCTL, "up", "--dir", str(where)], cwd=REPOSITORY, start_new_session=True
    )
    until = time.monotonic() + 20
    while not (where / "log" / "kubelet.log").exists():
        assert time.monotonic() < until
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(20) == 130
    assert gone(where)


def test_hostile_directories(short: Path) -> None:
    (short / "target").mkdir()
    (short / "link").symlink_to("target")
    (short / "file").touch()
    (short / "open").mkdir()
    (short / "open").chmod(0o777)
    (short / "used").mkdir()
    (short / "used" / "thesis.tex").touch()
    for name in ("link", "file", "open", "used", "x" * 60):
        with pytest.raises(DpctlError):
            lab_directory.prepare(short / name)
    assert (short / "used" / "thesis.tex").exists()
    with pytest.raises(UsageError, match="holds something"):
        up.stop(short / "used")


def test_as_an_ordinary_user(short: Path) -> None:
    """Without root's rights; as root a user namespace takes them away."""
    drop = ["unshare", "--user", "--map-user=65534"] if os.getuid() == 0 else []
    if drop and subprocess.run([*drop, "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    script = 'id -u; grep CapEff /proc/self/status; ls "$DPCTL_HOST_ROOT"/var/lib/kubelet/*/'
    command = [*drop, *DPCTL, "run", "--dir", str(short / "lab"), "--", "sh", "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] != "0"
    assert int(result.stdout.splitlines()[1].split()[1], 16) == 0
    assert "kubelet_internal_checkpoint" in result.stdout
    assert gone(short / "lab")


def test_two_at_once(short: Path) -> None:
    """One lab comes up, whoever wins; the other one says so and harms nothing."""
    command = [*DPCTL, "up", "--dir", str(short / "lab")]
    both = [
        subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    codes = sorted(process.wait(60) for process in both)
    for process in both:
        process.communicate()
    assert codes[0] == 0
    assert codes[1] in (0, 2, 3)
    found = up.running(short / "lab")
    assert found is not None
    assert len(processes(short / "lab")) >= 8
    assert up.stop(short / "lab")
    assert gone(short / "lab")


def is_held(lock: Path) -> bool:
    """Whether somebody has the lock, seen without taking it."""
    if not lock.exists():
        return False
    end = f":{lock.stat().st_ino}"
    return any(line.split()[-3].endswith(end) for line in Path("/proc/locks").open())


def test_down_while_it_comes_up(short: Path) -> None:
    where = short / "lab"
    lock, kubelet = where / "lock", where / "log" / "kubelet.log"
    milestones: list[Callable[[], bool]] = [lambda: is_held(lock), kubelet.exists]
    for reached in milestones:
        process = subprocess.Popen(
            [*DPCTL, "up", "--dir", str(where)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 60
        while not reached():
            assert time.monotonic() < until
            time.sleep(0.002)
        assert up.stop(where)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (4, "")
        assert "taken down while it came up" in err
        assert gone(where)


def test_down_of_a_paused_supervisor(short: Path) -> None:
    where = short / "lab"
    assert lab("up", "--dir", str(where)).returncode == 0
    os.kill(json.loads((where / "lab.json").read_text())["pid"], signal.SIGSTOP)
    assert lab("down", "--dir", str(where)).returncode == 0
    assert gone(where)


def test_down_makes_a_deaf_supervisor_end(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = short / "lab"
    monkeypatch.setattr(up, "_PATIENCE", 0.3)
    assert lab("up", "--dir", str(where)).returncode == 0
    pid = json.loads((where / "lab.json").read_text())["pid"]
    os.kill(pid, signal.SIGSTOP)
    real = signal.pidfd_send_signal

    def deaf(pidfd: int, number: int) -> None:
        if number == signal.SIGKILL:
            real(pidfd, number)

    monkeypatch.setattr(signal, "pidfd_send_signal", deaf)
    assert up.stop(where)
    assert gone(where)


def test_only_who_signed_the_lock_is_its_holder(short: Path) -> None:
    held = lab_directory.lock(short)
    assert held is not None
    assert lab_directory.holder(short) is None
    lab_directory.sign(held)
    found = lab_directory.holder(short)
    assert found is not None
    assert found[0] == os.getpid()
    os.close(found[1])
    for other in (f"{os.getpid()} 1", "1 1", "-1 5", "x", "9" * 64):
        (short / "lock").write_text(other)
        assert lab_directory.holder(short) is None
    os.close(held)
    (short / "lock").unlink()


def test_a_current_directory_that_is_gone(short: Path) -> None:
    script = f'mkdir {short}/g; cd {short}/g; rmdir {short}/g; exec "$@"'
    for command in ("up", "down"):
        result = subprocess.run(
            ["sh", "-c", script, "sh", *DPCTL, command, "--dir", "x"],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        assert result.returncode == 2, result.stderr
        assert "the current directory is gone" in result.stderr


@pytest.mark.parametrize("kind", ["directory", "link", "fifo"])
def test_a_lock_that_is_no_file(short: Path, kind: str) -> None:
    where = short / "locked"
    where.mkdir(mode=0o700)
    lock = where / "lock"
    if kind == "directory":
        lock.mkdir()
    elif kind == "link":
        lock.symlink_to("x")
    else:
        os.mkfifo(lock)
    with pytest.raises(UsageError, match=str(lock)):
        up.start(where, LabSpec())
    with pytest.raises(UsageError, match=str(lock)):
        up.stop(where)


@pytest.mark.parametrize("options", ["size=64k", "size=4k", "size=16m,nr_inodes=2", "nr_inodes=9"])
def test_a_full_file_system(short: Path, options: str) -> None:
    """It is said, and nothing stays."""
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = f"mount -t tmpfs -o {options} none {short} && "
    if subprocess.run([*alone, "sh", "-c", f"{mount} true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    script = f'{mount} {{ "$@"; code=$?; ls {short}; exit $code; }}'
    result = subprocess.run(
        [*alone, "sh", "-c", script, "sh", *DPCTL, "up", "--dir", f"{short}/lab"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=60,
    )
    assert (result.returncode, result.stdout) == (4, ""), result.stderr
    assert "no space or no inodes left" in result.stderr
