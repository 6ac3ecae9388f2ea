"""Where a run starts: the paths that must be fast, Ctrl-C, then `cli.run`.

Imports stand inside the function: `dpctl --version` and `dpctl __complete` load no typer (54 ms).
"""

from __future__ import annotations

_INTERRUPTED = 130  # ExitCode's, which costs an import
TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Entry point of `dpctl` and `kubectl-dp`. Returns the exit code."""
    try:
        code = _main()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        _leave_threads()
    return code


def _main() -> int:
    import sys

    program = _program(sys.argv[0] if sys.argv else "")
    arguments = sys.argv[1:]
    if arguments[:1] == ["__complete"]:
        from dpctl.complete import main as complete

        return complete(arguments[1:])
    if arguments == ["--version"]:
        return _version()
    return _run(arguments, program)


def _run(arguments: list[str], program: str) -> int:
    from dpctl import interruption

    interruption.install()
    stop = _ask_ahead(arguments)
    try:
        from dpctl.cli import run

        return run(arguments, program)
    finally:
        stop()
        _settle_stderr()


def _ask_ahead(arguments: list[str]) -> Callable[[], None]:
    """Only the command that gains by it loads it. Returns what ends it."""
    if arguments[:1] != ["pods"]:
        return lambda: None
    from dpctl import ahead

    ahead.begin(arguments)
    return ahead.stop


def _leave_threads() -> None:
    """After Ctrl-C nobody waits for threads that wait for a peer, as the interpreter would."""
    import os
    import sys

    threading = sys.modules.get("threading")
    if threading is None:
        return
    others = [t for t in threading.enumerate() if t is not threading.main_thread()]
    if any(not thread.daemon for thread in others):
        os._exit(_INTERRUPTED)


def _settle_stderr() -> None:
    """What stderr does not take goes nowhere: the interpreter's last flush would exit with 120."""
    import os
    import sys

    try:
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stderr.fileno())
        except (AttributeError, OSError, ValueError):
            return  # closed, or no file at all: nothing is flushed either


def _program(path: str) -> str:
    """The name people typed: kubectl runs `kubectl-dp` (or `kubectl-dp.exe`) for `kubectl dp`."""
    name = path.rpartition("/")[2]
    return "kubectl dp" if name.startswith(("kubectl-dp", "kubectl_dp")) else "dpctl"


def _version() -> int:
    import sys

    from dpctl import __version__, streams

    try:
        streams.take_stdout()
        sys.stdout.write(f"{__version__}\n")
        streams.finish_stdout()
    except streams.StdoutError as failure:
        return streams.report_stdout(failure)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
