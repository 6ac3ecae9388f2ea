"""`-w`: read again and again, and show what changed.

On a terminal the table is repainted in place; in a pipe, or on a dumb terminal, the first reading
is printed, then the rows that changed; `-o json` gives one compact document a change on both.
How to read is the caller's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Generic, Literal, TextIO

from dpctl.columns import NOTHING_FOUND, Column, Row, View
from dpctl.documents import API_VERSION, Envelope, json_text, rfc3339, row_document
from dpctl.errors import DpctlError, UsageError
from dpctl.output import OutputOptions, Surface, render
from dpctl.outputs import terminal
from dpctl.outputs.sorting import sorted_rows
from dpctl.text import escape

Event = Literal["added", "changed", "removed"]
Reading = tuple[Sequence[Row], Envelope]

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


@dataclass(frozen=True, slots=True)
class Change(Generic[Row]):
    event: Event
    row: Row
    """The new one; of a removed row the last one seen."""
    document: dict[str, Any]


def watch(
    produce: Callable[[], Reading[Row]],
    view: View[Row],
    *,
    options: OutputOptions,
    interval: float = 2.0,
    stream: TextIO | None = None,
    on_error: Callable[[DpctlError], None] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Call `produce` every `interval` seconds (from start to start) until Ctrl-C, which leaves as
    KeyboardInterrupt with the terminal put right.

    A DpctlError of the first reading goes to the caller, and so does a UsageError always; a later
    one is shown (on a terminal, in the header; elsewhere through `on_error`, once until it changes)
    and the rows stay. OSError as in `output.write`.
    """
    stream = stream or sys.stdout
    dumb = os.environ.get("TERM") == "dumb"
    repaints = terminal.is_terminal(stream) and not dumb and options.format != "json"
    painter: _Screen[Row] | _Stream[Row]
    if repaints:
        painter = _Screen(view, options, stream, interval)
    else:
        painter = _Stream(view, options, stream, on_error)
    first = True
    shown = painter.signals() if isinstance(painter, _Screen) else contextlib.nullcontext()
    try:
        with shown:
            while True:
                started = time.monotonic()
                try:
                    rows, envelope = produce()
                except UsageError:
                    raise
                except DpctlError as error:
                    if first:
                        raise
                    painter.failed(error)
                else:
                    painter.show(sorted_rows(rows, view, options.sort_by), envelope)
                    first = False
                pause(max(interval - (time.monotonic() - started), 0.0))
    finally:
        painter.close()


def follow(
    readings: Iterable[Reading[Row]],
    view: View[Row],
    *,
    options: OutputOptions,
    stream: TextIO | None = None,
) -> None:
    """Print readings as they come, from a peer that sends them: the first one in full, then what
    changed, on a terminal too, where differences are to be read one after the other."""
    painter = _Stream(view, options, stream or sys.stdout, None)
    for rows, envelope in readings:
        painter.show(sorted_rows(rows, view, options.sort_by), envelope)


class _Screen(Generic[Row]):
    """A terminal: the same lines painted over, so that nothing flickers and nothing scrolls."""

    def __init__(
        self, view: View[Row], options: OutputOptions, stream: TextIO, interval: float
    ) -> None:
        self._view = view
        self._options = options
        self._stream = stream
        self._interval = interval
        self._begun = False
        self._below = True
        """Whether the cursor has a line of its own below the rows."""
        self._rows: Sequence[Row] = ()
        self._envelope = Envelope()

    def show(self, rows: Sequence[Row], envelope: Envelope) -> None:
        self._rows, self._envelope = rows, envelope
        self._paint(None)

    def failed(self, error: DpctlError) -> None:
        self._paint(error)

    def _paint(self, error: DpctlError | None) -> None:
        _, height = terminal.size(self._stream)
        height = height or 24
        surface = Surface.of(self._stream, self._options)
        text = render(self._rows, self._view, self._options, self._envelope, surface)
        lines = text.removesuffix("\n").split("\n") if text else [NOTHING_FOUND]
        header = [f"{rfc3339(int(time.time()))}   every {self._interval:g}s   Ctrl-C ends"]
        if error is not None:
            header.append(f"not read: {escape(error.message)}")
            if self._envelope.collected_at is not None:
                header[-1] += f" (below: as of {rfc3339(int(self._envelope.collected_at))})"
        # A few lines belong to the rows.
        top = [*header, ""] if height > len(header) + 3 else header[1:]
        room = max(height - len(top) - 1, 1)  # the last line is the cursor's own
        if len(lines) > room:
            hidden = len(lines) - room + 1
            lines = [*lines[: room - 1], f"… {hidden} more lines than this terminal shows"]
        painted = [*top, *lines][:height]
        screen = "\n".join(f"{line}{_END_OF_LINE}" for line in painted)
        self._below = len(painted) < height  # else it would scroll
        if self._below:
            screen += "\n"
        begin = "" if self._begun else "\n" * (height - 1)  # what was there moves up, unharmed
        self._begun = True
        terminal.emit(
            self._stream, f"{begin}{_HIDE}{_NO_WRAP}{_HOME}{screen}{_END_OF_SCREEN}{_WRAP}"
        )

    def close(self) -> None:
        if self._begun:
            try:
                terminal.emit(self._stream, _WRAP + _SHOW + ("" if self._below else "\n"))
            except OSError:
                return  # the terminal went away: nothing to put right

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Who ends or stops us from outside gets the cursor back, too."""
        before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    before[number] = signal.signal(number, self._signalled)
        try:
            yield
        finally:
            for caught, handler in before.items():
                signal.signal(caught, handler)

    def _signalled(self, number: int, _: FrameType | None) -> None:
        with contextlib.suppress(OSError, ValueError):
            # Below the buffers: the signal may have come in the midst of a write to them.
            os.write(self._stream.fileno(), (_WRAP + _SHOW).encode())
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_kill(threading.get_ident(), number)
        # SIGTSTP: here it goes on, below whatever has been written since.
        signal.signal(number, self._signalled)
        self._begun = False


class _Stream(Generic[Row]):
    """A pipe or file: the first reading in full, then what changed."""

    def __init__(
        self,
        view: View[Row],
        options: OutputOptions,
        stream: TextIO,
        on_error: Callable[[DpctlError], None] | None,
    ) -> None:
        self._view = view
        self._options = options
        self._stream = stream
        self._on_error = on_error
        self._seen: dict[Hashable, Change[Row]] = {}
        self._last_error = ""
        self._last_text = ""
        self._begun = False
        self._headed = False
        self._widths: list[int] = []

    def show(self, rows: Sequence[Row], envelope: Envelope) -> None:
        self._last_error = ""
        changes = self._changes(rows)
        if self._options.format == "json":
            text = "".join(_json_line(change, self._view, envelope) for change in changes)
        elif self._options.format in ("table", "wide", "csv"):
            text = self._changed_rows(changes)
        elif self._options.format in ("yaml", "jsonpath"):
            text = self._whole(rows, envelope) if changes or not self._begun else ""
        else:
            text = self._present(changes, envelope)
        self._begun = True
        if text:
            terminal.emit(self._stream, text)

    def failed(self, error: DpctlError) -> None:
        if self._on_error is not None and error.message != self._last_error:
            self._on_error(error)
        self._last_error = error.message

    def close(self) -> None:
        return

    def _changes(self, rows: Sequence[Row]) -> list[Change[Row]]:
        now = dict(_identified(rows, self._view))
        changes: list[Change[Row]] = []
        for key, found in now.items():
            before = self._seen.get(key)
            if before is None:
                changes.append(found)
            elif _lasting(before.document, self._view) != _lasting(found.document, self._view):
                changes.append(replace(found, event="changed"))
        for key, before in self._seen.items():
            if key not in now:
                changes.append(replace(before, event="removed"))
        self._seen = now
        return changes

    def _changed_rows(self, changes: list[Change[Row]]) -> str:
        """Table or CSV lines, with the event as one more column, last: the others keep their
        places, and a row that is gone must not look like one that is there."""
        csv = self._options.format == "csv"
        event: Column[Change[Row]] = Column("EVENT", lambda change: change.event.upper(), "event")
        shown = self._view.shown(wide=csv or self._options.format == "wide")
        columns = [*(_of_change(column) for column in shown), event]
        if not changes:
            return ""
        headers = not self._headed and not self._options.no_headers
        self._headed = True
        if csv:
            from dpctl.outputs.csv_text import csv_text

            safe = terminal.is_terminal(self._stream)
            return csv_text(changes, columns, headers=headers, safe=safe)
        from dpctl.outputs.table import column_widths, table_lines, text_columns

        color = terminal.wants_color(self._stream, self._options.color)
        texts = text_columns(changes, columns, color=color)
        lines = table_lines(texts, headers=headers, least_widths=self._widths)
        self._widths = [
            max(pair)
            for pair in zip(column_widths(texts), self._widths or [0] * len(texts), strict=True)
        ]
        return "".join(f"{line}\n" for line in lines)

    def _whole(self, rows: Sequence[Row], envelope: Envelope) -> str:
        text = render(rows, self._view, self._options, envelope, self._surface())
        if self._options.format == "yaml":
            return f"---\n{text}" if self._begun else text
        if text == self._last_text:
            return ""
        self._last_text = text
        return text if text.endswith("\n") else f"{text}\n"  # readings must not run together

    def _present(self, changes: list[Change[Row]], envelope: Envelope) -> str:
        """Names and custom columns of what is new or changed; they have no word for gone."""
        rows = [change.row for change in changes if change.event != "removed"]
        if not rows:
            return ""
        options = replace(self._options, no_headers=self._headed or self._options.no_headers)
        self._headed = True
        return render(rows, self._view, options, envelope, self._surface())

    def _surface(self) -> Surface:
        return Surface(is_terminal=terminal.is_terminal(self._stream))  # a dumb one


def _identified(rows: Sequence[Row], view: View[Row]) -> Iterator[tuple[Hashable, Change[Row]]]:
    """Rows under their identity; several of one key are told apart by their order."""
    counts: dict[Hashable, int] = {}
    for row in rows:
        key = view.row_key(row)
        counts[key] = counts.get(key, 0) + 1
        yield (key, counts[key]), Change("added", row, row_document(row, view))


def _lasting(document: dict[str, Any], view: View[Row]) -> dict[str, Any]:
    """Without what changes by itself."""
    return {key: value for key, value in document.items() if key not in view.volatile}


def _of_change(column: Column[Row]) -> Column[Change[Row]]:
    emphasis = column.emphasis
    return Column(
        column.title,
        lambda change: column.get(change.row),
        column.path,
        align=column.align,
        emphasis=None if emphasis is None else lambda change: emphasis(change.row),
    )


def _json_line(change: Change[Row], view: View[Row], envelope: Envelope) -> str:
    line = {
        "apiVersion": API_VERSION,
        "kind": view.kind,
        "event": change.event,
        "collectedAt": rfc3339(envelope.collected_at),
        "item": change.document,
    }
    return json_text(line) + "\n"
