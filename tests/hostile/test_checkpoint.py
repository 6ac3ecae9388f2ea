"""A device checkpoint that is broken, enormous or written by somebody who means harm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dpctl.model import Allocation
from dpctl.statefiles.device_checkpoint import encode_checkpoint
from tests.fakes.node_tree import (
    CONTROLS,
    FORMATS,
    MIB,
    RESOURCE,
    NodeTree,
    checkpoint,
    items,
    node,
    said,
    tidy,
)
from tests.run import dpctl

NAME = "kubelet_internal_checkpoint"


def endless_list() -> bytes:
    """64 MiB of a checkpoint that begins as a good one does."""
    head = b'{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"vendor.example/gpu":['
    one = b'"device-0123456789abcdef",'
    return (head + one * (64 * MIB // len(one)))[: 64 * MIB]


def deep() -> bytes:
    return b'{"Data":' + b"[" * 500_000 + b"]" * 500_000 + b"}"


BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "truncated": (lambda: checkpoint()[:-20], "not JSON"),
    "empty": (lambda: b"", "is empty"),
    "zeros": (lambda: b"\0" * 4096, "zero bytes"),
    "garbage": (lambda: bytes(range(256)) * (64 * 4096), "not JSON"),
    "64 MiB and a byte": (lambda: b"x" * (64 * MIB + 1), "larger than"),
    "endless list": (endless_list, "not JSON"),
    "deep": (deep, "nested too deeply"),
    "duplicate keys": (
        lambda: checkpoint().replace(b'{"Data"', b'{"Data":{},"Data"', 1),
        "twice",
    ),
    "another type": (lambda: b'{"Data":{"RegisteredDevices":["\\u001b[2J"]}}', "not an object"),
}


@pytest.fixture(scope="module")
def tree():
    with node() as healthy:
        yield healthy


def bundled(tmp_path: Path, data: bytes) -> str:
    folder = tmp_path / "device-plugins"
    folder.mkdir()
    (folder / NAME).write_bytes(data)
    return str(tmp_path)


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_checkpoint_is_named_and_the_rest_goes_on(
    tree: NodeTree, tmp_path: Path, fault: str
) -> None:
    make, words = BROKEN[fault]
    data = make()
    tree.checkpoint.write_bytes(data)
    results = tree.ask_all(
        [
            ("pods",),
            ("who", "gpu-0", "-o", "json"),
            ("plugins", "-o", "wide", "--strict"),
        ]
    )
    assert [result.code for result in results] == [0, 0, 7]
    assert RESOURCE in results[0].out
    assert RESOURCE in results[1].out
    assert "gpu.sock" in results[2].out
    for result in results:
        said(result, "warning", "checkpoint not read", str(tree.checkpoint), words)
    # Where there is nothing else to answer from, that is the end.
    output = FORMATS[list(BROKEN).index(fault) % len(FORMATS)]
    alone = tidy(dpctl("devices", "--from", bundled(tmp_path, data), "-o", output), (output,))
    assert (alone.code, alone.out) == (7, "")
    said(alone, "error", "checkpoint", words)


def test_neither_checkpoint_nor_kubelet() -> None:
    with node(kubelet=False, cluster=False, plugin=False, with_checkpoint=False) as tree:
        tree.checkpoint.write_bytes(b"{")
        for result in tree.ask_all([("pods",), ("devices", "-o", "json")]):
            assert (result.code in (3, 7), result.out) == (True, "")
            assert str(tree.checkpoint) in result.err
            assert str(tree.pod_resources) in result.err


HOSTILE = f"gpu-{CONTROLS}-\U000e0041"


def hostile_names() -> bytes:
    held = [
        Allocation("uid-1", f"main{CONTROLS}", RESOURCE, {0: (HOSTILE,)}, None),
        Allocation(f"uid-{CONTROLS}", "c", f"evil.example/{CONTROLS}", {-1: ("a/../../b",)}, None),
    ]
    registered = {RESOURCE: [HOSTILE, "x" * 65536], f"evil.example/{CONTROLS}": ["a/../../b"]}
    return encode_checkpoint(held, registered)


def not_utf8() -> bytes:
    return checkpoint().replace(b'"gpu-1"', b'"gpu-\xff\xfe\xed\xa0\x80"')


def test_names_that_mean_harm_are_shown_escaped_and_kept_exactly_in_json(
    tree: NodeTree, tmp_path: Path
) -> None:
    tree.checkpoint.write_bytes(hostile_names())
    lines: list[tuple[str, ...]] = [("devices", "-o", output) for output in FORMATS]
    lines += [("pods", "-o", "wide"), ("who", HOSTILE[:4] + "*"), ("resources", "-o", "json")]
    results = tree.ask_all(lines)
    assert [result.code for result in results] == [0] * len(lines)
    for result in (results[0], results[1], results[3]):
        assert "gpu-\\0\\e[2J\\e]0;x\\x07\\r\\n\\t\\x7f\\x85\\x9b31m\\u{202e}" in result.out
    documents = items(results[2])
    assert HOSTILE in [row["device"] for row in documents]
    assert f"evil.example/{CONTROLS}" in [row["resource"] for row in items(results[5])]
    bundle = bundled(tmp_path, hostile_names())
    replayed = tidy(dpctl("devices", "--from", bundle, "-o", "json"), ("json",))
    assert HOSTILE in [row["device"] for row in items(replayed)]


def test_bytes_that_are_no_text(tree: NodeTree) -> None:
    tree.checkpoint.write_bytes(not_utf8())
    table, wide, document = tree.ask("devices")
    assert [table.code, wide.code, document.code] == [0, 0, 0]
    assert "gpu-\\xff\\xfe\\xed\\xa0\\x80" in table.out
    names = [row["device"] for row in items(document)]
    assert "gpu-\udcff\udcfe\udced\udca0\udc80" in names


def test_a_hundred_thousand_devices(tree: NodeTree) -> None:
    many = [f"card-{number}" for number in range(100_000)]
    tree.checkpoint.write_bytes(checkpoint({RESOURCE: many}))
    lines = [("-o", "table"), ("-o", "json", "--free"), ("-o", "wide", "--held-by", "ml/trainer")]
    results = tree.ask_all([("devices", "--no-allocatable", *line) for line in lines])
    assert [result.code for result in results] == [0, 0, 0]
    assert results[0].out.count("\ncard-") == 100_000
    assert "\ngpu-0 " in results[2].out


def test_what_tab_offers_can_be_typed(tree: NodeTree) -> None:
    contents = (hostile_names(), not_utf8(), BROKEN["deep"][0](), BROKEN["truncated"][0]())
    for data in contents:
        tree.checkpoint.write_bytes(data)
        for kind in ("devices", "resources"):
            result = tree.run("__complete", kind)
            assert (result.code, result.err) == (0, "")
            assert all(line.isprintable() and line for line in result.out.splitlines())


def test_a_long_container_and_pod(tree: NodeTree) -> None:
    long: Mapping[int, tuple[str, ...]] = dict.fromkeys(range(2000), ("gpu-0",))
    held = [Allocation("uid-1", "c" * 65536, RESOURCE, long, b"\xff" * 70000)]
    tree.checkpoint.write_bytes(encode_checkpoint(held, {RESOURCE: ["gpu-0"]}))
    for result in tree.ask("pods"):
        assert result.code == 0
        assert "c" * 65536 in result.out
