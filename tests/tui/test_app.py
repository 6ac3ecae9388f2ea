"""The dashboard in textual, driven by its pilot: every key on the lab and on a captured node."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dpctl.commands import _dashboard_changes, _pod_text
from dpctl.commands import dashboard as command
from dpctl.env import Env, Settings, find_env
from dpctl.lab.fixture import Lab
from dpctl.options import Common
from dpctl.statefiles.device_checkpoint import encode_checkpoint
from dpctl.tui.app import DashboardApp
from dpctl.tui.dashboard import Dashboard, Options
from dpctl.tui.facts import Reading
from dpctl.tui.pages import page_names
from dpctl.tui.plan import Job
from dpctl.tui.proposal import Changes
from tests.tui.boards import CAPTURES, NAMES, env_of, facts_of, plain
from tests.tui.test_frame import HOSTILE, harmless

Walk = Callable[["Driver"], Awaitable[None]]
PATIENCE = 60.0


class Driver:
    """Keys in, texts out; waits for what is to come instead of for a time."""

    def __init__(self, app: DashboardApp, pilot: Any) -> None:
        self.app = app
        self.board = app.dashboard
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self._pilot.press(*text)

    @property
    def screen(self) -> str:
        """What textual has drawn."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def shows(self, *texts: str) -> str:
        return await self.until(lambda screen: all(text in screen for text in texts))

    async def until(self, condition: Callable[[str], bool]) -> str:
        end = asyncio.get_running_loop().time() + PATIENCE
        while not condition(self.screen):
            assert self.app.crash is None
            assert asyncio.get_running_loop().time() < end, f"never came:\n{self.screen}"
            await self._pilot.pause(0.02)
        return self.screen


def drive(
    read: Callable[[], Reading],
    options: Options,
    walk: Walk,
    *,
    size: tuple[int, int] = (100, 30),
    interval: float = 3600.0,
    page: str = "resources",
) -> DashboardApp:
    app = DashboardApp(Dashboard(options, page), read, interval)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            driver = Driver(app, pilot)
            await driver.until(lambda _: app.dashboard.facts is not None)
            await walk(driver)

    asyncio.run(run())
    if app.crash is not None:
        raise app.crash
    return app


def on(env: Env, walk: Walk, *, changes: Changes | None = None, **more: Any) -> DashboardApp:
    options = Options("here", env.live, False, changes, _pod_text.pod_text)
    return drive(command.reader(env), options, walk, **more)


@pytest.fixture(params=[*NAMES[:2], "lab"])
def env(request: pytest.FixtureRequest) -> Env:
    if request.param != "lab":
        return env_of(CAPTURES / request.param)
    lab: Lab = request.getfixturevalue("lab")
    return of_lab(lab.env)


def of_lab(variables: Mapping[str, str]) -> Env:
    return find_env(Settings(), dict(variables))


def test_every_key(env: Env) -> None:
    async def walk(driver: Driver) -> None:
        for number, page in enumerate(page_names(), 1):
            await driver.press(str(number))
            await driver.shows(f"[{page}]")
        await driver.press("1")
        for key in ("down", "j", "up", "k", "pagedown", "pageup", "space", "end", "home", "G", "g"):
            await driver.press(key)
            assert sum(line.startswith("›") for line in driver.screen.splitlines()) == 1
        await driver.press("D")
        await driver.shows("DEVICES↑")
        await driver.press("D")
        await driver.shows("DEVICES↓")
        await driver.press("w")
        await driver.press("w")
        await driver.press("slash")
        await driver.type("vendor.example/gpu")
        await driver.shows("/vendor.example/gpu")
        await driver.press("enter", "enter")
        await driver.shows("› devices")
        await driver.press("d")
        await driver.shows("HEALTH:")
        await driver.press("y")
        await driver.shows("numaNodes:")
        await driver.press("y")
        await driver.shows('"health": ')
        await driver.press("escape", "escape", "escape")
        await driver.press("colon")
        await driver.type("pl")
        await driver.press("tab")
        await driver.shows(":plugins")
        await driver.press("enter")
        await driver.shows("[plugins]", "ENDPOINT")
        await driver.press("question_mark")
        await driver.shows("Where to look")
        await driver.press("escape", "tab")
        await driver.shows("[numa]")
        await driver.press("shift+tab")
        await driver.shows("[plugins]")
        await driver.press("ctrl+r")
        await driver.press("q")

    app = on(env, walk)
    assert app.return_value == 0


def test_textual_draws_the_lines_and_nothing_else(env: Env) -> None:
    """Also after keys of which each changes some lines alone."""

    async def walk(driver: Driver) -> None:
        for key in (
            "2",
            "down",
            "down",
            "end",
            "d",
            "escape",
            "3",
            "5",
            "pagedown",
            "question_mark",
        ):
            await driver.press(key)
            await driver._pilot.pause()
            assert driver.screen.splitlines() == plain(driver.app._canvas._shown)

    on(env, walk, size=(80, 24))


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+q", "q"])
def test_one_key_leaves_from_a_prompt_or_not(key: str) -> None:
    async def walk(driver: Driver) -> None:
        if key != "q":
            await driver.press("slash")
        await driver.press(key)

    assert on(env_of(CAPTURES / NAMES[0]), walk).return_value == 0


def test_another_size_is_drawn_anew() -> None:
    async def walk(driver: Driver) -> None:
        await driver._pilot.resize_terminal(60, 20)
        await driver.until(lambda screen: len(screen.splitlines()) == 20)
        await driver._pilot.resize_terminal(30, 5)
        await driver.shows("the terminal is too small")

    on(env_of(CAPTURES / NAMES[0]), walk)


def test_a_defect_ends_the_screen_and_is_raised() -> None:
    def broken() -> Reading:
        raise ZeroDivisionError("of the reader")

    app = DashboardApp(Dashboard(Options("here")), broken, 3600.0)

    async def run() -> None:
        async with app.run_test() as pilot:
            while app.crash is None:
                await pilot.pause(0.02)

    asyncio.run(run())
    assert isinstance(app.crash, ZeroDivisionError)


def test_a_change_comes_to_a_good_place_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    found = facts_of().reading
    app = DashboardApp(Dashboard(Options("here")), lambda: found, 3600.0)
    ended, steps = threading.Event(), []

    def change(tell: Callable[[str], None]) -> None:
        ended.wait(60)
        steps.append("set aside")
        tell("it is set aside")
        steps.append("put back")

    async def run() -> None:
        async with app.run_test():
            app._start(Job(change, lambda _: None, lambda _: None))

    asyncio.run(run())
    ended.set()
    app.let_go(60)
    assert steps == ["set aside", "put back"]
    assert failed == []


def test_hostile_names_are_shown_and_obeyed_by_nobody(tmp_path: Path) -> None:
    """Through the checkpoint of a bundle, all the way to what textual has drawn."""
    directory = tmp_path / "device-plugins"
    directory.mkdir()
    names = [name.replace("\udcff", "") for name in HOSTILE]
    (directory / "kubelet_internal_checkpoint").write_bytes(
        encode_checkpoint([], {f"vendor.example/{n}": [name] for n, name in enumerate(names)})
    )

    async def walk(driver: Driver) -> None:
        seen = ""
        for page in page_names():
            await driver.press("colon")
            await driver.type(page)
            await driver.press("enter")
            for key in ("d", "y", "y", "escape"):
                await driver.press(key)
                seen += driver.screen
        await driver.press("2", "slash")
        await driver.type("[red]")
        seen += await driver.shows("[red]x[/]")
        assert all(harmless(line) for line in seen.splitlines())

    on(env_of(tmp_path), walk, size=(160, 40))


# -- changes, on a lab of their own


def changing(lab: Lab, monkeypatch: pytest.MonkeyPatch, walk: Walk, page: str, **more: Any) -> None:
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    env = of_lab(lab.env)
    on(
        env,
        walk,
        changes=_dashboard_changes.changes(Common(), env),
        page=page,
        **{"size": (120, 40), **more},
    )


def test_a_key_is_pruned_only_by_the_typed_name(
    new_lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = new_lab()
    name = "old.example/retired"

    async def walk(driver: Driver) -> None:
        await driver.press("p")
        await driver.shows("VERDICT", "Change", f"Remove {name} from node/lab-0?", "Type lab-0")
        await driver.type("yes")
        await driver.press("enter")
        await driver.shows("that was not lab-0: nothing was changed")
        assert name in lab.node()["status"]["capacity"]
        await driver.press("escape", "escape")
        await driver.press("p")
        await driver.shows("Type lab-0")
        await driver.type("lab-0")
        await driver.press("enter")
        await driver.shows("OUTCOME", "Changed", "dpctl node undo puts it back")
        assert name not in lab.node()["status"]["capacity"]
        await driver.press("escape")
        await driver.until(lambda screen: name not in screen)

    changing(lab, monkeypatch, walk, "node")


def test_what_is_in_use_is_refused_and_the_plan_says_why(
    new_lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = new_lab()

    async def walk(driver: Driver) -> None:
        await driver.press("slash")
        await driver.type("example/gpu")
        await driver.press("enter", "x")
        await driver.shows("Refuse", "REASON a plugin serves it on vendor-gpu.sock")
        await driver.shows("nothing is done: refused", "stop its plugin, then wait five minutes")
        await driver.press("enter", "l", "a", "b")
        assert driver.board.prompt is None
        await driver.press("escape")
        await driver.shows("[resources]")

    changing(lab, monkeypatch, walk, "resources", size=(80, 24))


def test_what_the_kubelet_would_put_back_says_how_to_wait(
    new_lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = new_lab()
    lab.plugin("gpu").kill()
    lab.wait_settled()

    async def walk(driver: Driver) -> None:
        await driver.press("slash")
        await driver.type("vendor.example/gpu !shared")
        await driver.press("enter", "x")
        await driver.shows("Wait", "REASON ", "nothing is to be done yet")
        await driver.shows("wait for it: dpctl node remove vendor.example/gpu --wait")

    changing(lab, monkeypatch, walk, "resources", size=(80, 24))


def test_dead_sockets_and_rejected_pods(
    new_lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = new_lab()
    lab.plugin("gpu").kill()

    async def walk(driver: Driver) -> None:
        await driver.press("7", "p")
        await driver.shows("Delete pod batch/greedy?")
        await driver.type("delete")
        await driver.press("enter")
        await driver.shows("1 of 1 pods deleted")
        assert "batch/greedy" not in lab.pods()
        await driver.press("4", "p")
        await driver.shows("VERDICT", "vendor-gpu.sock")

    changing(lab, monkeypatch, walk, "failed")
