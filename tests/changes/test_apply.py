"""What an answer of the API server means, and what a patch says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpctl.changes.apply import DoubtfulError, UncertainError, apply_plan, explain
from dpctl.changes.removal import Removal, plan_removal
from dpctl.changes.run import Done, Work, carry_out
from dpctl.changes.undo_file import undo_records
from dpctl.changes.undo_record import last_to_undo
from dpctl.errors import DpctlError, NotAppliedError, UnreachableError
from dpctl.lab import json_patch
from dpctl.model import Snapshot
from dpctl.model.changes import Action, ChangePlan, KeyChange, Outcome, Patch
from dpctl.sources.connection import Answer
from dpctl.sources.retries import LostError
from dpctl.writes.node_status import operations
from tests.changes.world import World

KEY = "old.test/x"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    made.write({KEY: "0"}, "kubelet", both=True)
    monkeypatch.setattr("dpctl.changes.apply.time.sleep", lambda seconds: None)
    return made


def plan_of(world: World, *names: str) -> ChangePlan:
    return plan_removal(world.look(), Removal(Action.REMOVE, names=names or (KEY,)))


def test_names_are_escaped_and_tests_come_first() -> None:
    name = "a~b/c~1d"
    changes = (KeyChange("capacity", name, "1k", None), KeyChange("allocatable", name, None, None))
    found = operations(changes, uid="u", boot_id="b")
    assert [o["op"] for o in found] == ["test", "test", "test", "test", "remove"]
    assert found[2] == {"op": "test", "path": "/status/capacity/a~0b~1c~01d", "value": "1k"}
    assert found[3]["value"] is None
    document: dict[str, Any] = {
        "metadata": {"uid": "u"},
        "status": {"nodeInfo": {"bootID": "b"}, "capacity": {name: "1k"}, "allocatable": {}},
    }
    assert json_patch.apply(document, found)["status"]["capacity"] == {}
    came = {**document, "status": {**document["status"], "allocatable": {name: "1k"}}}
    with pytest.raises(json_patch.PatchError):
        json_patch.apply(came, found)


def test_removes_in_one_patch(world: World) -> None:
    done = apply_plan(world.api, plan_of(world))
    assert KEY not in world.amounts()
    assert done.gone_already == ()


def test_a_dry_run_changes_nothing(world: World) -> None:
    assert apply_plan(world.api, plan_of(world), dry_run=True).dry_run
    assert world.amounts()[KEY] == ("0", "0")


def meanwhile(world: World, act: Callable[[World], object]) -> NotAppliedError:
    plan = plan_of(world)
    act(world)
    before = world.amounts()
    with pytest.raises(NotAppliedError) as error:
        apply_plan(world.api, plan)
    assert world.amounts() == before
    return error.value


def test_what_changed_meanwhile_is_told(world: World) -> None:
    error = meanwhile(world, lambda w: w.write({KEY: "3"}, "operator"))
    assert f"capacity of {KEY} was 0 and is 3 by operator" in error.message


def test_a_node_made_anew_is_told(world: World) -> None:
    def anew(w: World) -> None:
        w.server.store.delete("nodes", w.name)
        w.status.register()
        w.sync()
        w.write({KEY: "0"}, "kubelet", both=True)

    assert "made anew" in meanwhile(world, anew).message


def test_a_restarted_machine_is_told(world: World) -> None:
    node = world.look().node
    assert node is not None
    plan = plan_of(world)
    words = explain(node._replace(boot_id="other"), plan, plan.patches[0])
    assert "another boot ID" in words


def test_gone_already_is_no_failure(world: World) -> None:
    plan = plan_of(world)
    world.write({KEY: None})
    assert apply_plan(world.api, plan).gone_already == (KEY,)


@pytest.mark.parametrize("failure", ["lost before", "lost after", "500", "503 after"])
def test_an_answer_that_got_lost_is_judged_by_the_node(world: World, failure: str) -> None:
    plan = plan_of(world)
    world.failure = failure
    apply_plan(world.api, plan)
    assert KEY not in world.amounts()


def test_without_a_second_reading_it_is_not_known(world: World) -> None:
    plan = plan_of(world)
    world.failure = "lost after"

    def dead(what: str) -> None:
        if what == "before GET":
            raise UnreachableError("down")

    world.on_step = dead
    with pytest.raises(UncertainError, match="is not known") as error:
        apply_plan(world.api, plan)
    assert "undo" in (error.value.hint or "")


def answering(world: World, answer: Answer) -> None:
    exchange = world.api.connection.exchange

    def other(method: str, path: str, **more: Any) -> Answer:
        if method == "PATCH":
            return answer
        return exchange(method, path, **more)

    world.api.connection.exchange = other  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, 'node \\"a\\" is not allowed to modify node \\"b\\"', "change that node alone"),
        (403, "cannot patch resource", "patch nodes/status"),
        (404, "not found", "no Node world-0"),
        (422, "", "without saying why"),
        (422, "the server rejected our request due to an error in our request", "saying why"),
        (422, "fieldManager: Too long: may not be more than 128 bytes", "fieldManager: Too long"),
        (409, "conflict", "nothing was changed"),
        (400, "invalid JSON patch", "nothing was changed: http://world answers"),
        (401, "", "nothing was changed"),
        (429, "", "nothing was changed"),
    ],
)
def test_refusals_in_words(world: World, status: int, body: str, words: str) -> None:
    plan = plan_of(world)
    answering(world, Answer(status, {}, f'{{"kind":"Status","message":"{body}"}}'.encode()))
    with pytest.raises(DpctlError) as error:
        apply_plan(world.api, plan)
    assert words in error.value.message
    assert error.value.hint
    assert world.amounts()[KEY] == ("0", "0")


def test_an_answer_that_is_none_leaves_a_next_step(world: World) -> None:
    plan = plan_of(world)
    answering(world, Answer(200, {}, b"<html>"))
    with pytest.raises(NotAppliedError, match="nothing was changed") as error:
        apply_plan(world.api, plan)
    assert error.value.hint


def test_a_success_without_effect_is_a_failure(world: World) -> None:
    plan = plan_of(world)
    code, data = world.server.exchange(
        "GET", f"/api/v1/nodes/{world.name}", (), b"", "application/json", "test"
    )
    answering(world, Answer(code, {}, data))
    with pytest.raises(NotAppliedError, match="with success and changed nothing"):
        apply_plan(world.api, plan)


def test_too_many_keys_for_one_patch(world: World) -> None:
    many = tuple(KeyChange("capacity", f"a.test/{n}", "0", None) for n in range(6000))
    plan = plan_of(world)._replace(patches=(Patch("dpctl", many),))
    with pytest.raises(NotAppliedError, match="more than one patch takes"):
        apply_plan(world.api, plan)


def carried_out(
    world: World, names: tuple[str, ...] = (KEY,), tell: Callable[[str], None] = print
) -> Done:
    node = world.api.get_node(world.name)

    def plan(snap: Snapshot) -> ChangePlan:
        return plan_removal(snap, Removal(Action.REMOVE, names=names))

    directory = str(world.directory / "undo")
    work = Work(
        world.api, world.look, plan, verify_seconds=0.0, undo_directory=directory, tell=tell
    )
    return carry_out(plan_of(world, *names), node, work)


def before_the_last_look(world: World, act: Callable[[], object]) -> Callable[[str], None]:
    """Once, when the undo file is there: it is told then."""
    said: list[str] = []

    def on_step(what: str) -> None:
        if what == "before GET" and said:
            said.clear()
            world.on_step = lambda what: None
            act()

    world.on_step = on_step
    return said.append


def test_what_is_gone_at_the_last_look_is_removed_already(world: World) -> None:
    other = "old.test/y"
    world.write({other: "0"}, "kubelet", both=True)
    tell = before_the_last_look(world, lambda: world.write({KEY: None}))
    found = {o.resource: o.outcome for o in carried_out(world, (KEY, other), tell).outcomes}
    assert found == {KEY: Outcome.GONE_ALREADY, other: Outcome.CHANGED}
    assert not world.amounts()
    world.write({KEY: "0"}, "kubelet", both=True)
    tell = before_the_last_look(world, lambda: world.write({KEY: None}))
    assert [o.outcome for o in carried_out(world, tell=tell).outcomes] == [Outcome.GONE_ALREADY]


def test_what_is_gone_and_asked_for_by_a_pod_is_another_case(world: World) -> None:
    def taken() -> None:
        world.write({KEY: None})
        world.create_pod("p", KEY)

    with pytest.raises(NotAppliedError, match="another case by now"):
        carried_out(world, tell=before_the_last_look(world, taken))


def test_what_somebody_else_has_made_his_own_is_another_case(world: World) -> None:
    """0/0 as before, so that no test of the patch would fail."""

    def own() -> None:
        world.write({KEY: "1"}, "op", both=True)
        world.write({KEY: "0"}, "op", both=True)

    with pytest.raises(
        NotAppliedError, match="it is Foreign, no longer Stale: capacity is owned by op"
    ):
        carried_out(world, tell=before_the_last_look(world, own))
    assert world.amounts()[KEY] == ("0", "0")


def can_be_undone(world: World) -> bool:
    records = undo_records(str(world.directory / "undo"), world.name)
    return last_to_undo(world.api.get_node(world.name), records)[0] is not None


def twisting(world: World, twist: Callable[[Answer], Answer]) -> None:
    """Patches are applied, and their answers are something else."""
    exchange = world.api.connection.exchange

    def other(method: str, path: str, **more: Any) -> Answer:
        answer = exchange(method, path, **more)
        return twist(answer) if method == "PATCH" and answer.status == 200 else answer

    world.api.connection.exchange = other  # type: ignore[method-assign]


def edited(answer: Answer, path: str, key: str, value: str) -> Answer:
    document = json.loads(answer.body)
    part = document
    for step in path.split("."):
        part = part[step]
    part[key] = value
    return Answer(200, {}, json.dumps(document).encode())


@pytest.mark.parametrize(
    "twist",
    [
        lambda answer: Answer(200, {}, b"<html>"),
        lambda answer: Answer(200, {}, b""),
        lambda answer: Answer(204, {}, b""),
        lambda answer: Answer(408, {}, b""),
        lambda answer: Answer(520, {}, b""),
        lambda answer: edited(answer, "metadata", "uid", "another"),
    ],
)
def test_an_answer_that_says_nothing_is_judged_by_the_node(
    world: World, twist: Callable[[Answer], Answer]
) -> None:
    twisting(world, twist)
    assert [o.outcome for o in carried_out(world).outcomes] == [Outcome.CHANGED]
    assert can_be_undone(world)


def test_what_was_applied_in_part_can_be_undone(world: World) -> None:
    """A webhook that keeps one of two keys: the other one is gone all the same."""
    other = "old.test/y"
    world.write({other: "0"}, "kubelet", both=True)

    def keeps(answer: Answer) -> Answer:
        world.write({other: "0"}, "webhook", both=True)
        return edited(answer, "status.capacity", other, "0")

    twisting(world, keeps)
    found = {o.resource: o.outcome for o in carried_out(world, (KEY, other)).outcomes}
    assert found == {KEY: Outcome.CHANGED, other: Outcome.CAME_BACK}
    assert can_be_undone(world)


def test_what_a_slow_server_applies_after_all_can_be_undone(world: World) -> None:
    exchange = world.api.connection.exchange

    def slow(method: str, path: str, **more: Any) -> Answer:
        if method == "PATCH":
            raise LostError("no answer within 5 s")
        return exchange(method, path, **more)

    world.api.connection.exchange = slow  # type: ignore[method-assign]
    with pytest.raises(DoubtfulError, match="nothing was changed"):
        carried_out(world)
    assert not can_be_undone(world)
    world.write({KEY: None})
    assert can_be_undone(world)


def test_what_was_refused_is_no_change_to_undo(world: World) -> None:
    answering(world, Answer(400, {}, b""))
    with pytest.raises(DpctlError):
        carried_out(world)
    world.write({KEY: "3"}, "operator")
    assert not can_be_undone(world)


@pytest.mark.parametrize(
    ("at", "words"), [("before PATCH", "not known"), ("look at the machine", "nothing was changed")]
)
def test_an_interruption_says_how_far_it_came(world: World, at: str, words: str) -> None:
    said: list[str] = []

    def interrupt(what: str) -> None:
        if what == at and said:  # the undo file is there
            raise KeyboardInterrupt

    world.on_step = interrupt
    with pytest.raises(KeyboardInterrupt):
        carried_out(world, tell=said.append)
    assert said[-1].startswith("interrupted: ")
    assert words in said[-1]
