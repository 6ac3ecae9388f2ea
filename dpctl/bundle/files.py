"""The files of a bundle, from a directory or an archive, read without trust.

Bundles come by mail from strangers: no link is followed, nothing but regular files is opened, no
name leads outside, every read is bounded. What the files mean is `reader`'s to know.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from dpctl.bundle.tar import Limits, TarReader
from dpctl.errors import BadDataError, DeniedError, DpctlError, UnreachableError
from dpctl.sources.files import open_inert
from dpctl.text import shorten

FILES = (
    "meta.json",
    "proc.json",
    "podnames.json",
    "podsapi.json",
    "poddirs.json",
    "hostpaths.json",
    "cdi.json",
    "openers.json",
    "api/node.json",
    "api/pods.json",
    "api/events.json",
    "api/deviceclasses.json",
    "device-plugins/kubelet_internal_checkpoint",
    "device-plugins/ls.txt",
    "device-plugins/sockets.json",
    "podresources/list.binpb",
    "podresources/list.json",
    "podresources/allocatable.binpb",
    "podresources/allocatable.json",
)
FOLDERS = (
    "kubelet",
    "plugins",
    "plugins_registry",
    "sys/devices/system/node",
    "sys/devices/system/cpu",
    "sys/bus/pci",
)
LAYOUT_HINT = (
    "a bundle holds api/node.json, api/pods.json, device-plugins/kubelet_internal_checkpoint,"
    " device-plugins/ls.txt, podresources/list.json, sys/devices/system/node/…, meta.json: any of"
    " them, under these names"
)

_MOST_MEMBERS = 100_000
# Each costs several opens; a node's sys/ has a few thousand.
_MOST_DIRECTORIES = 20_000
_DEEPEST = 12
# An archive may unpack to this many times the largest message.
_TOTAL = 8


class MissingError(Exception):
    """Nothing in the bundle answers for a source; `args`: why, where that is not plain."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file below a folder of the bundle, or something that may not be read (`kind` says what)."""

    name: str
    """From the bundle's root."""
    kind: str


class BundleFiles(Protocol):
    def where(self, name: str) -> str:
        """For messages and source rows."""

    def read(self, name: str) -> bytes | None:
        """None: not there. DpctlError: there, and not to be read (a link, too large, rights)."""

    def entries(self, folder: str) -> tuple[Entry, ...]:
        """Everything below the folder but directories, in order of name; empty: no such folder."""


def open_bundle(path: str, *, max_file_size: int) -> BundleFiles:
    """A directory, or an archive (`.tgz` or `.tar`, by its content).

    Raises UnreachableError (not there), DeniedError, BadDataError (no known file in it, no archive,
    or one that leads outside or past the limits).
    """
    file: BinaryIO | None = None
    try:
        fd = open_inert(path)
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            file = os.fdopen(fd, "rb")
        else:
            os.close(fd)
    except PermissionError as e:
        raise DeniedError(
            f"{path} may not be read", f"check its owner and mode: ls -ld {path}"
        ) from e
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else e
        raise UnreachableError(
            f"there is no bundle {path}: {reason}",
            "check --from, or make one with `dpctl snapshot`",
        ) from e
    if file is not None:
        with file:
            return _archive(path, file, max_file_size)
    if not stat.S_ISDIR(mode):
        raise BadDataError(f"{path} is neither a directory nor an archive", LAYOUT_HINT)
    directory = _Directory(path, max_file_size)
    if not directory.has_any():
        raise BadDataError(f"{path} holds no file of a bundle", LAYOUT_HINT)
    return directory


def _archive(path: str, file: BinaryIO, max_file_size: int) -> BundleFiles:
    limits = Limits(max_file_size, _TOTAL * max_file_size, _MOST_MEMBERS)
    try:
        return _Archive(path, *_members(TarReader(file, limits)))
    except BadDataError as e:
        raise BadDataError(f"{path} is not usable: {e.message}", e.hint) from e


def is_known(name: str) -> bool:
    return name in FILES or any(name.startswith(f"{folder}/") for folder in FOLDERS)


class _Directory:
    def __init__(self, path: str, max_file_size: int) -> None:
        self._path = path
        self._max_file_size = max_file_size

    def where(self, name: str) -> str:
        return os.path.join(self._path, name)

    def has_any(self) -> bool:
        return any(os.path.lexists(self.where(name)) for name in FILES + FOLDERS)

    def read(self, name: str) -> bytes | None:
        try:
            with self._open(name) as fd:
                return None if fd is None else self._contents(fd, name)
        except OSError as e:
            raise self._failed(name, e) from e

    def entries(self, folder: str) -> tuple[Entry, ...]:
        found: list[Entry] = []
        self._walk(folder, found, [], _DEEPEST)
        return tuple(sorted(found, key=lambda entry: entry.name))

    def _walk(self, folder: str, found: list[Entry], passed: list[str], depth: int) -> None:
        """Adds to `found`, and the directories to `passed`."""
        if depth == 0:
            raise self._too_much(folder)
        try:
            with self._open(folder) as fd:
                if fd is None:
                    return
                if not stat.S_ISDIR(os.fstat(fd).st_mode):
                    raise BadDataError(f"{self.where(folder)} is not a directory", LAYOUT_HINT)
                inner: list[str] = []
                with os.scandir(fd) as entries:
                    for entry in entries:
                        name = f"{folder}/{entry.name}"
                        if entry.is_dir(follow_symlinks=False):
                            inner.append(name)
                        else:
                            kind = _kind(entry.stat(follow_symlinks=False).st_mode)
                            found.append(Entry(name, kind))
                        if (
                            len(found) > _MOST_MEMBERS
                            or len(passed) + len(inner) > _MOST_DIRECTORIES
                        ):
                            raise self._too_much(folder)
        except OSError as e:
            raise self._failed(folder, e) from e
        passed += inner
        for name in inner:
            self._walk(name, found, passed, depth - 1)

    def _too_much(self, folder: str) -> BadDataError:
        return BadDataError(f"{self.where(folder)} holds too much to be part of a bundle")

    @contextmanager
    def _open(self, name: str) -> Iterator[int | None]:
        """Opens part by part, so that no directory on the way is a link. None: not there."""
        passing = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        *above, last = name.split("/")
        fd = os.open(self._path, passing)
        try:
            try:
                for part in above:
                    inner = os.open(part, passing | os.O_NOFOLLOW, dir_fd=fd)
                    os.close(fd)
                    fd = inner
                inner = open_inert(last, dir_fd=fd, follow=False)
            except FileNotFoundError:
                yield None
                return
            os.close(fd)
            fd = inner
            yield fd
        finally:
            os.close(fd)

    def _contents(self, fd: int, name: str) -> bytes:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise BadDataError(f"{self.where(name)} is not a regular file")
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(self._max_file_size + 1)
        if len(data) > self._max_file_size:
            raise BadDataError(
                f"{self.where(name)} is larger than {self._max_file_size} bytes",
                "raise --max-message-size if that is right",
            )
        return data

    def _failed(self, name: str, error: OSError) -> DpctlError:
        where = self.where(name)
        if isinstance(error, PermissionError):
            return DeniedError(
                f"{where} may not be read", f"check its owner and mode: ls -l {where}"
            )
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return BadDataError(
                f"{where} is a link, or below something that is no directory",
                "links in a bundle are not followed: put the file itself there",
            )
        return BadDataError(f"{where} cannot be read: {error.strerror}")


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "symbolic link" if stat.S_ISLNK(mode) else "special file"


class _Archive:
    """Known members of an archive, in memory."""

    def __init__(self, path: str, prefix: str, members: dict[str, bytes | DpctlError]) -> None:
        self._path = path
        self._prefix = prefix
        self._members = members

    def where(self, name: str) -> str:
        return f"{self._path}:{self._prefix}{name}"

    def read(self, name: str) -> bytes | None:
        found = self._members.get(name)
        if isinstance(found, DpctlError):
            raise type(found)(f"{self.where(name)}: {found.message}", found.hint)
        return found

    def entries(self, folder: str) -> tuple[Entry, ...]:
        names = sorted(name for name in self._members if name.startswith(f"{folder}/"))
        return tuple(
            Entry(name, "file" if isinstance(self._members[name], bytes) else "unreadable")
            for name in names
        )


def _members(reader: TarReader) -> tuple[str, dict[str, bytes | DpctlError]]:
    """The directory that the bundle stands under in the archive (`tar czf b.tgz worker-0`), as a
    prefix, and its members."""
    found: dict[str, dict[str, bytes | DpctlError]] = {}
    for member in reader.members():
        if member.kind == "directory":
            continue
        first, _, rest = member.name.partition("/")
        if is_known(member.name):
            prefix, name = "", member.name
        elif is_known(rest):
            prefix, name = f"{first}/", rest
        else:
            continue
        content: bytes | DpctlError
        if member.kind == "file":
            try:
                content = reader.read()
            except BadDataError as e:
                if e.hint is None:  # the archive itself is damaged, not this member too large
                    raise
                content = e
        else:
            content = BadDataError(
                f"it is a {member.kind}", "links in a bundle are not followed: pack the file itself"
            )
        found.setdefault(prefix, {})[name] = content
    if not found:
        raise BadDataError("it holds no file of a bundle", LAYOUT_HINT)
    if "" in found:
        return "", found[""]
    if len(found) > 1:
        names = shorten(", ".join(prefix.rstrip("/") for prefix in sorted(found)), 200)
        raise BadDataError(
            f"it holds {len(found)} bundles: {names}",
            "unpack it and name one directory with --from",
        )
    return found.popitem()
