"""Rows → stdout, in the format that was asked for. Chooses and writes; how each format looks is in
`outputs/`. It, `pretty` and `picture` are the only ones that write stdout (watching goes through
here; `complete` and the dashboard's screen apart).

A new format is one function here, one entry in `_FORMATS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TextIO, TypeVar

from dpctl.columns import NOTHING_FOUND, Row, View
from dpctl.documents import Envelope, json_text, list_document, row_document
from dpctl.errors import UsageError
from dpctl.outputs import terminal
from dpctl.outputs.sorting import sorted_rows
from dpctl.outputs.terminal import ColorWhen
from dpctl.text import did_you_mean

if TYPE_CHECKING:
    from dpctl.outputs.table import TextColumn

_Given = TypeVar("_Given", contravariant=True)
JSON_INDENT = 4


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What the flags say of printing. Raises UsageError for what cannot be printed, before
    anything is read."""

    output: str = "table"
    """`-o`: table, wide, json, yaml, name, csv, jsonpath=EXPR, custom-columns=NAME:PATH,…"""
    quiet: bool = False
    """`-q`: names only, whatever `output` says."""
    no_headers: bool = False
    no_trunc: bool = False
    sort_by: str | None = None
    color: ColorWhen = "auto"

    def __post_init__(self) -> None:
        name, _, argument = self.output.partition("=")
        found = _FORMATS.get(name)
        if found is None or (found.example is None and "=" in self.output):
            offered = ", ".join(
                f"{each}={f.example}" if f.example else each for each, f in _FORMATS.items()
            )
            meant = did_you_mean(name, _FORMATS)
            raise UsageError(f"unknown output format {self.output!r}", f"{meant}one of: {offered}")
        if found.example is not None and not argument:
            raise UsageError(
                f"-o {name} needs an argument", f"for example: -o '{name}={found.example}'"
            )
        if name == "jsonpath":
            from dpctl.outputs.jsonpath_parse import parse_template

            parse_template(argument)
        elif name == "custom-columns":
            from dpctl.outputs.custom_columns import parse_spec

            parse_spec(argument)
        if self.sort_by is not None:
            from dpctl.outputs.jsonpath_parse import parse_path

            # A title may hold a blank (`POD NAME`), a path of one word reads alike.
            if not self.sort_by.replace(" ", "").isalnum():
                parse_path(self.sort_by)

    @property
    def format(self) -> str:
        """`table`, `wide`, `json`, `yaml`, `name`, `csv`, `jsonpath` or `custom-columns`."""
        return "name" if self.quiet else self.output.partition("=")[0]

    @property
    def argument(self) -> str:
        return self.output.partition("=")[2]

    @property
    def is_table(self) -> bool:
        return self.format in ("table", "wide")

    @property
    def complete(self) -> bool:
        """Whether more can be seen than the default table's columns, so that the sources of the
        wide ones are worth asking."""
        return self.format not in ("table", "name") or self.sort_by is not None


@dataclass(frozen=True, slots=True)
class Surface:
    """What is being written on."""

    is_terminal: bool = False
    columns: int = 0
    """Width to cut tables to; 0: none."""
    color: bool = False

    @classmethod
    def of(cls, stream: TextIO, options: OutputOptions) -> Surface:
        on_terminal = terminal.is_terminal(stream)
        cuts = on_terminal and not options.no_trunc
        return cls(
            on_terminal,
            terminal.size(stream)[0] if cuts else 0,
            terminal.wants_color(stream, options.color),
        )


def write(
    rows: Iterable[Row],
    view: View[Row],
    *,
    options: OutputOptions,
    snapshot_meta: Envelope,
    stream: TextIO | None = None,
) -> None:
    """Sort the rows and print them. No rows: an empty document, or nothing in a table, where the
    caller says `nothing_found` on stderr.

    Raises UsageError (an unknown `--sort-by`, a path that cannot apply), OSError when nobody takes
    the text (BrokenPipeError under `| head`).
    """
    stream = stream or sys.stdout
    ordered = sorted_rows(rows, view, options.sort_by)
    text = render(ordered, view, options, snapshot_meta, Surface.of(stream, options))
    terminal.emit(stream, text)


class RowPrinter(Generic[Row]):
    """`write` for rows that come in batches, each sorted by itself: what one batch gave is printed
    before the next one is read, so that memory stays flat. Only `jsonpath` and `--sort-by` need
    all rows first."""

    def __init__(
        self, view: View[Row], *, options: OutputOptions, stream: TextIO | None = None
    ) -> None:
        self._view = view
        self._options = options
        self._stream = stream or sys.stdout
        self._surface = Surface.of(self._stream, options)
        self._kept: list[Row] | None = None
        self.begun = False
        """Whether anything has been printed, so that a document must be closed."""
        if options.format == "jsonpath" or options.sort_by is not None:
            self._kept = []
        else:
            self._rows = _stream(view, options, self._surface)

    def add(self, rows: Iterable[Row]) -> None:
        """Raises as `write`."""
        if self._kept is not None:
            self._kept += rows
            return
        text = self._rows.rows(sorted_rows(rows, self._view, None))
        if text:
            self.begun = True
            terminal.emit(self._stream, text)

    def close(self, envelope: Envelope) -> None:
        """What comes after the last row."""
        if self._kept is not None:
            rows = self._kept
            write(
                rows,
                self._view,
                options=self._options,
                snapshot_meta=envelope,
                stream=self._stream,
            )
            return
        text = self._rows.end(envelope)
        if text:
            terminal.emit(self._stream, text)


def write_text(text: str, *, stream: TextIO | None = None) -> None:
    """Print what was laid out elsewhere (`describe_text`), already escaped; ends with a newline."""
    terminal.emit(stream or sys.stdout, text if text.endswith("\n") or not text else text + "\n")


def write_document(
    document: dict[str, Any], *, options: OutputOptions, stream: TextIO | None = None
) -> None:
    """Print one JSON document that is no list of rows (a schema, a description), as JSON or YAML
    as `options` say, JSON for any format without a document."""
    if options.format == "yaml":
        from dpctl.outputs.yaml_text import yaml_text

        terminal.emit(stream or sys.stdout, yaml_text(document))
        return
    terminal.emit(stream or sys.stdout, json_text(document, indent=JSON_INDENT) + "\n")


def nothing_found(
    rows: Sequence[object], options: OutputOptions, sentence: str = NOTHING_FOUND
) -> str | None:
    """The sentence for stderr when a table stays empty (the exit code is 0 all the same); None when
    there are rows, or the format shows emptiness itself."""
    return sentence if not rows and (options.is_table or options.format == "name") else None


def render(
    rows: Sequence[Row],
    view: View[Row],
    options: OutputOptions,
    envelope: Envelope,
    surface: Surface,
) -> str:
    """The whole text for rows that are sorted already. Pure."""
    return _FORMATS[options.format].render(_Job(rows, view, options, envelope, surface))


@dataclass(frozen=True, slots=True)
class _Job:
    rows: Sequence[Any]
    view: View[Any]
    options: OutputOptions
    envelope: Envelope
    surface: Surface

    def documents(self) -> list[dict[str, Any]]:
        return [row_document(row, self.view) for row in self.rows]

    def list_document(self) -> dict[str, Any]:
        return list_document(self.documents(), self.view.kind, self.envelope)


def _table(job: _Job) -> str:
    from dpctl.outputs.table import table_lines, text_columns

    if not job.rows:
        return ""
    shown = job.view.shown(wide=job.options.format == "wide")
    columns = text_columns(job.rows, shown, color=job.surface.color)
    lines = table_lines(columns, headers=not job.options.no_headers, limit=job.surface.columns)
    return _lines(lines)


def _json(job: _Job) -> str:
    return json_text(job.list_document(), indent=JSON_INDENT) + "\n"


def _yaml(job: _Job) -> str:
    from dpctl.outputs.yaml_text import yaml_text

    return yaml_text(job.list_document())


def _name(job: _Job) -> str:
    from dpctl.text import escape

    # One line a name, so always escaped; a row each for one pod's containers says its name once.
    name = job.view.short_name if job.options.quiet else job.view.name
    return _lines(list(dict.fromkeys(escape(name(row)) for row in job.rows)))


def _csv(job: _Job) -> str:
    from dpctl.outputs.csv_text import csv_text

    return csv_text(
        job.rows,
        job.view.columns,
        headers=not job.options.no_headers,
        safe=job.surface.is_terminal,
    )


def _jsonpath(job: _Job) -> str:
    from dpctl.outputs.jsonpath_parse import parse_template

    template = parse_template(job.options.argument)
    return template.render(job.list_document(), safe=job.surface.is_terminal)


def _custom_columns(job: _Job) -> str:
    from dpctl.outputs.custom_columns import custom_columns, parse_spec
    from dpctl.outputs.table import table_lines

    columns = custom_columns(job.documents(), parse_spec(job.options.argument))
    headers = not job.options.no_headers
    return _lines(table_lines(columns, headers=headers, limit=job.surface.columns))


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


class _Stream(Protocol[_Given]):
    """A format that needs no look at all rows."""

    def rows(self, rows: Sequence[_Given]) -> str: ...

    def end(self, envelope: Envelope) -> str: ...


def _stream(view: View[Row], options: OutputOptions, surface: Surface) -> _Stream[Row]:
    from dpctl.outputs import rows_stream

    headers = not options.no_headers
    if options.format == "json":
        return rows_stream.JsonStream(view)
    if options.format == "yaml":
        return rows_stream.YamlStream(view)
    if options.format == "csv":
        return rows_stream.CsvStream(view, headers=headers, safe=surface.is_terminal)
    if options.format == "name":
        return rows_stream.NameStream(view.short_name if options.quiet else view.name)
    if options.format == "custom-columns":
        from dpctl.outputs.custom_columns import custom_columns, parse_spec

        spec = parse_spec(options.argument)

        def columns(rows: Sequence[Row]) -> Sequence[TextColumn]:
            return custom_columns([row_document(row, view) for row in rows], spec)
    else:
        from dpctl.outputs.table import text_columns

        shown = view.shown(wide=options.format == "wide")

        def columns(rows: Sequence[Row]) -> Sequence[TextColumn]:
            return text_columns(rows, shown, color=surface.color)

    always = options.format == "custom-columns"
    return rows_stream.TableStream(columns, headers=headers, limit=surface.columns, always=always)


@dataclass(frozen=True, slots=True)
class _Format:
    render: Callable[[_Job], str]
    example: str | None = None
    """Its argument, for those that need one."""


_FORMATS = {
    "table": _Format(_table),
    "wide": _Format(_table),
    "json": _Format(_json),
    "yaml": _Format(_yaml),
    "name": _Format(_name),
    "csv": _Format(_csv),
    "jsonpath": _Format(_jsonpath, "{.items[*].name}"),
    "custom-columns": _Format(_custom_columns, "NAME:.name"),
}
