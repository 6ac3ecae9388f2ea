"""Ctrl-C is a KeyboardInterrupt, but not where Python would lose it or be left broken by it.

Python raises it between any two steps of the main thread. Inside the import machinery that leaves a
module's lock held, and every thread that imports the module waits for ever; in a finalizer, and in
what runs at a fork, exceptions are thrown away. There it has to wait for some milliseconds. And
once the run is over nobody catches it, and what the interpreter does at its end prints a traceback.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import time
from types import CodeType, FrameType

_AGAIN_SECONDS = 0.005
_MOST_WAITS = 400
"""Two seconds: who hangs in there shall be interrupted all the same."""
_END_SECONDS = 1.0
"""What the interpreter's end may still take: files are removed in it, and threads waited for."""
_INTERRUPTED = 130  # ExitCode's, which costs an import
_MACHINERY = "<frozen importlib"
_DELICATE = ("/logging/__init__.py", "/weakref.py", "/_weakrefset.py")


def install() -> None:
    """For the main thread. Whoever has a handler of its own for a while puts this one back.
    KeyboardInterrupt is raised while the function runs that calls this, and no later."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # ignored: a background job; or somebody's who runs us
    run = sys._getframe(1).f_code
    waits = 0
    ending = False
    # One that waits is sent again; further ones join it: an impatient person is interrupted once.
    coming = False

    def send_again(thread: int) -> None:
        nonlocal coming
        time.sleep(_AGAIN_SECONDS)
        if coming:
            coming = False
            signal.pthread_kill(thread, signal.SIGINT)

    def handle(_number: int, frame: FrameType | None) -> None:
        nonlocal waits, coming, ending
        if frame is not None and not _is_inside(frame, run):
            if not ending:
                ending = True
                _end_in_time()
            return
        if is_delicate(frame) and waits < _MOST_WAITS:
            if not coming:
                waits, coming = waits + 1, True
                _thread.start_new_thread(send_again, (_thread.get_ident(),))
            return
        waits, coming = 0, False
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    # The last of those hooks: behind them Python takes its handlers away, and Ctrl-C would kill.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _is_inside(frame: FrameType | None, code: CodeType) -> bool:
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def _end_in_time() -> None:
    """The end goes on as if nothing had come, but no longer than it may take."""

    def end() -> None:
        time.sleep(_END_SECONDS)
        os._exit(_INTERRUPTED)

    try:
        _thread.start_new_thread(end, ())
    except RuntimeError:  # too late for a thread
        os._exit(_INTERRUPTED)


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
