"""How far a change has come: a bar on a terminal, JSON lines anywhere else."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

PROGRAM = """
from dpctl.progress import Progress
with Progress("removing", 3) as progress:
    progress.advance("n-1", "Changed")
    progress.advance("n-2", "NotApplied", "why\\x1b[2J")
"""


def test_json_lines() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert done.stdout == b""
    assert [json.loads(line) for line in done.stderr.splitlines()] == [
        {"node": "n-1", "outcome": "Changed", "detail": None, "done": 1, "total": 3},
        {"node": "n-2", "outcome": "NotApplied", "detail": "why\x1b[2J", "done": 2, "total": 3},
    ]
    assert b"\x1b" not in done.stderr


def test_a_bar() -> None:
    own, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=other, env=environment
    )
    os.close(other)
    said = os.read(own, 65536).decode()
    os.close(own)
    assert (done.returncode, done.stdout) == (0, b"")
    assert "removing" in said
    assert "/3" in said
    assert "{" not in said


def test_a_stderr_that_is_closed() -> None:
    command = [sys.executable, "-c", PROGRAM]
    assert subprocess.run(command, preexec_fn=lambda: os.close(2)).returncode == 0
