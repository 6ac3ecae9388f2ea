"""What a view is made of: `Column`, `View`, and how one value reads in a cell.

Types only: no view is declared here (that is `views`), nothing is written (that is `output.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar

from dpctl.text import escape, natural_key

Row = TypeVar("Row")
Emphasis = Literal["good", "bad", "warn"]

Time = Annotated[float, "time"]
"""Unix seconds; documents show a field of this type (or one named `…_at`) as RFC 3339 UTC."""


class Unknown(Enum):
    """Type of `UNKNOWN`, so that `int | Unknown | None` can be told apart."""

    UNKNOWN = "?"


UNKNOWN: Final = Unknown.UNKNOWN
"""It exists, and nobody could say what it is: `?` in a table, null in a document."""


def or_unknown(value: object) -> object:
    return UNKNOWN if value is None else value


class Column(NamedTuple, Generic[Row]):
    """One column of a view; table, wide, csv and the dashboard all show it.

    `path` is the dotted path of the value in the row's document (`numaNodes`, `node.capacity`):
    what `--sort-by` and custom-columns call it.
    """

    title: str
    """As printed, upper case: `RESOURCE`, `POD NAME`."""
    get: Callable[[Row], object]
    """The value, not its text: `cell_text` writes it."""
    path: str
    wide: bool = False
    """Only in `-o wide` and `-o csv`."""
    align: Literal["left", "right"] = "left"
    emphasis: Callable[[Row], Emphasis | None] | None = None
    """Colour on a terminal; the text must say it without."""


NOTHING_FOUND = "No resources found"


class View(NamedTuple, Generic[Row]):
    """How rows of one type are shown, in every format."""

    kind: str
    """Of one row: `Resource`; the document's kind is this and `List`."""
    columns: tuple[Column[Row], ...]
    name: Callable[[Row], str]
    """For `-o name`: `resource/vendor.example/gpu`. Rows are sorted by it, in natural order."""
    document: Callable[[Row], dict[str, Any]] | None = None
    """The row as JSON; None: `documents.document`, field by field."""
    row_type: type[Row] | None = None
    """For `dpctl schema`; the view of a dataclass gives it."""
    short: Callable[[Row], str] | None = None
    """For `-q`, what other commands take as an argument: `vendor.example/gpu`. None: `name`."""
    key: Callable[[Row], Hashable] | None = None
    """What makes a row the same row in the next reading (`-w`). None: `name`."""
    volatile: frozenset[str] = frozenset({"age"})
    """Keys of the document that change by themselves: `-w` does not count that as a change."""
    nothing: str = NOTHING_FOUND
    """Said on stderr where there is no row at all, as kubectl says it."""
    order: Callable[[Row], Any] | None = None
    """Sort key, where the name is not enough. None: `natural_key(name)`."""

    def shown(self, *, wide: bool) -> tuple[Column[Row], ...]:
        return tuple(column for column in self.columns if wide or not column.wide)

    def short_name(self, row: Row) -> str:
        return (self.short or self.name)(row)

    def row_key(self, row: Row) -> Hashable:
        return (self.key or self.name)(row)

    def sort_key(self, row: Row) -> Any:
        return self.order(row) if self.order else natural_key(self.name(row))


_SETS = (frozenset, set)
_COLLECTIONS = (tuple, list, *_SETS)


def cell_text(value: object, *, safe: bool = True) -> str:
    """One value as a cell shows it, on one line.

    None and an empty collection `-`, `UNKNOWN` `?`, numbers decimal (zero is `0`), bool `yes`/`no`,
    an enum its value, collections joined by `,`, a mapping as `key=value`. An empty text is `""`:
    a cell is never blank, so that columns can be counted. `safe=False` leaves texts unescaped.
    """
    if isinstance(value, Unknown):
        return "?"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return (escape(value) if safe else value) or '""'
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, Mapping):
        pairs = (f"{cell_text(k, safe=safe)}={cell_text(v, safe=safe)}" for k, v in value.items())
        return ",".join(pairs) or "-"
    if isinstance(value, _COLLECTIONS):
        items = sorted(value, key=str) if isinstance(value, _SETS) else value
        return ",".join(cell_text(item, safe=safe) for item in items) or "-"
    text = str(value)
    return escape(text) if safe else text


def age_text(seconds: float | None) -> str | None:
    """A duration as kubectl's AGE column: `12s`, `2m5s`, `47m`, `5h12m`, `3d4h`, `17d`, `2y30d`.

    None stays None; a moment in the future (clocks differ) counts as `0s`.
    """
    if seconds is None:
        return None
    whole = max(int(seconds), 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
