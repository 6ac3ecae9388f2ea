"""The container images of the tests: static C programs, packed as one image archive.

Nothing is pulled from anywhere: the archive is imported into containerd with ctr, and pods name
the images with `imagePullPolicy: Never`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

from . import build

HERE = Path(__file__).resolve().parent
PAUSE = "dpctl.test/pause:1"
TRUE = "dpctl.test/true:1"
_SOURCES = {PAUSE: "pause.c", TRUE: "true.c"}
_COMPILE = ("gcc", "-static", "-Os", "-s")


def archive() -> Path:
    """The archive with both images, built if it is not in the cache yet."""
    parts = [" ".join(_COMPILE).encode(), Path(__file__).read_bytes()]
    parts += [(HERE / source).read_bytes() for source in _SOURCES.values()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]
    kept = build.cache_root() / f"images-{digest}.tar"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Two runs may write it at once: both write the same, and the rename is atomic.
        handle, temporary = tempfile.mkstemp(prefix=".images-", dir=kept.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(_pack())
            Path(temporary).rename(kept)
        finally:
            Path(temporary).unlink(missing_ok=True)
    return kept


def import_into(socket: Path, entering: list[str]) -> None:
    """Import both images into the containerd behind `socket`; `entering` leads to its mounts."""
    command = [*entering, "ctr", "--address", str(socket), "--namespace", "k8s.io"]
    build.output_of("ctr images import", [*command, "images", "import", str(archive())])


def _pack() -> bytes:
    """An archive in the layout that `docker save` writes."""
    files: dict[str, bytes] = {}
    manifest = []
    for image, source in _SOURCES.items():
        program = source.removesuffix(".c")
        layer = _tar({program: _compile(source)}, mode=0o755)
        diff_id = "sha256:" + hashlib.sha256(layer).hexdigest()
        config = json.dumps(
            {
                "architecture": _architecture(),
                "os": "linux",
                "config": {"Entrypoint": [f"/{program}"]},
                "rootfs": {"type": "layers", "diff_ids": [diff_id]},
            }
        ).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        files[f"{program}/layer.tar"] = layer
        files[name] = config
        manifest.append({"Config": name, "RepoTags": [image], "Layers": [f"{program}/layer.tar"]})
    files["manifest.json"] = json.dumps(manifest).encode()
    return _tar(files, mode=0o644)


def _architecture() -> str:
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _compile(source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "program"
        command = [*_COMPILE, "-o", str(target), str(HERE / source)]
        build.output_of(f"compiling {source}", command)
        return target.read_bytes()


def _tar(files: dict[str, bytes], mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = mode
            out.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
