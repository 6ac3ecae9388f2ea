"""TAB loads this room, so what it drags in is held down by name (milliseconds only inform)."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
before = set(sys.modules)
from dpctl.env import Settings, find_env
find_env(Settings(), {"HOME": "/nonexistent"}, scan=False)
print(*sorted(set(sys.modules) - before))
"""
HEAVY = {
    "pathlib",
    "dataclasses",
    "inspect",
    "yaml",
    "tomllib",
    "tempfile",
    "json",
    "dpctl.model",
    "subprocess",
}


def test_what_completion_loads() -> None:
    # Isolated (-I would hide the project): what a site's .pth files load is not ours.
    answer = subprocess.run([sys.executable, "-S", "-c", CODE], capture_output=True, text=True)
    loaded = set(answer.stdout.split())
    assert "dpctl.env.find" in loaded, answer.stderr
    assert not loaded & HEAVY
    assert not loaded & {"dpctl.env.kubelets", "dpctl.env.config_file"}
