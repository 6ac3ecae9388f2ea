"""Asking a running lab: the other end of the control socket. Stdlib only, reads and asks alone."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from dpctl.errors import PeerError, UnreachableError

_PATIENCE = 60.0


class LabClient:
    """One request per connection, so that several threads may ask at once."""

    def __init__(self, directory: Path, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._socket = directory / "ctl.sock"

    def ask(self, op: str, **arguments: Any) -> Any:
        """Raises UnreachableError (no lab runs there), PeerError (its answer)."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self._patience)
                connection.connect(str(self._socket))
                connection.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
                with connection.makefile("rb") as file:
                    answer = json.loads(file.readline() or b"{}")
        except (OSError, ValueError) as error:
            raise UnreachableError(
                f"the lab does not answer on {self._socket}: {error}", "start one: dpctl lab up"
            ) from error
        if "error" in answer:
            raise PeerError(f"the lab refuses {op!r}: {answer['error']}")
        return answer.get("value")
