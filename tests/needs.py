"""Programs that a test tries dpctl with and that not every machine has; .ci/run installs them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")


def needs(program: str) -> pytest.MarkDecorator:
    """Skips, and says what to install, where there is no such program (or package)."""
    there = BASH_COMPLETION.exists() if program == "bash-completion" else shutil.which(program)
    return pytest.mark.skipif(not there, reason=f"no {program} here: apt install {program}")


def marks(lines: Iterable[str]) -> list[pytest.MarkDecorator]:
    """What these command lines need beside dpctl and bash."""
    return [needs("jq")] if any("| jq " in line for line in lines) else []
