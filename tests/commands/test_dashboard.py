"""`dpctl dashboard`: what is said after it has ended. The screen: tests/tui."""

from __future__ import annotations

import pytest

from dpctl.commands import dashboard
from dpctl.tui.plan import Job, PlanPage
from dpctl.tui.proposal import Proposal, Result
from dpctl.views.leftovers import SOCKET_CHANGES


def test_who_leaves_in_the_middle_of_a_change_is_told_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs: list[Job] = []
    page = PlanPage("prune sockets", lambda: proposal, jobs.append)
    result = Result((), "done", True)
    step = "dpctl plugins prune goes on"
    proposal = Proposal(SOCKET_CHANGES, (), (), "Remove?", "prune", lambda _: result, step)
    jobs[0].done(proposal)
    prompt = page.prompt(lambda: None)
    for key in (*"prune", "enter"):
        prompt.press(key, key if len(key) == 1 else None)
    jobs[1].tell("a.sock is gone")
    dashboard._say_what_was_left(page)
    assert capsys.readouterr().err == (
        "warning: prune sockets was still at work when you left (a.sock is gone)\n"
        "hint: dpctl plugins prune goes on\n"
    )
    jobs[1].done(result)
    assert not page.running


def test_nothing_is_said_where_nothing_was_left(capsys: pytest.CaptureFixture[str]) -> None:
    dashboard._say_what_was_left(None)
    assert capsys.readouterr().err == ""
