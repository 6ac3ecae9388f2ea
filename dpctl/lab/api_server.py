"""The lab's API server: HTTP on 127.0.0.1 with bearer tokens, in front of the store.

What belongs here: HTTP. What a path means is in `api_paths`, who may what in `api_auth`, what a
request does in `api_handlers`, objects in `api_store`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from dpctl.lab.api_auth import User, impersonated
from dpctl.lab.api_errors import ApiError, Json
from dpctl.lab.api_handlers import Call, Faults, Handlers, Watch
from dpctl.lab.api_store import Store

_MAX_BODY = 3 * 1024 * 1024
_MOST_DRAINED = 16 << 20
_WATCH_BEAT = 0.5
"""Seconds between two looks at whether a watch should end."""


class ApiServer:
    """Serves from construction until `close`; port chosen by the system."""

    def __init__(self, store: Store, tokens: Mapping[str, User], handlers: Handlers) -> None:
        self.store = store
        self.tokens = dict(tokens)
        self.handlers = handlers
        self.faults: Faults = handlers.faults
        self.closing = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.api = self
        threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        ).start()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    api: ApiServer

    def server_bind(self) -> None:
        """Without the name look-up of the standard one, which may take seconds."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "dpctl-lab"
    # One segment per answer: headers and body apart would wait for a delayed acknowledgement.
    wbufsize = 64 * 1024
    disable_nagle_algorithm = True
    timeout = 300
    server: _Server

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the log is the lab's."""

    def _serve(self) -> None:
        api = self.server.api
        try:
            call = self._call()
            api.faults.strike(call)
            answer = api.handlers.handle(call)
        except ApiError as error:
            self._send(error.code, error.status(), error.headers)
            return
        if isinstance(answer, Watch):
            self._stream(answer)
        else:
            self._send(*answer)

    def _call(self) -> Call:
        body = self._body()
        url = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        user = self._user()
        manager = query.get("fieldManager") or self.headers.get("User-Agent", "").partition("/")[0]
        return Call(
            method=self.command,
            path=url.path,
            query=query,
            content_type=self.headers.get("Content-Type", ""),
            body=body,
            user=user,
            manager=manager or "unknown",
        )

    def _body(self) -> bytes:
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        if not 0 <= length <= _MAX_BODY or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # what was not read must not be taken for a request
            # Who still sends would see a broken pipe, and never the answer.
            self.connection.settimeout(5)
            left = min(max(length, 0), _MOST_DRAINED)
            while left > 0 and (part := self.rfile.read(min(left, 65536))):
                left -= len(part)
            raise ApiError(413, "RequestEntityTooLarge", "limit is 3145728 bytes")
        return self.rfile.read(length)

    def _user(self) -> User:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        user = self.server.api.tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        groups = tuple(self.headers.get_all("Impersonate-Group") or ())
        return impersonated(user, self.headers.get("Impersonate-User"), groups)

    def _send(self, code: int, body: Json, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body, separators=(",", ":")).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, watch: Watch) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        api = self.server.api
        try:
            while not api.closing.is_set() and not watch.expired():
                for event in watch.next_events(_WATCH_BEAT):
                    line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
