"""A forked process hands back results and errors, and never outlives the wait for it."""

from __future__ import annotations

import os
import signal
import time

import pytest

from dpctl import ahead
from dpctl.child import Child
from dpctl.errors import DeniedError
from dpctl.model import PodResources


def refuse() -> None:
    raise DeniedError("no", "ask root")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_large_result_comes_back() -> None:
    assert Child(lambda: "x" * 3_000_000).result() == "x" * 3_000_000


def test_errors_come_back_with_their_hint() -> None:
    with pytest.raises(DeniedError) as caught:
        Child(refuse).result()
    assert (caught.value.message, caught.value.hint) == ("no", "ask root")


def test_one_that_dies_is_said() -> None:
    with pytest.raises(ChildProcessError):
        Child(lambda: os._exit(3)).result()


def test_stop_ends_it_at_once_and_twice_does_no_harm() -> None:
    child = Child(lambda: time.sleep(60))
    pid = child._pid
    child.stop()
    child.stop()
    assert is_gone(pid)


def test_ctrl_c_while_waiting_ends_it() -> None:
    def interrupt_the_parent() -> None:
        time.sleep(0.5)
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(60)

    child = Child(interrupt_the_parent)
    pid = child._pid
    with pytest.raises(KeyboardInterrupt):
        child.result()
    assert is_gone(pid)


def test_what_was_asked_ahead_is_used_for_the_same_question_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = PodResources("v1", ())
    for question, used in ((("/s", 5.0, 9), True), (("/other", 5.0, 9), False)):
        monkeypatch.setattr(ahead, "_started", Child(lambda: ahead.Asked("/s", 5.0, 9, answer)))
        assert (ahead.take(*question) == answer) is used
        assert ahead.take(*question) is None, "asked once, taken once"


def test_what_the_call_raised_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    error = DeniedError("no", "ask root")
    monkeypatch.setattr(ahead, "_started", Child(lambda: ahead.Asked("/s", 5.0, 9, error)))
    with pytest.raises(DeniedError, match="no"):
        ahead.take("/s", 5.0, 9)


@pytest.mark.parametrize(
    "arguments",
    [
        ["resources"],
        [],
        ["pods", "--from", "x"],
        ["pods", "--from=x"],
        ["pods", "--help"],
        ["pods", "--pod-resources-socket=/x"],
        ["-o", "json", "pods"],
    ],
)
def test_nothing_is_asked_ahead_where_it_could_be_wrong(arguments: list[str]) -> None:
    ahead.begin(arguments)
    assert ahead._started is None
