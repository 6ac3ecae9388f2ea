"""CDI directories: what counts, what is broken, and what means harm."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import BadDataError
from dpctl.model import CdiDevice, CdiSpec
from dpctl.sources.cdi import parse_cdi_spec, read_cdi

PATH = "/etc/cdi/vendor.json"
YAML = b"""\
cdiVersion: "0.5.0"
kind: vendor.example/gpu
containerEdits:
  deviceNodes:
  - path: /dev/vendorctl
devices:
- name: 0
  containerEdits:
    deviceNodes:
    - {path: /dev/vendor0, hostPath: /dev/host0}
    - {path: /dev/made, type: c, major: 10, minor: 1}
    - {path: /run/pipe, type: p}
- name: all
  containerEdits:
    env: [VENDOR=all]
"""


def spec(**changes: object) -> bytes:
    device = {"name": "a", "containerEdits": {"env": ["A=1"]}}
    whole = {"cdiVersion": "0.6.0", "kind": "vendor.example/gpu", "devices": [device]}
    return json.dumps({**whole, **changes}).encode()


def device(name: str = "a", **edits: object) -> list[object]:
    return [{"name": name, "containerEdits": edits or {"env": ["A=1"]}}]


def test_yaml() -> None:
    found = parse_cdi_spec(YAML, PATH, 1)
    assert found == CdiSpec(
        PATH,
        1,
        "vendor.example/gpu",
        "0.5.0",
        (CdiDevice("0", ("/dev/host0",)), CdiDevice("all", ())),
        ("/dev/vendorctl",),
    ), "nodes that are given whole are made without the host's"


def test_json_is_the_same() -> None:
    assert parse_cdi_spec(spec(cdiVersion="v0.6.0"), PATH, 0).version == "0.6.0"
    found = parse_cdi_spec(spec(later={"field": 1}), PATH, 0)
    assert [d.name for d in found.devices] == ["a"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (spec(cdiVersion="0.2"), "none of"),
        (spec(cdiVersion=None), "none of"),
        (spec(kind="gpu"), "vendor/class"),
        (spec(kind="vendor.example/gpu/x"), "vendor/class"),
        (spec(kind="9vendor/gpu"), "vendor/class"),
        (spec(devices=[]), "no devices"),
        (spec(devices="a"), "no list"),
        (spec(devices=device("-a")), "no device name"),
        (spec(devices=device("a") * 2), "twice"),
        (spec(devices=[{"name": "a"}]), "empty containerEdits"),
        (spec(devices=device(deviceNodes=[]) + device("b")), "empty containerEdits"),
        (spec(devices=device(deviceNodes=["x"])), "no mapping"),
        (spec(cdiVersion="0.4.0", devices=device("1")), "CDI 0.5.0"),
        (
            spec(cdiVersion="0.4.0", devices=device(deviceNodes=[{"path": "a", "hostPath": "b"}])),
            "CDI 0.5.0",
        ),
        (spec(cdiVersion="0.3.0", devices=device(mounts=[{"type": "bind"}])), "CDI 0.4.0"),
        (spec(cdiVersion="0.5.0", kind="vendor.example/gpu.mig"), "CDI 0.6.0"),
        (spec(cdiVersion="0.5.0", annotations={"a": "b"}), "CDI 0.6.0"),
        (spec(devices=device(additionalGids=[5])), "CDI 0.7.0"),
        (b"[]", "no mapping"),
        (b"", "no mapping"),
        (b"\xff\xfe", "UTF-8"),
        (b"a: &x [1]\nb: *x\n", "alias"),
        (b"[" * 50_000, "deep|depth"),
        (b'{"a":' * 50_000, "deep|depth"),
        (b"[" * 200 + b"]" * 200, "too deeply"),
        (b"kind: 0x" + b"f" * 20_000, "number"),
        (b"? 0x" + b"f" * 20_000 + b"\n: 1\n", "number"),
        (b"kind: 1" + b":1" * 1_000_000, "number"),  # 20 minutes of arithmetic
        (b"kind: !!int '1" + b" :1" * 300_000 + b"'", "number"),
    ],
)
def test_what_a_runtime_does_not_load(data: bytes, words: str) -> None:
    with pytest.raises(BadDataError, match=words):
        parse_cdi_spec(data, PATH, 0)


def test_a_long_text_of_digits_is_a_text() -> None:
    long = "1" * 2000
    data = b"# no JSON\n" + spec(annotations={"a": long})
    assert parse_cdi_spec(data, PATH, 0).kind == "vendor.example/gpu"


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(BadDataError):
        parse_cdi_spec(data, PATH, 0)


def put(root: Path, name: str, data: bytes) -> Path:
    path = root / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_both_directories_in_order(tmp_path: Path) -> None:
    put(tmp_path, "run/cdi/b.yaml", YAML)
    put(tmp_path, "etc/cdi/b.json", spec())
    put(tmp_path, "etc/cdi/a.yaml", YAML)
    put(tmp_path, "etc/cdi/ignored.yml", YAML)
    put(tmp_path, "etc/cdi/below/ignored.yaml", YAML)
    put(tmp_path, "etc/cdi/directory.yaml/ignored.yaml", YAML)
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("/run")  # the host's, so inside the root
    found = [(s.path, s.priority, s.error) for s in read_cdi(str(tmp_path))]
    assert found == [
        ("/etc/cdi/a.yaml", 0, None),
        ("/etc/cdi/b.json", 0, None),
        ("/var/run/cdi/b.yaml", 1, None),
    ]


def test_no_directory_is_nothing(tmp_path: Path) -> None:
    put(tmp_path, "etc/cdi", b"a file")
    assert read_cdi(str(tmp_path)) == ()


def test_files_that_mean_harm_cost_nobody_else(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(spec())
    root = tmp_path / "root"
    put(root, "etc/cdi/z.json", spec())
    directory = root / "etc/cdi"
    os.mkfifo(directory / "fifo.json")
    (directory / "loop.json").symlink_to("loop.json")
    (directory / "out.json").symlink_to("../../../secret.json")
    (directory / "absolute.json").symlink_to(secret)
    (directory / "inside.json").symlink_to("/opt/spec")
    put(root, "opt/spec", spec(kind="vendor.example/nic"))
    (directory / "device.json").symlink_to("/dev/zero")
    with (directory / "huge.json").open("wb") as file:
        file.truncate(1 << 33)
    (directory / "binary.json").write_bytes(bytes(range(256)) * 100)
    found = {s.path.rpartition("/")[2]: s for s in read_cdi(str(root))}
    good = {name for name, s in found.items() if s.error is None}
    assert good == {"z.json", "inside.json"}
    assert found["inside.json"].kind == "vendor.example/nic"
    assert "FIFO" in (found["fifo.json"].error or "")
    assert "larger" in (found["huge.json"].error or "")
    assert all(len(s.error or "") <= 300 for s in found.values())
    assert len(found) == 9
