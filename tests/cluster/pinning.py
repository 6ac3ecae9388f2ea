"""Stands in for runc, and drops the CPUs and NUMA nodes that only exist in a test node's trees.

A kubelet that believes in 16 CPUs asks for containers on CPU 12, which the kernel refuses on a
smaller machine. What matters to tests is what the kubelet decided, so the container runs on what
is left of the request, or anywhere. Copied into the build cache and run by containerd's shim:
no imports from this package.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RUNC = "runc"
CPUSET = Path("/sys/fs/cgroup")
# cgroup version 1 and 2
FILES = {
    "cpus": ("cpuset/cpuset.cpus", "cpuset.cpus.effective"),
    "mems": ("cpuset/cpuset.mems", "cpuset.mems.effective"),
}


def parse(text: str) -> set[int]:
    """`0-2,5` as numbers."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def restrict(cpu: dict[str, Any]) -> None:
    """Leave only what the machine has in an OCI `resources.cpu` object."""
    for key, files in FILES.items():
        present = next((f for f in (CPUSET / name for name in files) if f.exists()), None)
        if key in cpu and present:
            left = parse(cpu[key]) & parse(present.read_text())
            cpu[key] = ",".join(str(number) for number in sorted(left))
            if not left:
                del cpu[key]


def main(args: list[str]) -> None:
    """Become runc, or end as it ends."""
    if "create" in args and "--bundle" in args:
        file = Path(args[args.index("--bundle") + 1]) / "config.json"
        spec = json.loads(file.read_text())
        restrict(spec.get("linux", {}).get("resources", {}).get("cpu", {}))
        file.write_text(json.dumps(spec))
    elif "update" in args and "--resources" in args and args[args.index("--resources") + 1] == "-":
        resources = json.load(sys.stdin)
        restrict(resources.get("cpu") or {})
        done = subprocess.run([RUNC, *args], input=json.dumps(resources).encode())
        sys.exit(done.returncode)
    os.execvp(RUNC, [RUNC, *args])


if __name__ == "__main__":
    main(sys.argv[1:])
