"""What a plugin asked the runtime for, against a real host: device node, mount, CDI name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from .bench import Bench
from .expect import document

pytestmark = pytest.mark.ends

RESOURCE = "asked.test/gpu"


def spec(path: Path, *names: str) -> None:
    edits = {"deviceNodes": [{"path": "/dev/zero"}], "env": ["ASKED=1"]}
    path.write_text(
        json.dumps(
            {
                "cdiVersion": "0.6.0",
                "kind": RESOURCE,
                "devices": [{"name": name, "containerEdits": edits} for name in names],
            }
        )
    )


def described(bench: Bench, pod: str) -> dict[str, Any]:
    (row,) = document(bench.dpctl("pods", f"default/{pod}", "-o", "json"))["items"]
    found: dict[str, Any] = row
    return found


def test_device_node_mount_and_cdi_name(bench: Bench) -> None:
    """The runtime makes a mount's source that is missing; taken away again, dpctl says so."""
    node = bench.node
    missing, name = node.path / "asked-missing", f"asked-{node.name}"
    file = node.path / "cdi/asked.json"
    spec(file, "gpu-0")
    try:
        bench.plugin(
            RESOURCE,
            ["gpu-0"],
            device_path="/dev/null",
            mounts=(("/opt/asked", str(missing)),),
            cdi_kind=RESOURCE,
        )
        node.create_pod(name, {RESOURCE: 1})
        row = described(bench, name)
        (device,), (mount,) = row["answer"]["deviceNodes"], row["answer"]["mounts"]
        assert (device["kind"], device["number"]) == ("character device", "1:3")
        linked = os.path.exists("/dev/char/1:3")
        assert (device["problem"] is None) is linked, device
        assert (mount["kind"], mount["problem"]) == ("directory", None), "containerd made it"
        (cdi,) = row["cdi"]
        assert (cdi["name"], cdi["resolved"]) == (f"{RESOURCE}=gpu-0", True)
        assert (cdi["file"], cdi["problem"]) == ("/var/run/cdi/asked.json", None)

        missing.rmdir()
        file.unlink()
        text = bench.dpctl("pods", f"default/{name}")
        assert (text.code, text.stderr) == (0, "")
        assert f"{missing} at /opt/asked (ro): MISSING on this host" in text.stdout
        assert f"{RESOURCE}=gpu-0: UNRESOLVED" in text.stdout
    finally:
        file.unlink(missing_ok=True)


def test_a_cdi_name_that_does_not_resolve(bench: Bench) -> None:
    """Debian's containerd (1.6) does not look at the names that kubelets give: the pod runs, and
    what is wrong is for dpctl to say."""
    node, name = bench.node, f"twice-{bench.node.name}"
    files = [node.path / f"cdi/{letter}.json" for letter in "ab"]
    for file in files:
        spec(file, "gpu-0")
    try:
        bench.plugin(RESOURCE, ["gpu-0"], cdi_kind=RESOURCE)
        node.create_pod(name, {RESOURCE: 1})
        (cdi,) = described(bench, name)["cdi"]
        assert cdi["resolved"] is False
        assert "/var/run/cdi/a.json and /var/run/cdi/b.json both have it" in cdi["problem"]
    finally:
        for file in files:
            file.unlink()
