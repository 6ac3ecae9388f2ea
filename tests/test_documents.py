from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.columns import UNKNOWN, Time, Unknown
from dpctl.documents import Envelope, camel_case, document, json_text, list_document, rfc3339
from tests.outputs.sample import HOSTILE, META, ROWS, Gpu, Health


def test_every_field_is_there_missing_ones_as_null() -> None:
    assert document(Gpu("g", Health.HEALTHY, None, 0, None, None)) == {
        "name": "g",
        "health": "Healthy",
        "numaNodes": None,
        "total": 0,
        "capacity": None,
        "free": None,
        "annotations": {},
        "parts": [],
        "seenAt": None,
        "changed": None,
        "age": None,
    }


def test_values_become_what_json_has() -> None:
    found = document(ROWS[3])
    assert found["numaNodes"] == []
    assert found["changed"] == "2026-11-30T13:12:15.250Z"
    assert document(ROWS[1])["seenAt"] == "2026-11-30T13:12:15Z"
    assert document(ROWS[1])["numaNodes"] == [0]  # NUMA node 0 is a node
    assert document(ROWS[0])["annotations"] == {"vendor.example/x": "1,5"}
    assert document(ROWS[2])["parts"][0] == {"partId": "p,1", "bytesFree": 0}
    assert type(document(ROWS[0])["health"]) is str


@dataclass(frozen=True)
class Odd:
    raw: bytes
    unknown: int | Unknown
    numbers: dict[int, tuple[int, ...]]
    nan: float
    names: frozenset[str]
    moments: tuple[Time, ...]
    at: Time
    _hidden: int = 0


def test_odd_values() -> None:
    row = Odd(b"\x00\xff", UNKNOWN, {0: (1,)}, float("nan"), frozenset("ba"), (0.0, 1.5), 3)
    assert document(row) == {
        "raw": "AP8=",
        "unknown": None,
        "numbers": {"0": [1]},
        "nan": None,
        "names": ["a", "b"],
        "moments": ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.500Z"],
        "at": "1970-01-01T00:00:03Z",
    }


def test_only_dataclasses_have_documents() -> None:
    with pytest.raises(TypeError, match="int is neither"):
        document(3)


def test_the_list_around_them() -> None:
    found = list_document([document(ROWS[0])], "Gpu", META)
    assert list(found) == ["apiVersion", "kind", "items", "collectedAt", "sources"]
    assert found["kind"] == "GpuList"
    assert found["collectedAt"] == "2026-11-30T13:12:15Z"
    assert found["sources"][1] == {
        "name": "checkpoint",
        "where": "/device-plugins",
        "state": "failed",
        "reason": "no such file",
        "hint": "look at --kubelet-root",
        "code": 3,
    }
    assert list_document([], "Gpu", Envelope())["collectedAt"] is None


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_json_is_ascii_and_exact(value: dict[str, Any]) -> None:
    for indent in (None, 4):
        text = json_text(value, indent=indent)
        assert text.isascii()
        assert all(character >= " " or character == "\n" for character in text)
        assert "\x7f" not in text
        assert json.loads(text) == value


def test_undecodable_bytes_survive() -> None:
    assert json.loads(json_text(document(ROWS[2])))["name"] == HOSTILE
    assert "\\udcff" in json_text(document(ROWS[2]))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (1796044335.0004, "2026-11-30T13:12:15Z"),
        (1796044335.9996, "2026-11-30T13:12:16Z"),
        (1796044335.12, "2026-11-30T13:12:15.120Z"),
        (1e18, None),
        (-1e18, None),
        (float("inf"), None),
        (float("nan"), None),
        (None, None),
        (-62_000_000_000, "0005-04-19T09:46:40Z"),
    ],
)
def test_times(seconds: float | None, text: str | None) -> None:
    assert rfc3339(seconds) == text


def test_keys() -> None:
    assert [camel_case(n) for n in ("name", "device_id", "cdi_devices", "class_", "a_b_c")] == [
        "name",
        "deviceId",
        "cdiDevices",
        "class",
        "aBC",
    ]
