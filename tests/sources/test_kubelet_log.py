"""The one line of the kubelet's log that is looked for."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from dpctl.sources.kubelet_log import parse_lost_at, read_lost_at

LINE = (
    "I{stamp}   14199 manager.go:249] "
    '"Endpoint became unhealthy" resourceName="{name}" endpoint={{}}'
)


def line(at: float, name: str) -> bytes:
    stamp = time.strftime("%m%d %H:%M:%S", time.localtime(at)) + ".432895"
    return LINE.format(stamp=stamp, name=name).encode() + b"\n"


def test_the_last_line_of_each_resource_counts() -> None:
    now = float(round(time.time()))
    log = line(now - 90, "a.test/x") + b"noise\n" + line(now - 60, "b.test/y")
    log += line(now - 10, "a.test/x")
    found = parse_lost_at(log, now)
    assert found == {
        "a.test/x": pytest.approx(now - 10 + 0.432895),
        "b.test/y": pytest.approx(now - 60 + 0.432895),
    }


def test_the_words_of_1_37() -> None:
    now = float(round(time.time()))
    old = b'"Endpoint became unhealthy" resourceName="a.test/x" endpoint={}'
    new = b'"Last device plugin for this resource disconnected" resource="a.test/x"'
    assert parse_lost_at(line(now - 5, "a.test/x").replace(old, new), now).keys() == {"a.test/x"}


def test_a_log_of_december_read_in_january() -> None:
    january = time.mktime((2027, 1, 1, 0, 1, 0, 0, 0, -1))
    log = line(january - 120, "a.test/x")
    assert parse_lost_at(log, january)["a.test/x"] == pytest.approx(january - 120 + 0.432895)


@pytest.mark.parametrize(
    "log",
    [
        b"",
        b"\xff\xfe\x00",
        line(0, "x").replace(b"I0101", b"I9999"),
        b'I0101 "Endpoint became unhealthy" resourceName="x"',
        line(1.0, "a" * 500),
    ],
    ids=range(5),
)
def test_nonsense_tells_nothing(log: bytes) -> None:
    assert parse_lost_at(log, time.time()) == {}


def test_read_from_where_standard_error_goes(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.log"
    file.write_bytes(line(time.time(), "a.test/x"))
    with file.open("ab") as errors:
        process = subprocess.Popen(["sleep", "60"], stderr=errors)
    try:
        assert list(read_lost_at("/proc", process.pid)) == ["a.test/x"]
    finally:
        process.kill()
        process.wait()
    assert read_lost_at("/proc", process.pid) == {}
    assert read_lost_at(str(tmp_path), os.getpid()) == {}
