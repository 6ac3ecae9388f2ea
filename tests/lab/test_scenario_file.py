"""The scenario that the cluster tests tell a real kubelet and the lab, and how they are compared.

Here, as neither needs a kubelet: that they agree is `tests/cluster/test_lab_scenario.py`.
"""

from __future__ import annotations

import pytest

from tests.cluster import differences, scenario
from tests.cluster.differences import Accepted, Difference
from tests.cluster.sides import Side


def test_every_line_is_understood() -> None:
    told = scenario.read()
    for step in told.steps:
        for verb, *_ in step.do:
            assert hasattr(Side, f"_do_{verb.replace('-', '_')}"), verb
        for verb, *_ in step.until:
            assert hasattr(Side, f"_is_{verb}"), verb
    made = [words[1] for step in told.steps for words in step.do if words[0] == "pod"]
    assert sorted(made) == sorted(told.pods)
    says = [step.say for step in told.steps]
    assert len(set(says)) == len(says)


def test_pods_are_the_nodes_own() -> None:
    several = scenario.read().pods["several"].manifest("worker-3")
    assert several["metadata"]["name"] == "several-worker-3"
    init = several["spec"]["initContainers"]
    assert [(c["name"], c.get("restartPolicy")) for c in init] == [
        ("side", "Always"),
        ("warm", None),
    ]


def test_differences() -> None:
    kubelet = {"same": 1, "gone": "é", "list": [1, 2], "deep": {"zero": 0}}
    lab = {"same": 1, "list": [2, 1], "deep": {"zero": None}, "more": {}}
    found = list(differences.differences(kubelet, lab, "step"))
    assert found == [
        Difference("step > deep > zero", "0", "null"),
        Difference("step > gone", '"é"', "(nothing)"),
        Difference("step > list", "[1, 2]", "[2, 1]"),
        Difference("step > more", "(nothing)", "{}"),
    ]
    assert differences.report(found[:1]) == (
        "step > deep > zero\n    kubelet: 0\n    lab:     null"
    )


def test_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = (Accepted("* > a", "why", "both"), Accepted("* > b", "why", minors=("1.36",)))
    monkeypatch.setattr(differences, "ACCEPTED", table)
    good = Difference("s > a", "both 1", "both 2")
    assert differences.unexplained([good], "1.37") == []
    half = Difference("s > a", "both 1", "none")
    assert differences.unexplained([half], "1.37") == [half]
    other = Difference("s > b", "1", "2")
    assert differences.unexplained([other], "1.37") == [other]
    assert differences.unexplained([other], "1.36") == []
    assert differences.outlived([good], "1.36") == [table[1]]
    assert differences.outlived([good], "1.37") == []


def test_accepted_of_one_side(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Accepted("* > a", "why", kubelet=("[]", "(nothing)"), sometimes=True)
    monkeypatch.setattr(differences, "ACCEPTED", (entry,))
    for said, left in (("[]", False), ("(nothing)", False), ('["x"]', True)):
        found = [Difference("s > a", said, '["x", "y"]')]
        assert differences.unexplained(found, "1.37") == (found if left else [])
    assert differences.outlived([], "1.37") == []
