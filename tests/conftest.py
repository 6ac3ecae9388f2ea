"""Fixtures for everybody: a lab to look at, and labs to play with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings

from dpctl.lab.fixture import Lab

# A busy machine must not turn an example that took long into a failure: nothing here is timed.
settings.register_profile("dpctl", deadline=None)
settings.load_profile("dpctl")


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The sample lab, one for the whole run: to be read, never changed. Its clock stands still."""
    with Lab() as running:
        yield running


@pytest.fixture
def new_lab() -> Iterator[Callable[..., Lab]]:
    """`new_lab(scenario="empty", …)`: a lab of the test's own, up until the test ends."""
    with ExitStack() as stack:

        def start(**options: Any) -> Lab:
            return stack.enter_context(Lab(**options))

        yield start
