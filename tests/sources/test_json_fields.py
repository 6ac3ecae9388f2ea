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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_bomb_of_empty_values(encoding: str) -> None:
    data = ('{"items":[' + "[]," * 2_100_000 + "0]}").encode(encoding)
    with pytest.raises(BadDataError, match="more than 4000000 values"):
        parse_json(data, "x.json")


@pytest.mark.parametrize("number", [b"1e309", b"-1e309", b"NaN", b"Infinity"])
def test_a_number_that_is_no_quantity(number: bytes) -> None:
    field = Field(parse_json(b'{"a": 1, "cpu": ' + number + b"}", "x"), "capacity")
    with pytest.raises(BadDataError, match=r"^capacity\.cpu is .*no quantity"):
        field.quantities()


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
