"""Exit codes, and the errors that carry one to the person together with a next step.

Nothing else belongs here: an error is a sentence, a hint and a code; `cli.py` prints it.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a run tells the shell (the product contract's table)."""

    OK = 0
    FOUND = 1
    """It worked, and it found something: an expectation unmet, a difference, a wait timed out."""
    USAGE = 2
    UNREACHABLE = 3
    """A source that the command needs is not there or does not answer."""
    PEER = 4
    """The peer answered with an error."""
    DENIED = 5
    NOT_APPLIED = 6
    BAD_DATA = 7
    INTERRUPTED = 130


class DpctlError(Exception):
    """A failure a person can act on.

    `message` is one sentence without a trailing full stop; `hint` says what to type or check next.
    Both may quote hostile text: whoever prints them escapes it (`text.escape`).
    """

    code = ExitCode.PEER
    lines: tuple[str, ...] = ()
    """To be shown below, one a line: a manifest to apply."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(DpctlError):
    code = ExitCode.USAGE


class UnreachableError(DpctlError):
    """No socket, connection refused, deadline passed, API server down."""

    code = ExitCode.UNREACHABLE


class PeerError(DpctlError):
    """The peer was reached and answered with an error."""

    code = ExitCode.PEER


class DeniedError(DpctlError):
    """EACCES, 401, 403: names what is missing."""

    code = ExitCode.DENIED


class NotAppliedError(DpctlError):
    code = ExitCode.NOT_APPLIED


class BadDataError(DpctlError):
    """A corrupt checkpoint, an answer that cannot be decoded, a bundle that is none."""

    code = ExitCode.BAD_DATA


class FoundError(DpctlError):
    """Not a failure of dpctl: something was found that the caller asked to be told of."""

    code = ExitCode.FOUND
