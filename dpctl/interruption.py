"""Ctrl-C is a KeyboardInterrupt, but not where Python would lose it or be left broken by it.

Python raises it between any two steps of the main thread. Inside the import machinery that leaves a
module's lock held, and every thread that imports the module waits for ever; in a finalizer, and in
what runs at a fork, exceptions are thrown away. There it has to wait for some milliseconds.
"""

from __future__ import annotations

import _thread
import signal
import time
from types import FrameType

_AGAIN_SECONDS = 0.005
_MOST_WAITS = 400
"""Two seconds: who hangs in there shall be interrupted all the same."""
_MACHINERY = "<frozen importlib"
_DELICATE = ("/logging/__init__.py", "/weakref.py", "/_weakrefset.py")


def install() -> None:
    """For the main thread. Whoever has a handler of its own for a while puts this one back."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored: a background job; or somebody's who runs us
    waits = 0

    def handle(_number: int, frame: FrameType | None) -> None:
        nonlocal waits
        if is_delicate(frame) and waits < _MOST_WAITS:
            waits += 1
            _thread.start_new_thread(_send_again, (_thread.get_ident(),))
            return
        waits = 0
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)


def _send_again(thread: int) -> None:
    time.sleep(_AGAIN_SECONDS)
    signal.pthread_kill(thread, signal.SIGINT)


def is_delicate(frame: FrameType | None) -> bool:
    """Whether an exception that is raised here would be lost, or would break something."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_MACHINERY) or code.co_name == "__del__":
            return True
        if code.co_filename.endswith(_DELICATE):
            return True
        frame = frame.f_back
    return False
