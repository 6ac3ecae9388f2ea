"""The keys, once: what each does, for the help page and the line at the foot. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    key: str
    does: str
    changes: bool = False
    """Absent where nothing may be changed."""


KEYS: tuple[tuple[str, tuple[Key, ...]], ...] = (
    (
        "Where to look",
        (
            Key("1 … 8", "a page by its number; Tab the next, Shift-Tab the one before"),
            Key(
                ":",
                "a page by its name: :devices, :po, :numa (Tab completes); :devices gpu filters",
            ),
            Key("Enter", "deeper: a resource's devices, a device's holder, a pod in full"),
            Key("Esc", "back; clears a filter first"),
            Key("up down, j k", "one row; PgUp PgDn or Space a page; Home End, g G"),
        ),
    ),
    (
        "What to show",
        (
            Key(
                "/",
                "only rows with these words; !word without; Enter keeps, Esc clears; Up: the last",
            ),
            Key("d", "describe the row: every column in full; a pod as dpctl pods NAME"),
            Key("y", "the row as YAML; y again as JSON"),
            Key(
                "Shift-letter",
                "sort by the column that begins so; again: the other way, then the next",
            ),
            Key("w", "all columns, or fewer"),
            Key("Ctrl-R, Ctrl-L", "read now and draw anew; draw the screen anew"),
        ),
    ),
    (
        "Change something",
        (
            Key("p", "prune: the plan for keys, sockets or rejected pods of this page", True),
            Key("x", "remove the key of this row from the Node: the plan", True),
            Key("", "nothing is done before you have typed the word that the plan asks for", True),
        ),
    ),
    ("Leave", (Key("q, Ctrl-C", "at once"), Key("Ctrl-Z", "to the shell; fg comes back"))),
)

_MARKS = (
    "?  could not be read        -  does not exist        ~name  was inferred",
    "What the states mean: dpctl resources --help, dpctl devices --help",
)


def help_text(*, readonly: bool) -> str:
    lines: list[str] = []
    for title, keys in KEYS:
        shown = [key for key in keys if not (key.changes and readonly)]
        if shown:
            lines += [title, *(f"  {key.key:<16}{key.does}" for key in shown), ""]
    return "\n".join((*lines, "In the tables", *(f"  {mark}" for mark in _MARKS))) + "\n"
