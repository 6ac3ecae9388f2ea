from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import DpctlError
from dpctl.sources.go_binary import kubernetes_version, version_of, version_of_process

MODULES = (
    "path\tk8s.io/kubernetes/cmd/kubelet\nmod\tk8s.io/kubernetes\tv1.37.2\t\n"
    "dep\tk8s.io/api\tv0.37.2\th1:x\n"
)


def length(text: bytes) -> bytes:
    found = b""
    rest = len(text)
    while rest >= 0x80:
        found += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return found + bytes([rest])


def program(modules: str) -> bytes:
    """An ELF file with nothing but Go's section."""
    inner = b"x" * 16 + modules.encode() + b"y" * 16
    version = b"go1.26.8"
    info = b"\xff Go buildinf:" + bytes([8, 2]) + b"\0" * 16
    info += length(version) + version + length(inner) + inner
    names = b"\0.go.buildinfo\0.shstrtab\0"
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", header, 0x28, 64 + len(info) + len(names))
    struct.pack_into("<HHH", header, 0x3A, 64, 3, 2)
    sections = b"\0" * 64
    for name, offset, size in ((1, 64, len(info)), (15, 64 + len(info), len(names))):
        sections += struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0)
    return bytes(header) + info + names + sections


def test_the_version_is_found(tmp_path: Path) -> None:
    file = tmp_path / "kubelet"
    file.write_bytes(program(MODULES))
    assert kubernetes_version(str(file)) == "v1.37.2"


@pytest.mark.parametrize(
    ("modules", "version"),
    [
        (MODULES, "v1.37.2"),
        (
            "dep\tk8s.io/kubernetes\tv1.33.1\n=>\tgithub.com/k3s-io/kubernetes\tv1.33.1-k3s1\n",
            "v1.33.1",
        ),
        (
            'mod\tk8s.io/kubernetes\t(devel)\t\nbuild\t-ldflags="-X'
            ' k8s.io/component-base/version.gitVersion=v1.36.0-eks-1 -s"\n',
            "v1.36.0-eks-1",
        ),
        ("mod\tk8s.io/kubernetes\t(devel)\t\n", None),
        ("dep\tk8s.io/kubernetes-csi\tv9.9.9\n", None),
        ("", None),
    ],
)
def test_where_it_stands(modules: str, version: str | None) -> None:
    assert version_of(modules) == version


def test_what_is_no_go_program(tmp_path: Path) -> None:
    assert kubernetes_version("/bin/sh") is None
    (tmp_path / "text").write_text("#!/bin/sh\n")
    assert kubernetes_version(str(tmp_path / "text")) is None
    with pytest.raises(DpctlError):
        kubernetes_version(str(tmp_path / "nothing"))
    assert version_of_process("/proc", os.getpid()) is None
    assert version_of_process(str(tmp_path), 1) is None


@pytest.mark.parametrize("where", [2**64 - 1, 2**63, 2**40])
def test_a_table_beyond_any_file(tmp_path: Path, where: int) -> None:
    whole = bytearray(program(MODULES))
    struct.pack_into("<Q", whole, 0x28, where)
    (tmp_path / "far").write_bytes(bytes(whole))
    assert kubernetes_version(str(tmp_path / "far")) is None


@given(st.data())
def test_damaged_programs_are_read_or_not(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    whole = bytearray(program(MODULES))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    file = tmp_path_factory.getbasetemp() / "damaged"
    file.write_bytes(bytes(whole[:cut]))
    found = kubernetes_version(str(file))
    assert found is None or found.startswith("v")
