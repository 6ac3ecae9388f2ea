"""What is at the paths that plugins ask the runtime for: device nodes and mounts of the host.

Only looks (`stat`), never opens: a path comes from a plugin and may be a device whose opening does
something. Links resolve inside the host's root.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from dpctl.env import resolve_inside
from dpctl.model import AllocResponse, CdiSpec, Checkpoint, HostPath

# A checkpoint may name 10^5 paths; the same few thousand are what a real node has.
_MOST = 20_000
_LONGEST = 4096
_KINDS = {
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "FIFO",
}
_LINKS = {stat.S_IFCHR: "/dev/char", stat.S_IFBLK: "/dev/block"}


def read_host_paths(
    host_root: str,
    checkpoint: Checkpoint | None,
    cdi: Iterable[CdiSpec] = (),
    answer: AllocResponse | None = None,
) -> dict[str, HostPath]:
    """What is at every absolute path of the plugins' answers (those of the checkpoint, and one that
    was just given), and of the device nodes of CDI specifications (20 000 at most)."""
    answers = [a.answer for a in checkpoint.allocations] if checkpoint else []
    found: dict[str, HostPath] = {}
    for path in _paths([answer, *answers], cdi):
        if path not in found and path.startswith("/"):
            if len(found) >= _MOST:
                break
            found[path] = _look(host_root, path)
    return found


def _paths(answers: Iterable[AllocResponse | None], cdi: Iterable[CdiSpec]) -> Iterator[str]:
    for answer in answers:
        if answer is not None:
            yield from (mount.host_path for mount in answer.mounts)
            yield from (device.host_path for device in answer.device_specs)
    for spec in cdi:
        yield from spec.device_nodes
        for each in spec.devices:
            yield from each.device_nodes


def _look(root: str, path: str) -> HostPath:
    if "\0" in path or len(path) > _LONGEST:
        return HostPath(None)
    try:
        found = _stat(root, path)
    except (FileNotFoundError, NotADirectoryError):
        return HostPath(None)
    except OSError as e:
        return HostPath(None, reason=e.strerror or str(e))
    form, mode = stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode)
    kind = _KINDS.get(form, "something else")
    if form not in _LINKS:
        return HostPath(kind, mode)
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return HostPath(kind, mode, number, _leads_to(root, f"{_LINKS[form]}/{number}", found))


def _leads_to(root: str, link: str, device: os.stat_result) -> bool:
    try:
        found = _stat(root, link)
    except OSError:
        return False
    return (stat.S_IFMT(found.st_mode), found.st_rdev) == (
        stat.S_IFMT(device.st_mode),
        device.st_rdev,
    )


def _stat(root: str, path: str) -> os.stat_result:
    # Whatever is a link still has changed since: it is not followed out of the root.
    return os.stat(resolve_inside(root, path), follow_symlinks=False)
