"""What the files of the CPU and the memory manager share (kubelet-facts §5.4, §5.5); pure.

Outer keys for older kubelets, and from 1.37 on the same once more as a text in `data`, each half
with a checksum of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from dpctl.errors import BadDataError
from dpctl.model.statefiles import StateChecksum, StateFault
from dpctl.statefiles import json_document as doc
from dpctl.statefiles.checksum import fnv1a_32, spew_text
from dpctl.statefiles.go_json import go_syntax_error

_T = TypeVar("_T")


class Data(NamedTuple):
    """The inner half of a file."""

    text: str
    checksum: int

    @property
    def counts(self) -> bool:
        """Whether a kubelet of 1.37 takes the file for one that has this half: then it does not
        fall back to the outer one."""
        return self.text != "" or self.checksum != 0


def inner_half(what: str, keys: Mapping[str, object]) -> Data:
    """Raises BadDataError."""
    return Data(
        doc.text(what, "data", keys.get("data")),
        doc.whole(what, "dataChecksum", keys.get("dataChecksum")),
    )


def inner_checksums(form: str, inner: Data) -> list[StateChecksum]:
    """The number over the text; none where the file has no such half."""
    if not inner.counts:
        return []
    return [StateChecksum(form, "dataChecksum", inner.checksum, text_checksum(inner.text))]


def fault_of(error: BadDataError, data: bytes) -> StateFault:
    """Why a text cannot be decoded, with Go's words where they are known."""
    certain = not isinstance(error, doc.UnreadError)
    return StateFault(error.message, go_syntax_error(data) if certain else None, certain)


def data_half(
    what: str, text: str, parse: Callable[[object], _T]
) -> tuple[_T | None, StateFault | None]:
    """The text of `data` decoded; or None, and why."""
    raw = spew_text(text)  # as Go holds it
    try:
        return parse(doc.load(raw, what)), None
    except GoError as e:
        return None, StateFault(e.message, e.go)
    except BadDataError as e:
        return None, fault_of(e, raw)


class GoError(BadDataError):
    """What cannot be decoded, in Go's words."""

    def __init__(self, message: str, go: str) -> None:
        super().__init__(message)
        self.go = go


def text_checksum(text: str) -> int:
    """The number over a text (kubelet-facts §5.7): FNV-1a of `(string)` and the text."""
    return fnv1a_32(b"(string)" + spew_text(text))


def struct_checksums(form: str, type_name: bytes, body: bytes, stored: int) -> list[StateChecksum]:
    """The number over the outer keys, `body` being what stands behind the type's name.

    Kubelets hash it under the name of old; some accept it under the type's own name besides
    (`form` + `*`), which is looked at only where the first does not fit.
    """
    found = [StateChecksum(form, "checksum", stored, fnv1a_32(b"(*state." + type_name + body))]
    if not found[0].fits:
        own = b"(*state." + type_name + form.upper().encode() + body
        found.append(StateChecksum(f"{form}*", "checksum", stored, fnv1a_32(own)))
    return found
