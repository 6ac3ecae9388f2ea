"""A child process's end of its parent's pipe: commands in on stdin, answers and events out.

Lines of JSON both ways. The end of stdin is the end of the process: whoever started it has ended,
however that came about, and nothing stays behind. Stdlib only.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from dpctl.lab.api_errors import Json


def first_line() -> Json:
    """What the parent says first. Ends the process when there is no parent."""
    line = sys.stdin.buffer.readline()
    if not line:
        leave(0)
    document: Json = json.loads(line)
    return document


def set_command(name: str) -> None:
    """The process's `comm`, for an onlooker's eyes."""
    with open("/proc/self/comm", "w") as comm:
        comm.write(name[:15])


_writing = threading.Lock()


def tell(document: Json) -> None:
    """One line to the parent; a parent that is gone is noticed by `serve`."""
    data = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    with _writing:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError:
            return


def serve(commands: Callable[[str, Json], Any]) -> None:
    """Answer commands until stdin ends, then end the process.

    `commands(op, arguments)` gives what is sent back; its exceptions go back as text.
    """
    for line in sys.stdin.buffer:
        request = json.loads(line)
        threading.Thread(target=_answer, args=(commands, request), daemon=True).start()
    leave(0)


def _answer(commands: Callable[[str, Json], Any], request: Json) -> None:
    number = request.pop("id")
    try:
        tell({"id": number, "value": commands(request.pop("op"), request)})
    except Exception as error:
        tell({"id": number, "error": f"{type(error).__name__}: {error}"})


def or_leave(work: Callable[[], None]) -> None:
    """Run a thread's work; a failure in it is the process's, and its parent sees it end."""
    try:
        work()
    except Exception:
        traceback.print_exc()
        leave(1)


def leave(code: int) -> None:
    """End at once: gRPC's threads and servers are not waited for."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a full file system, a parent that is gone
            stream.flush()
    os._exit(code)
