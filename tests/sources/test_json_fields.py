"""Decoded JSON with its path: what is no JSON, text that is none, times."""

from __future__ import annotations

import pytest

from dpctl.errors import BadDataError
from dpctl.sources.json_fields import Field, parse_json, parse_time


@pytest.mark.parametrize(
    "data", [b"", b"  ", b"{", b"[" * 100_000, b"nope", b"1" * 5000, b"\xff\xfe", b"{} {}"]
)
def test_what_is_no_json(data: bytes) -> None:
    with pytest.raises(BadDataError, match=r"^x\.json is "):
        parse_json(data, "x.json")


def test_bytes_that_are_no_text_come_through() -> None:
    assert parse_json(b'"a\xff"', "x") == "a\udcff"
    assert parse_json(b'\xef\xbb\xbf{"a": 1}', "x") == {"a": 1}
    assert parse_json('\ufeff{"a": "ü"}'.encode("utf-16-le"), "x") == {"a": "ü"}


def test_times() -> None:
    assert parse_time("2026-11-29T13:12:54Z") == 1795957974.0
    assert parse_time("2026-11-29T14:12:54.5+01:00") == 1795957974.5
    assert parse_time("2026-11-29T13:12:54.123456789Z") == pytest.approx(1795957974.123456)
    for text in ("", "2026-11-29T13:12:54", "2026-13-29T13:12:54Z", "x" * 9999):
        with pytest.raises(ValueError):
            parse_time(text)


def test_a_path_from_a_peer_does_not_fill_the_screen() -> None:
    with pytest.raises(BadDataError) as e:
        Field({"k" * 100_000: 1}, "").at("k" * 100_000).text()
    assert len(e.value.message) < 300
