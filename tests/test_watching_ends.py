"""`-w` on a terminal that is odd, and ended or stopped from outside."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.test_watching import REPOSITORY, SCRIPT, on_screen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_gives_the_cursor_back(number: signal.Signals) -> None:
    screen = on_screen(2, "", end=(number, -number))
    assert not screen.hidden


def test_stopped_it_gives_the_cursor_back_and_goes_on() -> None:
    parent, child = pty.openpty()
    script = textwrap.dedent(SCRIPT).replace("ROWS_SHOWN", "2").replace("FLAGS", "")
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=child,
        cwd=REPOSITORY,
        env={**os.environ, "TERM": "xterm"},
        process_group=0,  # in one without a parent nothing stops
    )
    try:
        found = b""
        while found.count(b"\x1b[?25l") < 2:
            found += os.read(parent, 65536)
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        os.set_blocking(parent, False)
        try:
            while part := os.read(parent, 65536):
                found += part
        except BlockingIOError:
            pass
        assert found.endswith(b"\x1b[?25h")
        os.set_blocking(parent, True)
        process.send_signal(signal.SIGCONT)
        while b"\x1b[?25l" not in os.read(parent, 65536):
            pass
    finally:
        process.kill()
        process.wait()
        os.close(parent)
        os.close(child)


def test_a_dumb_terminal_is_a_pipe() -> None:
    screen = on_screen(1, "", term="dumb", lines=40)
    assert screen.frames == []
    assert any("CHANGED" in line for line in screen.lines)


@pytest.mark.parametrize(("columns", "lines"), [(6, 1), (80, 1), (80, 2), (6, 3), (80, 4)])
def test_a_tiny_terminal_does_not_scroll(columns: int, lines: int) -> None:
    screen = on_screen(9, "", columns=columns, lines=lines)
    assert len(screen.frames) >= 5
    assert len(screen.scrolled) <= lines + 2  # what was there before, and "after"
