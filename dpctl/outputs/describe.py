"""Plain text in the look of `kubectl describe`: keys, aligned values, nested parts indented. Pure.

Name:        train-0
Containers:
  main:
    Devices:  gpu-0
              gpu-1
    Mounts:
      /dev/nvidia0   rw   present
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpctl.columns import Column, Row, cell_text
from dpctl.outputs.table import table_lines, text_columns
from dpctl.text import escape, width

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Part:
    """Key and value pairs one level deeper, in order; keys may repeat. Empty: `-`."""

    entries: tuple[tuple[str, object], ...]

    @classmethod
    def of(cls, entries: Iterable[tuple[str, object]] | Mapping[str, object]) -> Part:
        return cls(tuple(entries.items() if isinstance(entries, Mapping) else entries))


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines one level deeper, such as a table (`table`). Empty: `-`."""

    lines: tuple[str, ...]

    @classmethod
    def table(
        cls, rows: Sequence[Row], columns: Sequence[Column[Row]], *, headers: bool = True
    ) -> Lines:
        if not rows:
            return cls(())
        return cls(tuple(table_lines(text_columns(rows, columns), headers=headers)))


def describe_text(entries: Iterable[tuple[str, object]] | Part) -> str:
    """The text, one line or more per entry, each ended by a newline.

    A value is a scalar (as `cell_text` has it), a list of scalars (one a line, aligned), a `Part`
    or mapping (nested), or `Lines`. Keys and texts are escaped.
    """
    part = entries if isinstance(entries, Part) else Part.of(entries)
    lines: list[str] = []
    _part(part, "", lines)
    return "".join(f"{line}\n" for line in lines)


def _part(part: Part, indent: str, lines: list[str]) -> None:
    room = max((width(escape(key)) for key, value in part.entries if not _nests(value)), default=0)
    for key, value in part.entries:
        title = f"{indent}{escape(key)}:"
        if isinstance(value, Mapping):
            value = Part.of(value)
        if _nests(value):
            lines.append(title)
            deeper = indent + _INDENT
            if isinstance(value, Part):
                _part(value, deeper, lines)
            elif isinstance(value, Lines):
                lines += [deeper + escape(line) for line in value.lines]
            continue
        blank = " " * (room - width(escape(key)) + 2)
        first, *rest = _texts(value)
        lines.append(f"{title}{blank}{first}")
        lines += [f"{indent}{' ' * (room + 3)}{text}" for text in rest]


def _nests(value: object) -> bool:
    """An empty part does not: its `-` stands beside the key."""
    if isinstance(value, Part):
        return bool(value.entries)
    if isinstance(value, Lines):
        return bool(value.lines)
    return isinstance(value, Mapping) and bool(value)


def _texts(value: object) -> list[str]:
    if isinstance(value, Part | Lines):
        return ["-"]
    if isinstance(value, tuple | list):
        return [cell_text(item) for item in value] or ["-"]
    return [cell_text(value)]
