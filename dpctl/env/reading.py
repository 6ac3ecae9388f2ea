"""Bounded reads and symbolic links resolved inside a root: what every detection stands on.

Plain `OSError` comes out of here; whoever asked knows what it means. No detection, no settings.
"""

from __future__ import annotations

import errno
import os
import stat

# The kernel's own bound on links in one path.
_MAX_LINKS = 40


def read_limited(path: str, limit: int) -> bytes:
    """All bytes of a regular file (those of /proc and /sys are regular).

    Never blocks on a FIFO. Raises OSError; EFBIG for more than `limit` bytes, EINVAL for what is
    no regular file or no path.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError as e:  # a NUL in the path
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path) from e
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        # Most files here are small; a buffer of the limit's size would cost more than the read.
        chunks: list[bytes] = []
        size = 0
        while chunk := os.read(descriptor, 16384 if size < 65536 else 1 << 20):
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise OSError(errno.EFBIG, f"more than {limit} bytes", path)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        os.close(descriptor)


CONSTRUCTOR_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)
"""What PyYAML raises besides YAMLError when a tag does not fit its value (`!!int ''`)."""


def resolve_inside(root: str, path: str) -> str:
    """Where `path` leads when `root` is taken for `/`: links resolved inside it, `..` stops at it.

    The answer starts with `root` and, apart from parts that do not exist, holds no link below it.
    A link changed between this and the use of the answer is not guarded against: the trees are
    the host's. Raises OSError ELOOP after 40 links, EINVAL for a path with a NUL.
    """
    top = root.rstrip("/")
    done: list[str] = []
    pending = path.split("/")[::-1]
    links = 0
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            # What is in `done` is no link any more, so dropping a name is what the kernel does.
            if done:
                done.pop()
            continue
        try:
            target = os.readlink("/".join((top, *done, part)))
        except ValueError as e:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path) from e
        except OSError:  # no link, not there, not allowed: the later open says which
            done.append(part)
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            done.clear()
        pending.extend(target.split("/")[::-1])
    return "/".join((top, *done)) or "/"


def exists(path: str) -> bool:
    """Whether something is there, as far as one may look; a dangling link is not."""
    try:
        os.stat(path)
    except (OSError, ValueError):
        return False
    return True
