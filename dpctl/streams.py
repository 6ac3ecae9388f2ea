"""What a run says on stderr, and how its stdout ends. Nothing else writes stderr.

Every text passes `escape`: messages quote peers, and a raw newline would let one forge a line.
Stdout's contents are `output.py`'s; here is only what happens when nobody can take them.
Light on purpose (`--version` and TAB pass through): no typer, no dataclasses.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from dpctl.errors import DpctlError, ExitCode

TYPE_CHECKING = False  # `typing` costs TAB eight milliseconds
if TYPE_CHECKING:
    from typing_extensions import Buffer

# A message may quote a name of 64 KiB.
_LONGEST = 4000
BROKEN_PIPE = 141
"""128 + SIGPIPE: what a shell reports of any program whose reader went away (`| head`)."""


def say(kind: str, message: str, hint: str | None = None) -> None:
    """`kind: message` and `hint: …` on stderr; nothing where stderr is closed or full."""
    from dpctl.text import escape, shorten

    lines = [f"{kind}: {escape(shorten(message, _LONGEST))}"]
    if hint:
        lines.append(f"hint: {escape(shorten(hint, _LONGEST))}")
    _write("".join(f"{line}\n" for line in lines))


def report(error: DpctlError) -> int:
    """Say what failed (or was found) and what to do next. Returns the exit code it stands for."""
    say("error", error.message, error.hint)
    for line in error.lines:
        plain(line)
    return int(error.code)


def warn(message: str, hint: str | None = None) -> None:
    """Something is missing or odd, and the run goes on."""
    say("warning", message, hint)


def note(message: str) -> None:
    """What `-v` tells: what was read where, how long it took."""
    say("note", message)


def plain(message: str) -> None:
    """A sentence of its own, as kubectl's "No resources found"."""
    from dpctl.text import escape

    _write(f"{escape(message)}\n")


def report_crash(error: Exception) -> int:
    """A defect of dpctl: one line, the traceback only with DPCTL_DEBUG=1.

    What the machine has run out of is no defect, and is said without importing anything: that
    would fail as well.
    """
    shortage = _shortage(error)
    if shortage is not None:
        _write(f"error: {shortage[0]}\nhint: {shortage[1]}\n")
        return int(ExitCode.PEER)
    debug = os.environ.get("DPCTL_DEBUG", "") not in ("", "0")
    if debug:
        import traceback

        from dpctl.text import escape

        for entry in traceback.format_exception(error):
            _write("".join(f"{escape(line)}\n" for line in entry.splitlines()))
    say(
        "error",
        f"internal error: {type(error).__name__}: {error}",
        "this is a defect of dpctl, please report it"
        + ("" if debug else "; DPCTL_DEBUG=1 shows where it happened"),
    )
    return int(ExitCode.PEER)


def _shortage(error: BaseException | None) -> tuple[str, str] | None:
    """Message and hint; also where the failure has been wrapped in another one."""
    for _ in range(8):
        if isinstance(error, MemoryError):
            return "out of memory", "raise `ulimit -v` or the memory limit, or ask for less"
        if isinstance(error, OSError) and error.errno == errno.EMFILE:
            return "too many open files", "raise `ulimit -n`"
        if isinstance(error, OSError) and error.errno == errno.ENFILE:
            return "too many open files on this machine", "raise `sysctl fs.file-max`"
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return "out of memory", "free memory, or raise the memory limit"
        error = None if error is None else error.__cause__ or error.__context__
    return None


class StdoutError(OSError):
    """Stdout does not take what is written. Marked, so that no other OSError passes for it."""


class StdoutGoneError(StdoutError, BrokenPipeError):
    """The reader of stdout went away."""


class _Stdout(io.FileIO):
    def write(self, data: Buffer) -> int | None:  # type: ignore[override, unused-ignore]
        try:
            return super().write(data)
        except BrokenPipeError as error:
            raise StdoutGoneError(error.errno, error.strerror) from error
        except OSError as error:
            raise StdoutError(error.errno, error.strerror) from error


def take_stdout() -> None:
    """Put a stdout in place whose failures are StdoutErrors; raises one when there is none.

    Buffered also under PYTHONUNBUFFERED: whoever writes flushes.
    """
    old = sys.__stdout__
    if sys.stdout is None or old is None:
        raise StdoutError("it is closed")
    if sys.stdout is not old:
        return  # somebody's own, as in tests
    # A help text has more than ASCII. (In UTF-8 the output writes what is no text as bytes.)
    errors = old.errors if "utf" in old.encoding.lower() else "backslashreplace"
    raw = _Stdout(old.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), old.encoding, errors, line_buffering=old.isatty()
    )


def finish_stdout() -> None:
    """Flush; a later failure would be the interpreter's to tell. Raises StdoutError."""
    try:
        sys.stdout.flush()
    except StdoutError:
        raise
    except (OSError, ValueError) as error:
        raise StdoutError(getattr(error, "errno", None), str(error)) from error


def report_stdout(failure: OSError) -> int:
    """Exit code for a stdout that does not take the output; quiet when the reader went away."""
    _discard_stdout()
    if isinstance(failure, BrokenPipeError):
        return BROKEN_PIPE
    say("error", f"cannot write to standard output: {failure.strerror or failure}")
    return int(ExitCode.PEER)


def _discard_stdout() -> None:
    """Let the interpreter's last flush go nowhere: it would complain, and exit with 120."""
    try:
        number = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
    except (AttributeError, OSError, ValueError):  # closed, or no file at all
        return
    os.dup2(null, number)
    os.close(null)


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return  # closed or full: there is nobody to tell
