"""The lines around the table: pages, where one is, how old the data is, what is wrong, the keys.

Pure: the dashboard in, lines out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpctl.columns import age_text
from dpctl.documents import rfc3339
from dpctl.text import wrapped
from dpctl.tui.frame import Line, Span, both_ends, cut, line, safe
from dpctl.tui.pages import PAGES, Page
from dpctl.tui.plan import PlanPage
from dpctl.tui.reader import Reader
from dpctl.tui.sheets import Sheet, Table

if TYPE_CHECKING:
    from dpctl.tui.dashboard import Dashboard

DETAIL = 2
"""Lines below a table for what its chosen row has no room for."""
_MISSED = 2
"""Readings that fail to come before the data counts as old."""
_PATIENCE = 2.0
_EVERYWHERE = (":", "/", "d")
"""Keys that the foot leaves out first: `?` has them."""
_BESIDE = 23
"""Columns of the second line that the node's name leaves to the others."""
_LEAST_NAME = 8


def tabs(here: Page) -> Line:
    spans = [Span(" ")]
    for page in PAGES:
        text = f"[{page.name}]" if page is here else f" {page.name} "
        spans.append(Span(text, "tab" if page is here else "dim"))
    return tuple(spans)


def crumbs(sheets: Sequence[Sheet], show_filter: bool) -> Line:
    parts: list[str] = []
    for sheet in sheets:
        if isinstance(sheet, Table):
            parts += [*([sheet.scope.label] if sheet.scope else []), sheet.page.name]
        else:
            parts.append(sheet.title)
    spans = [Span(" "), Span(" › ".join(parts), "strong")]
    last = sheets[-1]
    if isinstance(last, Table):
        spans.append(Span(f"  {last.grid.position()}", "dim"))
        if last.grid.pattern and show_filter:
            spans.append(Span(f"  /{last.grid.pattern}", "accent"))
    else:
        state = last.position() if isinstance(last, Reader) else last.state()
        spans.append(Span(f"  {state}", "dim"))
    return tuple(spans)


def age(board: Dashboard, now: float, room: int) -> Line:
    """Whose data, and how old: at any time, on every page. A long name of the node is cut."""
    facts = board.facts
    node = facts.snapshot.node.name if facts and facts.snapshot.node else board.options.node
    said = _how_old(board, now)
    shown = cut(safe(node), max(room - len(said.text) - _BESIDE, _LEAST_NAME))
    return line(f"{shown}  ", said, " ")


def _how_old(board: Dashboard, now: float) -> Span:
    facts = board.facts
    if facts is None:
        return Span("no data yet", "strong")
    if not board.options.live:
        at = rfc3339(facts.snapshot.collected_at)
        text = f"captured {at.partition('.')[0].rstrip('Z')}Z" if at else "captured, unknown when"
        return Span(text, "strong")
    old = max(now - facts.reading.began, 0.0)
    text = f"data {age_text(old)} old"
    if is_old(board, now):
        return Span(f"! {text}", "bad")
    pause = f" (read every {age_text(board.interval)})" if board.interval else ""
    return Span(f"{text}{pause}", "strong")


def is_old(board: Dashboard, now: float) -> bool:
    """Older than readings are that come as they should."""
    if board.facts is None or not board.options.live:
        return False
    pause = max(board.interval, board.asked)
    return now - board.facts.reading.began > _MISSED * pause + _PATIENCE


def notice(board: Dashboard, now: float, room: int) -> Line:
    """What must not be overlooked; else a message; else nothing."""
    sheet, facts, reading = board.sheets[-1], board.facts, board.reading
    if reading is not None and reading.error is not None and facts is not None:
        return line(" ", Span(f"! cannot read now: {reading.error.message}", "bad"))
    if isinstance(sheet, Reader) and sheet.gone:
        return line(" ", Span("! no longer there: this is how it was seen last", "warn"))
    if board.message:
        return line(" ", Span(board.message, "accent"))
    if is_old(board, now):
        return line(" ", Span("! a source does not answer; this is the last reading", "bad"))
    warnings = facts.reading.warnings if facts is not None else ()
    if warnings:
        more = f" (+{len(warnings) - 1}: page sources)" if len(warnings) > 1 else ""
        text = cut(safe(warnings[0]), max(room - len(more) - 4, 0))
        return line(" ", Span(f"! {text}{more}", "warn"))
    return ()


def detail(sheet: Sheet, room: int) -> list[Line]:
    """What the chosen row's line has no room for: a sentence, then the rest."""
    if isinstance(sheet, Reader):
        return [()] * DETAIL
    pairs = sheet.grid.hidden(room) if isinstance(sheet, Table) else sheet.hidden(room)
    lines: list[Line] = []
    if len(pairs) == 1:
        title, value = pairs[0]
        parts = wrapped(f"{title} {value}"[: 4 * room], room - 4, "")
        if len(parts) > DETAIL:
            parts[DETAIL - 1] = cut(f"{parts[DETAIL - 1]} {parts[DETAIL]}", room - 4)
        first = parts[0].removeprefix(title)
        lines = [line("  ", Span(title, "dim"), first), *(line("  ", p) for p in parts[1:DETAIL])]
    elif pairs:
        (title, value), *others = pairs
        rest = [span for t, v in others for span in (Span(f"{t} ", "dim"), Span(f"{v}   "))]
        lines = [line("  ", Span(f"{title} ", "dim"), value), line("  ", *rest)]
    return [*lines, *[()] * (DETAIL - len(lines))]


def foot(board: Dashboard, room: int) -> Line:
    always = [("?", "keys"), ("q", "quit")]
    keys, ending = _keys(board), (*_hints(always), Span(" "))
    for least in _EVERYWHERE:  # what works on this page alone stays in sight
        if _long(_hints(keys)) + _long(ending) + 3 > room:
            keys = [pair for pair in keys if pair[0] != least]
    return both_ends((Span(" "), *_hints(keys)), ending, room)


def _long(spans: Sequence[Span]) -> int:
    return sum(len(span.text) for span in spans)


def _hints(keys: Sequence[tuple[str, str]]) -> list[Span]:
    spans: list[Span] = []
    for key, does in keys:
        spans += [Span("  ")] if spans else []
        spans += [Span(key, "accent"), Span(f" {does}", "dim")]
    return spans


def _keys(board: Dashboard) -> list[tuple[str, str]]:
    sheet = board.sheets[-1]
    back = [("Esc", "back")] if len(board.sheets) > 1 else []
    if isinstance(sheet, PlanPage):
        return [*([("Enter", "agree")] if sheet.asks else []), *back]
    if isinstance(sheet, Reader):
        faces = [("y", "YAML, JSON")] if sheet.title != "keys" else []
        return [*back, *faces, *([("PgDn", "more")] if sheet.more else []), (":", "page")]
    hints = [*back, ("Enter", sheet.page.inside or "in full"), ("d", "describe")]
    hints += [("/", "filter"), (":", "page")]
    if board.options.changes is not None:
        hints += [("p", "prune")] if sheet.page.change else []
        hints += [("x", "remove")] if sheet.page.change == "keys" else []
    return hints
