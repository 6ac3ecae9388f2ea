"""Every format as bytes against tests/golden/output (`DPCTL_UPDATE_GOLDEN=1` writes them anew)."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import termios
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpctl.columns import NOTHING_FOUND
from dpctl.documents import Envelope
from dpctl.errors import ExitCode, UsageError
from dpctl.output import (
    OutputOptions,
    nothing_found,
    write,
    write_document,
    write_text,
)
from tests.outputs.sample import GPUS, HOSTILE, META, ROWS, Gpu

GOLDEN = Path(__file__).parent / "golden/output"
REPOSITORY = Path(__file__).parent.parent


def printed(rows: tuple[Gpu, ...] = ROWS, **flags: Any) -> bytes:
    """What lands in a pipe."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "utf-8", newline="")
    write(rows, GPUS, options=OutputOptions(**flags), snapshot_meta=META, stream=stream)
    return raw.getvalue()


FORMATS: dict[str, dict[str, Any]] = {
    "table.txt": {},
    "table-no-headers.txt": {"no_headers": True},
    "table-color.txt": {"color": "always"},
    "table-sorted.txt": {"sort_by": "total"},
    "wide.txt": {"output": "wide"},
    "list.json": {"output": "json"},
    "list.yaml": {"output": "yaml"},
    "name.txt": {"output": "name"},
    "quiet.txt": {"quiet": True},
    "all.csv": {"output": "csv"},
    "jsonpath.txt": {"output": 'jsonpath={range .items[*]}{.name}{"\\t"}{.numaNodes}{"\\n"}{end}'},
    "custom-columns.txt": {"output": "custom-columns=NAME:.name,NUMA:numaNodes[*],CAP:{.capacity}"},
}


@pytest.mark.parametrize("name", FORMATS)
def test_golden(name: str) -> None:
    found = printed(**FORMATS[name])
    path = GOLDEN / name
    if os.environ.get("DPCTL_UPDATE_GOLDEN") == "1":
        path.write_bytes(found)
    assert found == path.read_bytes()


@pytest.mark.parametrize("name", FORMATS)
def test_no_rows(name: str) -> None:
    flags = FORMATS[name]
    options = OutputOptions(**flags)
    found = printed((), **flags)
    says = nothing_found((), options)
    if options.format in ("table", "wide", "name"):
        assert (found, says) == (b"", NOTHING_FOUND)
    else:
        assert says is None
    assert nothing_found(ROWS, options) is None


def test_json_and_yaml_are_one_document_and_the_same() -> None:
    found = json.loads(printed(output="json"))
    assert yaml.safe_load(printed(output="yaml")) == found
    assert [item["name"] for item in found["items"]] == [HOSTILE, "gpu-2", "gpu-10", "显卡-0"]
    assert json.loads(printed((), output="json"))["items"] == []


def test_undecodable_bytes_come_out_as_those_bytes_in_a_pipe() -> None:
    assert b"evil\xff\x00" in printed(output="csv")
    assert b"evil\xff\x00" in printed(output="jsonpath={.items[*].name}")
    rows = list(csv.reader(io.StringIO(printed(output="csv").decode(errors="surrogateescape"))))
    assert HOSTILE in [row[0] for row in rows]


def test_line_formats_stay_lines() -> None:
    for output in ("table", "wide", "name", "custom-columns=N:name"):
        found = printed(output=output)
        assert found.count(b"\n") == len(ROWS) + (output != "name")
        assert b"\x1b" not in found
    assert printed(quiet=True).count(b"\n") == len(ROWS)


def test_a_name_that_several_rows_share_is_said_once() -> None:
    assert printed((ROWS[0], ROWS[0], ROWS[1]), output="name") == b"gpu/gpu-2\ngpu/gpu-10\n"


def test_a_stream_that_cannot_write_everything() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    write(ROWS, GPUS, options=OutputOptions(), snapshot_meta=Envelope(), stream=stream)
    assert b"\\u663e\\u5361-0" in raw.getvalue()
    plain = io.StringIO()
    write(ROWS, GPUS, options=OutputOptions(), snapshot_meta=Envelope(), stream=plain)
    assert "显卡-0" in plain.getvalue()


def test_documents_that_are_no_list() -> None:
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load), ("table", json.loads)):
        stream = io.StringIO()
        write_document({"a": [1]}, options=OutputOptions(output), stream=stream)
        assert read(stream.getvalue()) == {"a": [1]}
    stream = io.StringIO()
    write_text("a", stream=stream)
    write_text("b\n", stream=stream)
    write_text("", stream=stream)
    assert stream.getvalue() == "a\nb\n"


# --- options


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("xml", "unknown output format 'xml'"),
        ("", "unknown output format ''"),
        ("json=x", "unknown output format 'json=x'"),
        ("jsonpath", "-o jsonpath needs an argument"),
        ("jsonpath=", "-o jsonpath needs an argument"),
        ("custom-columns=", "-o custom-columns needs an argument"),
        ("custom-columns=A", "is not NAME:PATH"),
        ("jsonpath={.items[}", "at character 8"),
    ],
)
def test_slips_are_found_before_anything_is_read(output: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        OutputOptions(output)
    assert words in caught.value.message
    assert caught.value.hint
    assert caught.value.code is ExitCode.USAGE


def test_an_unknown_format_lists_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        OutputOptions("go-template={{.}}")
    assert caught.value.hint == (
        "one of: table, wide, json, yaml, name, csv, jsonpath={.items[*].name}, "
        "custom-columns=NAME:.name"
    )


def test_a_sort_path_is_checked_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="jsonpath"):
        OutputOptions(sort_by="a[")
    for title in ("PID/COMMAND", "POD NAME", "name", "{.numaNodes[0]}"):
        assert OutputOptions(sort_by=title).sort_by == title


def test_what_a_format_shows() -> None:
    assert not OutputOptions().complete
    assert not OutputOptions("json", quiet=True).complete
    assert OutputOptions("json", quiet=True).format == "name"
    assert not OutputOptions("name").complete
    assert all(OutputOptions(o).complete for o in ("wide", "json", "csv", "jsonpath=.x"))
    assert OutputOptions(sort_by="kind").complete
    assert OutputOptions("wide").is_table
    assert not OutputOptions("wide", quiet=True).is_table


# --- terminals


def on_terminal(columns: int, script: str, **environment: str) -> bytes:
    """Run a script with its stdout on a pseudo terminal of that width."""
    parent, child = pty.openpty()
    attributes = termios.tcgetattr(child)
    attributes[1] &= ~termios.OPOST  # \n stays \n
    termios.tcsetattr(child, termios.TCSANOW, attributes)
    termios.tcsetwinsize(child, (10, columns))
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=child,
        cwd=REPOSITORY,
        env={**kept, "TERM": "xterm", **environment},
    )
    os.close(child)
    found = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        found += part
    os.close(parent)
    assert process.wait(timeout=30) == 0
    return found


def script(**flags: object) -> str:
    return f"""
        from dpctl.output import OutputOptions, write
        from tests.outputs.sample import GPUS, META, ROWS
        write(ROWS, GPUS, options=OutputOptions(**{flags!r}), snapshot_meta=META)
    """


def test_a_narrow_terminal_cuts_and_a_pipe_does_not() -> None:
    narrow = on_terminal(60, script(output="wide", color="never")).decode()
    assert "…" in narrow
    assert on_terminal(60, script(output="wide", color="never", no_trunc=True)) == printed(
        output="wide"
    )
    assert on_terminal(500, script(output="wide", color="never")) == printed(output="wide")
    assert on_terminal(0, script(output="wide", color="never")) == printed(output="wide")
    assert on_terminal(60, script(output="wide", color="never"), COLUMNS="500") == printed(
        output="wide"
    )


def test_colour_only_on_a_terminal_that_wants_it() -> None:
    assert b"\x1b[31mUnhealthy\x1b[0m" in on_terminal(500, script())
    assert b"\x1b" not in on_terminal(500, script(), NO_COLOR="1")
    assert b"\x1b[31m" in on_terminal(500, script(), NO_COLOR="")
    assert b"\x1b" not in on_terminal(500, script(), TERM="dumb")
    assert b"\x1b[31m" in on_terminal(500, script(color="always"), NO_COLOR="1")
    assert b"\x1b" not in printed()
    assert b"\x1b[31m" in printed(color="always")


@pytest.mark.parametrize(
    "output",
    [
        *("table", "wide", "json", "yaml", "name", "csv"),
        *("jsonpath={.items}", "jsonpath={..name}", "custom-columns=A:name"),
    ],
)
def test_nothing_raw_reaches_a_terminal(output: str) -> None:
    found = on_terminal(80, script(output=output, color="never"))
    assert found.strip()
    assert all(byte >= 0x20 or byte == 0x0A for byte in found)
    assert "\u202e".encode() not in found
    assert b"\xff" not in found


# --- cost


def test_a_table_loads_nothing_it_does_not_need() -> None:
    check = """
        import io, sys
        from dpctl.output import OutputOptions, write
        from tests.outputs.sample import GPUS, META, ROWS
        write(ROWS, GPUS, options=OutputOptions(), snapshot_meta=META, stream=io.StringIO())
        heavy = {"rich", "yaml", "grpc", "google", "kubernetes", "typer", "textual", "csv"}
        heavy |= {"fractions", "decimal", "dpctl.outputs.jsonpath", "dpctl.schema", "datetime"}
        print(sorted(heavy & set(sys.modules)))
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(check)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "[]\n"
