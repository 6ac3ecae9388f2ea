"""`meta.json`: what is written comes back, to the last digit; what is hostile is said to be."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.bundle.meta import LeftOut, Meta, Record, encode_meta, parse_meta
from dpctl.bundle.records import time_text
from dpctl.errors import BadDataError, ExitCode
from dpctl.model import Source, SourceRow
from dpctl.sources.json_fields import parse_time

NAMES = st.text(min_size=1, max_size=12)
MAYBE = st.none() | NAMES
TIMES = st.floats(10**8, 2**33, allow_nan=False)
ROWS = st.builds(
    SourceRow,
    name=st.sampled_from(list(Source)),
    where=st.text(max_size=9),
    state=st.sampled_from(["read", "failed", "missing", "skipped"]),
    reason=MAYBE,
    hint=MAYBE,
    code=st.sampled_from([int(code) for code in ExitCode]),
    seconds=st.none(),
)
RECORDS = st.builds(Record, row=ROWS, absent=st.booleans(), modified=st.none() | TIMES)
METAS = st.builds(
    Meta,
    collected_at=st.none() | TIMES,
    kubelet_version=MAYBE,
    boot_id=MAYBE,
    node_name=MAYBE,
    dpctl_version=MAYBE,
    redacted=st.booleans(),
    state_root=MAYBE,
    pod_resources_version=MAYBE,
    sources=st.none()
    | st.lists(RECORDS, unique_by=lambda r: r.row.name).map(
        lambda found: {Source(record.row.name): record for record in found}
    ),
    left_out=st.lists(st.builds(LeftOut, NAMES, st.text(max_size=9)), max_size=3).map(tuple),
)


@given(METAS)
def test_what_is_written_comes_back(meta: Meta) -> None:
    assert parse_meta(encode_meta(meta)) == meta


@given(TIMES)
def test_times_to_the_last_digit(seconds: float) -> None:
    """Ages are differences of times: a digit less, and a replay gives another number."""
    text = time_text(seconds)
    assert text is not None
    assert parse_time(text) == seconds


def test_times_of_files() -> None:
    assert time_text(1_795_950_735.25) == "2026-11-29T11:12:15.250000+00:00"
    fine = math.nextafter(1_795_950_735.25, 2e9)
    assert time_text(fine) == "2026-11-29T11:12:15.250000238+00:00"


@pytest.mark.parametrize(
    "source",
    [
        {"name": "node", "state": "failed", "code": 99},
        {"name": "node", "state": "failed", "code": -1},
        {"name": "node", "state": "great"},
        {"name": "node"},
        {"state": "read"},
        {"name": "node", "state": "read", "modified": "yesterday"},
        "node",
    ],
)
def test_hostile(source: object) -> None:
    with pytest.raises(BadDataError):
        parse_meta(json.dumps({"sources": [source]}).encode())


def test_a_later_dpctl_has_more_sources() -> None:
    data = json.dumps({"sources": [{"name": "moon", "state": "read"}], "new": 1}).encode()
    assert parse_meta(data).sources == {}
