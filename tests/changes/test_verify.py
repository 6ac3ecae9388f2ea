"""Who brought a key back, and what to do about it."""

from __future__ import annotations

import pytest

from dpctl.changes.verify import judge, verify, window
from dpctl.errors import UnreachableError
from dpctl.model import Node
from dpctl.model.changes import AppliedChange, KeyChange, Outcome
from tests import build

R = "vendor.example/gpu"


def applied(before: str | None = "0", after: str | None = None) -> AppliedChange:
    parts = ("capacity", "allocatable")
    changes = tuple(KeyChange(part, R, before, after) for part in parts)
    return AppliedChange("worker-0", "u", changes, build.NOW, 10.4, "kubelet")


def node(capacity: str | None, allocatable: str | None, owner: str | None) -> Node:
    return build.node(
        {} if capacity is None else {R: capacity},
        {} if allocatable is None else {R: allocatable},
        {R: (owner,)} if owner else {"cpu": ("kubelet",)},
    )


@pytest.mark.parametrize(
    ("now", "words", "step"),
    [
        (("4", "4", "kubelet"), "came back as 4/4, written by kubelet", "stop that plugin"),
        (("4", "0", "kubelet"), "came back as 4/0, written by kubelet", "--wait"),
        (("0", "0", "kubelet"), "came back as 0/0, written by kubelet", "let go of it just now"),
        (("3", "3", "nfd"), "written by nfd", "have nfd stop advertising it"),
        (("3", "3", None), "nobody owns it", "evidence"),
        ((None, "3", None), "came back as -/3", "evidence"),
    ],
)
def test_came_back(now: tuple[str | None, str | None, str | None], words: str, step: str) -> None:
    (found,) = judge(node(*now), applied(), final=False)
    assert found.outcome is Outcome.CAME_BACK
    assert words in (found.detail or "")
    assert step in (found.next_step or "")


def test_gone_counts_at_the_end_only() -> None:
    gone = node(None, None, None)
    assert judge(gone, applied(), final=False)[0].outcome is Outcome.UNVERIFIED
    assert judge(gone, applied(), final=True)[0].outcome is Outcome.CHANGED
    assert judge(None, applied(), final=True)[0].outcome is Outcome.UNVERIFIED
    anew = gone._replace(uid="other")
    assert "made anew" in (judge(anew, applied(), final=True)[0].detail or "")


def test_a_number_that_was_set_stands_in_any_spelling() -> None:
    assert judge(node("1k", "1k", "dpctl"), applied(None, "1000"), final=True)[0].outcome is (
        Outcome.CHANGED
    )
    (other,) = judge(node("5", "5", "nfd"), applied(None, "1000"), final=True)
    assert (other.outcome, "is 5/5, written by nfd" in (other.detail or "")) == (
        Outcome.CAME_BACK,
        True,
    )
    (lost,) = judge(node(None, None, None), applied(None, "3"), final=True)
    assert (lost.outcome, lost.detail) == (Outcome.CAME_BACK, "it is gone again")


class Time:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def watch(readings: list[Node | Exception | None], seconds: float = 20.8) -> tuple[Outcome, int]:
    """The outcome, and how often was looked; the last reading stays."""
    clock, looks = Time(), 0

    def read() -> Node | None:
        nonlocal looks
        found = readings[min(looks, len(readings) - 1)]
        looks += 1
        if isinstance(found, Exception):
            raise found
        return found

    (found,) = verify(read, applied(), seconds, sleep=clock.sleep, now=clock.now)
    assert clock.seconds <= seconds + 0.01
    return found.outcome, looks


def test_looks_to_the_end_of_the_window() -> None:
    gone, back = node(None, None, None), node("0", "0", "kubelet")
    outcome, looks = watch([gone])
    assert outcome is Outcome.CHANGED
    assert looks >= 10
    assert watch([gone, UnreachableError("down"), gone])[0] is Outcome.CHANGED
    assert watch([gone, UnreachableError("down")])[0] is Outcome.UNVERIFIED
    assert watch([gone, back])[0] is Outcome.CAME_BACK
    assert watch([gone], 0)[0] is Outcome.CHANGED


def test_the_window_is_two_periods_of_this_node() -> None:
    assert window(applied(), None) == 20.8
    assert window(applied(), 3.0) == 3.0
