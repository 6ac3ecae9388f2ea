"""Writing a bundle: whole under its name, or not at all.

Everything goes to a temporary name beside it, is synced, and then gets the name; a dpctl that is
killed leaves at most `.NAME.….partial`. Directories are 0700 and files 0600: a bundle holds what
the node's root may read.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from dpctl.errors import DeniedError, DpctlError, NotAppliedError, UsageError

ARCHIVES = (".tgz", ".tar.gz", ".tar")
_TOP = "dpctl-snapshot"
"""The one directory in an archive: unpacking it litters nothing."""
_FILE, _FOLDER = 0o600, 0o700


def check_target(path: str) -> None:
    """Before a node is read for nothing. Raises UsageError for a name that is taken or empty,
    NotAppliedError for a directory that is not there."""
    if not path:
        raise UsageError("the bundle's name is empty", "name a file: dpctl snapshot node.tgz")
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already", "name another file, or remove that one")
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise NotAppliedError(f"{parent} is no directory", "make it, or name another file")


def write_bundle(path: str, files: Mapping[str, bytes], *, time: float) -> None:
    """An archive where the name ends like one (`.tgz`, `.tar.gz`, `.tar`), else a directory.

    `time`: Unix seconds that all members carry. Raises DeniedError, NotAppliedError, UsageError;
    then nothing stands under that name.
    """
    check_target(path)
    final = os.path.abspath(path)
    parent, name = os.path.split(final)
    prefix = f".{name[:50]}."  # of four bytes each, and there are 255
    try:
        if path.endswith(ARCHIVES):
            _write_archive(final, parent, prefix, files, time)
        else:
            _write_directory(final, parent, prefix, files)
        _sync_folder(parent)
    except OSError as error:
        raise _failed(error, path) from error


def _write_archive(
    final: str, parent: str, prefix: str, files: Mapping[str, bytes], time: float
) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=prefix, suffix=".partial", dir=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _FILE)
            _pack(file, files, time, zipped=not final.endswith(".tar"))
            file.flush()
            os.fsync(file.fileno())
        _name_it(temporary, final)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _pack(file: IO[bytes], files: Mapping[str, bytes], time: float, *, zipped: bool) -> None:
    import gzip

    stream: IO[bytes] = file
    if zipped:
        # Level 6 takes twice as long for a twentieth less.
        stream = gzip.GzipFile("", "wb", 4, file, mtime=time)  # type: ignore[assignment]
    with tarfile.open(
        fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT, errors="surrogateescape"
    ) as archive:
        top = tarfile.TarInfo(_TOP)
        top.type, top.mode, top.mtime = tarfile.DIRTYPE, _FOLDER, int(time)
        archive.addfile(top)
        for name, data in files.items():
            member = tarfile.TarInfo(f"{_TOP}/{name}")
            member.size, member.mode, member.mtime = len(data), _FILE, int(time)
            archive.addfile(member, io.BytesIO(data))
    if zipped:
        stream.close()


def _name_it(temporary: str, final: str) -> None:
    """A link takes no name that is there; a rename would."""
    try:
        os.link(temporary, final, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EEXIST:
            raise
        os.rename(temporary, final)  # no links on this file system
    else:
        os.unlink(temporary)


def _write_directory(final: str, parent: str, prefix: str, files: Mapping[str, bytes]) -> None:
    temporary = tempfile.mkdtemp(prefix=prefix, suffix=".partial", dir=parent)
    try:
        os.chmod(temporary, _FOLDER)
        made = {temporary}
        for name, data in files.items():
            path = os.path.join(temporary, name)
            _make_folders(os.path.dirname(path), made)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(path, flags, _FILE), "wb") as file:
                os.fchmod(file.fileno(), _FILE)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for folder in made:
            _sync_folder(folder)
        os.rename(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _make_folders(folder: str, made: set[str]) -> None:
    if folder not in made:
        _make_folders(os.path.dirname(folder), made)
        os.mkdir(folder, _FOLDER)
        os.chmod(folder, _FOLDER)
        made.add(folder)


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(error: OSError, path: str) -> DpctlError:
    words = f"{path} was not written: {error.strerror or error}"
    if isinstance(error, PermissionError):
        return DeniedError(words, "name a file in a directory of yours")
    if isinstance(error, FileExistsError) or error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
        # ENOTEMPTY, ENOTDIR: a directory's name was taken meanwhile.
        return UsageError(f"{path} is there already", "name another file, or remove that one")
    hint = "name a file on another file system, or make room: df -h"
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        hint = f"name another file; ls -ld {os.path.dirname(os.path.abspath(path))}"
    return NotAppliedError(words, hint)
