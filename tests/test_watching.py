"""`-w` in a pipe, as JSON lines, and on a pseudo terminal with a reader of its own."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpctl.columns import View
from dpctl.documents import Envelope
from dpctl.errors import DpctlError, UnreachableError, UsageError
from dpctl.output import OutputOptions
from dpctl.watching import Reading, watch
from tests.outputs.sample import GPUS, META, ROWS, Gpu

TEN, TWO, HOSTILE, WIDE = ROWS
REPOSITORY = Path(__file__).parent.parent


def watched(
    readings: Iterable[tuple[Gpu, ...] | DpctlError],
    view: View[Gpu] = GPUS,
    on_error: Callable[[DpctlError], None] | None = None,
    **flags: Any,
) -> list[str]:
    """What each reading added to the output; Ctrl-C comes after the last one."""
    waiting = list(readings)
    stream = io.StringIO()
    texts: list[str] = []

    def produce() -> Reading[Gpu]:
        reading = waiting.pop(0)
        if isinstance(reading, DpctlError):
            raise reading
        return reading, META

    def pause(seconds: float) -> None:
        assert 0 <= seconds <= 2
        texts.append(stream.getvalue()[sum(map(len, texts)) :])
        if not waiting:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(
            produce,
            view,
            options=OutputOptions(**flags),
            stream=stream,
            on_error=on_error,
            pause=pause,
        )
    return texts


def test_a_pipe_gets_the_first_reading_and_then_what_changed() -> None:
    sick = replace(TEN, total=11)
    assert watched([(TEN, TWO), (TEN, TWO), (sick, TWO), (sick,), (sick, TWO)]) == [
        "NAME     HEALTH      NUMA   TOTAL   CAPACITY   FREE   AGE   EVENT\n"
        "gpu-2    Unhealthy   0          0   4          no     5m    ADDED\n"
        "gpu-10   Healthy     0,1       12   1k         yes    90s   ADDED\n",
        "",
        "gpu-10   Healthy     0,1       11   1k         yes    90s   CHANGED\n",
        "gpu-2    Unhealthy   0          0   4          no     5m    REMOVED\n",
        "gpu-2    Unhealthy   0          0   4          no     5m    ADDED\n",
    ]


def test_an_age_that_grows_is_no_change() -> None:
    assert watched([(TEN,), (replace(TEN, age=9000),)])[1] == ""
    counted = GPUS._replace(volatile=frozenset())
    assert "CHANGED" in watched([(TEN,), (replace(TEN, age=9000),)], counted)[1]


def test_headers_come_with_the_first_rows_and_once() -> None:
    assert watched([(), (TWO,), ()]) == [
        "",
        "NAME    HEALTH      NUMA   TOTAL   CAPACITY   FREE   AGE   EVENT\n"
        "gpu-2   Unhealthy   0          0   4          no     5m    ADDED\n",
        "gpu-2   Unhealthy   0          0   4          no     5m    REMOVED\n",
    ]
    assert "NAME" not in "".join(watched([(TWO,)], no_headers=True))


def test_rows_of_one_name_are_told_apart() -> None:
    other = replace(TWO, total=5)
    assert [t.count("\n") for t in watched([(TWO, TWO), (TWO, other), (TWO,)])] == [3, 1, 1]


def test_json_is_a_line_a_change() -> None:
    texts = watched([(TWO,), (replace(TWO, total=5),), (replace(TWO, total=5),), ()], output="json")
    lines = [[json.loads(line) for line in text.splitlines()] for text in texts]
    assert [[line["event"] for line in each] for each in lines] == [
        ["added"],
        ["changed"],
        [],
        ["removed"],
    ]
    assert lines[1][0] == {
        "apiVersion": "dpctl/v1",
        "kind": "Gpu",
        "event": "changed",
        "collectedAt": "2026-11-30T13:12:15Z",
        "item": {**lines[0][0]["item"], "total": 5},
    }


def test_other_formats() -> None:
    readings = [(TWO,), (TWO,), (TWO, TEN), (TEN,)]
    assert watched(readings, output="name") == ["gpu/gpu-2\n", "", "gpu/gpu-10\n", ""]
    assert watched(readings, quiet=True) == ["gpu-2\n", "", "gpu-10\n", ""]
    assert watched(readings, output="custom-columns=N:name") == ["N\ngpu-2\n", "", "gpu-10\n", ""]
    found = watched(readings, output="jsonpath={.items[*].name};")
    assert found == ["gpu-2;\n", "", "gpu-2 gpu-10;\n", "gpu-10;\n"]
    first, same, more, less = watched(readings, output="yaml")
    assert (first[:11], same, more[:4], less[:4]) == ("apiVersion:", "", "---\n", "---\n")
    assert [text.count("\n") for text in watched(readings, output="csv")] == [2, 0, 1, 1]
    assert watched(readings, output="csv")[0].startswith("NAME,HEALTH,")
    assert watched(readings, output="csv")[3].endswith(",REMOVED\n")


def test_colour_in_a_pipe_only_when_always() -> None:
    assert "\x1b[31mUnhealthy\x1b[0m" in watched([(TWO,)], color="always")[0]
    assert "\x1b" not in watched([(TWO,)])[0]


# --- failures


def test_the_first_failure_is_the_callers() -> None:
    for error in (UnreachableError("no socket"), UsageError("no such thing")):
        with pytest.raises(DpctlError, match=error.message):
            watched([error])


def test_a_later_failure_is_said_once_and_nothing_counts_as_removed() -> None:
    said: list[str] = []
    down = UnreachableError("no socket")
    texts = watched(
        [(TWO,), down, down, (TWO,), down, UnreachableError("other")],
        on_error=lambda error: said.append(error.message),
    )
    assert texts[1:] == [""] * 5
    assert said == ["no socket", "no socket", "other"]


def test_a_slip_ends_it_whenever_it_shows() -> None:
    with pytest.raises(UsageError):
        watched([(TWO,), UsageError("no such thing")])


def test_a_reader_that_went_away_ends_it() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    with pytest.raises(BrokenPipeError):
        watch(lambda: ((TWO,), Envelope()), GPUS, options=OutputOptions(), stream=stream)
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_readings_start_every_interval() -> None:
    pauses: list[float] = []

    def produce() -> Reading[Gpu]:
        time.sleep(0.05)
        return (TWO,), META

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    for interval in (0.2, 0.01):
        pauses.clear()
        with pytest.raises(KeyboardInterrupt):
            watch(
                produce,
                GPUS,
                options=OutputOptions(),
                interval=interval,
                stream=io.StringIO(),
                pause=pause,
            )
        assert all(0 <= p <= max(interval - 0.05, 0) for p in pauses)


# --- a terminal

SCRIPT = """
    import itertools, signal, sys, time
    from dataclasses import replace
    from dpctl.errors import UnreachableError
    from dpctl.output import OutputOptions
    from dpctl.watching import watch
    from tests.outputs.sample import GPUS, META, ROWS
    print("before", flush=True)
    counter = itertools.count()
    def produce():
        at = next(counter)
        if at == 2:
            raise UnreachableError("no\\x1b socket")
        rows = [replace(ROWS[1], name=f"gpu-{n}", total=at) for n in range(ROWS_SHOWN)]
        return rows, META
    try:
        watch(produce, GPUS, options=OutputOptions(FLAGS), interval=0.05)
    except KeyboardInterrupt:
        print("after", flush=True)
        sys.exit(130)
"""


class Screen:
    """As much of a terminal as `watch` uses; anything else is an error."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.height = columns, lines
        self.lines = [""] * lines
        self.scrolled: list[str] = []
        self.row = self.column = 0
        self.hidden = False
        self.wraps = True
        self.frames: list[list[str]] = []

    def feed(self, text: str) -> None:
        codes: dict[str, Callable[[], None]] = {
            "\x1b[?25l": lambda: setattr(self, "hidden", True),
            "\x1b[?25h": lambda: setattr(self, "hidden", False),
            "\x1b[?7l": lambda: setattr(self, "wraps", False),
            "\x1b[?7h": self.end_of_frame,
            "\x1b[H": self.home,
            "\x1b[K": lambda: self.put(self.lines[self.row][: self.column]),
            "\x1b[J": self.clear_rest,
        }
        while text:
            code = next((c for c in codes if text.startswith(c)), None)
            if code:
                codes[code]()
                text = text[len(code) :]
                continue
            character, text = text[0], text[1:]
            assert character >= " " or character in "\r\n", repr(character + text[:10])
            if character == "\n":
                self.newline()
            elif character == "\r":
                self.column = 0
            elif self.column < self.columns:
                line = self.lines[self.row].ljust(self.column)
                self.put(line[: self.column] + character + line[self.column + 1 :])
                self.column += 1
            else:
                assert not self.wraps

    def put(self, line: str) -> None:
        self.lines[self.row] = line

    def newline(self) -> None:
        self.column = 0
        self.row += 1
        if self.row == self.height:
            self.scrolled.append(self.lines.pop(0))
            self.lines.append("")
            self.row -= 1

    def home(self) -> None:
        self.row = self.column = 0

    def clear_rest(self) -> None:
        self.put(self.lines[self.row][: self.column])
        self.lines[self.row + 1 :] = [""] * (self.height - self.row - 1)

    def end_of_frame(self) -> None:
        self.wraps = True
        self.frames.append(list(self.lines))


def on_screen(
    rows: int,
    flags: str,
    *,
    columns: int = 80,
    lines: int = 10,
    term: str = "xterm",
    end: tuple[signal.Signals, int] = (signal.SIGINT, 130),
) -> Screen:
    parent, child = pty.openpty()
    attributes = termios.tcgetattr(child)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(child, termios.TCSANOW, attributes)
    termios.tcsetwinsize(child, (lines, columns))
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    script = textwrap.dedent(SCRIPT).replace("ROWS_SHOWN", str(rows)).replace("FLAGS", flags)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=child,
        cwd=REPOSITORY,
        env={**kept, "NO_COLOR": "1", "TERM": term},
    )
    os.close(child)
    screen = Screen(columns, lines)
    found = b""
    stopped = False
    try:
        while part := os.read(parent, 65536):
            found += part
            if not stopped and max(found.count(b"\x1b[?7h"), found.count(b"CHANGED")) >= 5:
                process.send_signal(end[0])
                stopped = True
    except OSError:
        pass  # the other end is closed
    os.close(parent)
    assert process.wait(timeout=30) == end[1]
    screen.feed(found.decode())
    return screen


def test_a_terminal_is_repainted_in_place() -> None:
    screen = on_screen(2, "")
    first, second, failed, fourth = screen.frames[:4]
    assert first[0].endswith("Z   every 0.05s   Ctrl-C ends")
    assert first[1:6] == [
        "",
        "NAME    HEALTH      NUMA   TOTAL   CAPACITY   FREE   AGE",
        "gpu-0   Unhealthy   0          0   4          no     5m",
        "gpu-1   Unhealthy   0          0   4          no     5m",
        "",
    ]
    assert second[3] == "gpu-0   Unhealthy   0          1   4          no     5m"
    assert failed[1] == "not read: no\\e socket (below: as of 2026-11-30T13:12:15Z)"
    assert failed[4] == second[3]
    assert fourth[1] == ""
    assert fourth[3] == "gpu-0   Unhealthy   0          3   4          no     5m"
    assert fourth[5:] == [""] * 5


def test_what_was_on_the_screen_moves_up_and_ctrl_c_leaves_it_usable() -> None:
    screen = on_screen(2, "")
    assert screen.scrolled[0] == "before"
    assert screen.lines[5] == "after"
    assert screen.lines[4].startswith("gpu-1 ")
    assert not screen.hidden
    assert screen.wraps


def test_more_rows_than_lines() -> None:
    screen = on_screen(50, "")
    assert screen.frames[0][2].startswith("NAME ")
    assert screen.frames[0][7].startswith("gpu-4 ")
    assert screen.frames[0][8] == "… 45 more lines than this terminal shows"
    # What was there before, at the start; one line for `after`: no frame has scrolled.
    assert len(screen.scrolled) <= 1 + 1


def test_lines_longer_than_the_terminal_do_not_wrap() -> None:
    screen = on_screen(1, "no_trunc=True", columns=20)
    assert screen.frames[0][2] == "NAME    HEALTH      "
    assert screen.frames[0][3] == "gpu-0   Unhealthy   "
    assert on_screen(1, "", columns=40).frames[0][3] == "gpu-0 Unhe…thy 0        0 4        no   "


def test_nothing_to_show() -> None:
    assert on_screen(0, "").frames[0][2] == "No resources found"
