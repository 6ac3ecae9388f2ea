"""A bundle of a real node: every reading command says from it what it said on the node."""

from __future__ import annotations

import json
import re
import tarfile
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from .bench import Bench
from .node import Result
from .processes import wait_for
from .sample import GPU, gpus, holder
from .settings import KubeletSettings
from .truth import tell

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("resources",),
    ("devices",),
    ("devices", "--group-by", "physical"),
    ("pods", "-A"),
    ("pods", "--failed"),
    ("plugins",),
    ("topology",),
    ("topology", "--fit", f"{GPU}=1,cpu=1"),
    ("node",),
    ("who", "gpu-0"),
    ("state",),
    ("state", "verify"),
    ("state", "diff"),
)

pytestmark = pytest.mark.ends


def normal(text: str) -> Any:
    """Without where a source was read and when: the two runs are not at one moment."""
    document = json.loads(text)
    for item in document["items"]:
        item.pop("age", None)
    document["collectedAt"] = None
    for source in document["sources"]:
        source["where"] = None
    return _settled(document)


def _settled(value: Any) -> Any:
    if isinstance(value, dict):
        # How much memory is free changes all the time; of a setting, the file that it was read in.
        return {
            key: _settled(found)
            for key, found in value.items()
            if key not in ("memoryFree", "origin", "policyOrigin")
        }
    if isinstance(value, list):
        return [_settled(item) for item in value]
    return value


def ask(bench: Bench, *line: str, bundle: Path | None = None) -> Result:
    env = {} if bundle is None else {"DPCTL_FROM": str(bundle)}
    return bench.dpctl(*line, "-o", "json", env=env)


def compare(bench: Bench, bundle: Path, line: tuple[str, ...]) -> str | None:
    """The first thing that a replay says otherwise."""
    live, replayed = ask(bench, *line), ask(bench, *line, bundle=bundle)
    if (live.code, live.stderr) != (replayed.code, replayed.stderr):
        return f"{line}: {live}, from the bundle {replayed}"
    a, b = normal(live.stdout), normal(replayed.stdout)
    if a == b:
        return None
    for key in a:
        if a[key] != b[key]:
            said, told = json.dumps(a[key])[:3000], json.dumps(b[key])[:3000]
            return f"{line} {key}: {said}\nfrom the bundle: {told}"
    return f"{line}: keys {list(a)}, from the bundle {list(b)}"


def assert_replays(bench: Bench, folder: Path) -> Path:
    """Judged when the node was the same before and after: it may still be writing."""
    numbers = count()

    def judge() -> Path | None:
        before = moment(bench)
        bundle = folder / f"node-{next(numbers)}.tgz"
        done = bench.dpctl("snapshot", str(bundle))
        assert (done.code, done.stdout) == (0, ""), done
        if "not read" in done.stderr:  # the Pods API of a kubelet that has just started
            return None
        found = [compare(bench, bundle, line) for line in COMMANDS]
        if moment(bench) != before:
            return None
        wrong = [text for text in found if text is not None]
        assert not wrong, "\n\n".join(wrong)
        return bundle

    return wait_for("a node that does not change meanwhile", judge, 60, interval=0.5)


def moment(bench: Bench) -> object:
    """All that a node says, and how often what it was read from was written."""
    api, node = bench.plane.api(), bench.node
    pods = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node.name}")["items"]
    written = [found["metadata"]["resourceVersion"] for found in (node.get(), *pods)]
    files = [path.read_bytes() for path in sorted(node.kubelet_dir.glob("*_state"))]
    # Of a pod that has ended the kubelet removes the directory when it comes to that.
    directories = sorted(path.name for path in (node.kubelet_dir / "pods").iterdir())
    return tell(bench), written, files, directories


def test_a_bundle_says_what_the_node_says(bench: Bench, tmp_path: Path) -> None:
    plugin = gpus(bench)
    name = holder(bench, 2)
    bench.node.restart_kubelet()
    bench.node.wait_devices(GPU)
    bundle = assert_replays(bench, tmp_path)
    live = bench.dpctl("pods", f"default/{name}")
    replayed = bench.dpctl("pods", f"default/{name}", env={"DPCTL_FROM": str(bundle)})
    assert (live.code, live.stdout) == (0, replayed.stdout)
    connected = json.loads(ask(bench, "plugins", bundle=bundle).stdout)["items"]
    assert [row["kubelet"] for row in connected if row["endpoint"] == "gpu.sock"] == ["Connected"]
    same = bench.dpctl("diff", str(bundle), str(bundle), "-o", "json")
    assert (same.code, json.loads(same.stdout)["items"]) == (0, [])
    plugin.set_health("gpu-10", "Unhealthy")
    bench.node.wait_resource(GPU, "3", "4")
    later = tmp_path / "later.tgz"
    assert bench.dpctl("snapshot", str(later)).code == 0
    other = bench.dpctl("diff", str(bundle), str(later), "-o", "json")
    assert other.code == 1, other
    rows = {(r["name"], r["field"]): (r["a"], r["b"]) for r in json.loads(other.stdout)["items"]}
    assert rows[GPU, "allocatable"] == ("4", "3")
    assert rows[GPU, "state"] == ("Ready", "Degraded")


def test_static_policies(bench: Bench, tmp_path: Path) -> None:
    bench.node.configure(KubeletSettings(cpu_policy="static", memory_policy="Static"))
    gpus(bench)
    holder(bench)
    assert_replays(bench, tmp_path)


def test_a_plugin_that_dies_is_a_difference(bench: Bench, tmp_path: Path) -> None:
    plugin = gpus(bench)
    before = tmp_path / "before.tgz"
    assert bench.dpctl("snapshot", str(before)).code == 0
    plugin.kill()
    bench.node.wait_resource(GPU, "0", "4")
    done = bench.dpctl("diff", str(before), "-o", "json")
    assert done.code == 1, done
    rows = {
        (r["what"], r["name"], r["field"]): (r["a"], r["b"])
        for r in json.loads(done.stdout)["items"]
    }
    assert rows["node", GPU, "allocatable"] == ("4", "0")
    assert rows["resource", GPU, "state"][0] == "Ready"
    assert rows["plugin", "device-plugins/gpu.sock", "state"] == ("Serving", "Dead")
    again = tmp_path / "again"
    again.mkdir()
    assert_replays(bench, again)


def test_redacted(bench: Bench, tmp_path: Path) -> None:
    gpus(bench)
    name = holder(bench)
    bundle = tmp_path / "hidden.tgz"
    done = bench.dpctl("snapshot", "--redact", str(bundle))
    assert done.code == 0, done
    with tarfile.open(bundle) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]
    for file, data in files.items():
        for word in (name, bench.node.name):
            found = re.search(rb"(?<![A-Za-z0-9])" + word.encode() + rb"(?![A-Za-z0-9])", data)
            assert found is None, (file, word)
    verdict = ask(bench, "state", "verify", bundle=bundle)
    live = ask(bench, "state", "verify")
    assert [r["verdict"] for r in json.loads(verdict.stdout)["items"]] == [
        r["verdict"] for r in json.loads(live.stdout)["items"]
    ]
    holders = json.loads(ask(bench, "devices", bundle=bundle).stdout)["items"]
    assert sum(bool(row["holders"]) for row in holders) == 1
