"""The NUMA tree and PCI devices out of /sys (or a copy of it), and a path's superblock device.

Pure `parse_numa` and `parse_pci` take files by their path below the root; `read_*` fetch those
files, and never leave the root through a link. What a number means for a device is not known here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping

from dpctl import cpuset
from dpctl.env.reading import read_limited, resolve_inside
from dpctl.errors import BadDataError, UnreachableError
from dpctl.model import NumaNode, NumaTree
from dpctl.sources.files import file_error

KeepTree = Callable[[Mapping[str, bytes]], None]
"""Takes the files of a tree by path below the root, for a bundle."""

NUMA = "devices/system/node"
PCI = "bus/pci/devices"
_LARGEST_FILE = 1 << 20
_MOST_NUMA_NODES = 1024  # MAX_NUMNODES of the widest kernel builds
_MOST_PCI_DEVICES = 1 << 16
_MOST_HUGEPAGE_SIZES = 64  # hardly any machine has more than four
_LARGEST_MOUNTINFO = 64 << 20


def read_numa(sys_root: str, *, keep: KeepTree | None = None) -> NumaTree:
    """The NUMA nodes of `<sys_root>/devices/system/node`, ascending.

    Raises UnreachableError (no such tree), DeniedError, BadDataError.
    """
    files = numa_files(sys_root)
    if keep is not None:
        keep(files)
    return parse_numa(files)


def numa_files(sys_root: str) -> dict[str, bytes]:
    """The files of the NUMA tree by path below `sys_root`; what a bundle keeps."""
    names = list_folder(sys_root, NUMA)
    files = {f"{NUMA}/online": read_file(sys_root, f"{NUMA}/online") if "online" in names else None}
    nodes = sorted(name for name in names if _node_number(name) is not None)
    for node in nodes[:_MOST_NUMA_NODES]:
        for name in ("cpulist", "meminfo", "distance"):
            files[f"{NUMA}/{node}/{name}"] = read_file(sys_root, f"{NUMA}/{node}/{name}")
        sizes = list_folder(sys_root, f"{NUMA}/{node}/hugepages", optional=True)
        for size in sizes[:_MOST_HUGEPAGE_SIZES]:
            path = f"{NUMA}/{node}/hugepages/{size}/nr_hugepages"
            files[path] = read_file(sys_root, path)
    return {path: data for path, data in files.items() if data is not None}


def parse_numa(files: Mapping[str, bytes]) -> NumaTree:
    """Raises BadDataError naming the file. A NUMA node that is offline is left out."""
    nodes: dict[int, dict[str, bytes]] = {}
    for path, data in files.items():
        node, _, rest = path.removeprefix(f"{NUMA}/").partition("/")
        number = _node_number(node)
        if number is not None and rest and path.startswith(f"{NUMA}/"):
            nodes.setdefault(number, {})[rest] = data
    online = files.get(f"{NUMA}/online")
    if online is not None:
        known = set(_numbers(online, f"{NUMA}/online"))
        nodes = {number: found for number, found in nodes.items() if number in known}
    return NumaTree(tuple(_numa_node(number, nodes[number]) for number in sorted(nodes)))


def _numa_node(number: int, files: Mapping[str, bytes]) -> NumaNode:
    where = f"{NUMA}/node{number}"
    total, free = _memory(files.get("meminfo", b""))
    hugepages: dict[str, int] = {}
    for path in sorted(files):
        folder, _, rest = path.partition("/")
        size, _, leaf = rest.partition("/")
        if folder == "hugepages" and leaf == "nr_hugepages" and (name := _hugepages_name(size)):
            count = _text(files[path]).strip()
            if not _is_number(count):
                raise BadDataError(f"{where}/{path}: not a number: {count[:40]!r}")
            hugepages[name] = int(count)
    distances = _text(files.get("distance", b"")).split()
    if not all(_is_number(distance) for distance in distances):
        raise BadDataError(f"{where}/distance: not numbers: {' '.join(distances)[:80]!r}")
    return NumaNode(
        numa_node=number,
        cpus=_numbers(files.get("cpulist", b""), f"{where}/cpulist"),
        memory_total=total,
        memory_free=free,
        hugepages=hugepages,
        distances=tuple(int(distance) for distance in distances),
    )


def _memory(data: bytes) -> tuple[int | None, int | None]:
    """Bytes of MemTotal and MemFree: lines such as `Node 0 MemTotal:  16384 kB`."""
    found: dict[str, int] = {}
    for line in _text(data).splitlines():
        words = line.split()
        if len(words) == 5 and words[4] == "kB" and _is_number(words[3]):
            found.setdefault(words[2], int(words[3]) * 1024)
    return found.get("MemTotal:"), found.get("MemFree:")


def _hugepages_name(folder: str) -> str | None:
    """`hugepages-2048kB` as Kubernetes calls it: `hugepages-2Mi`."""
    size = folder.removeprefix("hugepages-").removesuffix("kB")
    if folder != f"hugepages-{size}kB" or not _is_number(size) or int(size) == 0:
        return None
    number = int(size)
    for unit in ("Ki", "Mi", "Gi"):
        if number % 1024 or unit == "Gi":
            return f"hugepages-{number}{unit}"
        number //= 1024
    return None


def read_pci(sys_root: str, *, keep: KeepTree | None = None) -> dict[str, int | None]:
    """PCI address to NUMA node; None where the kernel does not know (-1). Errors as `read_numa`."""
    files = pci_files(sys_root)
    if keep is not None:
        keep(files)
    return parse_pci(files)


def pci_files(sys_root: str) -> dict[str, bytes]:
    """`bus/pci/devices/<address>/numa_node` of all devices; live, each is a link inside /sys."""
    files: dict[str, bytes] = {}
    for address in list_folder(sys_root, PCI)[:_MOST_PCI_DEVICES]:
        path = f"{PCI}/{address}/numa_node"
        data = read_file(sys_root, path)
        if data is not None:
            files[path] = data
    return files


def parse_pci(files: Mapping[str, bytes]) -> dict[str, int | None]:
    """Raises BadDataError naming the file."""
    found: dict[str, int | None] = {}
    for path in sorted(files):
        address, _, leaf = path.removeprefix(f"{PCI}/").partition("/")
        if not path.startswith(f"{PCI}/") or leaf != "numa_node":
            continue
        text = _text(files[path]).strip()
        number = text.removeprefix("-")
        if not _is_number(number):
            raise BadDataError(f"{path}: not a number: {text[:40]!r}")
        found[address] = None if text.startswith("-") else int(number)
    return found


def vfs_device(path: str) -> int:
    """The device of the superblock that `path` is on, as socket diagnostics give it.

    That is major << 20 | minor of the mount's device, not of `st_dev`: btrfs gives every subvolume
    an `st_dev` of its own (kubelet-facts §15). Raises UnreachableError, DeniedError.
    """
    try:
        # O_PATH: nothing is opened, so a device or FIFO is not touched.
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        raise file_error(e, path) from e
    try:
        mount = _mount_id(read_limited(f"/proc/self/fdinfo/{descriptor}", 4096))
        found = _mount_device(read_limited("/proc/self/mountinfo", _LARGEST_MOUNTINFO), mount)
        if found is not None:
            return found
        # A mount of another namespace (reached through /proc/<pid>/root) is not in our list.
        return kernel_device(os.fstat(descriptor).st_dev)
    except OSError as e:
        raise file_error(e, path) from e
    finally:
        os.close(descriptor)


def kernel_device(st_dev: int) -> int:
    """An `st_dev` in the kernel's own encoding: major << 20 | minor."""
    return os.major(st_dev) << 20 | os.minor(st_dev)


def _mount_id(fdinfo: bytes) -> bytes | None:
    for line in fdinfo.splitlines():
        if line.startswith(b"mnt_id:"):
            return line[7:].strip()
    return None


def _mount_device(mountinfo: bytes, mount: bytes | None) -> int | None:
    if mount is None:
        return None
    for line in mountinfo.splitlines():
        fields = line.split(b" ", 3)
        if len(fields) > 3 and fields[0] == mount:
            major, _, minor = fields[2].partition(b":")
            if major.isdigit() and minor.isdigit():
                return int(major) << 20 | int(minor)
    return None


def list_folder(sys_root: str, folder: str, *, optional: bool = False) -> list[str]:
    """Names in a folder below the root. Raises as `read_numa`, unless it may be missing."""
    try:
        return sorted(os.listdir(resolve_inside(sys_root, folder)))
    except (OSError, ValueError) as e:
        if optional:
            return []
        path = f"{sys_root.rstrip('/')}/{folder}"
        if isinstance(e, FileNotFoundError):
            raise UnreachableError(
                f"{path} does not exist",
                "this kernel (or this copy) has no such tree; `dpctl env` shows which /sys is read",
            ) from e
        raise file_error(e, path) from e


def read_file(sys_root: str, path: str) -> bytes | None:
    """A small file. None: not there (a device or NUMA node that went away, another kernel)."""
    try:
        return read_limited(resolve_inside(sys_root, path), _LARGEST_FILE)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV):
            return None
        if e.errno in (errno.EFBIG, errno.EINVAL, errno.EISDIR):
            raise BadDataError(f"{sys_root.rstrip('/')}/{path}: {e.strerror}") from e
        raise file_error(e, f"{sys_root.rstrip('/')}/{path}") from e


def _node_number(name: str) -> int | None:
    number = name.removeprefix("node")
    return int(number) if number != name and _is_number(number) else None


def _numbers(data: bytes, path: str) -> tuple[int, ...]:
    try:
        return cpuset.parse(_text(data))
    except ValueError as e:
        raise BadDataError(f"{path}: {e}") from e


def _text(data: bytes) -> str:
    return data.decode("ascii", "surrogateescape")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
