"""Build the Kubernetes commands of a minor once, into a cache outside the tree.

`tools/<minor>` is a small Go module that names the commands; its go.mod holds the exact release.
The cache folder's name says everything that the result depends on, and appears by a rename when
every command in it is complete: a build that was cut short is never taken for a finished one.

    python tests/cluster/build.py            # every minor
    python tests/cluster/build.py 1.37       # one
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

TOOLS = Path(__file__).resolve().parent / "tools"
KUBERNETES = "k8s.io/kubernetes"
VERSION_PACKAGE = "k8s.io/component-base/version"
BUILD_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")


class BuildError(Exception):
    """A build that cannot be started or did not end well; the text says why."""


def minors() -> list[str]:
    """The minors that can be built, oldest first: `["1.34", ...]`."""
    found = [folder.parent.name for folder in TOOLS.glob("*/go.mod")]
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")])


def output_of(what: str, command: Sequence[str], cwd: Path | None = None) -> str:
    """What a command prints; one that fails is a `BuildError` with what it said, on one line."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        said = "; ".join(filter(str.strip, f"{done.stderr}\n{done.stdout}".splitlines()))
        raise BuildError(f"{what} failed ({done.returncode}): {said}")
    return done.stdout


def version_of(minor: str) -> str:
    """The release of a minor, without `v`: `1.37.2`."""
    text = (_module(minor) / "go.mod").read_text()
    found = re.search(rf"^(?:require|\t)\s*{re.escape(KUBERNETES)} v(\S+)", text, re.MULTILINE)
    if not found:
        raise BuildError(f"tools/{minor}/go.mod does not require {KUBERNETES}")
    return found[1]


def commands_of(minor: str) -> list[str]:
    """Import paths of the commands of a minor."""
    return re.findall(r'^\t_ "(\S+)"$', (_module(minor) / "tools.go").read_text(), re.MULTILINE)


def cache_root() -> Path:
    """Where builds are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "dpctl-cluster"


def binaries(minor: str) -> Path:
    """The folder with the commands of a minor, built if it is not there yet."""
    kept = cache_root() / _key(minor)
    if not kept.is_dir():
        cache_root().mkdir(parents=True, exist_ok=True)
        with _locked(cache_root() / f"{kept.name}.lock"):
            # Whoever held the lock before may have built just this.
            if not kept.is_dir():
                _build(minor, kept)
    return kept / "bin"


def is_built(minor: str) -> bool:
    """Whether `binaries` would answer at once."""
    return shutil.which("go") is not None and (cache_root() / _key(minor)).is_dir()


def _module(minor: str) -> Path:
    folder = TOOLS / minor
    if not (folder / "go.mod").is_file():
        raise BuildError(f"no Go module for {minor}; there are {', '.join(minors())}")
    return folder


def _link_flags(version: str) -> str:
    # Without these the kubelet reports v0.0.0 on its Node.
    major, minor, _ = version.split(".", 2)
    values = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    return " ".join(["-s", "-w", *(f"-X {VERSION_PACKAGE}.{k}={v}" for k, v in values.items())])


def _key(minor: str) -> str:
    folder = _module(minor)
    version = version_of(minor)
    go = _go("env", "GOVERSION").strip()
    parts = [
        *((folder / name).read_bytes() for name in ("go.mod", "go.sum", "tools.go")),
        "\0".join([*BUILD_FLAGS, _link_flags(version)]).encode(),
    ]
    digest = hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts))
    return f"v{version}-{go}-{digest.hexdigest()[:12]}"


def _go(*args: str) -> str:
    if shutil.which("go") is None:
        raise BuildError("the Go toolchain is not installed (command go not found)")
    # In / no go.mod can change which toolchain answers.
    return output_of(f"go {args[0]}", ["go", *args], Path("/"))


def _build(minor: str, kept: Path) -> None:
    version = version_of(minor)
    print(f"building Kubernetes {version}: {kept}", file=sys.stderr, flush=True)
    started = time.monotonic()
    # In the cache itself, so that the rename stays on one file system.
    temporary = kept.parent / f".building-{kept.name}"
    shutil.rmtree(temporary, ignore_errors=True)  # of a build that was cut short
    try:
        (temporary / "bin").mkdir(parents=True)
        command = ["nice", "go", "build", *BUILD_FLAGS, "-ldflags", _link_flags(version)]
        done = subprocess.run(
            [*command, "-o", f"{temporary / 'bin'}/", *commands_of(minor)],
            cwd=_module(minor),
            env={**os.environ, "CGO_ENABLED": "0"},
        )
        if done.returncode != 0:
            raise BuildError(f"go build of Kubernetes {version} failed ({done.returncode})")
        temporary.rename(kept)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    seconds = time.monotonic() - started
    print(f"built Kubernetes {version} in {seconds:.0f} s", file=sys.stderr, flush=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        # Released by the kernel when the process ends, however it ends.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Build the minors named on the command line and print their folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minor", nargs="*", help="such as 1.37; all when left out")
    args = parser.parse_args()
    try:
        for minor in args.minor or minors()[::-1]:
            print(binaries(minor), flush=True)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
