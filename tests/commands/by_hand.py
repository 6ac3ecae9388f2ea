"""What the tests of `dpctl plugin` share: running it beside a lab, and waiting."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from dpctl.lab.fixture import Lab
from tests.run import Result, dpctl

GPU = "vendor.example/gpu"
NOBODY = (
    "error: nobody can be asked here (standard input is no terminal)\n"
    "hint: --yes does it without asking\n"
)


def run(lab: Lab, *arguments: str, **env: str) -> Result:
    return dpctl("plugin", *arguments, env={**lab.env, **env})


def normal(lab: Lab, text: str) -> str:
    return text.replace(str(lab.directory), "/LAB")


def start(lab: Lab, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DPCTL_")}
    return subprocess.Popen(
        [sys.executable, "-m", "dpctl", "plugin", *arguments],
        env={**clean, "HOME": "/nonexistent", **lab.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=stdin,
        text=True,
    )


def eventually(condition: Callable[[], Any], seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found
