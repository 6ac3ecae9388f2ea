"""CPUs out of /sys/devices/system/cpu (or a copy of it): online, offline, cores, sockets.

Pure `parse_cpus` takes files by their path below the root, `read_cpus` fetches them. Which NUMA
node a CPU belongs to is `sysfs`'s.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpctl import cpuset
from dpctl.errors import BadDataError
from dpctl.model import CpuTree
from dpctl.sources.sysfs import KeepTree, list_folder, read_file

CPU = "devices/system/cpu"
_MOST_CPUS = 8192  # NR_CPUS of the widest kernel builds
_LISTS = ("online", "offline")
_TOPOLOGY = ("core_id", "physical_package_id")


def read_cpus(sys_root: str, *, keep: KeepTree | None = None) -> CpuTree:
    """Raises UnreachableError (no such tree), DeniedError, BadDataError."""
    files = cpu_files(sys_root)
    if keep is not None:
        keep(files)
    return parse_cpus(files)


def cpu_files(sys_root: str) -> dict[str, bytes]:
    """The files of the CPU tree by path below `sys_root`; what a bundle keeps."""
    names = list_folder(sys_root, CPU)
    paths = [f"{CPU}/{name}" for name in _LISTS]
    cpus = [name for name in names if _cpu_number(name) is not None]
    paths += [f"{CPU}/{cpu}/topology/{name}" for cpu in cpus[:_MOST_CPUS] for name in _TOPOLOGY]
    found = {path: read_file(sys_root, path) for path in paths}
    return {path: data for path, data in found.items() if data is not None}


def parse_cpus(files: Mapping[str, bytes]) -> CpuTree:
    """Raises BadDataError naming the file. A CPU that is offline has no core and no socket."""
    numbers: dict[str, dict[int, int]] = {name: {} for name in _TOPOLOGY}
    for path, data in files.items():
        cpu, _, rest = path.removeprefix(f"{CPU}/").partition("/")
        folder, _, leaf = rest.partition("/")
        number = _cpu_number(cpu)
        if number is not None and folder == "topology" and leaf in numbers:
            numbers[leaf][number] = _number(data, path)
    sockets, core_ids = numbers["physical_package_id"], numbers["core_id"]
    lowest: dict[tuple[int, int], int] = {}
    cores: dict[int, int] = {}
    for cpu_number in sorted(core_ids.keys() & sockets.keys()):
        # Core IDs are unique within a socket only; the kubelet calls a core by its lowest CPU.
        key = (sockets[cpu_number], core_ids[cpu_number])
        cores[cpu_number] = lowest.setdefault(key, cpu_number)
    return CpuTree(_list(files, "online"), _list(files, "offline"), cores, sockets)


def _list(files: Mapping[str, bytes], name: str) -> tuple[int, ...]:
    path = f"{CPU}/{name}"
    try:
        return cpuset.parse(files.get(path, b"").decode("ascii", "surrogateescape"))
    except ValueError as e:
        raise BadDataError(f"{path}: {e}") from e


def _number(data: bytes, path: str) -> int:
    text = data.decode("ascii", "surrogateescape").strip()
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise BadDataError(f"{path}: not a number: {text[:40]!r}")
    return int(text)


def _cpu_number(name: str) -> int | None:
    digits = name.removeprefix("cpu")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 6
    return int(digits) if digits != name and is_number else None
