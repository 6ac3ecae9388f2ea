"""Which version a Go program was built from, out of the program's own file.

Nothing is run: the linker leaves the list of modules in a section of the file (`go version -m`).
"""

from __future__ import annotations

import os
import re
import struct
from typing import BinaryIO

from dpctl.errors import DpctlError
from dpctl.sources.files import file_error, open_inert

_MAGIC = b"\xff Go buildinf:"
_SECTION = b".go.buildinfo"
_INLINE = 2
_START = 32
# The kubelet has some 250 modules, a line each.
_LARGEST = 1 << 20
_MOST_SECTIONS = 4096
_SENTINEL = 16
_FLAG = re.compile(r"k8s\.io/component-base/version\.gitVersion=(v[0-9][0-9A-Za-z.+-]{0,60})")
_MODULE = re.compile(
    r"^(?:mod|dep)\tk8s\.io/kubernetes\t(v[0-9][0-9A-Za-z.+-]{0,60})", re.MULTILINE
)


def kubernetes_version(path: str) -> str | None:
    """`v1.37.2` of a kubelet (or of what contains one, as k3s does); None: it does not say.

    Raises UnreachableError, DeniedError.
    """
    try:
        file = os.fdopen(open_inert(path), "rb")
    except (OSError, ValueError) as e:
        raise file_error(e, path) from e
    with file:
        try:
            modules = _modules(file)
        except (OSError, ValueError, struct.error, OverflowError):
            return None  # a damaged file points anywhere
    return version_of(modules) if modules is not None else None


def version_of(modules: str) -> str | None:
    """The version that the linker was told, else that of the module."""
    found = _FLAG.search(modules) or _MODULE.search(modules)
    return found[1] if found else None


def version_of_process(proc: str, pid: int) -> str | None:
    """That of a running kubelet; None where it cannot be told, for whatever reason."""
    try:
        return kubernetes_version(f"{proc}/{pid}/exe")
    except DpctlError:
        return None


def _modules(file: BinaryIO) -> str | None:
    """The list of modules of an ELF file of 64 bits, little-endian; None: it has none."""
    header = file.read(64)
    if header[:6] != b"\x7fELF\x02\x01" or len(header) < 64:
        return None
    (table,) = struct.unpack_from("<Q", header, 0x28)
    size, count, names = struct.unpack_from("<HHH", header, 0x3A)
    if size < 64 or not 0 < names < count <= _MOST_SECTIONS:
        return None
    file.seek(table)
    sections = file.read(size * count)
    where = [struct.unpack_from("<QQ", sections, n * size + 0x18) for n in range(count)]
    file.seek(where[names][0])
    texts = file.read(min(where[names][1], _LARGEST))
    for number, (offset, length) in enumerate(where):
        (name,) = struct.unpack_from("<I", sections, number * size)
        if texts[name : name + len(_SECTION) + 1] == _SECTION + b"\0":
            file.seek(offset)
            return _inline(file.read(min(length, _LARGEST)))
    return None


def _inline(data: bytes) -> str | None:
    """Go 1.18 and newer: two texts behind the header, each with its length."""
    if not data.startswith(_MAGIC) or len(data) < _START or not data[15] & _INLINE:
        return None
    _, position = _text(data, _START)
    modules, _ = _text(data, position)
    return modules[_SENTINEL:-_SENTINEL].decode("utf-8", "replace")


def _text(data: bytes, position: int) -> tuple[bytes, int]:
    length = shift = 0
    for byte in data[position : position + 9]:
        position += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return data[position : position + length], position + length
