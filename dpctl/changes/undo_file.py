"""The undo files on disk: dpctl's own, 0600, written through a temporary file, fsync and rename.

Numbered in the order in which they were written: clocks jump. What stands in them is `undo_record`.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress

from dpctl.changes.undo_record import encode_record, parse_record
from dpctl.env import Env, resolve_inside
from dpctl.env.reading import read_limited
from dpctl.errors import BadDataError, DeniedError, DpctlError, NotAppliedError, UsageError
from dpctl.model.changes import UndoRecord

SYSTEM = "/var/lib/dpctl/undo"
_NAME = re.compile(r"([0-9]{6,})-(.+)\.json")
_MOST_TRIES = 1000
_LARGEST = 16 << 20


def undo_directory(env: Env, environ: dict[str, str]) -> str:
    """`$XDG_STATE_HOME/dpctl/undo` where that is set, `/var/lib/dpctl/undo` (below the host root)
    for root, else `~/.local/state/dpctl/undo`."""
    state = environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return os.path.join(state, "dpctl/undo")
    home = environ.get("HOME", "")
    if os.geteuid() == 0 or not home.startswith("/"):
        root = env.host_root.value or "/"
        return SYSTEM if root == "/" else resolve_inside(root, SYSTEM)
    return os.path.join(home, ".local/state/dpctl/undo")


def next_number(directory: str) -> int:
    """One more than any file there has, for who writes thousands: counting them each time would
    cost more than the changes."""
    with suppress(OSError):
        names = os.listdir(directory)
        used = [int(found[1]) for name in names if (found := _NAME.fullmatch(name))]
        return max(used, default=0) + 1
    return 1


def write_undo(
    record: UndoRecord, directory: str, file: str | None = None, *, number: int | None = None
) -> str:
    """Write a new record, durably; its path. `file`: a path of the user's own, which must not be
    there. `number`: at least that one, not looked for; of one node each must be higher than the
    one before. Raises DeniedError, NotAppliedError, UsageError: then nothing must be changed."""
    if file is not None:
        path = os.path.abspath(file)
        if os.path.lexists(path):
            raise UsageError(f"{path} is there already", "name another --undo-file")
        _write(path, record)
        return path
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        path = _reserve(directory, record, number)
    except OSError as error:
        raise _failed(error, directory) from error
    try:
        _write(path, record, directory)
    except DpctlError:
        with suppress(OSError):
            os.unlink(path)
        raise
    return path


def rewrite_undo(path: str, record: UndoRecord) -> None:
    """Replace a record (its state has changed), durably. Raises as `write_undo`."""
    real = os.path.realpath(path)  # a person may have named a link, such as /dev/stdin
    if not os.path.isfile(real):
        raise NotAppliedError(f"{path} is no file any more", f"ls -l {path}")
    _write(real, record)


def read_undo(path: str) -> UndoRecord:
    """Raises BadDataError, DeniedError, UsageError (no such file)."""
    try:
        data = read_limited(path, _LARGEST)
    except FileNotFoundError as error:
        raise UsageError(
            f"{path} is not there", "dpctl node undo alone takes the last one"
        ) from error
    except PermissionError as error:
        raise DeniedError(
            f"{path} may not be read: {error.strerror}", "run as its owner"
        ) from error
    except OSError as error:
        raise BadDataError(f"{path} cannot be read: {error.strerror}", f"ls -l {path}") from error
    return parse_record(data, path)


def numbered_names(directory: str) -> list[str]:
    """The undo files there by name, the last one first.

    Raises DeniedError, BadDataError for a directory that cannot be read.
    """
    try:
        entries = os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        denied = DeniedError if isinstance(error, PermissionError) else BadDataError
        raise denied(
            f"{directory} cannot be read: {error.strerror}", "name the file: dpctl node undo FILE"
        ) from error
    found = [(int(each[1]), name) for name in entries if (each := _NAME.fullmatch(name))]
    return [name for _, name in sorted(found, reverse=True)]


def undo_records(directory: str, node: str) -> Iterator[tuple[str, UndoRecord]]:
    """Records of this node, the last one first, read one by one. A file that was begun and never
    finished is empty, and left out: nothing was changed after it.

    Raises DeniedError, BadDataError for a file or directory that cannot be read: an older change
    is not the last one.
    """
    start = _words(f"{node}-")
    for name in numbered_names(directory):
        found = _NAME.fullmatch(name)
        if found is None or not found[2].startswith(start):
            continue
        path = os.path.join(directory, name)
        with suppress(OSError):
            if os.stat(path).st_size == 0:
                continue
        try:
            record = read_undo(path)
        except UsageError:
            continue  # gone since
        except DpctlError as error:
            error.hint = "it may be the last change; an older one: dpctl node undo FILE"
            raise
        if record.node == node:
            yield path, record


def _reserve(directory: str, record: UndoRecord, given: int | None) -> str:
    """The next number, taken by creating the file: two runs never share one of one node."""
    number = next_number(directory) if given is None else given
    words = _words(f"{record.node}-{record.action}")
    for _ in range(_MOST_TRIES):
        path = os.path.join(directory, f"{number:06d}-{words}.json")
        if given is None and any(
            name.startswith(f"{number:06d}-") for name in os.listdir(directory)
        ):
            number += 1
            continue
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            number += 1
            continue
        return path
    raise NotAppliedError(f"no free name in {directory}", "remove old undo files there")


def _words(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", text)[:120]


def _write(path: str, record: UndoRecord, place: str | None = None) -> None:
    """`place`: what an error names, where that is not the file."""
    directory = os.path.dirname(path)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".", dir=directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encode_record(record))
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _failed(error, place or path) from error


def _failed(error: OSError, path: str) -> DpctlError:
    words = f"the undo file cannot be written ({error.strerror}: {path}), so nothing was changed"
    hint = "make room there, or name another place: --undo-file FILE, or XDG_STATE_HOME"
    if isinstance(error, PermissionError):
        return DeniedError(words, hint)
    return NotAppliedError(words, hint)
