"""A shell that runs what the manual and docs/ show, and what it then says, made comparable."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.run import TESTS

LIMIT = 120
"""Seconds until a line that goes on is a failure."""


class Shell:
    """bash in an empty directory, `dpctl` on its PATH, at a terminal where everything is answered
    with yes. What is printed goes into files, as wide as a page."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir()
        self._programs = home / "bin"
        self._programs.mkdir()
        for name, module in (("dpctl", "dpctl.__main__"), ("kubectl-dp", "dpctl.__main__")):
            program = self._programs / name
            program.write_text(
                f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(TESTS.parent)!r})\n"
                f"from {module} import main\nsys.exit(main())\n"
            )
            program.chmod(0o755)
        clean = {k: v for k, v in os.environ.items() if not k.startswith("DPCTL_")}
        self.env = {
            **clean,
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / ".local/state"),
            "COLUMNS": "100",
            **env,
        }

    def run(
        self, line: str, *, until: str | None = None, then: Callable[[], object] | None = None
    ) -> str:
        """What the line printed, stdout before stderr, and its exit code unless 0. Once `until` is
        there, `then` is done: Ctrl-C, unless told otherwise."""
        asked, answers = pty.openpty()
        try:
            os.write(asked, b"y\n" * 4)
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                process = subprocess.Popen(
                    ["bash", "-c", line],
                    stdin=answers,
                    stdout=out,
                    stderr=err,
                    cwd=self.work,
                    env=self.env,
                    start_new_session=True,
                )
                ended = threading.Timer(LIMIT, os.killpg, (process.pid, signal.SIGKILL))
                ended.start()
                if until is not None:
                    while until not in text(out) + text(err) and process.poll() is None:
                        time.sleep(0.05)
                    if then is not None:
                        then()
                    elif process.poll() is None:
                        os.killpg(process.pid, signal.SIGINT)
                code = process.wait()
                ended.cancel()
                printed = text(out) + text(err)
        finally:
            os.close(asked)
            os.close(answers)
        return printed + (f"[exit code {code}]\n" if code else "")

    def comparable(self, text: str) -> str:
        """Without what is another in each run: times, process numbers, where the lab is."""
        return comparable(self.as_root(text))

    def as_root(self, text: str) -> str:
        """With the places that root of a node would see."""
        text = text.replace(f"{self.home}/.local/state/dpctl", "/var/lib/dpctl")
        lab = Path(self.env["KUBECONFIG"]).parent
        for place in (self.env["DPCTL_HOST_ROOT"], lab, self.work, self.home):
            text = text.replace(str(place), "")
        return text.replace(f" {socket.gethostname()} ", " HOST ")


def text(file: object) -> str:
    return os.pread(file.fileno(), 1 << 24, 0).decode()  # type: ignore[attr-defined]


_CHANGES = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"(?<!GPU-)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\b\d+/(?=[a-z])", "PID/"),
    (r'("?pid"?: )\d+', r"\1PID"),
    (r"(?<=[ \n])\d+(\.\d)?(s|m|m\d+s)(?=[ \n])", "AGE"),
    (r"\d+ min \d\d s", "MINUTES"),
    (r"(?m)^\d\d:\d\d:\d\d ", "CLOCK "),
    (r"(?m)^CLOCK a ListAndWatch stream ended\n", ""),
    (r"Python [\d.]+\S* on .*", "Python VERSION"),
    (r"\d+ files, \d+ bytes", "FILES, BYTES"),
    (r"\d+ bytes", "BYTES"),
    (r'"done":\d+', '"done":N'),
    (r"(hecksum) \d+", r"\1 NUMBER"),
    (r"(?m)(?<=\S)  +(?=\S)", "   "),
    (r"(?m) +$", ""),
]


def comparable(text: str) -> str:
    for pattern, word in _CHANGES:
        text = re.sub(pattern, word, text)
    # Several threads of a plugin say what happens; several Nodes are changed at a time.
    for unordered in (r"(?m)(^CLOCK .*\n)+", r'(?m)(^\{"node":.*\n)+'):
        text = re.sub(unordered, lambda m: "".join(sorted(m[0].splitlines(True))), text)
    return text
