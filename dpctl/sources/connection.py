"""One bounded HTTP exchange with the API server, and what its transport's failures mean.

Paths, rights and the meaning of an answer's content belong to `apiserver`. Sources send GET, and
POST for reviews of one's own rights; everything else is sent by `writes` alone.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from dpctl import __version__
from dpctl.errors import BadDataError, DeniedError, DpctlError, PeerError, UnreachableError
from dpctl.sources.credentials import Credentials
from dpctl.sources.files import open_inert
from dpctl.sources.retries import LostError, is_dropped, is_unsent, pause, wait_after
from dpctl.text import shorten

_CHUNK = 1 << 16
UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class Connection:
    """The API server as one user sees it. Its methods may be called from several threads."""

    def __init__(
        self,
        load: Callable[[], Credentials],
        *,
        timeout: float,
        max_body_size: int,
        patience: float = 0.0,
    ) -> None:
        """`timeout` in seconds for one exchange, `max_body_size` in bytes for one answer.
        `patience`: so many seconds a busy server is asked again, each time within the timeout."""
        self._load = load
        self._patience = patience
        self._credentials = self._loaded()
        self._lock = threading.Lock()
        self._accepted = False
        self.timeout = timeout
        self.max_body_size = max_body_size

    def _loaded(self) -> Credentials:
        credentials = self._load()
        _watch(credentials.pool)
        return credentials

    @property
    def server(self) -> str:
        return self._credentials.server

    @property
    def where(self) -> str:
        """The credentials' origin, for messages."""
        return self._credentials.where

    def exchange(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        content_type: str = "application/json",
        repeatable: bool | None = None,
    ) -> Answer:
        """One request and its whole answer, whatever its status.

        Sent once more, with pauses and while the timeout (or the longer patience) lasts: what was
        told to wait (429), and what may be repeated (`repeatable`; without it a GET) when the
        server is out of order (5xx) or drops the connection. Credentials that were good before and
        are refused now are loaded once more: a kubelet's certificate rotates, tokens run out.

        Raises UnreachableError (no connection, no answer in time, TLS), LostError (the same for
        what may not be repeated and may have been carried out), DeniedError (a credential file may
        not be read) and BadDataError (an answer that breaks off or is too large).
        """
        if any(step in (".", "..") for step in path.split("/")):  # which would lead elsewhere
            raise BadDataError(
                f"{self.server} knows an object by the name {path}: no object has it"
            )
        again = method == "GET" if repeatable is None else repeatable
        until = time.monotonic() + max(self.timeout, self._patience)
        attempt = 0
        while True:
            attempt += 1
            deadline = min(time.monotonic() + self.timeout, until)
            try:
                answer = self._logged_in(method, path, query, body, content_type, deadline)
            except (UnreachableError, BadDataError) as e:
                chain = _chain(e)
                wait = pause(attempt) if again and is_dropped(chain) else None
                if wait is None or time.monotonic() + wait >= until:
                    if again or is_unsent(chain):
                        raise
                    raise LostError(e.message, e.hint) from e
            else:
                named = answer.headers.get("retry-after")
                wait = wait_after(answer.status, named, attempt=attempt, repeatable=again)
                if wait is None or time.monotonic() + wait >= until:
                    return answer
            time.sleep(wait)

    def _logged_in(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: bytes | None,
        content_type: str,
        deadline: float,
    ) -> Answer:
        answer = self._send(method, path, query, body, content_type, deadline)
        if answer.status == UNAUTHORIZED and self._accepted:
            with self._lock:
                self._credentials = self._loaded()
                self._accepted = False
            answer = self._send(method, path, query, body, content_type, deadline)
        if answer.status != UNAUTHORIZED:
            self._accepted = True
        return answer

    def _send(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: bytes | None,
        content_type: str,
        deadline: float,
    ) -> Answer:
        import urllib3

        credentials = self._credentials
        url = (
            credentials.server
            + path
            + (
                # A page token is the peer's: it may hold what is no UTF-8.
                f"?{urlencode(query, errors='surrogatepass')}" if query else ""
            )
        )
        headers = urllib3.HTTPHeaderDict()
        headers["Accept"] = "application/json"
        headers["User-Agent"] = f"dpctl/{__version__}"
        authorization = credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        if body is not None:
            headers["Content-Type"] = content_type
        for name, value in credentials.impersonate:
            headers.add(name, value)
        left = max(deadline - time.monotonic(), 0.001)
        guard = _Guard()
        try:
            with guard.running(left):
                response = credentials.pool.request(
                    method,
                    url,
                    body=body,
                    headers=headers,
                    timeout=urllib3.Timeout(total=left),
                    retries=False,  # redirects are not followed either
                    preload_content=False,
                )
                try:
                    answer = self._receive(response, deadline)
                finally:
                    # One whose answer was not read to its end must not be used again.
                    if not response.closed:
                        response.close()
                    response.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as e:
            raise (self._too_slow() if guard.expired else self._translate(e)) from e
        if guard.expired:  # what was cut off may look like a whole answer
            raise self._too_slow()
        return answer

    def _receive(self, response: Any, deadline: float) -> Answer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise BadDataError(
                f"{self.server} sends {shorten(encoding, 40)}, which nobody asked for"
            )
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit():
            self._check_size(int(length[:20]))
        # read1 gives what is there: `read` would wait for a whole chunk, past any deadline.
        parts: list[bytes] = []
        size = 0
        while part := response.read1(_CHUNK):
            size += len(part)
            self._check_size(size)
            parts.append(part)
            if time.monotonic() > deadline:
                raise self._too_slow()
        return Answer(response.status, headers, b"".join(parts))

    def _check_size(self, size: int) -> None:
        if size > self.max_body_size:
            raise BadDataError(
                f"the answer of {self.server} is larger than {self.max_body_size} bytes",
                "raise --max-message-size if that is right",
            )

    def _too_slow(self) -> UnreachableError:
        return UnreachableError(
            f"the API server at {self.server} did not answer within {self.timeout:g} s",
            f"check the server of {self.where}, or raise --request-timeout",
        )

    def _translate(self, error: Exception) -> DpctlError:
        import ssl

        from urllib3 import exceptions

        chain = _chain(error)
        place = f"the API server at {self.server}"
        check = f"check the server address in {self.where}"
        # "Refused" is a kind of "timed out" to urllib3.
        timeouts = [e for e in chain if isinstance(e, exceptions.TimeoutError | TimeoutError)]
        if any(not isinstance(e, exceptions.NewConnectionError) for e in timeouts):
            return self._too_slow()
        if any(isinstance(e, exceptions.NameResolutionError) for e in chain):
            return UnreachableError(f"{place}: its name cannot be resolved", f"{check}, and DNS")
        for e in chain:
            if isinstance(e, (ssl.SSLError, ssl.CertificateError)):
                return self._tls(e)
        for path in self._credentials.files:
            denied = _cannot_open(path)
            if denied is not None:
                return denied
        if any(isinstance(e, exceptions.SSLError) for e in chain):
            return self._tls(error)
        if any(isinstance(e, exceptions.ProxyError) for e in chain):
            return UnreachableError(
                f"{place}: its proxy does not answer",
                "check HTTPS_PROXY, NO_PROXY and proxy-url in the kubeconfig",
            )
        if any(isinstance(e, exceptions.IncompleteRead) for e in chain):
            return BadDataError(f"{place} broke off in the middle of its answer", "try again")
        if any(isinstance(e, exceptions.LocationValueError) for e in chain):
            return BadDataError(f"{self.where}: {shorten(str(error), 200)}", check)
        reason = next((e.strerror for e in chain if isinstance(e, OSError) and e.strerror), None)
        if reason is not None:
            return UnreachableError(
                f"{place} cannot be reached: {reason}",
                f"{check}, and that the server runs there: curl -k {self.server}/livez",
            )
        if isinstance(error, exceptions.ProtocolError):
            return UnreachableError(f"{place} closed the connection without an answer", check)
        return PeerError(f"{place}: {shorten(str(error), 200)}", check)

    def _tls(self, error: BaseException) -> UnreachableError:
        import ssl

        if isinstance(error, ssl.SSLCertVerificationError):
            return UnreachableError(
                f"the certificate of {self.server} is not trusted: {error.verify_message}",
                f"check certificate-authority and tls-server-name in {self.where}, and the clock",
            )
        reason = getattr(error, "reason", None) or str(error)
        return UnreachableError(
            f"no TLS with {self.server}: {shorten(str(reason), 200)}",
            f"check that the server in {self.where} is an API server, and the client certificate",
        )


class _Guard:
    """Bounds one exchange from outside. urllib3's timeouts are for one `recv` each, and a peer may
    drip a status line, headers, `100 Continue` or chunk sizes for ever: the sockets are shut
    down at the deadline, which ends every wait on them.
    """

    def __init__(self) -> None:
        self.expired = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []

    @contextmanager
    def running(self, seconds: float) -> Iterator[None]:
        """Guards what this thread sends and receives inside."""
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        _guards.current = self
        try:
            yield
        finally:
            _guards.current = None
            timer.cancel()
            with self._lock:
                for one in self._sockets:
                    one.close()
                self._sockets.clear()

    def watch(self, descriptor: int) -> None:
        """A duplicate is kept: a handshake takes the socket away from its object."""
        one = socket.socket(fileno=os.dup(descriptor))
        with self._lock:
            self._sockets.append(one)
            if self.expired:
                _shut_down(one)

    def _expire(self) -> None:
        with self._lock:
            self.expired = True
            for one in self._sockets:
                _shut_down(one)


_guards = threading.local()


def _shut_down(one: socket.socket) -> None:
    with suppress(OSError):  # not connected any more
        one.shutdown(socket.SHUT_RDWR)


class _Watched:
    """Before a class of urllib3's connections: shows each socket in use to the thread's guard."""

    sock: Any

    def _new_conn(self) -> socket.socket:
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        _watch_socket(made)
        return made

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            _watch_socket(self.sock)
        super().request(*args, **kwargs)  # type: ignore[misc]


def _watch_socket(used: Any) -> None:
    guard: _Guard | None = getattr(_guards, "current", None)
    if guard is not None:
        guard.watch(used.fileno())


def _watch(pool: Any) -> None:
    """Has a PoolManager make watched connections only."""
    pool.pool_classes_by_scheme = {
        scheme: type(
            kind.__name__,
            (kind,),
            {"ConnectionCls": type("WatchedConnection", (_Watched, kind.ConnectionCls), {})},
        )
        for scheme, kind in pool.pool_classes_by_scheme.items()
    }


def _chain(error: BaseException) -> list[BaseException]:
    """The error, what urllib3 wrapped (`args`, `reason`) and what it came from."""
    found: list[BaseException] = []
    todo: list[object] = [error]
    while todo and len(found) < 20:
        e = todo.pop(0)
        if isinstance(e, BaseException) and e not in found:
            found.append(e)
            todo += [*e.args, getattr(e, "reason", None), e.__cause__, e.__context__]
    return found


def _cannot_open(path: str) -> DeniedError | BadDataError | None:
    try:
        os.close(open_inert(path))
        return None
    except PermissionError:
        return DeniedError(
            f"the credential file {path} may not be read",
            "run as root, or name a kubeconfig of your own with --kubeconfig",
        )
    except OSError as e:
        return BadDataError(f"the credential file {path} cannot be read: {e.strerror}")
