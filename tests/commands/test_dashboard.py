"""`dpctl dashboard`: what is said after it has ended. The screen: tests/tui."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpctl.commands import dashboard
from dpctl.env import Settings, find_env
from dpctl.lab.fixture import Lab
from dpctl.model import Source
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


def test_the_node_keeps_its_name_when_its_kubelet_is_gone(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab()
    read = dashboard.reader(find_env(Settings(), dict(lab.env)))
    first = read()
    assert first.snapshot.node is not None
    lab.kubelet.stop()
    gone = read()
    assert gone.snapshot.node is not None
    assert gone.snapshot.node.name == "lab-0"
    assert "Node lab-0, as the kubelet that is gone had it" in gone.warnings
    assert "podresources, allocatable not read: connection refused" in gone.warnings[0]
    row = gone.snapshot.source(Source.NODE)
    assert row is not None
    assert row.reason == "Node lab-0, as the kubelet that is gone had it"
    lab.kubelet.start()
    assert not any("is gone" in text for text in read().warnings)
