"""Processes of a test node: started in the node's control group, with a log, and waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .forked import Spawned

T = TypeVar("T")

# The shell enters the control groups before it becomes the command, so that nothing that the
# command forks can be outside: whatever is outside, nobody ends when the test runner is killed.
_ENTER = """
count=$1; shift
while [ "$count" -gt 0 ]; do
  echo $$ > "$1" || exit 125
  shift; count=$((count - 1))
done
exec "$@"
"""

# Kubelets are started some hundred times in a run, and what they do then is mostly to grow their
# heap: collecting it seldom saves a fifth of a start.
GO = {"GOGC": "400"}


class ClusterError(Exception):
    """Something of the test cluster did not do what it must."""


def inside(groups: Sequence[Path], command: Sequence[str]) -> list[str]:
    """The command line that enters control groups and then is `command`, under the same pid."""
    return ["sh", "-c", _ENTER, "enter", str(len(groups)), *map(str, groups), *command]


class Daemon:
    """A process that runs until it is stopped; it can be started again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        groups: Sequence[Path],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = inside(groups, command)
        self._env = {**GO, **os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | Spawned | None = None
        self._log_start = 0

    def start(self) -> None:
        """Start it; the log is appended to."""
        if self.alive:
            raise ClusterError(f"{self.name} runs already")
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd="/",
                # Away from the terminal's Ctrl-C.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its pid, also after its end."""
        if self._process is None:
            raise ClusterError(f"{self.name} was never started")
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send it a signal, such as SIGSTOP."""
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self, seconds: float = 30.0) -> None:
        """Ask it to end. One that does not is killed, and that is a failure: what a test asks for
        next would be about a process with no chance to tidy up."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ClusterError(
                f"{self.name} did not end within {seconds:.0f} s\n{self.log_tail()}"
            ) from None

    def kill(self) -> None:
        """Kill it, with no chance to tidy up."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def reap(self) -> None:
        """Take note of its end, after something else has killed it."""
        if self._process is not None:
            self._process.wait()

    def log_since_start(self) -> str:
        """What it has logged since it was last started."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def log_tail(self, lines: int = 25) -> str:
        """The last lines of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def wait_for(
    what: str,
    probe: Callable[[], T | None],
    seconds: float = 60.0,
    needs: Iterable[Daemon] = (),
    interval: float = 0.1,
) -> T:
    """Ask `probe` until its answer is true and return that.

    Fails when time is up or when one of `needs` has ended, and shows the ends of their logs.
    """
    daemons = list(needs)
    deadline = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        dead = [daemon.name for daemon in daemons if not daemon.alive]
        if dead or time.monotonic() > deadline:
            why = f"{', '.join(dead)} ended" if dead else f"not within {seconds:.0f} s"
            logs = "".join(f"\n--- {d.name}: {d.log}\n{d.log_tail()}" for d in daemons)
            raise ClusterError(f"waiting for {what}: {why}{logs}")
        time.sleep(interval)
