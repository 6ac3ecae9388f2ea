"""What a stream is: a terminal or not, how wide, whether colour is wanted; and writing to it.

The only file of `outputs` that looks at the environment or does I/O.
"""

from __future__ import annotations

import os
from typing import Literal, TextIO

from dpctl.columns import Emphasis

ColorWhen = Literal["auto", "always", "never"]

_CODES: dict[Emphasis, str] = {"good": "\x1b[32m", "warn": "\x1b[33m", "bad": "\x1b[31m"}
_RESET = "\x1b[0m"


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def takes(stream: TextIO, text: str) -> bool:
    """Whether its encoding has these characters: that of a C locale has ASCII alone."""
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def size(stream: TextIO) -> tuple[int, int]:
    """Columns and lines of the terminal behind `stream`; 0 where it cannot be told.

    COLUMNS and LINES go before what the terminal says, as everywhere.
    """
    try:
        found = os.get_terminal_size(stream.fileno())
        columns, lines = found.columns, found.lines
    except (OSError, ValueError):  # no terminal, no descriptor, closed
        columns = lines = 0
    return _from_environment("COLUMNS") or columns, _from_environment("LINES") or lines


def _from_environment(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def wants_color(stream: TextIO, when: ColorWhen) -> bool:
    """`auto`: on a terminal that is not dumb, unless NO_COLOR is set to anything but nothing."""
    if when != "auto":
        return when == "always"
    dumb = os.environ.get("TERM") == "dumb"
    return is_terminal(stream) and not dumb and not os.environ.get("NO_COLOR")


def paint(text: str, emphasis: Emphasis | None) -> str:
    return f"{_CODES[emphasis]}{text}{_RESET}" if emphasis else text


def emit(stream: TextIO, text: str) -> None:
    """Write and flush; what the peer's bytes were (lone surrogates) comes out as those bytes.

    Raises OSError when nobody can take it (BrokenPipeError under `| head`).
    """
    try:
        stream.write(text)
    except UnicodeEncodeError:
        # The text layer keeps nothing of a refused write, so it can be written below that layer.
        stream.flush()
        encoding = stream.encoding or "utf-8"
        try:
            data = text.encode(encoding, "surrogateescape")
        except UnicodeEncodeError:
            data = text.encode(encoding, "backslashreplace")
        stream.buffer.write(data)
    stream.flush()
