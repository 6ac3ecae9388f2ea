"""Lists of the API server, page by page: `limit`, `continue`, and tokens that expire on the way.

What stands in a page belongs to the callers. Nothing is kept here, so that a list of any length
costs the memory of one page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dpctl.errors import BadDataError, PeerError, UnreachableError
from dpctl.sources.json_fields import Field

PAGE = 500
_MOST_PAGES = 1000
_MOST_RESTARTS = 3
# Pages without an item, one after the other; a real server has none, or one at the end.
_MOST_EMPTY = 10

Query = Sequence[tuple[str, str]]


class Page(NamedTuple):
    items: list[object]
    size: int
    """Bytes of the answer."""
    first: bool
    """The list begins here; once more when a token expired: what came before is void, unless the
    reader knows what it has seen."""


class ExpiredError(PeerError):
    """410: the page token is too old. `token` goes on behind the last page, though with what the
    server has now and not with what it had when the list began; None: it offered none."""

    def __init__(self, message: str, hint: str | None = None, token: str | None = None) -> None:
        super().__init__(message, hint)
        self.token = token


class Bounds(NamedTuple):
    """Of a list as a whole; each page is bounded by its own exchange."""

    deadline: float | None = None
    """`time.monotonic()`."""
    seconds: float = 0.0
    """For the message: how long that was."""
    size: int | None = None
    """Bytes."""


def read_pages(
    get: Callable[[str, Query], tuple[object, int]],
    path: str,
    query: Query = (),
    *,
    server: str,
    where: str,
    bounds: Bounds = Bounds(),  # noqa: B008  # a constant
    goes_on: bool = False,
) -> Iterator[Page]:
    """Every page of a list. `get` gives the decoded answer to a path and its size in bytes;
    `server` and `where` (the credentials) are for messages.

    A token that has expired begins the list again, at most `_MOST_RESTARTS` times. With `goes_on`
    the list goes on where it stopped if the server offers that: right for who prints what comes,
    wrong for who adds up.

    Raises what `get` raises, PeerError (it expired too often), UnreachableError (the deadline) and
    BadDataError (a list without an end, or larger than its bound).
    """
    for _ in range(_MOST_RESTARTS):
        try:
            yield from _once(get, path, query, server, where, bounds, goes_on)
            return
        except _BeginAgainError:
            continue
    raise PeerError(
        f"{server}: the list {path} expired {_MOST_RESTARTS} times while it was read",
        "try again when the API server is less busy",
    )


class _BeginAgainError(Exception):
    """The token expired, and there is no other."""


def _once(
    get: Callable[[str, Query], tuple[object, int]],
    path: str,
    query: Query,
    server: str,
    where: str,
    bounds: Bounds,
    goes_on: bool,
) -> Iterator[Page]:
    token = ""
    tokens: set[int] = set()
    total = empty = 0
    first = True
    for _ in range(_MOST_PAGES):
        if bounds.deadline is not None and time.monotonic() > bounds.deadline:
            raise UnreachableError(
                f"{server} did not come to the end of the list {path} within {bounds.seconds:g} s",
                "raise --request-timeout, or try again when the API server is less busy",
            )
        asked = [*query, ("limit", str(PAGE)), *([("continue", token)] if token else [])]
        try:
            document, size = get(path, asked)
        except ExpiredError as e:
            if not token:
                raise
            if goes_on and e.token and e.token != token:
                token = e.token
                continue
            raise _BeginAgainError from e
        total += size
        if bounds.size is not None and total > bounds.size:
            raise BadDataError(
                f"the list {path} of {server} is larger than {bounds.size} bytes",
                "raise --max-message-size if that is right",
            )
        try:
            page = Field(document, "")
            if "items" not in page.members():  # an empty list has them, too
                raise BadDataError(
                    f"{path} is no list", f"check that the server in {where} is an API server"
                )
            items = [item.value for item in page.at("items").items()]
            token = page.at("metadata", "continue").text() or ""
        except BadDataError as e:
            raise BadDataError(f"the answer of {server}: {e.message}", e.hint) from e
        empty = 0 if items else empty + 1
        yield Page(items, size, first)
        first = False
        del document, page, items  # 500 Nodes are 20 MiB: not two pages at a time
        if not token:
            return
        if empty == _MOST_EMPTY or hash(token) in tokens:  # round and round
            break
        tokens.add(hash(token))
    raise BadDataError(
        f"{server}: the list {path} does not end",
        f"check that the server in {where} is an API server",
    )
