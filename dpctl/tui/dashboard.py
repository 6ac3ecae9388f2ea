"""The dashboard without a terminal: what is on the screen, and what each key does to it. Pure.

Readings come in (`take`), keys come in (`press`), lines go out (`lines`). What takes time is handed
out as a `Job`; whoever holds the terminal runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpctl.inventory.rows import PluginRow
from dpctl.model import Snapshot
from dpctl.text import wrapped
from dpctl.tui import bars, details
from dpctl.tui.facts import Facts, Reading
from dpctl.tui.frame import Line, Span, both_ends, fitted, line
from dpctl.tui.grid import Grid
from dpctl.tui.keys import help_text
from dpctl.tui.pages import PAGES, Page, Scope, find_page, page_names, why_empty, why_none
from dpctl.tui.plan import Job, PlanPage
from dpctl.tui.prompt import Prompt
from dpctl.tui.proposal import Changes, Planner
from dpctl.tui.reader import Face, Reader
from dpctl.tui.sheets import Sheet, Table

LEAST = (40, 10)
"""Columns and lines below which nothing sensible fits."""


class Options(NamedTuple):
    node: str
    """What the screen calls the node before it is read."""
    live: bool = True
    ascii_only: bool = False
    changes: Changes | None = None
    """None: read only."""
    pod_text: Callable[[Snapshot, Sequence[Any]], str] | None = None
    """A pod in full, as `dpctl pods NAME` prints it."""


class Dashboard:
    def __init__(self, options: Options, page: str = "resources") -> None:
        self.options = options
        self.facts: Facts | None = None
        self.reading: Reading | None = None
        self.asked = 2.0
        """Seconds between two readings as a person asked for them."""
        self.interval = 0.0
        """Seconds between two readings where that is longer than was asked for; else 0."""
        self.prompt: Prompt | None = None
        self.quits = False
        self.wants_reading = False
        """Ctrl-R: whoever holds the poller looks at this."""
        self.wants_redraw = False
        """Ctrl-L and Ctrl-R: whoever holds the terminal looks at this."""
        self.message = ""
        self.start: Callable[[Job], None] = lambda job: None
        """Runs what takes time; whoever holds the terminal sets it."""
        self._kept: dict[str, Grid] = {}
        self.sheets: list[Sheet] = [self._sheet(find_page(page) or PAGES[0])]

    # -- readings

    @property
    def page(self) -> Page:
        """What lies at the bottom of the pile."""
        return self._page_of(0)

    def _page_of(self, at: int) -> Page:
        sheet = self.sheets[at]
        return sheet.page if isinstance(sheet, Table) else _NUMA

    def prepare(self, facts: Facts) -> None:
        """Make the rows that are in sight; for the poller's thread."""
        sheet = self.sheets[-1]
        if isinstance(sheet, Table):
            facts.rows(sheet.page.name, sheet.page.make)

    def take(self, facts: Facts) -> None:
        """A new reading. One that brought nothing leaves the last one on the screen, marked."""
        self.reading = facts.reading
        if facts.reading.error is None:
            self.facts = facts

    # -- keys

    def press(self, key: str, character: str | None = None) -> None:
        if key in ("ctrl+c", "ctrl+q"):
            self.quits = True
            return
        self.message = ""
        self.wants_redraw = key in ("ctrl+l", "ctrl+r")  # in a prompt, too
        if self.prompt is not None:
            prompt = self.prompt
            if prompt.press(key, character) and self.prompt is prompt:
                self.prompt = None
            return
        letter = character if character is not None and len(character) == 1 else ""
        self._press(letter if letter.isprintable() and letter.strip() else key, letter)

    def paste(self, text: str) -> None:
        if self.prompt is not None:
            self.prompt.add(text)

    def _press(self, key: str, letter: str) -> None:
        sheet = self.sheets[-1]
        if key == "q":
            self.quits = True
        elif key == "?":
            self._push(Reader("keys", [Face("help", lambda _f, _w: self._help())]))
        elif key == ":":
            self.prompt = Prompt(":", words=(*page_names(), "help", "quit"), entered=self._command)
        elif key == "escape":
            self._back()
        elif key == "ctrl+r":
            self.wants_reading = True
        elif key in ("tab", "shift+tab"):
            at = PAGES.index(self.page) + (1 if key == "tab" else -1)
            self._open(PAGES[at % len(PAGES)])
        elif letter.isdigit() and 1 <= int(letter) <= len(PAGES):
            self._open(PAGES[int(letter) - 1])
        elif isinstance(sheet, Table):
            self._on_table(sheet, key, letter)
        elif isinstance(sheet, Reader):
            if key == "y":
                sheet.turn()
            else:
                sheet.press(key)
        elif not sheet.press(key) and key == "enter":
            self._ask(sheet)

    def _on_table(self, table: Table, key: str, letter: str) -> None:
        self._fill(table)
        grid = table.grid
        if grid.press(key):
            return
        if key == "/":
            last = grid.pattern
            grid.filter("")
            self.prompt = Prompt("/", last=last, typed=grid.filter, left=lambda: grid.filter(""))
        elif key == "w":
            columns = len(grid.view.columns)
            shown = sum(not column.wide for column in grid.view.columns)
            grid.wide = not grid.wide if columns > shown else None
        elif letter.isupper():
            by = grid.sort(letter)
            self.message = f"sorted by {by}" if by else f"no column begins with {letter}"
        elif key in ("p", "x"):
            self._change(table, key)
        elif key in ("enter", "d", "y") and grid.chosen is not None:
            self._go_into(table, grid.chosen, key)

    def _go_into(self, table: Table, row: Any, key: str) -> None:
        deeper = table.page.deeper(row) if key == "enter" else None
        if deeper is not None:
            page = find_page(deeper.page)
            assert page is not None
            self._push(self._sheet(page, deeper.scope))
            return
        if key == "enter" and isinstance(row, PluginRow):
            self.message = f"{row.endpoint} lists no devices that the kubelet knows; d describes it"
            return
        faces = details.faces(table.page, row, self.options.pod_text)
        reader = Reader(table.page.view.short_name(row) if table.page.view else "", faces)
        if key == "y":
            reader.turn()
        self._push(reader)

    def _back(self) -> None:
        sheet = self.sheets[-1]
        if isinstance(sheet, Table) and sheet.grid.pattern:
            sheet.grid.filter("")
        elif isinstance(sheet, PlanPage) and sheet.running:
            self.message = "it is still at work; q leaves all the same"
        elif len(self.sheets) > 1:
            self.sheets.pop()

    def _command(self, text: str) -> None:
        name, _, pattern = text.strip().partition(" ")
        if name in ("q", "q!", "quit", "exit"):
            self.quits = True
        elif name in ("help", "h"):
            self._press("?", "?")
        elif name:
            page = find_page(name)
            if page is None:
                self.message = f"no page {name}: {', '.join(page_names())}"
                return
            self._open(page)
            sheet = self.sheets[-1]
            if isinstance(sheet, Table):
                sheet.grid.filter(pattern.strip())

    def _open(self, page: Page) -> None:
        """At the bottom of the pile: what was on it is left."""
        if any(isinstance(sheet, PlanPage) and sheet.running for sheet in self.sheets):
            self.message = "a change is still at work here"
            return
        self.sheets = [self._sheet(page)]

    def _push(self, sheet: Sheet) -> None:
        self.sheets.append(sheet)

    def _sheet(self, page: Page, scope: Scope | None = None) -> Sheet:
        if page.view is None:
            return Reader(page.name, details.NUMA_FACES)
        if scope is not None:
            return Table(page, Grid(page.view), scope)
        if page.name not in self._kept:  # filter, order and cursor stay
            self._kept[page.name] = Grid(page.view)
        return Table(page, self._kept[page.name])

    # -- changes

    def _change(self, table: Table, key: str) -> None:
        changes = self.options.changes
        if changes is None:
            why = "a bundle cannot be changed" if not self.options.live else "--readonly"
            self.message = f"nothing can be changed here: {why}"
            return
        row = table.grid.chosen
        resource = table.page.resource(row) if row is not None else None
        if key == "x" and table.page.change == "keys" and row is None:
            self.message = "no row is selected"
        elif key == "x" and resource is not None:
            self._plan(f"remove {resource}", changes.remove_key(resource))
        elif key == "p" and table.page.change:
            planners = {
                "keys": ("prune the Node's keys", changes.prune_keys),
                "sockets": ("prune sockets", changes.prune_sockets),
                "pods": ("prune rejected pods", changes.prune_pods),
            }
            self._plan(*planners[table.page.change])
        else:
            pages = {"p": "resources, node, plugins and failed", "x": "resources and node"}
            self.message = f"{key} works on {pages[key]}"

    def _plan(self, title: str, planner: Planner) -> None:
        page = PlanPage(title, planner, self.start)
        self._push(page)

    def _ask(self, page: PlanPage) -> None:
        if page.asks:
            self.prompt = page.prompt(left=self._back)

    def settled(self) -> None:
        """A job has ended or said something: a plan that asks gets its prompt at once."""
        sheet = self.sheets[-1]
        if isinstance(sheet, PlanPage) and sheet.asks and self.prompt is None:
            self._ask(sheet)

    @property
    def at_work(self) -> PlanPage | None:
        """A change that is not at its end."""
        pages = (sheet for sheet in self.sheets if isinstance(sheet, PlanPage) and sheet.running)
        return next(pages, None)

    # -- lines

    def lines(self, columns: int, rows: int, now: float) -> list[Line]:
        """The whole screen: exactly `rows` lines of exactly `columns` columns. `now`: monotonic."""
        room, height = max(columns, 1), max(rows, 1)
        if columns < LEAST[0] or rows < LEAST[1]:
            text = f"the terminal is too small: {LEAST[0]} by {LEAST[1]} at least"
            found = [line(part) for part in wrapped(text, room, "")]
        else:
            body = height - 4 - bars.DETAIL
            shown = self._body(room, body)
            found = [
                bars.tabs(self.page),
                both_ends(
                    bars.crumbs(self.sheets, self.prompt is None), bars.age(self, now, room), room
                ),
                bars.notice(self, now, room),
                *shown,
                *[()] * (body - len(shown)),
                *bars.detail(self.sheets[-1], room),
                self.prompt.line(room) if self.prompt is not None else bars.foot(self, room),
            ]
        found += [()] * (height - len(found))
        ascii_only = self.options.ascii_only
        return [fitted(each, room, ascii_only=ascii_only) for each in found[:height]]

    def _body(self, room: int, height: int) -> list[Line]:
        sheet = self.sheets[-1]
        if isinstance(sheet, PlanPage):
            return sheet.lines(room, height)
        if isinstance(sheet, Reader) and sheet.title == "keys":
            return sheet.lines(self.facts, room, height)
        if self.facts is None:
            return self._nothing_yet(room)
        if isinstance(sheet, Reader):
            return sheet.lines(self.facts, room, height)
        self._fill(sheet)
        found = sheet.grid.lines(room, height)
        if sheet.grid.rows:
            return found
        if sheet.grid.total:
            return [*found, (), *_said(f"no row has {sheet.grid.pattern}", "Esc clears it", room)]
        if sheet.scope is not None:
            text = why_none(sheet.page, sheet.scope, self.facts)
            return [*found, (), *_said(text, None, room)]
        return [*found, (), *_said(*why_empty(sheet.page, self.facts), room)]

    def _fill(self, table: Table) -> None:
        """The rows of the reading at hand."""
        if self.facts is None:
            return
        page, scope = table.page, table.scope
        rows = self.facts.rows(page.name, page.make)
        if scope is not None:
            whole, holds = rows, scope.holds
            rows = self.facts.rows((page.name, scope), lambda _: [r for r in whole if holds(r)])
        table.grid.take(rows)

    def _nothing_yet(self, room: int) -> list[Line]:
        if self.reading is not None and self.reading.error is not None:
            error = self.reading.error
            return [(), *_said(f"! {error.message}", error.hint, room)]
        return [(), line("  ", Span("reading the node …", "dim"))]

    def _help(self) -> str:
        return help_text(readonly=self.options.changes is None)


_NUMA = next(page for page in PAGES if page.view is None)


def _said(text: str, hint: str | None, room: int) -> list[Line]:
    found = [line("  ", Span(part, "strong")) for part in wrapped(text, room - 4)]
    return [*found, *(line("  ", Span(p, "dim")) for p in wrapped(hint or "", room - 4) if p)]
