"""Write dpctl/pb from proto/ (`make gen`). Nothing but the wire schemas decides what comes out.

Usage: python proto/generate.py [DIRECTORY]     (default: the checkout; writes DIRECTORY/dpctl/pb)

Needs the oldest grpcio-tools that the dependency floors in pyproject.toml allow, exactly: generated
code runs with its own and newer runtimes, never with older ones.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

VERSION = "1.72.1"
ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = "dpctl/pb"
_ENDINGS = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")


def schemas() -> list[str]:
    """The .proto files as the compiler knows them: under the package they are generated into."""
    return sorted(
        f"{_PACKAGE}/{path.relative_to(ROOT / 'proto').as_posix()}"
        for path in (ROOT / "proto").rglob("*.proto")
    )


def generate(target: Path) -> list[Path]:
    """The files written below `target`, sorted; files of schemas that are gone are removed."""
    from grpc_tools import protoc  # type: ignore[import-untyped]

    package = target / _PACKAGE
    target.mkdir(parents=True, exist_ok=True)
    arguments = [
        "protoc",
        f"-I{_PACKAGE}={ROOT / 'proto'}",
        f"--python_out={target}",
        f"--pyi_out={target}",
        f"--grpc_python_out={target}",
        *schemas(),
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")
    made = {target / schema.removesuffix(".proto") for schema in schemas()}
    written = {Path(f"{path}{ending}") for path in made for ending in _ENDINGS}
    for old in {path for ending in _ENDINGS for path in package.rglob(f"*{ending}")} - written:
        old.unlink()
    for directory in {path.parent for path in written}:
        while directory != package.parent:
            (directory / "__init__.py").touch()
            directory = directory.parent
    return sorted(written)


def main() -> None:
    try:
        found = metadata.version("grpcio-tools")
    except metadata.PackageNotFoundError:
        found = "none"
    if found != VERSION:
        raise SystemExit(
            f"proto/generate.py needs grpcio-tools {VERSION}, found {found}.\n"
            "`make gen` installs it into .venv-gen and runs this with it; by hand:\n"
            "  python3 -m venv .venv-gen\n"
            f"  .venv-gen/bin/pip install grpcio-tools=={VERSION}\n"
            "  .venv-gen/bin/python proto/generate.py"
        )
    target = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    for path in generate(target):
        sys.stdout.write(f"{path.relative_to(target)}\n")


if __name__ == "__main__":
    main()
