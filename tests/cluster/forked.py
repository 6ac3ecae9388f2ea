"""dpctl in a node's namespace, forked from a process that has all of it loaded.

Most of what a command costs is loading, and some thousand commands are most of what a run costs.
What comes back is a process's own: exit code, stdout, stderr. Where starting is part of the
matter, tests start dpctl as a person would (`Node.dpctl`, `Bench.command`).

As a program it is the server: it takes a JSON line with arguments and environment on its standard
input, and answers with one: the exit code, and what the command said.
"""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from typing import IO

from .node import REPOSITORY, Node, Result
from .processes import ClusterError, Daemon

LEFT_OUT = ("dpctl.lab", "dpctl.gen", "dpctl.tui", "dpctl.__main__")

LONGEST_SECONDS = 120
"""What takes longer is killed: its code is -14 then."""


class Forked(Daemon):
    """The server in a node's namespace; it starts with the first command."""

    def __init__(self, node: Node) -> None:
        plane = node.plane
        name = f"forked-{node.name}"
        command = [*node.nsenter, sys.executable, "-m", "tests.cluster.forked"]
        env = {"PYTHONPATH": str(REPOSITORY)}
        super().__init__(name, command, plane.path / "log" / f"{name}.log", plane.groups, env)
        plane.daemons[name] = self

    def start(self) -> None:
        """Start it with pipes."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._env,
                cwd="/",
                start_new_session=True,
            )

    def run(self, *arguments: str, env: Mapping[str, str]) -> Result:
        """Run dpctl with these arguments, and this environment beside the test run's own."""
        if not self.alive:
            self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = json.dumps({"arguments": arguments, "env": dict(env)})
        self._process.stdin.write(request.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise ClusterError(f"{self.name} ended: {self.log_tail()}")
        return Result(**json.loads(answer))


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Answer until the input ends."""
    import dpctl

    for name in ("grpc", "kubernetes.config"):
        import_module(name)
    for module in pkgutil.walk_packages(dpctl.__path__, "dpctl."):
        if not module.name.startswith(LEFT_OUT):
            import_module(module.name)
    for line in requests:
        request = json.loads(line)
        answers.write(json.dumps(_run(request["arguments"], request["env"])) + "\n")
        answers.flush()


def _run(arguments: list[str], env: dict[str, str]) -> dict[str, object]:
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        pid = os.fork()
        if pid == 0:
            _become(arguments, env, stdout.fileno(), stderr.fileno())
        _, status = os.waitpid(pid, 0)
        said = []
        for file in (stdout, stderr):
            file.seek(0)
            said.append(file.read().decode(errors="surrogateescape"))
    return {"code": os.waitstatus_to_exitcode(status), "stdout": said[0], "stderr": said[1]}


def _become(arguments: list[str], env: dict[str, str], stdout: int, stderr: int) -> None:
    """Be dpctl, and end. Never returns."""
    code = 99
    try:
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.environ.update(env)
        signal.alarm(LONGEST_SECONDS)
        sys.argv = ["dpctl", *arguments]
        from dpctl.__main__ import main

        try:
            code = int(main() or 0)
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
