"""The dashboard on a terminal: textual draws the lines, hands over keys, gives the terminal back.

Nothing is decided here. One widget shows the lines that `Dashboard` makes; what has not changed is
not sent again, nothing moves by itself but the age of the data, once a second: made for slow lines.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from dpctl.errors import DpctlError
from dpctl.tui.dashboard import Dashboard
from dpctl.tui.facts import Facts, Reading
from dpctl.tui.frame import Line, StyleName
from dpctl.tui.plan import Job
from dpctl.tui.poller import Poller

ACCENT = "cyan"
"""The one colour that means nothing; the others are those of the tables."""


@lru_cache
def style_of(name: StyleName, color: bool) -> Style:
    """The terminal's own colours: what a person has chosen to be able to read."""
    found: dict[StyleName, tuple[str | None, str]] = {
        "plain": (None, ""),
        "dim": (None, "dim"),
        "strong": (None, "bold"),
        "head": (None, "bold"),
        "accent": (ACCENT, "bold"),
        "tab": (ACCENT, "bold"),
        "good": ("green", ""),
        "warn": ("yellow", ""),
        "bad": ("red", "bold"),
        "chosen": (None, "reverse"),
    }
    code, attribute = found[name]
    return Style(
        color=code if color else None,
        bold=attribute == "bold" or None,
        dim=attribute == "dim" or None,
        reverse=attribute == "reverse" or None,
    )


class Canvas(Widget, can_focus=True):
    """All of the screen."""

    def __init__(self, color: bool) -> None:
        super().__init__()
        self._color = color
        self._shown: list[Line] = []
        self._lost = False

    def lost(self) -> None:
        """Somebody else may have written to the terminal: the next `show` sends everything."""
        self._lost = True

    def show(self, lines: list[Line]) -> None:
        """Send the lines that differ from what is on the screen."""
        before, self._shown = self._shown, lines
        if self._lost or len(before) != len(lines):
            self._lost = False
            self.refresh()
            return
        width = self.size.width
        changed = [Region(0, y, width, 1) for y, new in enumerate(lines) if new != before[y]]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        if y >= len(self._shown):
            return Strip.blank(self.size.width)
        return Strip([Segment(s.text, style_of(s.style, self._color)) for s in self._shown[y]])


class DashboardApp(App[int]):
    """`run()` returns the exit code: 0, or 128 and the number of the signal that ended it."""

    CSS = "Screen, Canvas { width: 100%; height: 100%; background: ansi_default; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "leave", "quit", priority=True, show=False),
        Binding("ctrl+z", "suspend_process", "to the shell", priority=True, show=False),
    ]

    class Read(Message):
        """A reading has come (or the defect that ended the poller)."""

        def __init__(self, found: Facts | Exception, pause: float) -> None:
            super().__init__()
            self.found = found
            self.pause = pause

    class Call(Message):
        """Something for this thread to do."""

        def __init__(self, call: Callable[[], None]) -> None:
            super().__init__()
            self.call = call

    def __init__(
        self, board: Dashboard, read: Callable[[], Reading], interval: float, *, color: bool = True
    ) -> None:
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.dashboard = board
        board.start = self._start
        board.asked = max(interval, board.asked)
        self.crash: Exception | None = None
        """A defect: whoever runs this raises it once the terminal is given back."""
        self.mounted: Callable[[], None] = lambda: None
        """Called once textual has the terminal."""
        self._read_node = read
        self._canvas = Canvas(color)
        self._poller: Poller | None = None
        self._at_work: threading.Thread | None = None
        self._interval = interval

    def compose(self) -> ComposeResult:
        yield self._canvas

    def on_mount(self) -> None:
        self.mounted()
        self._canvas.focus()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if threading.current_thread() is threading.main_thread():
                asyncio.get_running_loop().add_signal_handler(number, self.exit, 128 + number)
        self._paint()
        self._poller = Poller(self._read_node, self._post, self._interval)
        self.call_after_refresh(self._poller.start)  # the first screen does not wait for a reading
        if self.dashboard.options.live:
            self.set_interval(1.0, self._paint)

    def on_unmount(self) -> None:
        if self._poller is not None:
            self._poller.stop()

    # -- readings and work, from other threads

    def _post(self, found: Reading | Exception, pause: float) -> None:
        facts: Facts | Exception
        if isinstance(found, Reading):
            facts = Facts(found, self.dashboard.facts)
            if found.error is None:
                self.dashboard.prepare(facts)
        else:
            facts = found
        self.post_message(self.Read(facts, pause))

    def on_dashboard_app_read(self, message: Read) -> None:
        if isinstance(message.found, Exception):
            self.crash = message.found
            self.exit(1)
            return
        self.dashboard.interval = message.pause
        self.dashboard.take(message.found)
        self._paint()
        if self._poller is not None and not self.dashboard.options.live:
            self._poller.stop()  # a bundle does not change

    def _start(self, job: Job) -> None:
        """Run what takes time in a thread of its own."""

        def tell(text: str) -> None:
            self.post_message(self.Call(lambda: job.tell(text)))

        def work() -> None:
            found: Any
            try:
                found = job.run(tell)
            except DpctlError as error:
                found = error
            except Exception as error:
                self.post_message(self.Read(error, 0.0))
                return
            self.post_message(self.Call(lambda: job.done(found)))

        self._at_work = threading.Thread(target=work, name="change", daemon=True)
        self._at_work.start()

    def let_go(self, seconds: float) -> None:
        """After the end: the last job gets so long to come to a good place. A socket file that was
        set aside for a look is back under its name within milliseconds; the process' end is not
        to come between."""
        if self._at_work is not None:
            self._at_work.join(seconds)

    def on_dashboard_app_call(self, message: Call) -> None:
        message.call()
        self.dashboard.settled()
        if self.dashboard.at_work is None and self._poller is not None:
            self._poller.now()  # what was changed is seen at once
        self._paint()

    # -- the terminal

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.dashboard.press(event.key, event.character)
        self._after_key()

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self.dashboard.paste(event.text)
        self._paint()

    def on_resize(self, _event: events.Resize) -> None:
        """Also what textual sends after Ctrl-Z and fg, when the screen has been the shell's."""
        self._canvas.lost()
        self.call_after_refresh(self._paint)

    def action_leave(self) -> None:
        self.dashboard.press("ctrl+c")
        self._after_key()

    def _after_key(self) -> None:
        if self.dashboard.quits:
            self.exit(0)
            return
        if self.dashboard.wants_reading and self._poller is not None:
            self.dashboard.wants_reading = False
            self._poller.now()
        if self.dashboard.wants_redraw:
            self.dashboard.wants_redraw = False
            self._canvas.lost()
        self._paint()

    def _paint(self) -> None:
        width, height = self.size
        self._canvas.show(self.dashboard.lines(width, height, time.monotonic()))

    def _handle_exception(self, error: Exception) -> None:
        """A defect of ours ends the screen; the one place that reports defects reports it."""
        if self.crash is None:
            self.crash = error
        self._exception = error
        self._exception_event.set()
        self.exit(1)
