"""The thread that reads: how often, what it posts, how it ends."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest

from dpctl.tui.facts import Reading
from dpctl.tui.poller import Poller, stretched
from tests.tui.boards import facts_of

SNAPSHOT = facts_of().snapshot


@pytest.mark.parametrize(
    ("spent", "pause"), [(0.0, 2.0), (0.2, 2.0), (0.3, 3.6), (1.0, 12.0), (30.0, 360.0)]
)
def test_a_round_that_costs_more_than_a_tenth_makes_the_pause_longer(
    spent: float, pause: float
) -> None:
    assert stretched(2.0, spent) == pytest.approx(pause)


def polling(read: object) -> tuple[Poller, queue.Queue[tuple[object, float]]]:
    posted: queue.Queue[tuple[object, float]] = queue.Queue()
    poller = Poller(read, lambda *found: posted.put(found), 3600.0)  # type: ignore[arg-type]
    poller.start()
    return poller, posted


def test_readings_come_when_asked_for() -> None:
    count = iter(range(100))
    poller, posted = polling(lambda: Reading(SNAPSHOT, next(count), 0.0))
    for number in range(3):
        found, pause = posted.get(timeout=60)
        assert isinstance(found, Reading)
        assert (found.began, pause) == (number, 0.0)
        poller.now()
    poller.stop()
    poller.join(60)
    assert not poller.is_alive()


def test_a_defect_is_posted_and_ends_it() -> None:
    def broken() -> Reading:
        raise ZeroDivisionError

    poller, posted = polling(broken)
    assert isinstance(posted.get(timeout=60)[0], ZeroDivisionError)
    poller.join(60)
    assert not poller.is_alive()


def test_one_that_hangs_is_left_behind() -> None:
    hold = threading.Event()

    def hung() -> Reading:
        hold.wait(60)
        return Reading(SNAPSHOT, 0.0, 0.0)

    poller, posted = polling(hung)
    poller.stop()
    assert posted.empty()
    hold.set()
    poller.join(60)
    assert not poller.is_alive()


def test_a_defect_in_making_rows_is_posted_too() -> None:
    posted: queue.Queue[Any] = queue.Queue()

    def post(found: Reading | Exception, pause: float) -> None:
        if isinstance(found, Reading):
            raise ZeroDivisionError
        posted.put((found, pause))

    poller = Poller(lambda: Reading(SNAPSHOT, 0.0, 0.0), post, 3600.0)
    poller.start()
    assert isinstance(posted.get(timeout=60)[0], ZeroDivisionError)
    poller.join(60)
    assert not poller.is_alive()
