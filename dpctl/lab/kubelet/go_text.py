"""Texts as Go writes them: what people find in logs and search for. A leaf of the lab's kubelet."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

import grpc

_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """Go's `%q`: printable characters stay, whatever their alphabet."""
    return '"' + "".join(_SHORT.get(c) or _shown(c) for c in text) + '"'


def _shown(character: str) -> str:
    number = ord(character)
    if character.isprintable():
        return character
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def go_error(error: grpc.RpcError) -> str:
    """`rpc error: code = Unknown desc = …`, as grpc-go prints it."""
    words = "".join(part.capitalize() for part in error.code().name.split("_"))
    return f"rpc error: code = {words} desc = {error.details()}"


class Unknown(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Refuses what a server does not serve in grpc-go's words; to be added to it last."""

    def __init__(self, services: Collection[str]) -> None:
        self._services = services

    def service(self, handler_call_details: Any) -> Any:
        service, _, method = handler_call_details.method.strip("/").rpartition("/")
        text = f"unknown service {service}"
        if service in self._services:
            text = f"unknown method {method} for service {service}"

        def refuse(_: bytes, context: Any) -> NoReturn:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
            raise AssertionError  # abort raises

        return grpc.unary_unary_rpc_method_handler(refuse)
