"""The dashboard on a pseudo-terminal, and in tmux where there is one: what a person sees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpctl.lab.fixture import Lab
from tests.needs import needs
from tests.run import TESTS, dpctl
from tests.tui.boards import CAPTURES, NAMES
from tests.tui.terminal import Running, Screen

BUNDLE = str(CAPTURES / NAMES[0])
SIZES = [(80, 24), (200, 60)]


def ready(screen: Screen) -> bool:
    return "captured" in screen.text and screen.modes >= {"1049", "2004"}


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_a_walk_through_a_captured_node(columns: int, lines: int) -> None:
    size = {"columns": columns, "lines": lines}
    with Running(["dashboard", "--from", BUNDLE], {}, **size) as running:
        running.until(ready)
        running.shows("[resources]", "vendor.example/gpu", "? keys  q quit")
        running.press("2")
        running.shows("[devices]", "gpu-0")
        running.press("/gpu-1")
        running.until(lambda s: "/gpu-1" in s.text and "gpu-0" not in s.text)
        running.press("\r")
        running.press("d")
        running.shows("DEVICE:", "gpu-1")
        running.press("\x1b")
        running.shows("HOLDER" if columns > 80 else "STATE")
        running.press(":")
        running.press("numa\r")
        running.shows("[numa]", "NUMA node 0")
        running.press("?")
        running.shows("Where to look")
        running.press("q")
        assert running.ended() == 0
        assert running.given_back


@needs("tmux")
@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_the_same_in_tmux(columns: int, lines: int, tmp_path: Path) -> None:
    tmux = ["tmux", "-S", str(tmp_path / "s"), "-f", "/dev/null"]
    command = [sys.executable, "-m", "dpctl", "dashboard", "--from", BUNDLE]
    size = ["-x", str(columns), "-y", str(lines)]

    def shows(*texts: str) -> str:
        end = time.monotonic() + 60
        while True:
            done = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True)
            if all(text in done.stdout for text in texts):
                return done.stdout
            assert time.monotonic() < end, done.stdout
            time.sleep(0.1)

    def press(*keys: str) -> None:
        subprocess.run([*tmux, "send-keys", *keys], check=True)

    subprocess.run(
        [*tmux, "new-session", "-d", *size, "-c", str(TESTS.parent), *command], check=True
    )
    try:
        shown = shows("[resources]", "captured")
        assert len(shown.splitlines()) == lines
        press("2")
        shows("[devices]", "gpu-0")
        press("/", "gpu-1", "Enter")
        shows("/gpu-1")
        press("y")
        shows("numaNodes:")
        press(":", "plugins", "Enter")
        shows("[plugins]", "ENDPOINT")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("q", 0),
        ("\x03", 0),
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
    ],
)
def test_however_it_ends_the_terminal_is_given_back(end: str | signal.Signals, code: int) -> None:
    with Running(["dashboard", "--from", BUNDLE], {}) as running:
        running.until(ready)
        if isinstance(end, str):
            running.press(end)
        else:
            os.kill(running.pid, end)
        assert running.ended() == code
        assert running.given_back


@pytest.mark.parametrize("how", ["\x1a", signal.SIGTSTP])
def test_after_the_shell_the_screen_is_there_again(how: str | signal.Signals) -> None:
    with Running(["dashboard", "--from", BUNDLE], {}) as running:
        before = running.until(ready)
        if isinstance(how, str):
            running.press(how)
        else:
            os.kill(running.pid, how)
        os.waitid(os.P_PID, running.pid, os.WSTOPPED)
        running.until(lambda screen: screen.modes == {"7", "25"})
        assert running.given_back
        os.kill(running.pid, signal.SIGCONT)
        running.until(lambda screen: screen.text == before)
        running.press("q")
        assert running.ended() == 0


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_also_before_textual_is_there(end: signal.Signals) -> None:
    with Running(["dashboard", "--from", BUNDLE], {}) as running:
        running.until(lambda screen: "reading the node" in screen.text)
        os.kill(running.pid, end)
        assert running.ended() == 128 + end
        assert running.given_back


def test_after_ctrl_z_and_fg_everything_is_drawn_again() -> None:
    """Also after Ctrl-L and Ctrl-R, whatever somebody else has written over it."""
    with Running(["dashboard", "--from", BUNDLE], {}) as running:
        running.until(ready)
        before = running.shows("[resources]", "vendor.example/gpu", "? keys  q quit")
        running.press("\x1a")
        running.stopped()
        assert running.screen.modes == {"7", "25"}
        running.screen.blank()
        os.kill(running.pid, signal.SIGCONT)
        running.until(lambda screen: screen.text == before)
        for key in ("\x0c", "\x12"):
            running.screen.blank()
            running.press(key)
            running.until(lambda screen: screen.text == before)
        running.press("q")
        assert running.ended() == 0
        assert running.given_back


def test_without_colour_no_colour_is_sent() -> None:
    for env, arguments in (({"NO_COLOR": "1"}, []), ({}, ["--color", "never"])):
        with Running(["dashboard", "--from", BUNDLE, *arguments], env) as running:
            running.until(ready)
            running.press("2")
            running.shows("[devices]")
            assert running.screen.styles <= {"", "0", "1", "2", "7"}
    with Running(["dashboard", "--from", BUNDLE], {}) as running:
        running.until(ready)
        assert running.screen.styles > {"0", "1", "2", "7"}


def test_ascii_sends_ascii() -> None:
    with Running(["dashboard", "--from", BUNDLE, "--ascii"], {}) as running:
        running.until(ready)
        running.press("5")
        running.shows("[numa]", "+- NUMA node 0")
        assert running.sent.isascii()


def test_no_terminal_and_a_dumb_one() -> None:
    found = dpctl("dashboard", "--from", BUNDLE)
    assert (found.code, found.out) == (2, "")
    assert "the dashboard needs a terminal" in found.err
    with Running(["dashboard", "--from", BUNDLE], {"TERM": "dumb"}) as running:
        assert running.ended() == 2
        assert b"more than a dumb terminal" in running.sent
        assert b"\x1b" not in running.sent


def test_without_textual_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['textual'] = None\n")
    env = {"PYTHONPATH": str(tmp_path)}
    with Running(["dashboard", "--from", BUNDLE], env) as running:
        assert running.ended() == 2
        assert b"kube-dpctl[dashboard]" in running.sent


def test_a_view_that_is_not_there() -> None:
    found = dpctl("dashboard", "--view", "gadgets")
    assert found.code == 2
    assert "--view 'gadgets': not one of resources, devices" in found.err


def test_a_node_that_falls_apart_under_it(new_lab: Callable[..., Lab]) -> None:
    """Plugin, API server and kubelet go; it stays up, says so, and comes back."""
    node = new_lab()
    arguments = ["dashboard", "--interval", "500ms", "--request-timeout", "2s"]
    with Running(arguments, node.env, columns=120, lines=30) as running:
        running.shows("[resources]", "lab-0", "data ", "vendor.example/gpu")
        running.press("4")
        running.shows("[plugins]", "vendor-gpu.sock")
        node.plugin("gpu").kill()
        running.until(lambda s: "vendor-gpu.sock" in s.text and "Dead" in _line(s, "vendor-gpu"))
        node.fail_requests(60, 503, user="admin")  # they run out
        running.shows("! ", "node", "not read")
        node.kubelet.stop()
        running.shows("podresources")
        running.press("8")
        running.shows("[sources]", "failed")
        running.press("1")
        running.shows("[resources]", "vendor.example/gpu")
        node.kubelet.start()
        node.plugin("gpu").start()
        running.until(lambda s: "not read" not in s.text and "Degraded" in s.text)
        running.press("q")
        assert running.ended() == 0
        assert running.given_back


def _line(screen: Screen, text: str) -> str:
    return next((line for line in screen.text.splitlines() if text in line), "")
