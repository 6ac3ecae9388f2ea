"""`--wait`: what ends it, and that nothing passes for the proof that is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpctl.changes.removal import Removal, plan_removal
from dpctl.changes.waiting import Clock, wait_for_kubelet
from dpctl.errors import DpctlError, FoundError, NotAppliedError, UnreachableError
from dpctl.model.changes import Action, ChangePlan
from tests import build
from tests.changes.world import World

R = "vendor.example/gpu"


class Waits:
    """A key in Grace, and what happens at which second."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.world.plugin_up(R)
        self.world.sync()
        self.world.plugin_down(R)
        self.seconds = 0.0
        self.then: dict[float, Callable[[], object]] = {}
        self.untrusted = False
        self.down = False
        self.config: dict[str, str] = {}
        self.said: list[str] = []

    def plan(self) -> ChangePlan:
        if self.down:
            raise UnreachableError("the API server is away")
        snap = self.world.look()._replace(kubelet_config=self.config)
        if self.untrusted:
            snap = snap._replace(sockets=build.table(own=False))
        return plan_removal(snap, Removal(Action.REMOVE, names=(R,)))

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        for at in [at for at in self.then if at <= self.seconds]:
            self.then.pop(at)()

    def run(self, timeout: float = 600.0) -> ChangePlan:
        self.world.sync()
        clock = Clock(lambda: self.seconds, self.sleep)
        return wait_for_kubelet(self.plan, self.plan(), timeout, tell=self.said.append, clock=clock)


@pytest.fixture
def waits(tmp_path: Path) -> Waits:
    return Waits(tmp_path)


def let_go(waits: Waits) -> None:
    waits.world.clock.advance(400)
    waits.world.sync()


def test_ends_when_the_kubelet_has_let_go(waits: Waits) -> None:
    waits.then[100.0] = lambda: let_go(waits)
    plan = waits.run()
    assert [row.state for row in plan.changing] == ["Stale"]
    assert waits.seconds < 110
    assert "at most" in waits.said[0]


def test_not_before_the_node_says_zero(waits: Waits) -> None:
    """It has forgotten the name, and its word to the Node is on the way."""
    late: list[Callable[[], object]] = [waits.world.sync_end]

    def forget() -> None:
        waits.world.clock.advance(400)
        waits.world.sync_begin()

    waits.then[100.0] = forget
    waits.then[115.0] = lambda: late[0]()
    plan = waits.run()
    assert waits.seconds >= 115
    assert plan.changing[0].capacity == "0"


def ended(waits: Waits, error: type[DpctlError], timeout: float = 600.0) -> DpctlError:
    with pytest.raises(error) as found:
        waits.run(timeout)
    assert found.value.hint
    assert waits.world.amounts().get(R) is not None, "nothing was removed"
    return found.value


def test_a_lost_last_word_is_told(waits: Waits) -> None:
    def forget() -> None:
        waits.world.clock.advance(400)
        waits.world.sync_begin()  # and never written

    waits.then[100.0] = forget
    assert "never reached the Node" in ended(waits, NotAppliedError).message


@pytest.mark.parametrize("registers", [True, False])
def test_a_plugin_that_returns_ends_it(waits: Waits, registers: bool) -> None:
    waits.then[50.0] = lambda: waits.world.plugin_up(R, registers=registers)
    assert "came back during the wait" in ended(waits, NotAppliedError).message


def test_a_kubelet_that_never_noticed_is_not_waited_for(waits: Waits) -> None:
    waits.world.plugin_up(R)
    waits.world.sync()
    waits.world.serving.clear()  # gone, and the kubelet has lost its record
    error = ended(waits, NotAppliedError)
    assert "has not noticed" in error.message
    assert "restart the kubelet" in (error.hint or "")
    assert waits.seconds < 60


def test_a_kubelet_that_is_down_lets_nothing_go(waits: Waits) -> None:
    def down() -> None:
        waits.untrusted = True

    waits.then[20.0] = down
    error = ended(waits, NotAppliedError)
    assert "a kubelet that is down" in error.message
    assert "see that the kubelet of world-0 runs" in (error.hint or "")
    assert waits.seconds < 90


@pytest.mark.parametrize("period", ["10s", "1s"])
def test_a_kubelet_that_is_restarted_is_waited_for(waits: Waits, period: str) -> None:
    """More than once, and by hand."""
    waits.config = {"nodeStatusUpdateFrequency": period}
    for begin in (20.0, 70.0):
        waits.then[begin] = lambda: setattr(waits, "untrusted", True)
        waits.then[begin + 14] = lambda: setattr(waits, "untrusted", False)
    waits.then[100.0] = lambda: let_go(waits)
    assert waits.run().changing
    assert sum("lets go of nothing while down" in text for text in waits.said) == 2


def test_what_somebody_else_made_his_own_meanwhile_stays(waits: Waits) -> None:
    def own() -> None:
        let_go(waits)
        waits.world.write({R: "1"}, "op", both=True)
        waits.world.write({R: "0"}, "op", both=True)

    waits.then[50.0] = own
    assert "it belongs to op by now" in ended(waits, NotAppliedError).message


def test_an_api_server_that_is_away_for_a_while(waits: Waits) -> None:
    waits.then[20.0] = lambda: setattr(waits, "down", True)

    def back() -> None:
        waits.down = False
        let_go(waits)

    waits.then[120.0] = back
    assert waits.run().changing
    assert any("away" in text for text in waits.said)


def test_a_pod_that_takes_it_ends_it(waits: Waits) -> None:
    def taken() -> None:
        waits.world.create_pod("p", R)
        let_go(waits)

    waits.then[50.0] = taken
    assert "in use" in ended(waits, NotAppliedError).message


def test_it_times_out(waits: Waits) -> None:
    assert "still holds" in ended(waits, FoundError, 30.0).message
    assert waits.seconds <= 31


def test_gone_by_somebody_elses_hand(waits: Waits) -> None:
    def removed() -> None:
        let_go(waits)
        waits.world.write({R: None})

    waits.then[50.0] = removed
    plan = waits.run()
    assert not plan.changing


def test_looks_seldom_while_the_end_is_far(waits: Waits) -> None:
    """A look reads the whole node: five minutes of them must not weigh on it."""
    waits.then[250.0] = lambda: let_go(waits)
    looks: list[float] = []
    plan_now = waits.plan

    def plan() -> ChangePlan:
        looks.append(waits.seconds)
        return plan_now()

    waits.plan = plan  # type: ignore[method-assign]
    waits.run()
    assert len([at for at in looks if at < 200]) < 20
