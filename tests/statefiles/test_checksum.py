from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.statefiles.checksum import (
    fnv1a_32,
    spew_bytes,
    spew_list,
    spew_map,
    spew_text,
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [  # the published test vectors of FNV-1a, 32 bits
        (b"", 0x811C9DC5),
        (b"a", 0xE40C292C),
        (b"b", 0xE70C2DE5),
        (b"foobar", 0xBF9CF968),
        (b"\0", 0x050C5D1F),
        (b"chongo was here!\n", 0xD49930D5),
    ],
)
def test_published_vectors(data, expected):
    assert fnv1a_32(data) == expected


@given(st.binary(max_size=300))
def test_the_unrolled_loop_is_the_plain_one(data):
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 2**32
    assert fnv1a_32(data) == value


def test_rendering():
    assert spew_text('a"\n\\') == b'a"\n\\'
    assert spew_text("bad\udcff\ud800") == "bad��".encode()
    assert spew_list(None) == b"<nil>"
    assert spew_list([]) == b"[]"
    assert spew_list(["", "b c"]) == b"[ b c]"
    assert spew_bytes(None) == b"<nil>"
    assert spew_bytes(b"") == b"[]"
    assert spew_bytes(bytes([10, 0, 255])) == b"[10 0 255]"
    assert spew_map([]) == b"map[]"
    assert spew_map([(b"1", b"[a]"), (b"2", b"[]")]) == b"map[1:[a] 2:[]]"
