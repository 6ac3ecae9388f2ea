"""A host's tree below a temporary directory, for `--host-root`: files, /proc entries, layouts."""

from __future__ import annotations

import os
from pathlib import Path

from dpctl.env import Env, Settings, find_env


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def file(self, path: str, text: str | bytes = "") -> str:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(target)

    def link(self, path: str, to: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(to)

    def process(self, pid: int, *arguments: str, cgroup: str = "/", owner: int = 0) -> None:
        data = b"\0".join(os.fsencode(argument) for argument in arguments) + b"\0"
        self.file(f"/proc/{pid}/cmdline", data)
        self.file(f"/proc/{pid}/cgroup", f"0::{cgroup}\n")
        if owner and os.geteuid() == 0:
            os.chown(self.root / f"proc/{pid}", owner, owner)

    def find(self, settings: Settings | None = None, scan: bool = True, **environ: str) -> Env:
        """The environment's HOME is inside the tree, so that nobody's own files are seen."""
        variables = {
            "HOME": str(self.root / "nobody"),
            "DPCTL_HOST_ROOT": str(self.root),
            **environ,
        }
        return find_env(settings or Settings(), variables, scan=scan)

    def at(self, path: str) -> str:
        return str(self.root) + path
