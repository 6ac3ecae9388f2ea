"""Credential plugins of a kubeconfig (`users[].user.exec`): bounded in time and in what they print,
ended with their children. The `kubernetes` package starts them, and does none of that.
"""

from __future__ import annotations

import logging
import os
import selectors
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from dpctl.child import end_tree
from dpctl.errors import BadDataError, UnreachableError
from dpctl.sources.files import size_in_words

_T = TypeVar("_T")

# Seconds for a credential plugin, which may open a browser and wait for a person.
_PLUGIN_TIMEOUT = 60.0
# A credential is some KiB.
_MOST_OUTPUT = 1 << 20


class CredentialPlugin(subprocess.Popen[str]):
    """One that runs: what it prints is bounded, and it can be ended with its children."""

    running: ClassVar[set[CredentialPlugin]] = set()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.running.add(self)

    def communicate(self, *_: object, **__: object) -> tuple[str, str]:
        said: dict[Any, bytes] = {stream: b"" for stream in (self.stdout, self.stderr) if stream}
        with selectors.DefaultSelector() as waiting:
            for stream in said:
                waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map():
                for key, _events in waiting.select():
                    chunk = os.read(key.fd, 1 << 16)
                    said[key.fileobj] += chunk
                    if not chunk:
                        waiting.unregister(key.fileobj)
                if sum(map(len, said.values())) > _MOST_OUTPUT:
                    self.end()
                    raise BadDataError(f"it printed more than {size_in_words(_MOST_OUTPUT)}")
        for stream in said:
            stream.close()
        self.wait()
        self.running.discard(self)
        out, err = (said.get(s, b"").decode(errors="replace") for s in (self.stdout, self.stderr))
        return out, err

    def end(self) -> None:
        self.running.discard(self)
        end_tree(self.pid)
        self.wait()


class Processes:
    """What the library uses of `subprocess`."""

    PIPE = subprocess.PIPE
    Popen = CredentialPlugin


def in_time(call: Callable[[], _T], where: str) -> _T:
    """What `call` gives, which may run a credential plugin. One that does not end is ended."""
    given: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            given.append(call())
        except BaseException as e:  # raised again below, in the caller's thread
            failed.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join(_PLUGIN_TIMEOUT)
    finally:  # after Ctrl-C, too
        late = thread.is_alive()
        if late:
            for plugin in tuple(CredentialPlugin.running):
                plugin.end()
            thread.join(1)  # the library says of it what nobody needs, while that is not printed
    if late:
        raise UnreachableError(
            f"{where}: its credentials did not come within {_PLUGIN_TIMEOUT:g} s",
            "run its credential plugin by hand (users[].user.exec in the kubeconfig), or log in",
        )
    if failed:
        raise failed[0]
    return given[0]


class _Listener(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(record.getMessage())


@contextmanager
def quiet_root_log(heard: list[str] | None = None) -> Iterator[None]:
    """The library reports a failed credential plugin with `logging.error` alone, which prints."""
    listener = _Listener([] if heard is None else heard)
    root = logging.getLogger()
    root.addHandler(listener)
    try:
        yield
    finally:
        root.removeHandler(listener)
