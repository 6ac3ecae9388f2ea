"""A /sys and a kubelet configuration that mean harm."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.node_tree import CONTROLS, RESOURCE, NodeTree, node, said
from tests.hostile.test_apiserver import LAUGHS
from tests.run import dpctl


@pytest.fixture
def tree() -> Iterator[NodeTree]:
    with node(cluster=False, plugin=False) as made:
        yield made


def online(tree: NodeTree) -> Path:
    return tree.numa / "online"


BAD_SYS: dict[str, Callable[[NodeTree], object]] = {
    "a range without end": lambda t: online(t).write_text("0-99999999999\n"),
    "a number of 5000 digits": lambda t: (t.numa / "node0/cpulist").write_text("9" * 5000),
    "controls": lambda t: (t.numa / "node0/cpulist").write_text(CONTROLS),
    "binary": lambda t: (t.numa / "node0/distance").write_bytes(bytes(range(256))),
    "huge": lambda t: (t.numa / "node0/meminfo").write_bytes(b"Node 0 x: 1 kB\n" * 200_000),
}


@pytest.mark.parametrize("fault", BAD_SYS)
def test_bad_numbers_in_sys(tree: NodeTree, fault: str) -> None:
    BAD_SYS[fault](tree)
    result = tree.run("pods", "--strict")
    assert (result.code, RESOURCE in result.out) == (7, True)
    said(result, "warning", "numa not read")


def test_odd_shapes_in_sys_are_passed_over(tree: NodeTree) -> None:
    (tree.numa / "node99999999999999999999").mkdir()
    (tree.numa / "node-1").mkdir()
    (tree.numa / f"node{CONTROLS[3:7]}").mkdir()
    (tree.numa / "node1").symlink_to("node1")
    (tree.numa / "node2").symlink_to("/etc")
    (tree.numa / "node3").mkdir()
    os.mkfifo(tree.numa / "node3/cpulist")
    (tree.numa / "node0/hugepages").symlink_to("/proc/self/fd")
    for result in tree.ask("pods"):
        assert (result.code, RESOURCE in result.out) == (0, True)


# What may stand in the place of a file, and what the kubelet makes of it there.
SHAPES: dict[str, tuple[Callable[[Path], object], str, str, str]] = {
    "a directory": (Path.mkdir, "Refused", "Ignored", "is a directory"),
    "a circle": (lambda p: p.symlink_to(p), "Refused", "Ignored", "in a circle"),
    "a link to nowhere": (lambda p: p.symlink_to("/no/where"), "Unknown", "Unknown", "not exist"),
    "a FIFO": (os.mkfifo, "Unknown", "Unknown", "is a FIFO"),
    "zeros": (lambda p: os.truncate(p.open("w").name, 2 << 30), "Unknown", "Unknown", "larger"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_state_files_that_are_none(tree: NodeTree, shape: str) -> None:
    make, refused, ignored, words = SHAPES[shape]
    tree.checkpoint.unlink()
    starting = {tree.checkpoint: ignored, tree.kubelet / "dra_health_state": ignored}
    others = ("cpu_manager_state", "memory_manager_state", "dra_manager_state")
    expected = {**starting, **{tree.kubelet / name: refused for name in others}}
    for path in expected:
        make(path)
    arguments = ("state", "verify", "--kubelet-version", "v1.35.1", "-o", "json")
    result = dpctl(*arguments, env=tree.env)
    assert result.code == 1
    rows = {row["file"]: row for row in json.loads(result.out)["items"]}
    assert {row["file"]: row["verdict"] for row in rows.values() if row["verdict"] != "Absent"} == {
        path.name: verdict for path, verdict in expected.items()
    }
    for path in expected:
        assert words in rows[path.name]["reason"]


CONFIGS: dict[str, bytes] = {
    "billion laughs": LAUGHS.encode() + b"podLogsDir: *i\n",
    "a program": b"podLogsDir: !!python/object/apply:os.system ['touch /tmp/dpctl-was-here']\n",
    "an empty number": b"podLogsDir: !!int ''\n",
    "no timestamp": b"podLogsDir: !!timestamp x\n",
    "no such day": b"podLogsDir: 2001-99-99\n",
    "no truth": b"podLogsDir: !!bool x\n",
    "no binary": b"podLogsDir: !!binary '\xc3\xbf'\n",
    "unhashable": b"? [podLogsDir]\n: x\n? {a: b}\n: y\n",
    "deep": b"podLogsDir: " + b"[" * 20_000,
    "a NUL": b'podLogsDir: "/a\\0b"\n',
    "controls": b'podLogsDir: "/\\e[2J\\u202e/x"\nnodeStatusUpdateFrequency: "\\e[2J"\n',
    "no text": b"podLogsDir: /x\n\xff\xfe\x00",
    "a list": b"[podLogsDir, 2]\n",
    "large": b"podLogsDir: /x\n" + b"#" * (5 << 20),
    "itself": b"podLogsDir: &a [*a]\n",
    "an endless number": b"podLogsDir: 1" + b":1" * 300_000,  # in base 60: minutes
    "no number for a text": b"podLogsDir: 0x" + b"f" * 20_000,
}


@pytest.mark.parametrize("fault", CONFIGS)
def test_a_kubelet_configuration_that_means_harm(tree: NodeTree, fault: str) -> None:
    mark = Path("/tmp/dpctl-was-here")
    tree.kubelet_config.write_bytes(CONFIGS[fault])
    pods, resources = tree.ask_all([("pods",), ("resources", "-o", "wide", "-v")])
    for result in (pods, resources):
        assert (result.code, RESOURCE in result.out) == (0, True), result.err
    assert not mark.exists()
