"""Unlinking a dead plugin's socket file, so that a living one never loses its own.

The name may change hands between a look and an unlink, so the file is first renamed aside (which
follows no link and takes whatever has the name *now*), then it is known by inode what was taken,
and asked once more under its new name. Whether anything should be removed is decided in `changes`.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

from dpctl.sources.directory import kernel_device

_PREFIX = ".dpctl-aside-"
_ASIDE = re.compile(r"\.dpctl-aside-[0-9a-f]{8}-([^/]+)")
_LONGEST_NAME = 255


class Fate(StrEnum):
    REMOVED = "removed"
    ALIVE = "alive"
    """Somebody listens: it stands under its name again."""
    ANOTHER = "another"
    """Another file has the name by now: untouched."""
    GONE = "gone"
    STRANDED = "stranded"
    """Alive, and another file took its name meanwhile: left under the name aside."""


def original_of(name: str) -> str | None:
    """The name of a file that was set aside and never dealt with (dpctl was killed)."""
    found = _ASIDE.fullmatch(name)
    return found[1] if found else None


def remove_socket(directory: str, name: str, *, inode: int, device: int) -> Fate:
    """Remove one socket file if it is still the one of this inode and device, and nobody listens on
    it. `device` as the kernel's socket diagnostics give it. Raises OSError; then the file stands
    under its name (or, when even that failed, aside: the next run deals with it).
    """
    with _opened(directory) as top:
        if not _is(top, name, inode, device):
            return Fate.ANOTHER if _exists(top, name) else Fate.GONE
        aside = f"{_PREFIX}{os.urandom(4).hex()}-{name}"
        if len(os.fsencode(aside)) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, "its name is too long to be set aside")
        try:
            os.rename(name, aside, src_dir_fd=top, dst_dir_fd=top)
        except FileNotFoundError:
            return Fate.GONE
        if not _is(top, aside, inode, device):
            # Between the look and the rename the name went to another file: that one is back.
            return _put_back(top, aside, name, Fate.ANOTHER)
        return _decide(top, aside, name)


def deal_with_aside(directory: str, aside: str) -> Fate:
    """End what a run that was killed had begun: put a living socket back, remove a dead one."""
    name = original_of(aside)
    if name is None:
        raise OSError(errno.EINVAL, "it is no name that dpctl gives")
    with _opened(directory) as top:
        if not _exists(top, aside):
            return Fate.GONE
        return _decide(top, aside, name)


def _decide(top: int, aside: str, name: str) -> Fate:
    try:
        dead = _is_dead(top, aside)
        if dead:
            os.unlink(aside, dir_fd=top)
    except FileNotFoundError:  # another dpctl took it for what a killed one had left
        return Fate.GONE
    except OSError:
        _put_back(top, aside, name, Fate.ALIVE)
        raise
    return Fate.REMOVED if dead else _put_back(top, aside, name, Fate.ALIVE)


def _put_back(top: int, aside: str, name: str, fate: Fate) -> Fate:
    """`link` never replaces: whoever has bound the name meanwhile keeps it."""
    try:
        os.link(aside, name, src_dir_fd=top, dst_dir_fd=top, follow_symlinks=False)
    except FileExistsError:
        if not _same(top, aside, name):
            return Fate.STRANDED
    except FileNotFoundError:  # another dpctl has put it back
        return fate
    except OSError:
        # Links to others' sockets are root's (protected_hardlinks), not of every file system, and
        # want room on the disk; a plugin must not lose its name for that.
        if _exists(top, name):
            raise
        os.rename(aside, name, src_dir_fd=top, dst_dir_fd=top)
        return fate
    with suppress(FileNotFoundError):
        os.unlink(aside, dir_fd=top)
    return fate


def _is_dead(top: int, name: str) -> bool:
    """Only a refused connection says that nobody listens. It goes by an open descriptor: the very
    file that was looked at, whatever its name leads to by now."""
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.setblocking(False)  # a full queue is a sign of life
            peer.connect(f"/proc/self/fd/{descriptor}")
    except ConnectionRefusedError:
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return False


def _is(top: int, name: str, inode: int, device: int) -> bool:
    with suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=top, follow_symlinks=False)
        same = (found.st_ino, kernel_device(found.st_dev)) == (inode, device)
        return same and stat.S_ISSOCK(found.st_mode)
    return False


def _same(top: int, one: str, other: str) -> bool:
    """Two names of one file: a run was killed between putting it back and taking the name away."""
    found = [os.stat(name, dir_fd=top, follow_symlinks=False) for name in (one, other)]
    return os.path.samestat(*found)


def _exists(top: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=top, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _opened(directory: str) -> Iterator[int]:
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield top
    finally:
        os.close(top)
