"""The lab's clock: real or standing still, and advanced by hand. A leaf."""

from __future__ import annotations

import time


class Clock:
    """Seconds for the kubelet's grace periods; five minutes pass when somebody says so."""

    def __init__(self, *, frozen: bool = False) -> None:
        self._frozen_at = time.monotonic() if frozen else None
        self._offset = 0.0

    def now(self) -> float:
        """Monotonic seconds."""
        base = time.monotonic() if self._frozen_at is None else self._frozen_at
        return base + self._offset

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("a clock does not go back")
        self._offset += seconds


def timestamp(moment: float | None = None) -> str:
    """RFC 3339 in UTC with whole seconds, as the API writes times; None: now."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
