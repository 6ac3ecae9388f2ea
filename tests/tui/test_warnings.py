"""How old the data is, and what is wrong: what is said of it on the screen."""

from __future__ import annotations

import pytest

from dpctl.errors import UnreachableError
from dpctl.tui.dashboard import Dashboard, Options
from dpctl.tui.facts import Facts, Reading
from dpctl.tui.pages import PAGES, page_names
from tests.tui.boards import NAMES, board, facts_of, press, text


def reading(*, began: float = 0.0, warnings: tuple[str, ...] = ()) -> Facts:
    return Facts(Reading(facts_of().snapshot, began, began + 1, warnings))


def live(facts: Facts | None = None) -> Dashboard:
    made = Dashboard(Options("here"), "resources")
    if facts is not None:
        made.take(facts)
    return made


@pytest.mark.parametrize("page", page_names())
@pytest.mark.parametrize("keys", [(), ("d",), ("?",), ("/",)])
def test_the_age_is_on_every_screen(page: str, keys: tuple[str, ...]) -> None:
    made = press(live(reading()), ":", page, "enter", *keys)
    assert "data 3s old" in text(made, now=3.2)


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("name", ["n" * 253, "\x1b[2J" * 60, "節" * 80])
def test_a_long_name_of_the_node_leaves_room_for_the_age(name: str, columns: int) -> None:
    found = reading()
    node = found.snapshot.node
    assert node is not None
    snapshot = found.snapshot._replace(node=node._replace(name=name))
    made = live(Facts(found.reading._replace(snapshot=snapshot)))
    assert "data 3s old" in text(made, columns, now=3.2)
    before = Dashboard(Options(name), "resources")
    assert "no data yet" in text(before, columns)


def test_a_hung_source_makes_the_data_old() -> None:
    made = live(reading())
    assert "! data 34s old" in text(made, now=34)
    assert "a source does not answer" in text(made, now=34)
    made.take(reading(began=34))
    assert "data 0s old" in text(made, now=34)
    assert "!" not in text(made, now=34)


def test_two_missed_readings_are_told() -> None:
    made = live(reading())
    assert "! data" not in text(made, now=5.9)
    assert "! data 7s old" in text(made, now=7)
    made.asked = 30.0
    assert "! data" not in text(made, now=59)
    assert "! data" in text(made, now=63)


def test_a_longer_pause_is_told_and_is_not_old() -> None:
    made = live(reading())
    made.interval = 30
    assert "data 34s old (read every 30s)" in text(made, now=34)
    assert "! data" not in text(made, now=34)


def test_what_was_not_read_is_named() -> None:
    made = live(reading(warnings=("node, pods not read: refused", "checkpoint damaged: x")))
    assert "! node, pods not read: refused (+1: page sources)" in text(made)
    made.take(reading(warnings=(f"node, pods not read: refused{' and' * 90}", "x")))
    assert text(made).splitlines()[2].endswith("… (+1: page sources)")


def test_nothing_read_yet() -> None:
    assert "reading the node" in text(live())
    assert "no data yet" in text(live())


def test_a_first_failure_is_the_whole_screen() -> None:
    error = UnreachableError("no kubelet here", "run on a node")
    made = live(Facts(Reading(facts_of().snapshot, 0, 1, (), error)))
    assert "! no kubelet here\n  run on a node" in text(made)


def test_a_later_failure_leaves_the_last_reading_marked() -> None:
    made = live(reading())
    before = text(made, now=1).splitlines()[3:]
    error = UnreachableError("connection refused", "is it running?")
    made.take(Facts(Reading(facts_of(NAMES[1]).snapshot, 20, 21, (), error)))
    shown = text(made, now=21).splitlines()
    assert "! cannot read now: connection refused" in shown[2]
    assert "! data 21s old" in shown[1]
    assert shown[3:] == before
    made.take(reading(began=40))
    assert "cannot read" not in text(made, now=41)


def test_a_row_that_is_gone_is_shown_as_it_was() -> None:
    made = press(live(reading()), "2", "d")
    shown = text(made)
    empty = facts_of().snapshot._replace(
        pod_resources=None, allocatable=None, checkpoint=None, node=None, pods=None
    )
    made.take(Facts(Reading(empty, 0, 1)))
    after = text(made)
    assert "! no longer there: this is how it was seen last" in after
    assert after.splitlines()[3:] == shown.splitlines()[3:]


def test_an_empty_page_says_whether_nothing_is_there_or_nothing_was_read() -> None:
    snap = facts_of().snapshot
    made = live(Facts(Reading(snap._replace(pods=()), 0, 1)))
    assert "the kubelet has rejected no pod here" in text(press(made, "7"))
    failed = tuple(
        row._replace(state="failed", reason="refused", hint="check the server")
        if row.name == "pods"
        else row
        for row in snap.sources
    )
    made.take(Facts(Reading(snap._replace(pods=None, sources=failed), 0, 1)))
    assert "pods was not read: refused\n  check the server" in text(made)


def test_ascii_alone() -> None:
    for page in page_names():
        made = board(page, ascii_only=True)
        assert text(made, 120, 50).isascii()
        assert text(press(made, "?"), 120, 50).isascii()


def test_what_has_not_changed_is_not_joined_again() -> None:
    first = facts_of()
    devices = first.rows("devices", PAGES[1].make)
    later = Facts(Reading(first.snapshot._replace(collected_at=5.0), 1, 2), first)
    assert later.rows("devices", PAGES[1].make) is devices
    moved = Facts(Reading(first.snapshot._replace(checkpoint=None), 1, 2), first)
    assert moved.rows("devices", PAGES[1].make) is not devices
