"""Python programs in a node's namespace, forked from a process that has all of it loaded.

Most of what a command or a plugin costs is loading, and some thousand of them are most of what a
run costs. What comes back is a process's own: exit code, stdout, stderr. Where starting is part of
the matter, tests start dpctl as a person would (`Bench.started`, `Bench.command`).

As a program it is the server. It takes messages on the socket that is its standard input: JSON,
and the descriptors that the new process is to have as 0, 1 and 2. It answers with the pid, and
for a command, when that has ended, with the exit code.
"""

from __future__ import annotations

import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from .node import REPOSITORY, Node, Result
from .processes import ClusterError, Daemon

LEFT_OUT = ("dpctl.gen", "dpctl.tui", "dpctl.__main__", "dpctl.lab.supervisor")
LONGEST_SECONDS = 120
"""A command that takes longer is killed: its code is -14 then."""
LONGEST_MESSAGE = 1 << 20


class Spawned:
    """A forked process with the face of `subprocess.Popen`; it is the server's child, not ours."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self._ended = pidfd if (pidfd := _pidfd(pid)) is not None else -1

    def poll(self) -> int | None:
        """0 when it has ended: with which code is not known."""
        return 0 if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return 0

    def _has_ended(self, seconds: float | None) -> bool:
        if self._ended < 0:
            return True
        # Not select(), which refuses a descriptor above 1023.
        end = select.poll()
        end.register(self._ended, select.POLLIN)
        if not end.poll(None if seconds is None else seconds * 1000):
            return False
        # A run has some hundred of them.
        os.close(self._ended)
        self._ended = -1
        return True

    def send_signal(self, number: int) -> None:
        """Nothing when it has ended."""
        if self._ended >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


class Forked(Daemon):
    """The server in a node's namespace; it starts with the first request."""

    def __init__(self, node: Node) -> None:
        plane = node.plane
        name = f"forked-{node.name}"
        command = [*node.nsenter, sys.executable, "-m", "tests.cluster.forked"]
        env = {"PYTHONPATH": str(REPOSITORY)}
        super().__init__(name, command, plane.path / "log" / f"{name}.log", plane.groups, env)
        plane.daemons[name] = self
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Start it, a socket for its standard input."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                env=self._env,
                cwd="/",
                start_new_session=True,
            )

    def run(self, *arguments: str, env: Mapping[str, str], stdin: str = "") -> Result:
        """Run dpctl with these arguments, and this environment beside the test run's own."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            given.write(stdin.encode())
            given.seek(0)
            self._request("dpctl", given, stdout, stderr, arguments=arguments, env=dict(env))
            code = self._answer()["code"]
            said = []
            for file in (stdout, stderr):
                file.seek(0)
                said.append(file.read().decode(errors="surrogateescape"))
        return Result(code, *said)

    def plugin(self, log: Path) -> Spawned:
        """Start a lab plugin that waits to be told what it is."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        with open(theirs_in) as stdin, open(theirs_out, "w") as stdout, log.open("ab") as stderr:
            pid = self._request("plugin", stdin, stdout, stderr)
        return Spawned(pid, open(ours_in, "wb"), open(ours_out, "rb"))

    def _request(self, what: str, *files: IO[Any], **more: object) -> int:
        """The pid."""
        if not self.alive:
            self.start()
        assert self._socket is not None
        message = json.dumps({"what": what, **more}).encode()
        try:
            socket.send_fds(self._socket, [message], [file.fileno() for file in files])
        except OSError as error:
            raise ClusterError(f"{self.name}: {error}: {self.log_tail()}") from error
        pid: int = self._answer()["pid"]
        return pid

    def _answer(self) -> dict[str, int]:
        assert self._socket is not None
        answer = self._socket.recv(LONGEST_MESSAGE)
        if not answer:
            raise ClusterError(f"{self.name} ended: {self.log_tail()}")
        found: dict[str, int] = json.loads(answer)
        return found


# -- the server -----------------------------------------------------------------------------------


def serve() -> None:
    """Answer until the input ends."""
    _load()
    plugins: set[int] = set()
    signal.signal(signal.SIGCHLD, lambda *_: _reap(plugins))
    with socket.socket(fileno=os.dup(0)) as requests:
        while True:
            message, files, _, _ = socket.recv_fds(requests, LONGEST_MESSAGE, 3)
            if not message:
                return
            request = json.loads(message)
            is_plugin = request["what"] == "plugin"
            # Its end must not be seen before its name is known.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            pid = os.fork()
            if pid == 0:
                requests.close()
                _become(request, files)
            for file in files:
                os.close(file)
            if is_plugin:
                plugins.add(pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            requests.send(json.dumps({"pid": pid}).encode())
            if not is_plugin:
                _, status = os.waitpid(pid, 0)
                requests.send(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode())


def _load() -> None:
    import dpctl

    for name in ("grpc", "kubernetes.config", "kubernetes.client.api_client"):
        import_module(name)
    for module in pkgutil.walk_packages(dpctl.__path__, "dpctl."):
        if not module.name.startswith(LEFT_OUT) and not module.name.endswith("__main__"):
            import_module(module.name)


def _reap(plugins: set[int]) -> None:
    for pid in list(plugins):
        if os.waitpid(pid, os.WNOHANG)[0]:
            plugins.discard(pid)


def _become(request: dict[str, Any], files: list[int]) -> None:
    """Be dpctl or a plugin, and end. Never returns."""
    code = 99
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.setsid()
        try:
            code = _main(request)
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _main(request: dict[str, Any]) -> int:
    if request["what"] == "plugin":
        from dpctl.lab.plugin import main as plugin

        sys.argv = ["plugin"]
        plugin()
        return 0
    from dpctl.__main__ import main

    os.environ.update(request["env"])
    signal.alarm(LONGEST_SECONDS)
    sys.argv = ["dpctl", *request["arguments"]]
    return int(main() or 0)


if __name__ == "__main__":
    serve()
