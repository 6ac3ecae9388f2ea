"""A forked process that works while this one goes on, and hands back what it found.

Why a process: importing grpc takes 75 ms, kubernetes 250 ms, and threads take turns at importing;
two processes take two cores. Fork before the first thread and before grpc is imported: a forked
grpc is not usable.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Child(Generic[T]):
    """One function in a process of its own. Raises OSError when none can be made."""

    def __init__(self, function: Callable[[], T]) -> None:
        """`function`'s result must be picklable, and so must the exceptions it may raise."""
        import sys

        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()  # else both processes would write what is buffered
        self._read, write = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._read)
            os.close(write)
            raise
        if self._pid == 0:
            _work(function, write)
        os.close(write)

    def result(self) -> T:
        """Wait for it. Raises what the function raised; ChildProcessError when it died silently."""
        import pickle

        read, self._read = self._read, -1
        try:
            with open(read, "rb") as pipe:
                data = pipe.read()
        except BaseException:  # Ctrl-C while it is waited for
            self.stop()
            raise
        self._reap()
        if not data:
            raise ChildProcessError("the process that read beside this one died")
        value, error = pickle.loads(data)
        if error is not None:
            raise error
        found: T = value
        return found

    def stop(self) -> None:
        """End it, whatever it does; nothing when it has ended."""
        if self._read >= 0:
            os.close(self._read)
            self._read = -1
        if self._pid > 0:
            end_tree(self._pid)
            self._reap()

    def _reap(self) -> None:
        if self._pid > 0:
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = -1


def end_tree(pid: int) -> None:
    """End a process that this one started, and what it has started in its turn."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children", encoding="ascii") as listed:
                    found += map(int, listed.read().split())
    for one in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(one, signal.SIGKILL)


def _work(function: Callable[[], T], write: int) -> None:
    """The child's whole life. Never returns: nothing of the parent's may run twice."""
    import pickle

    # Ctrl-C reaches the whole group: the parent answers it, this one just ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        outcome: tuple[T | None, BaseException | None]
        try:
            outcome = (function(), None)
        except Exception as error:
            outcome = (None, error)
        with open(write, "wb") as pipe:
            pipe.write(pickle.dumps(outcome, protocol=pickle.HIGHEST_PROTOCOL))
    except BaseException:
        os._exit(1)
    os._exit(0)
