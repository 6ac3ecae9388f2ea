"""Run dpctl as a person does and assert exit code, stdout and stderr together."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

TESTS = Path(__file__).parent
DATA = TESTS / "data"
GOLDEN = TESTS / "golden"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def dpctl(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Result:
    """A process of its own, with no setting of this machine but those given."""
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith("DPCTL_") and k != "KUBECONFIG"
    }
    clean.update({"HOME": "/nonexistent", "COLUMNS": "80", **(env or {})})
    done = subprocess.run(
        [sys.executable, "-m", "dpctl", *arguments],
        env=clean,
        input=stdin.encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def golden(name: str, text: str) -> None:
    """Compare with tests/golden/NAME as bytes; `DPCTL_UPDATE_GOLDEN=1` writes it anew."""
    path = GOLDEN / name
    if os.environ.get("DPCTL_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    wanted = path.read_bytes()
    if text.encode() != wanted:
        before = wanted.decode(errors="replace").splitlines()
        found = unified_diff(before, text.splitlines(), str(path), "now", lineterm="")
        raise AssertionError("\n".join(found))
