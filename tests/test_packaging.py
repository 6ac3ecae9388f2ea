"""What is in the wheel: built here, without a network."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dpctl import __version__, cli
from dpctl.lab import cues
from tests.run import TESTS

ROOT = TESTS.parent
DATA = f"kube_dpctl-{__version__}.data/data/share"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    directory = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    [file] = directory.glob("*.whl")
    return zipfile.ZipFile(file)


def test_pages_and_completions_are_shipped(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    wanted = {
        f"{DATA}/man/man1/dpctl.1",
        *(f"{DATA}/man/man1/dpctl-{name}.1" for name in cli.COMMANDS),
        f"{DATA}/bash-completion/completions/dpctl",
        f"{DATA}/zsh/site-functions/_dpctl",
        f"{DATA}/fish/vendor_completions.d/dpctl.fish",
        "dpctl/_completions/dpctl.bash",
        "dpctl/_completions/_dpctl",
        "dpctl/_completions/dpctl.fish",
        "dpctl/pb/podresources/v1/podresources_pb2.py",
        *(f"dpctl/lab/scenarios/{name}.toml" for name in cues.shipped()),
    }
    assert wanted <= names
    page = wheel.read(f"{DATA}/man/man1/dpctl.1")
    assert page == (ROOT / "man/dpctl.1").read_bytes()


def test_nothing_but_the_package_is_shipped(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {
        "dpctl",
        f"kube_dpctl-{__version__}.data",
        f"kube_dpctl-{__version__}.dist-info",
    }
    source = {str(p.relative_to(ROOT)) for p in (ROOT / "dpctl").rglob("*.py")}
    assert source <= set(wheel.namelist())


def test_the_entry_points(wheel: zipfile.ZipFile) -> None:
    text = wheel.read(f"kube_dpctl-{__version__}.dist-info/entry_points.txt").decode()
    assert text.split() == [
        "[console_scripts]",
        "dpctl",
        "=",
        "dpctl.__main__:main",
        "kubectl-dp",
        "=",
        "dpctl.__main__:main",
        "kubectl_complete-dp",
        "=",
        "dpctl.complete:kubectl_complete",
    ]


def test_the_wheel_runs_unpacked(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "dpctl", "completion", "bash"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "completions/dpctl.bash").read_text()
