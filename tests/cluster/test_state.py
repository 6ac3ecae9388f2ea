"""What `state verify` says of a state file, and what a kubelet does that starts with it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .bench import EMPTY_CHECKPOINT, Bench
from .processes import wait_for
from .settings import KubeletSettings
from .state_kinds import CPU, DRA, MEMORY, PODS, RUNTIME, Kind, bad, good, own_files

STATIC = KubeletSettings(cpu_policy="static", memory_policy="Static")
FILES = (CPU, MEMORY, DRA, PODS, RUNTIME)


@contextmanager
def static_node(bench: Bench) -> Iterator[dict[str, bytes]]:
    """A stopped kubelet under static policies, and the files that it wrote."""
    node = bench.node
    node.configure(STATIC)
    node.stop_kubelet()
    kept = {name: path.read_bytes() for name in FILES if (path := node.kubelet_dir / name).exists()}
    assert {CPU, MEMORY} <= set(kept)
    try:
        yield kept
    finally:
        node.kill_kubelet()
        for name in FILES:
            (node.kubelet_dir / name).unlink(missing_ok=True)
        node.start_kubelet()


def put(bench: Bench, kept: dict[str, bytes], kind: Kind | None = None) -> None:
    """The kubelet's own files, with this one in the place of its own."""
    for name in FILES:
        path = bench.node.kubelet_dir / name
        if name in kept:
            path.write_bytes(kept[name])
        else:
            path.unlink(missing_ok=True)
    if kind is not None:
        (bench.node.kubelet_dir / kind.file).write_bytes(kind.data)


def verdicts(bench: Bench, version: str) -> dict[str, Any]:
    """`state verify` of the kubelet that is stopped: file to its row."""
    result = bench.dpctl("state", "verify", "--kubelet-version", version, "-o", "json")
    assert result.code in (0, 1), result
    rows = {item["file"]: item for item in json.loads(result.stdout)["items"]}
    wrong = [r for r in rows.values() if r["verdict"] not in ("Good", "Absent", "Unread")]
    assert result.code == bool(wrong), result
    return rows


def log_after_exit(bench: Bench) -> str | None:
    """What the kubelet logged before it ended; None: it goes on."""
    kubelet = bench.node.kubelet
    assert kubelet is not None
    started = time.time()
    bench.node.start_kubelet(wait=False)

    def ended() -> bool:
        if not kubelet.alive:
            return True
        # The device manager's server starts after the managers that read the files.
        return _is_up(bench, started)

    wait_for("the kubelet to end or to be up", ended, 90)
    if kubelet.alive:
        return None
    return kubelet.log_since_start().replace('\\"', '"').replace("\\\\", "\\")


def _is_up(bench: Bench, started: float) -> bool:
    path = bench.node.kubelet_dir / "device-plugins" / "kubelet.sock"
    return path.exists() and path.stat().st_mtime >= started


def test_a_kubelet_starts_with_what_is_called_good(bench: Bench) -> None:
    version = bench.node.get()["status"]["nodeInfo"]["kubeletVersion"]
    wrong: list[tuple[object, ...]] = []
    with static_node(bench) as kept:
        for kind in good(own_files(kept, bench.minor)):
            put(bench, kept, kind)
            row = verdicts(bench, version)[kind.file]
            log = log_after_exit(bench)
            bench.node.kill_kubelet()
            if row["verdict"] != "Good" or log is not None:
                wrong.append((kind.name, row["verdict"], row["reason"], (log or "")[-600:]))
    assert not wrong, "\n".join(map(str, wrong))


def test_a_kubelet_exits_as_predicted(bench: Bench) -> None:
    version = bench.node.get()["status"]["nodeInfo"]["kubeletVersion"]
    wrong: list[tuple[object, ...]] = []
    seen = 0
    with static_node(bench) as kept:
        own = own_files(kept, bench.minor)
        for kind in bad(own):
            put(bench, kept, kind)
            row = verdicts(bench, version)[kind.file]
            log = log_after_exit(bench)
            # Up to 1.36 it depends on the containers that are there.
            told = "Unknown" if (kind.name, own.newest) == ("cpu: v1", False) else "Refused"
            if row["verdict"] != told or log is None:
                wrong.append(
                    (
                        kind.name,
                        row["verdict"],
                        row["says"],
                        "it goes on" if log is None else log[-600:],
                    )
                )
            elif not all(part in log for part in row["says"].split("…")):
                wrong.append((kind.name, row["says"], log[-600:]))
            else:
                seen += 1
            bench.node.kill_kubelet()
    assert not wrong, "\n".join(map(str, wrong))
    assert seen >= 30


def test_a_bad_device_checkpoint_is_passed_over(bench: Bench) -> None:
    version = bench.node.get()["status"]["nodeInfo"]["kubeletVersion"]
    bench.node.stop_kubelet()
    bench.checkpoint_file.write_text(EMPTY_CHECKPOINT.replace("3467439661", "3467439662"))
    row = verdicts(bench, version)["kubelet_internal_checkpoint"]
    assert (row["verdict"], row["rule"]) == ("Ignored", "checksum")
    bench.node.start_kubelet()
    assert bench.node.kubelet is not None
    log = bench.node.kubelet.log_since_start()
    # Every command complains of the file until the kubelet writes it anew.
    bench.node.stop_kubelet()
    bench.checkpoint_file.write_text(EMPTY_CHECKPOINT)
    bench.node.start_kubelet()
    assert row["says"] in log


def test_names_and_versions_come_from_the_node(bench: Bench) -> None:
    """While the kubelet runs nothing has to be named: version, settings and pods are found."""
    bench.node.configure(STATIC)
    name = f"pinned-{bench.node.name}"
    bench.node.create_pod(name, {"cpu": 2, "memory": "64Mi"})
    rows = json.loads(bench.dpctl("state", "cpu", "-o", "json").stdout)["items"]
    (held,) = [row for row in rows if row["entry"] == "CPUs"]
    assert (held["namespace"], held["pod"], held["container"]) == ("default", name, "main")
    assert len(held["cpus"]) == 2
    result = bench.dpctl("state", "verify", user=None)
    assert result.code == 0, result
    assert bench.dpctl("state", "diff").code == 0
    # Only the Pods API knows names here (1.37); older kubelets leave the log directories.
    result = bench.dpctl("state", "memory", "--no-headers", user=None)
    assert f"{name}   main" in result.stdout, result
