"""The lab's directory: where it is, that it is ours, and what stands in it at first.

<dir>/lab.json     who runs it (0600), written when it is ready
<dir>/lock         held by the supervisor as long as it lives; says who that is
<dir>/ctl.sock     the supervisor's control socket
<dir>/kubeconfig   contexts lab (admin), lab-viewer, lab-nobody, lab-node
<dir>/log/         what the processes say
<dir>/root/        the node's /, for DPCTL_HOST_ROOT
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from dpctl.errors import DeniedError, PeerError, UsageError
from dpctl.lab.api_errors import Json

_SOCKET_PATH = 107
# The longest socket below <dir>: what a plugin may call its socket, with room to spare.
_DEEPEST = "/root/var/lib/kubelet/device-plugins/" + "x" * 33
_MARKER = "lab.marker"
_LEAST = 16 << 10
"""Bytes."""
_OURS = frozenset({_MARKER, "lab.json", "lock", "ctl.sock", "kubeconfig", "log", "root"})


def default_directory(environ: dict[str, str]) -> Path:
    base = environ.get("XDG_RUNTIME_DIR") or "/tmp"
    return Path(base) / f"dpctl-lab-{os.getuid()}"


def absolute(directory: Path) -> Path:
    """Raises UsageError: there is nothing that it could be relative to."""
    try:
        return Path(os.path.abspath(directory))
    except FileNotFoundError:
        raise UsageError(
            f"the lab's directory {directory} is relative, and the current directory is gone",
            "cd to one that exists, or give an absolute path with --dir",
        ) from None


@contextlib.contextmanager
def explained(directory: Path) -> Iterator[None]:
    """An OSError with the lab's files, as a DpctlError that names the path and the next step.

    Raises DeniedError, UsageError, PeerError; a process without descriptors is told of elsewhere.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        path = os.fsdecode(error.filename) if error.filename else str(directory)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise no_space(directory, path) from error
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise UsageError(
                f"{path} is not the file that a lab makes there: {error.strerror}",
                "look at it and remove it, or choose another directory with --dir",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise DeniedError(
                f"cannot use {path}: {error.strerror}", "choose another directory with --dir"
            ) from error
        raise PeerError(
            f"the lab cannot use {path}: {error.strerror or error}",
            "try again, or choose another directory with --dir",
        ) from error


def no_space(directory: Path, path: str | None = None) -> PeerError:
    return PeerError(
        f"no space or no inodes left for the lab at {path or directory}",
        f"df {directory.parent} and df -i {directory.parent} show what is full; "
        "choose another directory with --dir",
    )


def full(directory: Path) -> bool:
    """Whether a file could not be written there just now."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    # Some file systems (btrfs) count no inodes at all.
    return found.f_bavail * found.f_frsize < _LEAST or (found.f_files > 0 and found.f_favail == 0)


def prepare(directory: Path) -> Path:
    """The directory made (0700) or found to be a lab's own. Returns its absolute path.

    Raises UsageError (too long, in use for something else), DeniedError (not ours), PeerError.
    """
    directory = absolute(directory)
    if len(os.fsencode(directory)) + len(_DEEPEST) > _SOCKET_PATH:
        raise UsageError(
            f"the lab's directory {directory} is too long: a socket path has {_SOCKET_PATH} bytes",
            f"choose one of at most {_SOCKET_PATH - len(_DEEPEST)} bytes with --dir",
        )
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        check(directory)
    except OSError as error:
        raise UsageError(
            f"cannot make the lab's directory {directory}: {error.strerror}", "choose with --dir"
        ) from error
    try:
        with explained(directory):
            (directory / _MARKER).touch(mode=0o600)
    except PeerError:
        with contextlib.suppress(OSError):
            directory.rmdir()  # when it is empty, nobody has used it
        raise
    return directory


def check(directory: Path) -> None:
    """That an existing directory may be a lab's: ours alone, and nothing else in it.

    Raises UsageError, DeniedError.
    """
    try:
        found = directory.lstat()
    except OSError as error:
        raise UsageError(f"cannot look at {directory}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{directory} is no directory", "choose another one with --dir")
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise DeniedError(
            f"{directory} is not a directory that only you can write", "choose another with --dir"
        )
    with explained(directory):
        foreign = sorted(name for name in os.listdir(directory) if name not in _OURS)
    if foreign:
        raise UsageError(
            f"{directory} holds something that is no lab's: {foreign[0]}",
            "choose an empty directory or a new one with --dir",
        )


def empty(directory: Path) -> None:
    """Remove what an earlier lab left. Never follows links out of it. Hold the lock."""
    _remove(directory, _OURS - {_MARKER, "lock"})


def clean(directory: Path) -> None:
    """Remove what labs make, and the directory."""
    _remove(directory, _OURS)
    try:
        directory.rmdir()
    except OSError:
        return  # somebody's own files: theirs to remove


def _remove(directory: Path, names: frozenset[str]) -> None:
    for name in names:
        path = directory / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def lock(directory: Path) -> int | None:
    """A descriptor that holds the lab's lock until it is closed; None: a lab runs here.

    Raises UsageError (it is no file), DeniedError, PeerError (no space).
    """
    path, flags = directory / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with explained(directory):
        descriptor = os.open(path, flags | os.O_CREAT, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"{path} is no regular file", "look at it and remove it")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)  # who held it before
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def sign(descriptor: int) -> None:
    """Say in the lock, which this process holds, who it is. Raises OSError."""
    os.pwrite(descriptor, f"{os.getpid()} {_start_time(os.getpid())}\n".encode(), 0)


def holder(directory: Path) -> tuple[int, int] | None:
    """Process ID and a pidfd of the supervisor that signed the lock; None: none does (yet).

    A process that merely got the same number later has another start time.
    """
    try:
        descriptor = os.open(directory / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            words = os.read(descriptor, 64).split()
        finally:
            os.close(descriptor)
        pid, started = int(words[0]), int(words[1])
        pidfd = os.pidfd_open(pid)
    except (OSError, ValueError, IndexError, OverflowError):
        return None
    if pid > 1 and _start_time(pid) == started:
        return pid, pidfd
    os.close(pidfd)
    return None


def _start_time(pid: int) -> int:
    """Clock ticks since boot (proc(5), field 22); -1 of a process that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        return int(text.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return -1


def write_private(path: Path, text: str) -> None:
    """A file of mode 0600, whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.rename(path)


def kubeconfig(server: str, tokens: dict[str, str], current: str) -> str:
    """A kubeconfig, as JSON (which is YAML). `tokens`: context name to bearer token."""
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
        "contexts": [
            {"name": name, "context": {"cluster": "lab", "user": name}} for name in tokens
        ],
        "current-context": current,
    }
    return json.dumps(document, indent=1) + "\n"
