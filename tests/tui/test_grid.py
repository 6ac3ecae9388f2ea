"""A table on the screen: filter, order, cursor, columns."""

from __future__ import annotations

import pytest

from dpctl import views
from dpctl.inventory.rows import DeviceRow, DeviceState
from dpctl.tui.grid import Grid
from tests.tui.boards import plain


def device(name: str, resource: str = "vendor.example/gpu", numa: int = 0) -> DeviceRow:
    return DeviceRow(
        device=name,
        resource=resource,
        health="Healthy",
        health_message=None,
        numa_nodes=(numa,),
        numa_known=True,
        state=DeviceState.FREE,
        holders=(),
        base=None,
        address=None,
        sources=("checkpoint",),
        count=1,
    )


ROWS = [device(f"gpu-{n}", numa=n % 2) for n in range(12)] + [device("nic-0", "net.example/vf")]


def grid(rows: list[DeviceRow] | None = None) -> Grid:
    made = Grid(views.DEVICES)
    made.take(ROWS if rows is None else rows)
    return made


def names(made: Grid) -> list[str]:
    return [row.device for row in made.rows]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", 13),
        ("GPU", 12),
        ("net.example", 1),
        ("gpu-1", 3),
        ("gpu !gpu-1", 9),
        ("!", 13),
        ("free vendor gpu-11", 1),
        ("nothing", 0),
    ],
)
def test_a_filter_is_words_in_any_case(pattern: str, found: int) -> None:
    made = grid()
    made.filter(pattern)
    assert len(made.rows) == found


def test_the_cursor_stays_on_its_row() -> None:
    made = grid()
    for _ in range(5):
        made.press("down")
    chosen = made.chosen
    made.filter("gpu")
    assert made.chosen == chosen
    made.take([device("aaa-0"), *ROWS])
    assert made.chosen == chosen
    made.sort("N")
    assert made.chosen == chosen


def test_a_row_that_a_filter_hides_gives_the_cursor_to_the_first_hit() -> None:
    made = grid()
    made.press("end")
    made.filter("gpu-1 !gpu-11")
    assert made.cursor == 0
    made.filter("gpu-1 !gpu-1")
    assert made.chosen is None
    made.filter("gpu-1 !gpu-11")
    assert made.cursor == 0


def test_a_row_that_goes_leaves_the_cursor_in_its_place() -> None:
    made = grid()
    made.press("end")
    made.take(ROWS[:3])
    assert made.cursor == 2


def test_sorting_goes_round() -> None:
    made = grid()
    natural = names(made)
    assert made.sort("D") == "DEVICE"
    assert made.sort("D") == "DEVICE"
    assert names(made)[:2] == ["nic-0", "gpu-11"]
    assert made.sort("D") == "the name"
    assert names(made) == natural
    assert made.sort("Z") is None
    assert made.sort("H") == "HEALTH"  # HOLDER is the next one
    made.sort("H")
    assert made.sort("H") == "HOLDER"


def test_the_order_is_marked_in_the_heading() -> None:
    made = grid()
    made.sort("D")
    assert "DEVICE↑" in plain(made.lines(80, 5))[0]
    made.sort("D")
    assert "DEVICE↓" in plain(made.lines(80, 5))[0]


@pytest.mark.parametrize("key", ["down", "j", "pagedown", "space", "end", "G", "ctrl+f"])
def test_the_chosen_row_is_always_in_sight(key: str) -> None:
    made = grid()
    for _ in range(20):
        made.press(key)
        lines = plain(made.lines(80, 6))
        assert len(lines) == 6
        assert sum(line.startswith("›") for line in lines) == 1
    for _ in range(20):
        made.press({"end": "home", "G": "g"}.get(key, "pageup"))
        assert sum(line.startswith("›") for line in plain(made.lines(80, 6))) == 1
    assert made.cursor == 0


def test_wide_columns_come_where_they_cut_nothing() -> None:
    made = grid()
    assert "SOURCES" not in plain(made.lines(60, 5))[0]
    assert "SOURCES" in plain(made.lines(200, 5))[0]
    made.wide = True
    assert "SOURCES" in plain(made.lines(60, 5))[0]


def test_what_a_line_has_no_room_for_is_told() -> None:
    long = device("gpu-with-a-name-that-is-longer-than-any-other", "some.long.example/resource")
    made = grid([long])
    hidden = dict(made.hidden(60))
    assert hidden["RESOURCE"] == "some.long.example/resource"
    assert hidden["SOURCES"] == "checkpoint"


def test_names_of_64_kib_and_100_000_rows() -> None:
    rows = [device(f"{'x' * (65536 if n == 7 else 3)}-{n}") for n in range(100_000)]
    made = grid(rows)
    made.filter("x-99999")
    assert len(made.rows) == 1
    made.filter("xxxx")
    lines = plain(made.lines(80, 24))
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80


def test_position_says_where_one_is() -> None:
    made = grid()
    made.lines(80, 6)
    assert made.position() == "1-5 of 13"
    made.filter("gpu")
    made.lines(80, 6)
    assert made.position() == "1-5 of 12 (13)"
    made.filter("nic")
    made.lines(80, 6)
    assert made.position() == "1 of 13"


def test_names_that_differ_at_their_ends_are_told_apart() -> None:
    long = "GPU-5a1c0d3e-7b42-4f1a-9d20-0c1b2a3f4e5d"
    rows = [device(f"{long}::{n}", f"vendor.example/gpu{'.shared' * n}") for n in range(2)]
    shown = plain(grid(rows).lines(72, 10))
    assert "::0 " in shown[1]
    assert "::1 " in shown[2]
    assert "/gpu " in shown[1]
    assert "hared " in shown[2]


def test_of_a_long_name_the_ends_alone_are_looked_at() -> None:
    shown = plain(grid([device(f"begin-{'x' * 5_000_000}-end")]).lines(72, 10))
    assert shown[1].startswith("› begin-")
    assert "-end " in shown[1]
