"""A table on the screen: filter, order, cursor, and the lines that are in sight. Pure.

10 000 rows are common (replicas, virtual functions): texts are made once per reading, a filter
looks at texts alone, and a frame makes the lines in sight and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpctl.columns import Column, View, cell_text
from dpctl.outputs.sorting import sorted_rows
from dpctl.outputs.table import TextColumn, column_widths, cut
from dpctl.text import width
from dpctl.tui.frame import Line, Span, StyleName

_GAP = 2
_MARGIN = 2
"""Where the mark of the chosen row stands, so that it is seen without colour, too."""

_ENDS = 1000
"""Characters at either end of a text that are looked at: no cell is wider."""
_SHORT = 12
_NAME = 22
_SENTENCES = frozenset({"NOTE", "REASON", "MESSAGE", "NEXT", "EVIDENCE", "DETAIL"})


class Grid:
    """The rows of one view. `take` brings another reading; the cursor stays on its row."""

    def __init__(
        self, view: View[Any], *, shown: Callable[[Column[Any]], bool] | None = None
    ) -> None:
        """`shown`: the columns of the narrow table, where it is not the view's own choice."""
        self.view = view
        self.wide: bool | None = None
        """None: as many columns as the screen has room for."""
        self.by: Column[Any] | None = None
        self.descending = False
        self.pattern = ""
        self.cursor = 0
        self.top = 0
        self.rows: list[Any] = []
        """In order, and filtered."""
        self.total = 0
        self._shown = shown or (lambda column: not column.wide)
        self._given: Sequence[Any] = ()
        self._texts: dict[str, list[str]] = {}
        """Column's title to the texts of `_ordered`."""
        self._joined: list[str] = []
        self._ordered: list[Any] = []
        self._kept: list[int] = []
        """Places in `_ordered` of what the filter lets through."""
        self._widths: dict[str, int] = {}
        self._telling: dict[str, bool] = {}
        self._height = 1

    # -- what is shown

    def take(self, rows: Sequence[Any]) -> None:
        if rows is self._given and self._ordered:
            return
        self._given = rows
        self._order()

    def filter(self, pattern: str) -> None:
        """Words that must all stand somewhere in the row, in any case; `!word` must not."""
        if pattern != self.pattern:
            self.pattern = pattern
            self._select(self.chosen, 0)

    def sort(self, letter: str) -> str | None:
        """By the next column whose title begins so; by the same one again: the other way round,
        then by name again. Its title; None: there is no such column."""
        begun = [c for c in self.view.columns if c.title.startswith(letter.upper())]
        if not begun:
            return None
        if self.by in begun and not self.descending:
            self.descending = True
        elif self.by in begun:
            at = begun.index(self.by) + 1
            self.by, self.descending = (begun[at] if at < len(begun) else None), False
        else:
            self.by, self.descending = begun[0], False
        self._order()
        return self.by.title if self.by else "the name"

    @property
    def chosen(self) -> Any | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def _order(self) -> None:
        chosen = self.chosen
        self._ordered = sorted_rows(self._given, self.view, self.by.title if self.by else None)
        if self.descending:
            self._ordered.reverse()
        self.total = len(self._ordered)
        self._texts.clear()
        self._joined = []
        self._select(chosen, self.cursor)

    def _select(self, chosen: Any | None, otherwise: int) -> None:
        words = self.pattern.casefold().split()
        if words:
            must = [word for word in words if not word.startswith("!")]
            must_not = [word[1:] for word in words if word.startswith("!") and word[1:]]
            self._kept = [
                at
                for at, text in enumerate(self._whole())
                if all(w in text for w in must) and not any(w in text for w in must_not)
            ]
        else:
            self._kept = list(range(len(self._ordered)))
        self.rows = [self._ordered[at] for at in self._kept]
        self._widths.clear()
        self._telling.clear()
        self._go_back_to(chosen, otherwise)

    def _go_back_to(self, chosen: Any | None, otherwise: int) -> None:
        """The cursor stays on its row, wherever that is now; else where it was. Where it was is no
        place under another filter: then it goes to the first row."""
        if chosen is not None:
            key, at = self.view.row_key(chosen), self.cursor
            here = at < len(self.rows) and self.view.row_key(self.rows[at]) == key
            if not here:
                found = (i for i, row in enumerate(self.rows) if self.view.row_key(row) == key)
                self.cursor = next(found, otherwise)
        self.cursor = max(min(self.cursor, len(self.rows) - 1), 0)

    def _column(self, column: Column[Any]) -> list[str]:
        if column.title not in self._texts:
            self._texts[column.title] = [cell_text(column.get(row)) for row in self._ordered]
        return self._texts[column.title]

    def _whole(self) -> list[str]:
        """What a filter looks at: all texts of each row."""
        if not self._joined:
            columns = [self._column(column) for column in self.view.columns]
            self._joined = ["\n".join(c).casefold() for c in zip(*columns, strict=True)]
        return self._joined

    # -- moving

    def press(self, key: str) -> bool:
        """Move the cursor. False: not a key of a table."""
        page = max(self._height - 2, 1)
        last = len(self.rows) - 1
        moves = {
            "up": -1, "k": -1, "down": 1, "j": 1,
            "pageup": -page, "ctrl+b": -page, "pagedown": page, "ctrl+f": page, "space": page,
            "home": -last, "g": -last, "end": last, "G": last,
        }  # fmt: skip
        if key not in moves:
            return False
        self.cursor = max(min(self.cursor + moves[key], last), 0)
        return True

    # -- lines

    def lines(self, room: int, height: int) -> list[Line]:
        """Headings and the rows in sight: exactly `height` lines or fewer."""
        self._height = height
        count = max(height - 1, 1)
        self.top = max(min(self.top, self.cursor, len(self.rows) - count), 0)
        if self.cursor >= self.top + count:
            self.top = self.cursor - count + 1
        columns = self.columns(room)
        widths = self._fitted(columns, room)
        head = [self._title(column) for column in columns]
        found = [self._line(columns, widths, head, None)]
        for at in range(self.top, min(self.top + count, len(self.rows))):
            cells = [self._column(column)[self._kept[at]] for column in columns]
            found.append(self._line(columns, widths, cells, at))
        return found

    def columns(self, room: int) -> list[Column[Any]]:
        """Which are shown. Where there is no room for all narrow ones, those go that say nothing
        (`-` in every row), then those that do not fit: the chosen row's are told below the table.
        Wide ones come where no narrow one is cut for them."""
        narrow = [column for column in self.view.columns if self._shown(column)]
        if self.wide:
            return list(self.view.columns)
        left = room - _MARGIN + _GAP
        chosen: set[str] = set()
        telling = [column for column in narrow if self._tells(column)]
        for column in (*telling, *(c for c in narrow if c not in telling)):
            need = self._floor(column) + _GAP
            if need <= left or not chosen:
                left -= need
                chosen.add(column.title)
        if self.wide is None and len(chosen) == len(narrow):
            left -= sum(self._width(column) - self._floor(column) for column in narrow)
            for column in self.view.columns:
                need = self._width(column)
                if column.title == "NOTE":  # sentences: their beginning is worth having
                    need = min(need, max(left - _GAP, 30))
                if column.title not in chosen and need + _GAP <= left and self._tells(column):
                    left -= need + _GAP
                    chosen.add(column.title)
        return [column for column in self.view.columns if column.title in chosen]

    def hidden(self, room: int) -> list[tuple[str, str]]:
        """Title and text of what the chosen row's line does not show in full; sentences first."""
        if self.chosen is None:
            return []
        columns = self.columns(room)
        titles = [column.title for column in columns]
        widths = dict(zip(titles, self._fitted(columns, room), strict=True))
        at = self._kept[self.cursor]
        texts = [(column.title, self._column(column)[at]) for column in self.view.columns]
        found = [
            (title, text)
            for title, text in texts
            if (width(text) > widths[title] if title in widths else text not in ("-", "?"))
        ]
        return sorted(found, key=lambda pair: pair[0] not in _SENTENCES)

    def position(self) -> str:
        """`5`, `18-34 of 10000`, `3 of 5` under a filter."""
        shown, count = len(self.rows), max(self._height - 1, 1)
        of = f" of {self.total}" if shown != self.total else ""
        if shown <= count:
            return f"{shown}{of}"
        last = min(self.top + count, shown)
        return f"{self.top + 1}-{last} of {shown}{f' ({self.total})' if of else ''}"

    def _title(self, column: Column[Any]) -> str:
        if column is not self.by:
            return column.title
        return f"{column.title}{'↓' if self.descending else '↑'}"

    def _width(self, column: Column[Any]) -> int:
        if column.title not in self._widths:
            texts = self._column(column)
            if len(self._kept) != len(texts):
                texts = [texts[at] for at in self._kept]
            self._widths[column.title] = column_widths([TextColumn(column.title, texts)])[0]
        return max(self._widths[column.title], len(self._title(column)))

    def _tells(self, column: Column[Any]) -> bool:
        if column.title not in self._telling:
            texts = self._column(column)
            self._telling[column.title] = any(texts[at] != "-" for at in self._kept)
        return self._telling[column.title]

    def _floor(self, column: Column[Any]) -> int:
        """Below this nothing is cut: the first column names the row."""
        full = self._width(column)
        if column.align == "right" or full <= _SHORT:
            return full
        first = column is self.view.columns[0]
        return min(full, _NAME if first else max(len(self._title(column)), _SHORT))

    def _fitted(self, columns: Sequence[Column[Any]], room: int) -> list[int]:
        """Widths: what is left over goes to the first column, then to the narrowest that is cut."""
        widths = [self._floor(column) for column in columns]
        spare = room - _MARGIN - sum(widths) - _GAP * (len(columns) - 1)
        full = [self._width(column) for column in columns]
        while spare > 0:
            short = [at for at, found in enumerate(widths) if found < full[at]]
            if not short:
                break
            at = 0 if short[0] == 0 else min(short, key=widths.__getitem__)
            widths[at] += 1
            spare -= 1
        return widths

    def _line(
        self,
        columns: Sequence[Column[Any]],
        widths: Sequence[int],
        cells: Sequence[str],
        at: int | None,
    ) -> Line:
        chosen = at is not None and at == self.cursor
        base: StyleName = "head" if at is None else "chosen" if chosen else "plain"
        spans = [Span("› " if chosen else "  ", base)]
        for column, room, text in zip(columns, widths, cells, strict=True):
            shown = _cell(text, room)
            blank = " " * (room - width(shown))
            style = base
            if at is None and column is self.by:
                style = "accent"
            elif at is not None and not chosen and column.emphasis is not None:
                style = column.emphasis(self.rows[at]) or base
            parts = (blank, shown) if column.align == "right" else (shown, blank)
            spans += [Span(part, style if part is shown else base) for part in parts if part]
            spans.append(Span(" " * _GAP, base))
        return tuple(spans)


def _cell(text: str, room: int) -> str:
    """As in the commands' tables: names lose their middle, sentences their end."""
    return cut(text if len(text) <= 2 * _ENDS else text[:_ENDS] + text[-_ENDS:], room)
