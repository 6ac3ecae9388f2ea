"""`dpctl plugin serve`: a scenario's plugin for a real kubelet, its cues from the file and from
whoever writes lines to the control socket (or to standard input).

What is told goes to the caller as JSON, a thread at a time.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from dpctl.errors import DeniedError, DpctlError, PeerError, UsageError
from dpctl.lab import sockets
from dpctl.lab.api_errors import Json
from dpctl.lab.cues import VERBS, Served, as_json, device, parse_cue
from dpctl.lab.runner import Runner

_LONGEST_LINE = 1 << 20
_SOCKET_PATH = 107
STDIN = "-"


class Server:
    """One scenario being served, until `stopped` or a cue ends it."""

    def __init__(self, served: Served, directory: Path, tell: Callable[[Json], None]) -> None:
        self._served = served
        self._lock = threading.Lock()
        self._say = tell
        self._registered = threading.Event()
        self._last_error = ""
        self._directory = directory
        self._failure: DpctlError | None = None
        self._unheard: OSError | None = None
        self.stopped = threading.Event()
        self.code = 0
        """Of a cue `exit CODE`."""
        self.runner = Runner(served.spec, directory, self._hear, self._tell, careful=True)

    def run(self, control: str | None) -> int:
        """Serve until the end; the exit code. Raises UsageError (the control), DeniedError,
        PeerError, and the OSError of whoever is told."""
        with self._controlled(control):
            threads = [threading.Thread(target=self._serve, daemon=True)]
            if self._served.cues:
                threads.append(threading.Thread(target=self._play, daemon=True))
            for thread in threads:
                thread.start()
            try:
                while not self.stopped.wait(1.0):
                    pass  # a wait without an end would not hear of Ctrl-C everywhere
            finally:
                self.stopped.set()
                self.runner.stop()
        failure = self._unheard or self._failure
        if failure is not None:
            raise failure
        return self.code

    def _serve(self) -> None:
        """The runner; what it cannot do ends the run."""
        try:
            self.runner.run()
        except PermissionError as error:
            self._failure = DeniedError(
                f"cannot serve in {self._directory}: {error.strerror}", "run as root (`sudo`)"
            )
        except (OSError, RuntimeError) as error:  # gRPC raises the latter where it cannot bind
            self._failure = PeerError(
                f"cannot serve on {self._directory / self._served.spec.endpoint}: {error}",
                "a path of more than 107 bytes, or no right to make a socket there?",
            )
        else:
            return
        self.stopped.set()

    @property
    def registered(self) -> bool:
        """Whether a kubelet has ever taken it on."""
        return self._registered.is_set()

    # -- what is told

    def _tell(self, event: Json) -> None:
        """Nobody to tell (`| head`) is the end; who calls is one of many threads."""
        with self._lock:
            if self._unheard is None:
                try:
                    self._say(event)
                except OSError as error:
                    self._unheard = error
                    self.stopped.set()

    def _hear(self, event: Json) -> None:
        """Of the runner: a kubelet that refuses goes on doing so; a final refusal is the end."""
        if event["event"] == "refused":
            if event["error"] == self._last_error:
                return
            self._last_error = event["error"]
        elif event["event"] == "registered":
            self._last_error = ""
            self._registered.set()
        self._tell(event)
        if event.get("final"):
            self._failure = PeerError(
                f"the kubelet will never take {self._served.spec.resource}: {event['error']}",
                "another name: --resource NAME, or `resource` in the scenario's file",
            )
            self.stopped.set()

    # -- cues

    def _play(self) -> None:
        while not self._registered.wait(0.2):
            if self.stopped.is_set():
                return
        while True:
            for cue in self._served.cues:
                if self.stopped.wait(cue.after):
                    return
                for line in cue.do:
                    self.cue(line)
            if not self._served.repeat:
                return

    def cue(self, line: str) -> Any:
        """Carry out one line and tell of it; its answer. A bad one is told, and answered."""
        try:
            verb, words = parse_cue(line)
            value = self._act(verb, words)
        except (ValueError, TypeError) as error:
            self._tell({"event": "cue", "line": line, "error": str(error)})
            return {"error": str(error)}
        except KeyError as error:
            self._tell({"event": "cue", "line": line, "error": f"no device {error.args[0]}"})
            return {"error": f"no device {error.args[0]}"}
        if verb != "state":
            self._tell({"event": "cue", "line": line})
        return value

    def _too_long(self) -> str:
        why = f"a line of more than {_LONGEST_LINE} bytes"
        self._tell({"event": "cue", "line": "", "error": why})
        return f"error: {why}"

    def _act(self, verb: str, words: list[str]) -> Any:
        command, plugin = self.runner.command, self.runner.plugin
        if verb == "health":
            return command("set-health", {"device": words[0], "health": words[1]})
        if verb == "devices":
            return command("set-devices", {"devices": as_json([device(w) for w in words])})
        if verb == "add":
            added = [*plugin.devices, *(device(word) for word in words)]
            return command("set-devices", {"devices": as_json(added)})
        if verb == "remove":
            known = {d.device_id for d in plugin.devices}
            for word in words:
                if word not in known:
                    raise KeyError(word)
            left = [d for d in plugin.devices if d.device_id not in words]
            return command("set-devices", {"devices": as_json(left)})
        if verb == "allocate-error":
            return command("allocate-error", {"text": " ".join(words)})
        if verb in ("hang", "answer"):
            return command("hang", {"method": words[0], "hangs": verb == "hang"})
        if verb == "exit":
            self.code = int(words[0]) % 256 if words else 0
            self.stopped.set()
            return None
        if verb == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        return command(verb, {})

    # -- the control socket

    @contextlib.contextmanager
    def _controlled(self, control: str | None) -> Iterator[None]:
        if control is None:
            yield
        elif control == STDIN:
            if sys.stdin is None:
                raise UsageError(
                    "--control -: standard input is closed", "--control FILE makes a socket"
                )
            threading.Thread(
                target=self._obey_input, args=(sys.stdin.fileno(),), daemon=True
            ).start()
            yield
        else:
            path = Path(control)
            listener = _listen(path)
            own = sockets.identity(path, follow=False)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            try:
                yield
            finally:
                listener.shutdown(socket.SHUT_RDWR)  # else `accept` keeps it listening
                listener.close()
                if sockets.identity(path, follow=False) == own:  # not what another has put there
                    path.unlink(missing_ok=True)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # closed: the end
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        # Who leaves without reading the answers breaks the pipe, at the latest on closing.
        with contextlib.suppress(OSError), connection, connection.makefile("rwb") as made:
            stream = cast(IO[bytes], made)
            self._obey(stream, stream)

    def _obey_input(self, descriptor: int) -> None:
        # Not sys.stdin's own reader: at the end of the process that is closed, and the interpreter
        # aborts where a thread still waits in it.
        with open(descriptor, "rb", closefd=False) as stream:
            self._obey(stream, None)

    def _obey(self, lines: IO[bytes], answers: IO[bytes] | None) -> None:
        """A cue a line; the answer is `ok`, a line of JSON, or `error: …`."""
        for line in _lines(lines):
            if line is None:
                text, answer = "", self._too_long()
            else:
                text = line.decode("utf-8", "replace").strip()
                if not text or text.startswith("#"):
                    continue
                answer = "\n".join(VERBS.values()) if text == "help" else _answer(self.cue(text))
            if answers is None:
                if text in ("help", "state"):
                    self._tell({"event": "answer", "text": answer})
                continue
            try:
                answers.write(f"{answer}\n".encode())
                answers.flush()
            except OSError:
                return


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Line by line; None for one that is too long, of which nothing is kept: its rest is no line
    of its own. Who cannot be read any more has ended."""
    with contextlib.suppress(OSError):
        while line := stream.readline(_LONGEST_LINE + 1):
            if len(line) <= _LONGEST_LINE:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = stream.readline(_LONGEST_LINE)
            yield None


def _answer(value: Any) -> str:
    if value is None:
        return "ok"
    if set(value) == {"error"}:
        return f"error: {value['error']}"
    return json.dumps(value)


def _listen(path: Path) -> socket.socket:
    """A socket of ours alone. Raises UsageError, DeniedError."""
    if len(os.fsencode(path)) > _SOCKET_PATH:
        raise UsageError(
            f"--control: a socket's path has at most {_SOCKET_PATH} bytes", "choose a shorter one"
        )
    if sockets.is_dead(path):  # an earlier run left it
        path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"--control: {path} is there already", "choose another path"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise DeniedError(f"--control: {path}: {error.strerror}", "choose another") from error
        raise UsageError(
            f"--control: {path}: {error.strerror or error}", "choose another"
        ) from error
    finally:
        os.umask(before)
    listener.listen(16)
    return listener
