"""The lab's directory: where it is, that it is ours, and what stands in it at first.

<dir>/lab.json     who runs it (0600), written when it is ready
<dir>/lock         held by the supervisor as long as it lives
<dir>/ctl.sock     the supervisor's control socket
<dir>/kubeconfig   contexts lab (admin), lab-viewer, lab-nobody, lab-node
<dir>/log/         what the processes say
<dir>/root/        the node's /, for DPCTL_HOST_ROOT
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from pathlib import Path

from dpctl.errors import DeniedError, UsageError
from dpctl.lab.api_errors import Json

_SOCKET_PATH = 107
# The longest socket below <dir>: what a plugin may call its socket, with room to spare.
_DEEPEST = "/root/var/lib/kubelet/device-plugins/" + "x" * 33
_MARKER = "lab.marker"
_OURS = frozenset({_MARKER, "lab.json", "lock", "ctl.sock", "kubeconfig", "log", "root"})


def default_directory(environ: dict[str, str]) -> Path:
    base = environ.get("XDG_RUNTIME_DIR") or "/tmp"
    return Path(base) / f"dpctl-lab-{os.getuid()}"


def prepare(directory: Path) -> Path:
    """The directory made (0700) or found to be a lab's own. Returns its absolute path.

    Raises UsageError (too long, in use for something else), DeniedError (not ours).
    """
    directory = Path(os.path.abspath(directory))
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
    (directory / _MARKER).touch(mode=0o600)
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
    """A descriptor that holds the lab's lock until it is closed; None: a lab runs here."""
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


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
