"""Dashboards over captured nodes, without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpctl.commands import dashboard as command
from dpctl.env import Env, Settings, find_env
from dpctl.model import Snapshot
from dpctl.tui.dashboard import Dashboard, Options
from dpctl.tui.facts import Facts, Reading
from dpctl.tui.frame import Line
from dpctl.tui.proposal import Changes
from tests.run import DATA

CAPTURES = DATA / "captures"
NAMES = ("1-healthy", "2-plugin-dead-in-grace", "3-after-kubelet-restart")


def env_of(bundle: Path | str) -> Env:
    return find_env(Settings(bundle=str(bundle)), {})


def facts_of(capture: str = NAMES[0]) -> Facts:
    return Facts(command.reader(env_of(CAPTURES / capture))())


def facts(snapshot: Snapshot, began: float = 0.0) -> Facts:
    return Facts(Reading(snapshot, began, began))


def board(
    page: str = "resources",
    *,
    capture: str = NAMES[0],
    changes: Changes | None = None,
    ascii_only: bool = False,
    live: bool = False,
) -> Dashboard:
    from dpctl.commands._pod_text import pod_text

    options = Options("here", live, ascii_only, changes, pod_text)
    made = Dashboard(options, page)
    made.take(facts_of(capture))
    return made


_NAMED = {"/": "slash", ":": "colon", "?": "question_mark", " ": "space", "-": "minus"}
_KEYS = ("enter", "escape", "tab", "up", "down", "pageup", "pagedown", "home", "end", "backspace")


def press(made: Dashboard, *keys: str) -> Dashboard:
    """Key names and characters, as textual names them."""
    for key in keys:
        if key in _KEYS or "+" in key:
            made.press(key, None)
        else:
            for character in key:
                made.press(_NAMED.get(character, character), character)
    return made


def plain(lines: Sequence[Line]) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in lines]


def text(made: Dashboard, columns: int = 80, lines: int = 24, now: float = 0.0) -> str:
    return "\n".join(plain(made.lines(columns, lines, now)))
