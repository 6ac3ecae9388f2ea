"""Interleavings of one removal with everything else that may happen to a node (see `world`)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpctl.changes import undo_file
from dpctl.changes.removal import Removal, plan_removal
from dpctl.changes.run import Done, Work, carry_out
from dpctl.changes.undo_file import undo_records
from dpctl.changes.undo_record import last_to_undo, plan_undo
from dpctl.errors import DpctlError
from dpctl.model import Snapshot
from dpctl.model.changes import Action, ChangePlan, Outcome
from tests.changes.world import Disk, Killed, World

# In memory: an fsync on a busy disk takes a hundred times as long as the rest.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
NAMES = ("a.test/x", "b.test/y", "c.test/z")
KINDS = ("stale", "ghost", "grace", "ready", "outlived", "foreign", "used")
EVENTS = (
    "return",
    "outlive",
    "die",
    "sync",
    "begin",
    "end",
    "grace over",
    "write",
    "zero",
    "take",
    "pod",
    "500",
    "lost before",
    "lost after",
    "503 after",
)


class Event(NamedTuple):
    at: int
    """Step of dpctl before which it happens."""
    what: str
    name: str


EVENT = st.builds(Event, st.integers(0, 60), st.sampled_from(EVENTS), st.sampled_from(NAMES))


class Story(NamedTuple):
    kinds: tuple[str, ...]
    """Of each name, before dpctl starts."""
    events: tuple[Event, ...]
    kill_at: int | None
    prune: bool


STORIES = st.builds(
    Story,
    st.tuples(*[st.sampled_from(KINDS)] * len(NAMES)),
    st.lists(EVENT, max_size=6).map(tuple),
    st.none() | st.integers(0, 70),
    st.booleans(),
)


def prepare(world: World, kinds: tuple[str, ...]) -> None:
    """Let each name live up to what it is."""
    for name, kind in zip(NAMES, kinds, strict=True):
        if kind in ("stale", "used"):
            world.plugin_up(name)
            world.plugin_down(name)
        elif kind == "grace":
            pass
        elif kind == "ghost":
            world.write({name: "4"}, "kubelet", both=True)
        elif kind == "foreign":
            world.write({name: "3"}, "operator")
    world.sync()
    world.clock.advance(400)
    world.sync()
    for name, kind in zip(NAMES, kinds, strict=True):
        if kind in ("grace", "ready"):
            world.plugin_up(name)
        if kind == "outlived":
            world.write({name: "0"}, "kubelet", both=True)
            world.plugin_up(name, registers=False)
        if kind == "used":
            world.create_pod(f"user-{NAMES.index(name)}", name)
    world.sync()
    for name, kind in zip(NAMES, kinds, strict=True):
        if kind == "grace":
            world.plugin_down(name)
    world.sync()


def happen(world: World, event: Event) -> None:
    name = event.name
    if event.what == "return":
        world.plugin_up(name)
    elif event.what == "outlive":
        if name not in world.serving:
            world.plugin_up(name, registers=False)
    elif event.what == "die":
        world.plugin_down(name)
    elif event.what == "sync":
        world.sync()
    elif event.what == "begin":
        world.sync_begin()
    elif event.what == "end":
        world.sync_end()
    elif event.what == "grace over":
        world.clock.advance(400)
        world.sync()
    elif event.what == "write":
        world.write({name: "7"})
    elif event.what == "zero":
        world.write({name: "0"}, both=True)
    elif event.what == "take":
        world.write({name: None})
    elif event.what == "pod":
        if name not in world.requested():
            world.create_pod(f"late-{NAMES.index(name)}", name)
    else:
        world.failure = event.what


def planner(prune: bool) -> Callable[[Snapshot], ChangePlan]:
    wanted = (
        Removal(Action.PRUNE, include=frozenset({"ghost", "foreign"}))
        if prune
        else Removal(Action.REMOVE, names=NAMES)
    )
    return lambda snap: plan_removal(snap, wanted)


class Ended(NamedTuple):
    plan: ChangePlan | None
    done: Done | None
    error: BaseException | None


def run(world: World, story: Story, disk: Disk) -> Ended:
    """`dpctl node remove|prune --yes`, with the world going on around it."""
    steps = 0

    def on_step(what: str) -> None:
        nonlocal steps
        steps += 1
        for event in story.events:
            if event.at == steps:
                happen(world, event)
        if steps == story.kill_at:
            disk.dead = True
            raise Killed

    world.on_step = on_step
    plan = planner(story.prune)
    seen: list[Snapshot] = []
    clock = [0.0]

    def look() -> Snapshot:
        seen.append(world.look())
        return seen[-1]

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        world.step("pause")

    first: ChangePlan | None = None
    try:
        first = plan(look())
        if not first.changing:
            return Ended(first, None, None)
        node = seen[-1].node
        assert node is not None
        work = Work(
            api=world.api,
            look=look,
            plan=plan,
            undo_directory=str(world.directory / "undo"),
            sleep=sleep,
            now=lambda: clock[0],
        )
        return Ended(first, carry_out(first, node, work), None)
    except (DpctlError, Killed) as error:
        return Ended(first, None, error)
    finally:
        world.on_step = lambda what: None
        world.failure = None


def check_removed(world: World) -> None:
    for gone, untouchable in world.removed:
        assert not gone & untouchable, f"in use or served at the last look: {gone & untouchable}"


def check_told(world: World, ended: Ended) -> None:
    """A key that is there when the run ends is not said to have stayed away."""
    if ended.done is None:
        return
    for outcome in ended.done.outcomes:
        if outcome.outcome is Outcome.CHANGED:
            assert outcome.capacity is None
            assert outcome.allocatable is None


def check_undo(world: World) -> None:
    """Whatever went, is still away and has no plugin can be put back."""
    world.sync()
    if not world.removed:
        return
    gone = frozenset.union(*(names for names, _ in world.removed))
    there = world.amounts()
    lost = {n for n in gone if n not in there and n not in world.serving}
    if not lost:
        return
    node = world.look().node
    assert node is not None
    records = undo_records(str(world.directory / "undo"), world.name)
    found, _ = last_to_undo(node, records)
    assert found is not None, f"nothing to undo, but {lost} went"
    record = found[1]
    plan = plan_undo(world.look(), record)
    changing = {row.resource for row in plan.changing}
    assert lost <= changing, [(r.resource, r.reason) for r in plan.rows if r.resource in lost]
    work = Work(
        api=world.api,
        look=world.look,
        plan=lambda snap: plan_undo(snap, record),
        record=found,
        verify_seconds=0,
        sleep=lambda seconds: None,
    )
    carry_out(plan, node, work)
    keys = {key.resource: key for key in record.keys}
    for name in lost:
        before = keys[name]
        above = before.capacity_before not in (None, "0") and before.kubelets
        now = world.amounts()[name][0]
        assert now == ("0" if above else before.capacity_before), name


def play(
    story: Story,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], World] = World,
) -> World:
    """One story from its beginning to its undoing. Raises AssertionError."""
    world = make(directory)
    prepare(world, story.kinds)
    disk = Disk(world)
    with monkeypatch.context() as patched:
        patched.setattr(undo_file, "os", disk)
        patched.setattr("dpctl.changes.apply.time.sleep", lambda seconds: world.step("pause"))
        ended = run(world, story, disk)
    check_removed(world)
    check_told(world, ended)
    check_undo(world)
    return world


@pytest.mark.timeout(900)
@settings(
    max_examples=int(os.environ.get("DPCTL_INTERLEAVINGS", "2000")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# The answer was lost, and somebody wrote one of the keys before anybody could look.
@example(
    story=Story(
        ("stale", "stale", "stale"),
        (Event(21, "lost after", NAMES[0]), Event(24, "write", NAMES[0])),
        None,
        False,
    )
)
@given(story=STORIES)
def test_no_interleaving_removes_what_is_used(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Path(tempfile.mkdtemp(prefix="dpw-", dir=MEMORY))
    try:
        play(story, directory, monkeypatch)
    finally:
        shutil.rmtree(directory)
