"""The supervisor's end of a child process: start, ask, kill. The other end is `process`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpctl.lab.api_errors import Json

Events = Callable[[str, Json], None]
"""Called with the event's name and the rest of the line."""


class ChildError(Exception):
    """The child answered with an error, did not answer in time, or is gone."""


class Child:
    """A running `python -m MODULE`; it ends when this process does (its stdin closes)."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        orders: Json | None,
        *,
        log: Path,
        environment: Mapping[str, str],
        events: Events,
    ) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[threading.Event, Json]] = {}
        self._number = 0
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
            )
        if orders is not None:
            self.order(orders)
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def order(self, orders: Json) -> None:
        """The first line, for a child that was started without. Raises ChildError."""
        self._send(orders)

    def ask(self, op: str, *, timeout: float = 15.0, **arguments: Any) -> Any:
        """The child's answer. Raises ChildError."""
        done = threading.Event()
        answer: Json = {}
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = (done, answer)
        try:
            self._send({"id": number, "op": op, **arguments})
            if not done.wait(timeout):
                raise ChildError(f"no answer to {op!r} within {timeout:g} s")
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if "error" in answer:
            raise ChildError(answer["error"])
        return answer["value"]

    def send_signal(self, number: int) -> None:
        if self.running():
            self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.send_signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, timeout: float) -> None:
        """Raises ChildError when it is still there."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ChildError(f"process {self.pid} does not end") from None

    def _send(self, document: Json) -> None:
        data = json.dumps(document).encode() + b"\n"
        stdin = self._process.stdin
        try:
            with self._lock:
                if stdin is None:
                    raise ChildError("no pipe to the process")
                stdin.write(data)
                stdin.flush()
        except (OSError, ValueError):
            raise ChildError(f"process {self.pid} is gone") from None

    def _read(self) -> None:
        stdout = self._process.stdout
        if stdout is None:
            return
        for line in stdout:
            document = json.loads(line)
            if "event" in document:
                self._events(document.pop("event"), document)
                continue
            with self._lock:
                waiting = self._waiting.get(document["id"])
            if waiting is not None:
                waiting[1].update(document)
                waiting[0].set()
        self._process.wait()
        with self._lock:
            waiting_now = list(self._waiting.values())
        for done, answer in waiting_now:
            answer["error"] = f"process {self.pid} has ended"
            done.set()
        self._events("ended", {})
