"""Telling one socket file from the next of the same name, and a dead one from all else. A leaf that
loads nothing.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path


def identity(path: Path, *, follow: bool = True) -> str | None:
    """Changes when the socket is made anew: inodes alone are used again at once. None: no file.
    `follow=False`: of a symbolic link itself."""
    try:
        found = path.stat(follow_symlinks=follow)
    except OSError:
        return None
    return f"{found.st_ino}:{found.st_mtime_ns}"


def is_socket(path: Path) -> bool:
    """A link to one is none."""
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


def is_dead(path: Path) -> bool:
    """A socket file on which nobody listens. Only a refused connection says so: a full queue, a
    socket of another type (/dev/log), and one that may not be asked are somebody's. It goes by an
    open descriptor, so that no path is too long and no link is followed."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            probe.connect(f"/proc/self/fd/{descriptor}")
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
