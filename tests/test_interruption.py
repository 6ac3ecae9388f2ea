"""Ctrl-C where Python would lose it, or be left broken by it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpctl import interruption

# It says where it is, and whether the module that it was importing can be imported afterwards by
# another thread: a lock left behind would hold that for ever.
PROGRAM = """
import sys, threading, time
sys.path.insert(0, {where!r})
from dpctl import interruption
interruption.install()
try:
    {body}
    while True:
        time.sleep(1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
def again():
    import slow
    print("imported", slow.DONE, flush=True)
thread = threading.Thread(target=again, daemon=True)
thread.start()
thread.join(10)
"""
SLOW = "import time\nprint('here', flush=True)\ntime.sleep({seconds})\nDONE = 1\n"
FINALIZER = """class Slow:
        def __del__(self):
            print("here", flush=True); time.sleep(0.5)
    Slow()"""


@pytest.mark.parametrize(
    ("body", "seconds"),
    [("import slow", 0.5), (FINALIZER, 0), ("print('here', flush=True)", 0), ("import slow", 60)],
    ids=["import", "finalizer", "anywhere", "an import that hangs"],
)
def test_ctrl_c_is_neither_lost_nor_harmful(tmp_path: Path, body: str, seconds: float) -> None:
    (tmp_path / "slow.py").write_text(SLOW.format(seconds=seconds))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(where=str(tmp_path), body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    (tmp_path / "slow.py").write_text(SLOW.format(seconds=0))
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert err == ""
    assert out.splitlines()[0] == "interrupted"
    assert out.splitlines()[-1] == "imported 1"


def test_an_impatient_person_is_interrupted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waited to be sent again does not come after the one that was heard."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interruption.install()
        handler = signal.getsignal(signal.SIGINT)
        assert callable(handler)
        with monkeypatch.context() as patch:
            patch.setattr(interruption, "is_delicate", lambda frame: True)
            for _ in range(3):
                handler(signal.SIGINT, None)
        with pytest.raises(KeyboardInterrupt):
            handler(signal.SIGINT, None)
        time.sleep(0.1)  # a further one would be raised here
    finally:
        signal.signal(signal.SIGINT, before)


ENDING = """
import atexit, sys, time
from dpctl import interruption
def end():
    print("ending", flush=True)
    time.sleep({seconds})
    print("ended", flush=True)
def run():
    interruption.install()
    atexit.register(end)
    print("running", flush=True)
    time.sleep({running})
try:
    run()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("running", "seconds", "code", "ended"),
    [(60, 0.3, 130, True), (60, 60, 130, False), (0, 0.3, 0, True), (0, 60, 130, False)],
    ids=["again", "again, and the end hangs", "at the end", "at an end that hangs"],
)
def test_ctrl_c_at_the_end(running: float, seconds: float, code: int, ended: bool) -> None:
    """It ends nothing that ends by itself, and whatever hangs."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDING.format(running=running, seconds=seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    if running:
        os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "ending\n"
    for _ in range(3):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.02)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, "ended\n" if ended else "", "")
