"""A change of many Nodes against the lab's API server: what is planned, sent, and looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.changes.fleet import FleetWork, NodeResult, Run, Survey, survey
from dpctl.changes.fleet_pods import PodsLook
from dpctl.changes.fleet_verify import verify_all
from dpctl.changes.journal import open_journal
from dpctl.changes.removal import Removal, plan_removal
from dpctl.changes.undo_file import read_undo
from dpctl.lab.api_errors import ApiError
from dpctl.lab.api_handlers import Call
from dpctl.model.changes import Action, ChangePlan, Outcome, Verdict
from dpctl.sources.apiserver import Selection, connect
from tests.changes.nodes import OLD, Nodes, running
from tests.fakes.kubeconfigs import env_for, kubeconfig

WANTED = Removal(Action.REMOVE, names=(OLD,), assume_gone=True)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with running(tmp_path) as made:
        yield made


def work(nodes: Nodes, tmp_path: Path, **options: Any) -> FleetWork:
    options.setdefault("selection", Selection())
    options.setdefault("parallel", 4)
    return FleetWork(
        api=nodes.api(connections=5, patience=30),
        plan=lambda snap: plan_removal(snap, WANTED),
        undo_directory=str(tmp_path / "undo"),
        **options,
    )


def look(job: FleetWork) -> tuple[Survey, PodsLook, list[ChangePlan]]:
    plans: list[ChangePlan] = []
    pods = PodsLook(job.api)
    return survey(job, pods, plans.append), pods, plans


def carry_out(job: FleetWork, run: Run | None = None) -> dict[str, NodeResult]:
    found, pods, _ = look(job)
    results: dict[str, NodeResult] = {}
    made = run or Run(job, found, pods)
    made.carry_out(lambda result: results.update({result.plan.node: result}))
    return results


def outcomes(job: FleetWork, results: dict[str, NodeResult], seconds: float = 0.2) -> Any:
    found = verify_all(
        job.api,
        job.selection,
        {name: r.applied for name, r in results.items() if r.applied},
        doubtful=frozenset(n for n, r in results.items() if r.doubtful),
        seconds=seconds,
        wait=threading.Event().wait,
    )
    return {name: each[0].outcome for name, each in found.items()}


# --- the plan


def test_cases_are_told_apart(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1, 2)
    nodes.add(3, keys={})  # has no such key
    nodes.add(4, keys={OLD: "2"})  # above 0: not on anybody's word
    nodes.add(5)
    nodes.add_pod("user", "n-5", OLD)
    nodes.add_pod("done", "n-1", OLD, phase="Succeeded")
    found, _, plans = look(work(nodes, tmp_path))
    verdicts = {plan.node: plan.rows[0].verdict for plan in plans}
    assert verdicts == {
        "n-1": Verdict.CHANGE,
        "n-2": Verdict.CHANGE,
        "n-3": Verdict.KEEP,
        "n-4": Verdict.REFUSE,
        "n-5": Verdict.REFUSE,
    }
    assert (found.nodes, found.keys, found.refused, set(found.todo)) == (5, 2, 2, {"n-1", "n-2"})
    assert any("no local evidence" in note for note in found.notes)


def test_unscheduled_pods_are_named(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1)
    nodes.add_pod("waits", None, OLD, phase="Pending")
    _, _, (plan,) = look(work(nodes, tmp_path))
    assert plan.rows[0].waiting_pods == ("ml/waits",)


def test_a_selector_bounds_it(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1, 2, pool="gpu")
    nodes.add(3)
    job = work(nodes, tmp_path, selection=Selection(labels="pool=gpu", fields="metadata.name!=n-2"))
    assert set(carry_out(job)) == {"n-1"}
    assert nodes.keys() == {"n-1": None, "n-2": "0", "n-3": "0"}


def test_pods_are_listed_once(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(20))
    carry_out(work(nodes, tmp_path))
    assert nodes.handlers.done["GET", "/api/v1/pods"] == 1


# --- the change


def test_every_node_is_changed_once_with_an_undo_file(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(40))
    job = work(nodes, tmp_path)
    results = carry_out(job)
    assert set(nodes.keys().values()) == {None}
    assert nodes.patches() == dict.fromkeys(nodes.keys(), 1)
    assert set(outcomes(job, results).values()) == {Outcome.CHANGED}
    for name, result in results.items():
        assert result.undo_file is not None
        record = read_undo(result.undo_file)
        assert (record.node, record.keys[0].capacity_before) == (name, "0")


def test_the_bound_holds(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(30))
    running_now, most = [0], [0]
    lock = threading.Lock()

    def before(call: Call) -> None:
        if call.method == "PATCH":
            with lock:
                running_now[0] += 1
                most[0] = max(most[0], running_now[0])

    def after(call: Call) -> None:
        if call.method == "PATCH":
            with lock:
                running_now[0] -= 1

    nodes.handlers.before, nodes.handlers.after = before, after
    carry_out(work(nodes, tmp_path, parallel=3))
    assert 1 <= most[0] <= 3


def test_a_case_that_changed_since_it_was_shown_is_left_alone(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1, 2, 3, 4)
    job = work(nodes, tmp_path)
    found, pods, _ = look(job)
    nodes.set_key("n-1", OLD, "4")  # a plugin has returned
    nodes.set_key("n-2", OLD, None)  # somebody else was quicker
    nodes.store.delete("nodes", "n-3")
    nodes.add(3)  # made anew: another UID
    nodes.add(5)  # was not there
    results: dict[str, NodeResult] = {}
    Run(job, found, pods).carry_out(lambda r: results.update({r.plan.node: r}))
    applied = {name for name, result in results.items() if result.applied}
    assert applied == {"n-4"}
    assert nodes.keys() == {"n-1": "4", "n-2": None, "n-3": "0", "n-4": None, "n-5": "0"}
    assert {o.outcome for o in results["n-1"].outcomes} == {Outcome.NOT_APPLIED}


def test_a_pod_that_came_since_is_seen_when_the_list_is_old(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.add(1, 2)
    job = work(nodes, tmp_path)
    found, pods, _ = look(job)
    nodes.add_pod("late", "n-1", OLD)
    monkeypatch.setattr(pods, "_until", 0.0)
    results: dict[str, NodeResult] = {}
    Run(job, found, pods).carry_out(lambda r: results.update({r.plan.node: r}))
    assert nodes.keys() == {"n-1": "0", "n-2": None}


def test_a_key_that_changes_under_the_patch(nodes: Nodes, tmp_path: Path) -> None:
    """Between the last look and the patch: the patch's tests refuse it."""
    nodes.add(1, 2)

    def before(call: Call) -> None:
        if call.method == "PATCH" and "n-1/" in call.path:
            nodes.set_key("n-1", OLD, "8")

    nodes.handlers.before = before
    results = carry_out(work(nodes, tmp_path))
    assert nodes.keys() == {"n-1": "8", "n-2": None}
    (outcome,) = results["n-1"].outcomes
    assert outcome.outcome is Outcome.NOT_APPLIED
    assert "capacity of old.example/retired was 0 and is 8 by kubelet" in (outcome.detail or "")


@pytest.mark.parametrize(("code", "count"), [(429, 15), (503, 3)])
def test_a_busy_server_is_waited_for(nodes: Nodes, tmp_path: Path, code: int, count: int) -> None:
    nodes.add(*range(12))
    nodes.handlers.faults.add(count=count, code=code, method="PATCH")
    results = carry_out(work(nodes, tmp_path))
    assert all(result.applied for result in results.values())
    assert nodes.patches() == dict.fromkeys(nodes.keys(), 1)


def test_an_answer_that_is_lost_is_judged_by_the_node(nodes: Nodes, tmp_path: Path) -> None:
    """The patch was made, and the answer says 500: it is neither failed nor sent twice."""
    nodes.add(1, 2, 3)

    def after(call: Call) -> None:
        if call.method == "PATCH" and "n-2/" in call.path:
            raise ApiError(500, "InternalError", "lost")

    nodes.handlers.after = after
    job = work(nodes, tmp_path)
    results = carry_out(job)
    assert nodes.patches() == {"n-1": 1, "n-2": 1, "n-3": 1}
    assert set(outcomes(job, results).values()) == {Outcome.CHANGED}


def test_a_server_that_is_gone_is_given_up(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(60))
    job = work(nodes, tmp_path, parallel=2)
    found, pods, _ = look(job)
    broken = job._replace(api=connect(env_for(kubeconfig(tmp_path / "k", "http://127.0.0.1:1"))))
    run = Run(broken._replace(selection=Selection()), found, pods)
    # The list still comes; every request after it finds nobody.
    run.work.api.node_pages = job.api.node_pages  # type: ignore[method-assign]
    results: dict[str, NodeResult] = {}
    run.carry_out(lambda r: results.update({r.plan.node: r}))
    assert run.lost is not None
    assert "refused" in run.lost
    assert 8 <= len(results) < 20
    assert set(nodes.keys().values()) == {"0"}


def test_stopping_leaves_the_rest(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(30))
    job = work(nodes, tmp_path, parallel=2)
    found, pods, _ = look(job)
    run = Run(job, found, pods)
    results: dict[str, NodeResult] = {}

    def tell(result: NodeResult) -> None:
        results[result.plan.node] = result
        if len(results) == 5:
            run.stop.set()

    run.carry_out(tell)
    changed = {name for name, text in nodes.keys().items() if text is None}
    assert changed == set(results)
    assert 5 <= len(changed) <= 5 + 2 * 2


def test_a_dry_run_changes_nothing(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1, 2)
    job = work(nodes, tmp_path, dry_run=True)
    results = carry_out(job)
    assert nodes.keys() == {"n-1": "0", "n-2": "0"}
    assert all(r.applied and r.applied.dry_run for r in results.values())
    assert not (tmp_path / "undo").exists()
    assert set(outcomes(job, results, 0.0).values()) == {Outcome.DRY_RUN}


# --- did it stay


def test_a_key_that_was_back_once_has_come_back(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1, 2)
    job = work(nodes, tmp_path)
    results = carry_out(job)
    nodes.set_key("n-1", OLD, "0")
    looks = []

    def wait(seconds: float) -> bool:
        looks.append(seconds)
        if len(looks) == 2:
            nodes.set_key("n-1", OLD, None)
        return False

    applied = {name: r.applied for name, r in results.items() if r.applied}
    found = verify_all(job.api, job.selection, applied, seconds=0.01, wait=wait)
    assert [found[n][0].outcome for n in ("n-1", "n-2")] == [Outcome.CAME_BACK, Outcome.CHANGED]
    assert "written by kubelet" in (found["n-1"][0].detail or "")
    assert len(looks) == 2


def test_a_node_that_left_the_selection_is_looked_at_all_the_same(
    nodes: Nodes, tmp_path: Path
) -> None:
    nodes.add(1, 2, pool="gpu")
    job = work(nodes, tmp_path, selection=Selection(labels="pool=gpu"))
    results = carry_out(job)

    def unlabel(found: dict[str, Any]) -> dict[str, Any]:
        found["metadata"]["labels"] = {}
        return found

    nodes.store.update("nodes", "n-1", unlabel, manager="nfd")
    nodes.store.delete("nodes", "n-2")
    assert outcomes(job, results) == {"n-1": Outcome.CHANGED, "n-2": Outcome.UNVERIFIED}


def test_stopped_in_the_window_nothing_is_claimed(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(1)
    job = work(nodes, tmp_path)
    applied = {name: r.applied for name, r in carry_out(job).items() if r.applied}
    found = verify_all(job.api, job.selection, applied, seconds=60, wait=lambda _: True)
    assert found["n-1"][0].outcome is Outcome.UNVERIFIED


# --- taken up again


def test_a_journal_is_taken_up_again(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add(*range(20))
    path = str(tmp_path / "journal")
    journal = open_journal(path, {"names": [OLD]})
    job = work(nodes, tmp_path, journal=journal, parallel=2)
    found, pods, _ = look(job)
    run = Run(job, found, pods)
    seen: list[str] = []

    def tell(result: NodeResult) -> None:
        seen.append(result.plan.node)
        if len(seen) == 7:
            run.stop.set()

    run.carry_out(tell)
    journal.close()
    again = open_journal(path, {"names": [OLD]})
    second = work(nodes, tmp_path, journal=again)
    found, pods, _ = look(second)
    assert set(found.made) == set(seen)
    assert len(found.todo) == 20 - len(seen)
    carry = Run(second, found, pods)
    carry.carry_out(lambda result: seen.append(result.plan.node))
    assert sorted(seen) == sorted(nodes.keys())
    assert nodes.patches() == dict.fromkeys(nodes.keys(), 1)
    again.close()
