"""Write the Go module that builds one Kubernetes release: `python update.py 1.37.2 [--all]`.

Kubernetes replaces its own libraries by local paths, which only works inside its tree. The module
written here requires what that release requires and points the replaced ones at their published
versions. Run it to move to another patch release or to add a minor, and commit what it wrote.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
KUBERNETES = "k8s.io/kubernetes"
KUBELET = ("cmd/kubelet",)
# One API server serves kubelets up to three minors older, so only one minor needs the rest.
EVERYTHING = (
    "cmd/kube-apiserver",
    "cmd/kube-scheduler",
    "cmd/kubectl",
    "cmd/kubelet",
    "test/e2e/dra/test-driver",
    "test/images/sample-device-plugin",
)


def upstream_module(version: str) -> str:
    """Text of the release's own go.mod."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{KUBERNETES}@v{version}"],
        cwd="/",
        stdout=subprocess.PIPE,
        check=True,
    )
    return Path(json.loads(done.stdout)["GoMod"]).read_text()


def render_module(version: str, upstream: str) -> str:
    """The go.mod to write, before `go mod tidy` has trimmed it."""
    staged = re.findall(r"^\s*(\S+) => \./staging/", upstream, re.MULTILINE)
    published = "v0." + version.partition(".")[2]
    body = re.sub(r"^replace \(.*?^\)\n", "", upstream, flags=re.MULTILINE | re.DOTALL)
    kept = [
        line
        for line in body.splitlines()
        if not line.startswith(("//", "module ")) and not line.endswith(" v0.0.0")
    ]
    replaced = [f"\t{name} => {name} {published}" for name in staged]
    return "\n".join(
        [
            "// Written by update.py.",
            "module clustertools",
            *kept,
            f"require {KUBERNETES} v{version}",
            "",
            "replace (",
            *replaced,
            ")",
            "",
        ]
    )


def render_tools(commands: tuple[str, ...]) -> str:
    """The file that keeps the commands' requirements in go.mod; it is never compiled."""
    imports = [f'\t_ "{KUBERNETES}/{command}"' for command in commands]
    return "\n".join(
        [
            "//go:build tools",
            "",
            "// Package tools names the commands that build.py builds. Written by update.py.",
            "package tools",
            "",
            "import (",
            *imports,
            ")",
            "",
        ]
    )


def main() -> None:
    """Write and tidy tools/<minor> for the release named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="a patch release such as 1.37.2")
    parser.add_argument("--all", action="store_true", help="API server and the rest, too")
    args = parser.parse_args()
    version: str = args.version
    folder = HERE / version.rpartition(".")[0]
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").write_text(render_module(version, upstream_module(version)))
    (folder / "tools.go").write_text(render_tools(EVERYTHING if args.all else KUBELET))
    subprocess.run(["go", "mod", "tidy"], cwd=folder, check=True)


if __name__ == "__main__":
    main()
