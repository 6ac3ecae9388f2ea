"""A door between one node and the API server, which a test can shut.

Several minors are tested at once under one API server, so no test may stop that one. Everything on
a node, the kubelet and dpctl alike, reaches it through the node's own gate instead: shut, the
gate accepts connections and hands nothing on, as a server that hangs; closed, it refuses them.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CHUNK = 1 << 16
Door = int | Path
"""A port on 127.0.0.1, or a unix socket, which another network namespace reaches, too."""


class Gate:
    """Listens at one door and hands everything on to another."""

    def __init__(self, port: Door, behind: Door) -> None:
        self.port = port
        self._behind = behind
        self._open = threading.Event()
        self._open.set()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._listener = self._listen()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Hand nothing on: whoever asks waits."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Drop every connection and refuse new ones."""
        self.close()
        try:
            yield
        finally:
            self._listener = self._listen()

    def close(self) -> None:
        """As `closed`, for good."""
        # Shut down first: a thread in accept() would keep the port alive.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for pair in self._pairs:
                for end in pair:
                    with suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> socket.socket:
        listener = _listener(self.port)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        try:
            server = _connect(self._behind)
        except OSError:
            client.close()
            return
        pair = (client, server)
        with self._lock:
            self._pairs.add(pair)
        try:
            self._hand_on(client, server)
        finally:
            with self._lock:
                self._pairs.discard(pair)
            for end in pair:
                end.close()

    def _hand_on(self, client: socket.socket, server: socket.socket) -> None:
        """Until either side ends; TLS has no use for half a connection."""
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, (client, server))
            ready.register(server, selectors.EVENT_READ, (server, client))
            while True:
                for key, _ in ready.select():
                    end, other = key.data
                    try:
                        data = end.recv(CHUNK)
                        self._open.wait()
                        other.sendall(data)
                    except OSError:
                        return
                    if not data:
                        return


def _listener(door: Door) -> socket.socket:
    if isinstance(door, int):
        return socket.create_server(("127.0.0.1", door), backlog=256)
    door.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(door))
    listener.listen(256)
    return listener


def _connect(door: Door) -> socket.socket:
    if isinstance(door, int):
        return socket.create_connection(("127.0.0.1", door))
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(str(door))
    except OSError:
        server.close()
        raise
    return server
