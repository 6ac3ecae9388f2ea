"""Bounded reads of local files, and what an OSError means to a person.

Every source that opens a path goes through here, so that a FIFO does not hang dpctl, a huge file
does not fill the memory, and a refusal says what is missing. What files hold is not known here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from dpctl.errors import BadDataError, DeniedError, DpctlError, UnreachableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpctl.model.statefiles import ReadFailure

Keep = Callable[[bytes], None]
"""Takes what a source read, as it came, for a bundle."""

_CHUNK = 1 << 20
_DESCRIPTORS = "/proc/self/fd"
_LABEL = "security.selinux"
_LONGEST_LABEL = 256


class NoFileError(BadDataError):
    """Something is there, and it is no file that can be read as a whole."""

    fails: ReadFailure | None = None
    """How a program fails that opens and reads it all the same; None: that may come to anything."""


def read_bounded(path: str, limit: int) -> bytes:
    """The whole of a regular file of at most `limit` bytes (symbolic links are followed).

    Raises UnreachableError (not there), DeniedError, BadDataError (too large, or no regular file).
    """
    return read_with_stat(path, limit)[0]


def read_with_stat(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """`read_bounded`, and the file's `stat` of the moment it was opened."""
    try:
        fd = open_inert(path)
    except (OSError, ValueError) as e:
        raise file_error(e, path) from e
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise BadDataError(f"{path} is {kind_in_words(found.st_mode)}, not a file")
        return _read(fd, path, limit), found
    except OSError as e:
        raise file_error(e, path) from e
    finally:
        os.close(fd)


def read_entry(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """`read_with_stat` of a file that another program reads as well. Raises NoFileError also for a
    link in a circle, or to nowhere: that is something else than no file."""
    try:
        return read_with_stat(path, limit)
    except (BadDataError, UnreachableError) as e:
        if not os.path.lexists(path):
            raise
        error = NoFileError(e.message, e.hint)
        error.fails = _read_failure(path)
        raise error from e


def _read_failure(path: str) -> ReadFailure | None:
    from dpctl.model.statefiles import ReadFailure

    try:
        mode = os.stat(path).st_mode
    except OSError as e:
        circle = ReadFailure("open", "too many levels of symbolic links")
        return circle if e.errno == errno.ELOOP else None
    if stat.S_ISDIR(mode):
        return ReadFailure("read", "is a directory")
    return ReadFailure("open", "no such device or address") if stat.S_ISSOCK(mode) else None


def open_inert(path: str, *, dir_fd: int | None = None, follow: bool = True) -> int:
    """A descriptor for reading a regular file or a directory. Of anything else one that only
    names it (`fstat`): the opening alone would wait for a FIFO's writer or wake a device's driver.

    Raises OSError, ELOOP for a symbolic link when they are not to be followed, and ValueError.
    """
    link = 0 if follow else os.O_NOFOLLOW
    named = os.open(path, os.O_PATH | os.O_CLOEXEC | link, dir_fd=dir_fd)
    try:
        found = os.fstat(named)
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return os.dup(named)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return os.open(f"{_DESCRIPTORS}/{named}", flags)
        except FileNotFoundError:  # no /proc
            return os.open(path, flags | link, dir_fd=dir_fd)
    finally:
        os.close(named)


def _read(fd: int, path: str, limit: int) -> bytes:
    chunks: list[bytes] = []
    left = limit + 1
    while left > 0:
        chunk = os.read(fd, min(left, _CHUNK))
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        left -= len(chunk)
    raise BadDataError(
        f"{path} is larger than {size_in_words(limit)}",
        "no kubelet writes a file like that; look at its beginning: `head -c 300`",
    )


def file_error(error: OSError | ValueError, path: str, *, connect: bool = False) -> DpctlError:
    """The error for a path that could not be opened (or connected to)."""
    if not isinstance(error, OSError):  # a NUL byte in the path
        return UnreachableError(f"{path!r} cannot be a path: {error}")
    code = error.errno
    if code in (errno.EACCES, errno.EPERM):
        return denied(path, connect=connect)
    if code == errno.ENOENT:
        return UnreachableError(
            f"{path} does not exist", f"{_deepest(path)}; `dpctl env` shows where paths come from"
        )
    if code == errno.ENOTDIR:
        return UnreachableError(
            f"{path} does not exist: a part of it is not a directory", _deepest(path)
        )
    if code == errno.ENAMETOOLONG:
        return UnreachableError(f"a path of {len(os.fsencode(path))} bytes is too long")
    if code == errno.ELOOP:
        return UnreachableError(f"{path}: symbolic links in a circle", f"`namei -l {path}`")
    return UnreachableError(f"{path}: {error.strerror or error}")


def denied(path: str, *, connect: bool = False) -> DeniedError:
    """EACCES in words: which part refuses, its mode, owner and SELinux label, and what to do."""
    culprit, need = _culprit(path, connect=connect)
    message = f"permission denied: {path}"
    described = _describe(culprit)
    if described:
        message += f" ({'' if culprit == path else culprit + ': '}{described})"
    uid = os.geteuid()
    if uid != 0:
        return DeniedError(message, f"{need}; dpctl runs as uid {uid}: run it as root (`sudo`)")
    return DeniedError(
        message,
        f"{need}; uid 0 is refused all the same, so run it privileged, with SELinux as type spc_t"
        " (container_device_plugin_t reaches device-plugins only); `ausearch -m avc -ts recent`"
        " names the rule",
    )


def _culprit(path: str, *, connect: bool) -> tuple[str, str]:
    """The part of `path` that refuses, and the permission it does not give."""
    parent = os.path.dirname(os.path.abspath(path))
    below = os.path.abspath(path)
    ancestors = []
    while below != parent:
        ancestors.append(parent)
        below, parent = parent, os.path.dirname(parent)
    for directory in reversed(ancestors):
        if not os.access(directory, os.X_OK, effective_ids=True):
            return directory, "entering that directory needs its `x` permission"
    if connect:
        return path, "connecting to a socket needs its `w` permission"
    return path, "reading needs the `r` permission"


def _describe(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return ""
    text = f"{stat.filemode(found.st_mode)}, owner {found.st_uid}:{found.st_gid}"
    try:
        label = os.getxattr(path, _LABEL)[:_LONGEST_LABEL].rstrip(b"\0")
    except OSError:
        return text  # SELinux is off, or the label may not be read
    return f"{text}, SELinux label {label.decode('utf-8', 'surrogateescape')}"


def _deepest(path: str) -> str:
    """How much of a path that does not exist does."""
    parent = os.path.dirname(path)
    while parent not in ("", "/") and not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    return f"{parent or '.'} is there" if parent != "/" else "nothing of the path is there"


def kind_in_words(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISREG(mode):
        return "a regular file"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a FIFO" if stat.S_ISFIFO(mode) else "a device"


def size_in_words(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"
