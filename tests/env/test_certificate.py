from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.env.certificate import node_name_in_der, node_name_in_kubeconfig, node_name_in_pem

DATA = Path(__file__).parent.parent / "data" / "env"
PEM = (DATA / "kubelet-client-current.pem").read_bytes()
NAME = "worker-0.site-7.example"


def test_the_node_of_a_kubelets_certificate() -> None:
    assert node_name_in_pem(PEM) == NAME


def test_a_key_in_front_is_skipped() -> None:
    key = b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
    assert node_name_in_pem(key + PEM) == NAME


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"-----BEGIN CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----",
        (DATA / "ca.pem").read_bytes(),
        PEM[:200],
    ],
)
def test_no_node_no_name(data: bytes) -> None:
    assert node_name_in_pem(data) is None


def attribute(text: bytes, tag: int = 0x13) -> bytes:
    length = bytes([len(text)]) if len(text) < 0x80 else bytes([0x81, len(text)])
    return b"\x06\x03\x55\x04\x03" + bytes([tag]) + length + text


@pytest.mark.parametrize(
    ("der", "name"),
    [
        (attribute(b"kubernetes") + attribute(b"system:node:w"), "w"),  # issuer first
        (attribute(b"system:node:" + b"n" * 200, 0x0C), "n" * 200),
        (attribute(b"system:node:"), None),
        (attribute(b"system:node:a\x1b[31m", 0x0C), None),
        (attribute(b"system:kube-proxy"), None),
        (attribute(b"system:node:w", 0x02), None),
        (attribute(b"system:node:w")[:7], None),
    ],
)
def test_attributes(der: bytes, name: str | None) -> None:
    assert node_name_in_der(der) == name


@given(st.binary(max_size=200) | st.binary(max_size=30).map(lambda b: b"\x06\x03\x55\x04\x03" + b))
def test_any_bytes(data: bytes) -> None:
    name = node_name_in_der(data)
    assert name is None or name.isprintable()


def test_kubeconfigs() -> None:
    assert node_name_in_kubeconfig("users:\n- user:\n    client-certificate: /a/b.pem\n") == (
        None,
        "/a/b.pem",
    )
    inline = base64.b64encode(PEM).decode()
    assert node_name_in_kubeconfig(f"  client-certificate-data: {inline}\n") == (NAME, None)
    assert node_name_in_kubeconfig("  client-certificate-data: %%%\n") == (None, None)
    assert node_name_in_kubeconfig("users: []\n") == (None, None)
