"""When a request may be sent once more, and how long to wait before. Nothing is sent here.

What may be repeated blindly: a request that changes nothing, and any request that surely was not
carried out (429; no connection at all). A change whose answer was lost is none of these: whether
it was made must be looked up, so it ends as `LostError`.
"""

from __future__ import annotations

from dpctl.errors import UnreachableError

TOO_MANY = 429
_BUSY = frozenset({500, 502, 503, 504})
_ATTEMPTS = 6
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 60.0


class LostError(UnreachableError):
    """A change was sent, and no whole answer came: it may have been made or not."""


def wait_after(
    status: int, retry_after: str | None, *, attempt: int, repeatable: bool
) -> float | None:
    """Seconds to wait before `attempt` + 1, None when the answer stands. `attempt` counts from 1.

    A server that names a time is obeyed as often as the caller's deadline lets it.
    """
    if status != TOO_MANY and not (repeatable and status in _BUSY):
        return None
    named = _seconds(retry_after)
    if named is not None:
        return named + _jitter(0.1 * named)
    return pause(attempt)


def pause(attempt: int) -> float | None:
    """Exponential, with jitter so that many clients do not come back at once; None: enough."""
    if attempt >= _ATTEMPTS:
        return None
    step = _FIRST_WAIT * 2.0 ** (attempt - 1)
    return step / 2 + _jitter(step / 2)


def is_dropped(chain: list[BaseException]) -> bool:
    """Whether a connection broke before the answer was whole. `chain`: the error and its causes."""
    from urllib3 import exceptions

    broken = (exceptions.ProtocolError, exceptions.IncompleteRead, ConnectionResetError)
    return any(isinstance(e, (*broken, BrokenPipeError)) for e in chain) and not is_unsent(chain)


def is_unsent(chain: list[BaseException]) -> bool:
    """Whether the request surely never reached the server."""
    from urllib3 import exceptions

    return any(
        isinstance(
            e,
            exceptions.NewConnectionError
            | exceptions.ConnectTimeoutError
            | exceptions.SSLError
            | exceptions.ProxyError
            | exceptions.LocationValueError,
        )
        for e in chain
    )


def _jitter(most: float) -> float:
    from random import random

    return random() * most


def _seconds(text: str | None) -> float | None:
    """Of Retry-After; the API server gives whole ones."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 6:
        return None
    return min(max(float(text), 0.1), _LONGEST_WAIT)
