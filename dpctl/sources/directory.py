"""Listing a directory of sockets, live or from a recorded `ls`; nothing is spoken to here.

Names come from whoever may write there: they are kept exactly (undecodable bytes as lone
surrogates), never followed out of the directory.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime

from dpctl.errors import BadDataError, UnreachableError
from dpctl.model import DirectoryEntry, DirectoryListing
from dpctl.sources.files import file_error, kind_in_words

_MOST_ENTRIES = 100_000
# A plugin may register `sub/x.sock`; deeper ones have not been seen.
_DEPTH = 2
UNKNOWN_OWNER = -1
_MINOR_BITS = 20


def kernel_device(st_dev: int) -> int:
    """`st_dev` as the kernel encodes it inside, and in its socket diagnostics."""
    return os.major(st_dev) << _MINOR_BITS | os.minor(st_dev)


def list_directory(path: str) -> DirectoryListing:
    """What is in the directory, by name; of sub-directories the sockets only, as `sub/x.sock`.

    Raises UnreachableError (not there, no directory), DeniedError, BadDataError (absurdly full).
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except NotADirectoryError as e:
        if os.path.exists(path):
            raise UnreachableError(f"{path} is not a directory") from e
        raise file_error(e, path) from e
    except (OSError, ValueError) as e:
        raise file_error(e, path) from e
    try:
        top = os.fstat(fd)
        device = _device(path, top.st_dev)
        entries = [
            _entry(name, found, device if found.st_dev == top.st_dev else None, target)
            for name, found, target in _walk(fd, "", path)
        ]
    except OSError as e:
        raise file_error(e, path) from e
    finally:
        os.close(fd)
    entries.sort(key=lambda entry: entry.name)
    return DirectoryListing(path, tuple(entries), inode=top.st_ino, device=device)


def socket_entry(path: str) -> DirectoryEntry:
    """The socket file that a person named; links are followed, as whoever connects does.

    Raises UnreachableError (not there, no socket), DeniedError.
    """
    try:
        found = os.stat(path)
        device = _device(path, found.st_dev)
    except (OSError, ValueError) as e:
        raise file_error(e, path) from e
    if not stat.S_ISSOCK(found.st_mode):
        raise UnreachableError(
            f"{path} is {kind_in_words(found.st_mode)}, not a socket",
            "`dpctl plugins` lists the sockets of the plugins here",
        )
    return _entry(path, found, device, None)


def _walk(fd: int, prefix: str, path: str) -> Iterator[tuple[str, os.stat_result, str | None]]:
    """Names relative to the top, with `lstat`, and the target of links."""
    count = 0
    with os.scandir(fd) as found:
        for item in found:
            count += 1
            if count > _MOST_ENTRIES:
                raise BadDataError(f"{path} holds more than {_MOST_ENTRIES} names")
            try:
                status = item.stat(follow_symlinks=False)
                target = os.readlink(item.name, dir_fd=fd) if item.is_symlink() else None
            except OSError:
                continue  # gone since: temporary files of the checkpoint come and go
            mode = status.st_mode
            if not prefix or stat.S_ISSOCK(mode):
                yield prefix + item.name, status, target
            if stat.S_ISDIR(mode) and prefix.count("/") < _DEPTH - 1:
                yield from _below(fd, item.name, prefix, path)


def _below(
    fd: int, name: str, prefix: str, path: str
) -> Iterator[tuple[str, os.stat_result, None]]:
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        sub = os.open(name, flags, dir_fd=fd)
    except OSError:
        return  # gone, replaced by a link, or not ours to enter: the entry itself is listed
    try:
        for inner, status, _ in _walk(sub, f"{prefix}{name}/", path):
            yield inner, status, None
    finally:
        os.close(sub)


def _entry(
    name: str, found: os.stat_result, device: int | None, target: str | None
) -> DirectoryEntry:
    return DirectoryEntry(
        name=name,
        kind=_kind(found.st_mode),
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        gid=found.st_gid,
        inode=found.st_ino,
        device=device if device is not None else kernel_device(found.st_dev),
        modified=found.st_mtime,
        size=found.st_size,
        link_target=target,
    )


def _kind(mode: int) -> str:
    for test, kind in (
        (stat.S_ISSOCK, "socket"),
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISLNK, "symlink"),
    ):
        if test(mode):
            return kind
    return "other"


def _device(path: str, st_dev: int) -> int:
    """The file system's own device: on btrfs and overlayfs `st_dev` is another one."""
    from dpctl.sources.sysfs import vfs_device

    try:
        return vfs_device(path)
    except (OSError, ValueError):
        return kernel_device(st_dev)  # no /proc: right on most file systems


# -- recorded listings -----------------------------------------------------------------------------

_KINDS = {"s": "socket", "-": "file", "d": "directory", "l": "symlink"}
_MODE = re.compile(r"(?:\d+\s+)?([-bcdlps])([-rwxsStT]{9})[.+@]?\s+(.*)", re.DOTALL)
# links owner group size (or "major, minor"), then a date.
_LONG = re.compile(r"\d+\s+(\S+)\s+(\S+)\s+(?:\d+,\s*)?(\d+)\s+(.*)", re.DOTALL)
_FULL_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d) (\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(?: ([+-]\d{4}))? (.*)", re.DOTALL
)
_LOCAL = re.compile(r"[A-Z][a-z]{2}\s+\d{1,2}\s+(?:\d\d:\d\d|\d{4}) (.*)", re.DOTALL)
_LOOSE_TIME = re.compile(r"\s+mtime \S+\s*$")


def parse_ls(data: bytes, path: str) -> DirectoryListing:
    """`ls -la --time-style=full-iso` of the directory; shorter forms have no times.

    Inodes and devices are None, an owner by name is -1 unless it is root. Lines that are none of
    ls (`total 12`, comments) are passed over. Raises BadDataError when no line is one.
    """
    entries: list[DirectoryEntry] = []
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if len(lines) > _MOST_ENTRIES:
        raise BadDataError(f"the listing of {path} has more than {_MOST_ENTRIES} lines")
    seen = False
    for line in lines:
        found = _MODE.fullmatch(line.rstrip("\r"))
        if found is None:
            seen = seen or re.fullmatch(r"total \S+\s*", line) is not None
            continue
        seen = True
        entry = _ls_entry(*found.groups())
        if entry is not None and entry.name not in (".", ".."):
            entries.append(entry)
    if not seen and data.strip():
        raise BadDataError(
            f"the listing of {path} is no output of ls",
            "record it with `ls -la --time-style=full-iso`",
        )
    entries.sort(key=lambda entry: entry.name)
    return DirectoryListing(path, tuple(entries))


def _ls_entry(letter: str, permissions: str, rest: str) -> DirectoryEntry | None:
    uid = gid = UNKNOWN_OWNER
    size, modified, name = 0, None, _LOOSE_TIME.sub("", rest)
    long = _LONG.fullmatch(rest)
    if long is not None:
        uid, gid, size = _owner(long[1]), _owner(long[2]), int(long[3][:18])
        modified, name = _time_and_name(long[4])
    kind, target = _KINDS.get(letter, "other"), None
    if kind == "symlink":
        name, _, target = name.partition(" -> ")
    if not name or "/" in name or "\0" in name:
        return None
    return DirectoryEntry(
        name=name,
        kind=kind,
        mode=_mode(permissions),
        uid=uid,
        gid=gid,
        inode=None,
        device=None,
        modified=modified,
        size=size,
        link_target=target,
    )


def _time_and_name(text: str) -> tuple[float | None, str]:
    full = _FULL_ISO.fullmatch(text)
    if full is None:
        local = _LOCAL.fullmatch(text)
        return None, local[1] if local else text
    date, clock, fraction, offset, name = full.groups()
    if offset is None:
        return None, name  # somebody's local time
    try:
        when = datetime.fromisoformat(f"{date}T{clock}{offset}")
    except ValueError:
        return None, name
    return when.timestamp() + (float(f"0.{fraction}") if fraction else 0.0), name


def _owner(text: str) -> int:
    if text == "root":
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else UNKNOWN_OWNER


def _mode(permissions: str) -> int:
    mode = 0
    for place, letter in enumerate(permissions):
        if letter not in "-ST":
            mode |= 0o400 >> place
        if letter in "sStT":
            mode |= 0o4000 >> place // 3
    return mode
