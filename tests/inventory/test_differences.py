"""What changed between two snapshots: fields of things, things that came and went, sources."""

from __future__ import annotations

from typing import Any

import pytest

from dpctl.bundle import read_bundle
from dpctl.env import Settings, find_env
from dpctl.inventory.differences import DifferenceRow, snapshot_differences
from dpctl.inventory.plugins import plugin_rows
from dpctl.model import Snapshot, Source, SourceRow
from tests import build
from tests.run import DATA, dpctl, golden

R = "vendor.example/gpu"
CAPTURES = DATA / "captures"
NAMES = ("1-healthy", "2-plugin-dead-in-grace", "3-after-kubelet-restart")


def capture(name: str) -> Snapshot:
    return read_bundle(find_env(Settings(bundle=str(CAPTURES / name)), {}), tuple(Source))


def rows(a: Snapshot, b: Snapshot) -> dict[tuple[str, str, str], tuple[str | None, str | None]]:
    found = snapshot_differences(a, b)
    assert len({row[:3] for row in found}) == len(found)
    return {row[:3]: row[3:] for row in found}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_changed(name: str) -> None:
    assert snapshot_differences(capture(name), capture(name)) == []


@pytest.mark.parametrize("name", NAMES[1:])
def test_backwards_is_the_mirror_image(name: str) -> None:
    there = snapshot_differences(capture(NAMES[0]), capture(name))
    back = snapshot_differences(capture(name), capture(NAMES[0]))
    assert there
    assert [DifferenceRow(r.what, r.name, r.field, r.b, r.a) for r in back] == there


def small(**fields: Any) -> Snapshot:
    base: dict[str, Any] = {
        "collected_at": build.NOW,
        "sources": (),
        "checkpoint": build.checkpoint({R: ("g0", "g1")}),
    }
    return Snapshot(**{**base, **fields})


def test_a_device_that_went() -> None:
    found = rows(small(), small(checkpoint=build.checkpoint({R: ("g0",)})))
    assert ("device", f"{R}/g1", "state") in found
    assert found["device", f"{R}/g1", "state"][1] is None
    assert not any(name == f"{R}/g0" for what, name, _ in found if what == "device")


def test_a_listener_that_may_be_anybody_is_no_difference() -> None:
    """Its directory cannot be told: `dpctl plugins` shows it with --all only."""
    directory = build.directory(build.entry("gpu.sock", 20))
    somebody = build.listener("x.sock", 77, parent=None)
    looked = [
        small(directory=directory, sockets=table, kubelets=(build.kubelet(),))
        for table in (build.table(somebody), build.table())
    ]
    assert len(plugin_rows(looked[0])) == len(plugin_rows(looked[1])) + 1
    assert snapshot_differences(*looked) == []


def test_what_was_not_read_is_one_row() -> None:
    read = SourceRow(Source.CHECKPOINT, "here", "read")
    failed = SourceRow(Source.CHECKPOINT, "here", "failed", "it is damaged", None, 7)
    found = rows(small(sources=(read,)), small(sources=(failed,), checkpoint=None))
    assert found == {("source", "checkpoint", "state"): ("read", "failed: it is damaged")}


def test_where_it_was_read_and_how_long_that_took_is_no_difference() -> None:
    a = small(sources=(SourceRow(Source.CHECKPOINT, "here", "read", seconds=1.0),))
    b = small(sources=(SourceRow(Source.CHECKPOINT, "there", "read", seconds=2.0),))
    assert rows(a, b) == {}


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_golden(form: str) -> None:
    paths = [str(CAPTURES / name) for name in NAMES[:2]]
    result = dpctl("diff", *paths, "-o", form)
    assert result.code == 1
    golden(f"captures/diff.{form}", result.out.replace(str(DATA), "DATA"))
    assert " differences: " in result.err.splitlines()[-1]


def test_the_same_bundle() -> None:
    path = str(CAPTURES / NAMES[0])
    result = dpctl("diff", path, path)
    assert (result.code, result.out) == (0, "")
    assert result.err.endswith("No differences found\n")


def test_no_bundle() -> None:
    result = dpctl("diff", str(CAPTURES / "no"), str(CAPTURES / NAMES[0]))
    assert (result.code, result.out) == (3, "")
