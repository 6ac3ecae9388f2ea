"""What can lie on the screen, one upon the other: Esc takes the topmost away."""

from __future__ import annotations

from typing import NamedTuple

from dpctl.tui.grid import Grid
from dpctl.tui.pages import Page, Scope
from dpctl.tui.plan import PlanPage
from dpctl.tui.reader import Reader


class Table(NamedTuple):
    page: Page
    grid: Grid
    scope: Scope | None = None
    """Which part of the page: what belongs to the row from which it was opened."""


Sheet = Table | Reader | PlanPage
