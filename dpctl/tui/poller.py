"""The thread that looks at the node again and again and posts each reading.

It knows neither sources nor screen: the command hands in what reads, the terminal what takes. Only
whole readings leave it, and none is ever changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dpctl.tui.facts import Reading

SHARE = 0.1
"""Of a core that the dashboard may take: on a node in trouble the CPU belongs to others."""
_MARGIN = 1.2


class Poller(threading.Thread):
    """Starts a reading every `interval` seconds; less often where readings are dear.

    The cost of a round is the CPU time of this process since the last one, drawing included;
    waiting costs nothing.
    """

    def __init__(
        self,
        read: Callable[[], Reading],
        post: Callable[[Reading | Exception, float], None],
        interval: float,
    ) -> None:
        """`post` is called in this thread: a reading, or the defect that ended it; and the seconds
        until the next one begins, 0 while that is the interval asked for."""
        super().__init__(name="poller", daemon=True)
        self._read = read
        self._post = post
        self._interval = interval
        self._wake = threading.Event()
        self._ended = False

    def run(self) -> None:
        first, cost = True, 0.0
        while not self._ended:
            self._wake.clear()
            began = time.monotonic()
            try:
                found: Reading | Exception = self._read()
            except Exception as error:
                found = error  # raised again where the screen is closed: not lost in a thread
                self._ended = True
            spent, cost = time.process_time() - cost, time.process_time()
            # The first one also loads what reads (grpc and all): that is not what a round costs.
            pause = self._interval if first else stretched(self._interval, spent)
            first = False
            try:
                self._post(found, 0.0 if pause <= self._interval else pause)
            except Exception as error:  # so does one of making rows, which `post` does
                self._ended = True
                self._post(error, 0.0)
            if self._ended:
                return
            self._wake.wait(max(began + pause - time.monotonic(), 0.05))

    def now(self) -> None:
        """Read at once instead of at the end of the pause."""
        self._wake.set()

    def stop(self) -> None:
        """No more readings; the one under way is not waited for."""
        self._ended = True
        self._wake.set()


def stretched(interval: float, spent: float) -> float:
    """Seconds from one beginning to the next: a round may cost a tenth of that. Pure."""
    return interval if spent <= interval * SHARE else spent / SHARE * _MARGIN
