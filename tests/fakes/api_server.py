"""An API server that misbehaves on cue, for what a client must survive: refusals, hangs, garbage,
broken-off and endless bodies. A well-behaved Node and Pod API is the lab's.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Reply = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server
    body = b""

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    do_PATCH = do_DELETE = do_POST

    def do_GET(self) -> None:
        self.server.methods.append(self.command)
        parts = urlsplit(self.path)
        self.query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.server.requests.append((parts.path, self.query, list(self.headers.items())))
        replies = self.server.routes.get(parts.path)
        if not replies:
            status(404, f"no route {parts.path}")(self)
            return
        reply = replies[0] if len(replies) == 1 else replies.pop(0)
        reply(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.routes: dict[str, list[Reply]] = {}
        self.requests: list[tuple[str, dict[str, str], list[tuple[str, str]]]] = []
        self.methods: list[str] = []
        self.scheme = "http"
        self.release = threading.Event()

    def answer(self, path: str, *replies: Reply) -> None:
        """Replies to `path`, one after the other; the last one stays."""
        self.routes[path] = list(replies)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that go away are the point


def json_reply(document: object, code: int = 200, **headers: str) -> Reply:
    return raw(json.dumps(document).encode(), code, None, **headers)


def raw(body: bytes, code: int = 200, /, length: int | None = None, **headers: str) -> Reply:
    def reply(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.end_headers()
        handler.wfile.write(body)
        if length is not None:
            handler.close_connection = True

    return reply


def status(code: int, message: str, **headers: str) -> Reply:
    """What the API server says when it refuses."""
    body = {"kind": "Status", "status": "Failure", "message": message, "code": code}
    return json_reply(body, code, **headers)


def hang(handler: Handler) -> None:
    handler.server.release.wait(20)


def close(handler: Handler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(2)


def drip(handler: Handler) -> None:
    """A body that never ends, a byte at a time."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.server.release.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def endless(handler: Handler) -> None:
    """100 MiB without a Content-Length."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for _ in range(1600):
        handler.wfile.write(chunk)
    handler.wfile.write(b"0\r\n\r\n")


@contextmanager
def running(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server()
    if context is not None:
        server.scheme = "https"
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


class Authority:
    """A certificate authority of our own, through the `openssl` command."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._openssl("req", "-x509", "-subj", "/CN=test-ca", "-out", "ca.crt", "-keyout", "ca.key",
                      "-days", "2")  # fmt: skip
        self.ca = directory / "ca.crt"

    def issue(self, name: str, subject: str, san: str | None = None) -> tuple[Path, Path]:
        """(certificate, key) files."""
        self._openssl("req", "-subj", subject, "-out", f"{name}.csr", "-keyout", f"{name}.key")
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={san}\n" if san else "basicConstraints=CA:FALSE\n")
        subprocess.run(
            ["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
             "-CAcreateserial", "-days", "2", "-out", f"{name}.crt", "-extfile", f"{name}.ext"],
            cwd=self.directory, check=True, capture_output=True,
        )  # fmt: skip
        return self.directory / f"{name}.crt", self.directory / f"{name}.key"

    def _openssl(self, *arguments: str) -> None:
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        command = ["openssl", *arguments, *key]
        subprocess.run(command, cwd=self.directory, check=True, capture_output=True)
