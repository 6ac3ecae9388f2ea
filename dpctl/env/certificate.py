"""The node's name out of a kubelet's client certificate. Pure bytes; no X.509 library.

A kubelet's certificate has the subject `O=system:nodes, CN=system:node:NAME`; nothing else in it is
of interest, so the DER is searched for the one attribute instead of being decoded.
"""

from __future__ import annotations

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"
# OBJECT IDENTIFIER 2.5.4.3 (commonName).
_COMMON_NAME = b"\x06\x03\x55\x04\x03"
_STRINGS = (0x0C, 0x13, 0x16)  # UTF8String, PrintableString, IA5String
_PREFIX = "system:node:"
_LONGEST = 253


def node_name_in_pem(data: bytes) -> str | None:
    """The name in the first certificate of a PEM file; a key in the same file is not looked at."""
    import binascii

    start = data.find(_BEGIN)
    end = data.find(_END, start)
    if start < 0 or end < 0:
        return None
    try:
        return node_name_in_der(binascii.a2b_base64(data[start + len(_BEGIN) : end]))
    except binascii.Error:
        return None


def node_name_in_der(der: bytes) -> str | None:
    """The NAME of a common name `system:node:NAME`, None where there is none."""
    position = 0
    while (position := der.find(_COMMON_NAME, position)) >= 0:
        position += len(_COMMON_NAME)
        # The short form of a length holds 127 bytes, the next one 255: a name has at most 253.
        head = der[position : position + 3]
        if len(head) < 3 or head[0] not in _STRINGS:
            continue
        start, size = (position + 2, head[1]) if head[1] < 0x80 else (position + 3, head[2])
        if head[1] > 0x81:
            continue
        text = der[start : start + size].decode("utf-8", "replace")
        name = text.removeprefix(_PREFIX)
        if name != text and 0 < len(name) <= _LONGEST and name.isascii() and name.isprintable():
            return name
    return None


def node_name_in_kubeconfig(text: str) -> tuple[str | None, str | None]:
    """(node name, path of a certificate file) that a kubelet's kubeconfig holds; None: not there.

    Read by lines: yaml would cost more than the whole detection.
    """
    for line in text.splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(":")
        value = value.strip().strip("'\"")
        if key == "client-certificate" and value:
            return None, value
        if key == "client-certificate-data" and value:
            import binascii

            try:
                return node_name_in_pem(binascii.a2b_base64(value)), None
            except (binascii.Error, ValueError):
                return None, None
    return None, None
