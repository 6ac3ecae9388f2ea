"""Text from outside, made safe to show and pleasant to sort; globs. A leaf.

Device IDs, names and error texts come from peers: they may hold escape sequences, bidi marks,
lone surrogates (undecodable bytes) and 64 KiB strings. Terminal output passes `escape`;
JSON and YAML carry the text exactly.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

# Shown as they are: everything but controls (Cc), formats such as bidi marks (Cf), surrogates (Cs),
# unassigned and private code points (Cn, Co), and line or paragraph separators (Zl, Zp).
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "\0": "\\0"}


def escape(text: str) -> str:
    """`text` with everything that could move a cursor or reorder a line written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_one(character) for character in text)


def _escape_one(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE:
        return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8 (surrogateescape)
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


def named(name: str) -> str:
    """A name in a sentence: the empty one is to be seen, as in a cell. Not escaped."""
    return name or '""'


def shorten(text: str, limit: int) -> str:
    """For messages only: at most `limit` characters, the cut marked."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def width(text: str) -> int:
    """Columns on a terminal: wide and full-width characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def wrapped(text: str, room: int, hanging: str = "  ") -> list[str]:
    """Lines of at most `room` columns, cut at blanks where there are any, never shortened."""
    room = max(room, len(hanging) + 4)
    lines: list[str] = []
    at, lead = 0, ""
    while True:
        space = room - len(lead)
        piece = text[at : at + space + 1]  # an ID may have megabytes: never all of the rest
        if len(piece) <= space and width(piece) <= space:
            return [*lines, (lead + piece).rstrip()]
        fits = _fitting(piece, space)
        blank = piece.rfind(" ", 1, fits + 1)
        if blank <= 0 or not piece[:blank].strip():
            blank = fits
        lines.append((lead + piece[:blank]).rstrip())
        at, lead = at + blank, hanging
        while text[at : at + 1].isspace():
            at += 1


def _fitting(text: str, room: int) -> int:
    """How many characters fit that many columns; at least one."""
    used = 0
    for at, character in enumerate(text[: room + 1]):
        used += width(character)
        if used > room:
            return max(at, 1)
    return min(len(text), room)


_DIGITS = re.compile(r"([0-9]+)")


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key in natural order: `gpu-2` before `gpu-10`. Total: equal keys mean equal text."""
    parts: list[tuple[int, int, str]] = []
    for part in _DIGITS.split(text):
        if part[:1].isdigit() and part.isascii():
            # Compare by length of the number first: int() on 64 KiB of digits would be refused.
            digits = part.lstrip("0")
            parts.append((0, len(digits), digits))
        elif part:
            parts.append((1, 0, part))
    return (*parts, (-1, 0, text))


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the shell-style globs matches the whole name; no pattern matches everything.

    `*` also crosses `/` and `.`, as in `'nvidia.com/*'`; case counts.
    """
    return not patterns or any(_compiled(pattern).fullmatch(name) for pattern in patterns)


def unmatched(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Patterns that match none of the names, in order."""
    known = list(names)
    return [p for p in patterns if not any(_compiled(p).fullmatch(name) for name in known)]


def is_glob(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


_cache: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    found = _cache.get(pattern)
    if found is None:
        import fnmatch  # only where a name is filtered

        found = _cache[pattern] = re.compile(fnmatch.translate(pattern))
    return found


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`did you mean "json"? `, to stand before what else a hint says; empty: nothing is near.
    `cutoff`: how alike (difflib), more for names that are all somewhat alike."""
    from difflib import get_close_matches

    near = get_close_matches(word[:40], list(known), 2, cutoff)
    return f"did you mean {' or '.join(map(_quoted, near))}? " if near else ""


def _quoted(word: str) -> str:
    return f'"{word}"'
