"""The kubelet's checksum: FNV-1a 32 over a Go value rendered by go-spew (kubelet-facts §5.2).

Here are the hash and the rendering of the plain values. What a file's structure looks like belongs
to that file's codec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF

_SURROGATES = re.compile("[\ud800-\udfff]")
_DECIMALS = tuple(str(number).encode() for number in range(256))
NIL = b"<nil>"


def fnv1a_32(data: bytes) -> int:
    """FNV-1a, 32 bits.

    Four bytes a round, masked once: bits above 32 never reach lower ones, so they may pile up for a
    while. 76 ns a byte where the plain loop takes 125; longer rounds, and tables that take a whole
    decimal of a byte slice in one step, gained nothing.
    """
    value = _OFFSET
    prime, mask = _PRIME, _MASK
    tail = len(data) & ~3
    rounds = iter(data[:tail])
    for a, b, c, d in zip(rounds, rounds, rounds, rounds, strict=True):
        value = ((((value ^ a) * prime ^ b) * prime ^ c) * prime ^ d) * prime & mask
    for byte in data[tail:]:
        value = (value ^ byte) * prime & mask
    return value


def spew_text(text: str) -> bytes:
    """A string as go-spew shows it: raw, nothing escaped.

    What cannot be UTF-8 (a lone surrogate stands for a bad byte, or for a lone `\\ud800` of the
    JSON) is U+FFFD, as Go's JSON reader makes it.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("�", text).encode()


def spew_list(texts: Iterable[str] | None) -> bytes:
    """A list of strings: `[a b]`; nil: `<nil>`."""
    if texts is None:
        return NIL
    return b"[" + b" ".join(map(spew_text, texts)) + b"]"


def spew_bytes(data: bytes | None) -> bytes:
    """A byte slice: decimals, `[10 16 7]`; nil: `<nil>`."""
    if data is None:
        return NIL
    return b"[" + b" ".join(map(_DECIMALS.__getitem__, data)) + b"]"


def spew_map(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A map whose pairs come in go-spew's order: `map[k:v k2:v2]`."""
    return b"map[" + b" ".join(key + b":" + value for key, value in pairs) + b"]"
