"""Running kubelets: found in /proc by name, their flags, and what of it may be believed.

Anybody can start a process called `kubelet`, also inside a pod. What such a process says would
lead dpctl, often root, to files of its choice (a kubeconfig can name a program to run). So only
those count that run as root or as ourselves, and are not in a pod unless they share our mounts
(kind inside a cluster). Which of several is *this* kubelet is decided by its listener, elsewhere.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from dpctl.env.layouts import CERTIFICATE, CERTIFICATES, DEFAULT_ROOT
from dpctl.env.reading import read_limited, resolve_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Name of argv[0]: does it embed the kubelet (or only start one, to be seen beside it)?
_NAMES = {
    b"kubelet": True,
    b"kubelite": True,  # microk8s
    b"k3s": True,
    b"k3s-server": True,
    b"k3s-agent": True,
    b"microshift": True,
    b"hyperkube": True,
    b"rke2": False,
    b"k0s": False,
}
_SUBCOMMANDS = {
    "k3s": ("server", "agent"),
    "rke2": ("server", "agent"),
    "k0s": ("controller", "worker"),
    "microshift": ("run",),
    "hyperkube": ("kubelet",),
}
# Repeated flags of these add up; of all others the last one counts.
_MAP_FLAGS = frozenset(
    {
        "feature-gates",
        "topology-manager-policy-options",
        "cpu-manager-policy-options",
        "system-reserved",
        "kube-reserved",
    }
)
_SNAP = {
    "SNAP_COMMON": "/var/snap/microk8s/common",
    "SNAP_DATA": "/var/snap/microk8s/current",
    "SNAP": "/snap/microk8s/current",
}
_FIRST_READ = 4096
_LONGEST_COMMAND_LINE = 256 << 10
_LARGEST_FILE = 1 << 20


class KubeletProcess(NamedTuple):
    pid: int
    kind: str
    """`kubelet`, or the program that embeds it: `k3s`, `kubelite`, …"""
    arguments: tuple[str, ...]
    flags: Mapping[str, str]
    """Kubelet flags by name without dashes in front; `true` where no value was given."""
    embedded: bool
    shares_mounts: bool | None
    """Whether its paths are ours (with a host root: those of the host); None: cannot be told."""
    proc: str
    host_root: str

    @property
    def plain(self) -> bool:
        """A kubelet of its own, whose command line holds all its flags."""
        return self.kind == "kubelet"

    def open_path(self, path: str) -> str:
        """Where dpctl finds what the kubelet calls `path` (a relative one: from its directory)."""
        root = f"{self.proc}/{self.pid}/root"
        if not path.startswith("/"):
            try:
                path = f"{os.readlink(f'{self.proc}/{self.pid}/cwd')}/{path}"
            except OSError:
                path = f"/{path}"
        if self.shares_mounts is False:
            return resolve_inside(root, path)
        return path if self.host_root == "/" else resolve_inside(self.host_root, path)


def find_kubelet_processes(proc: str, host_root: str = "/") -> tuple[KubeletProcess, ...]:
    """Running kubelets, those that share our mounts first, then by pid. Never raises: a /proc that
    cannot be listed holds none."""
    try:
        pids = sorted(int(name) for name in os.listdir(proc) if name.isascii() and name.isdigit())
    except OSError:
        return ()
    candidates = [
        (pid, command)
        for pid in pids
        if (command := _command_line(f"{proc}/{pid}/cmdline")) is not None
    ]
    found = [
        process
        for pid, command in candidates
        if _is_trusted(proc, pid, host_root)
        and (process := kubelet_process(proc, pid, host_root, command)) is not None
    ]
    if len(found) > 1:
        found = [process for process in found if not _is_passing(process, found)]
    if any(process.embedded for process in found):
        found = [process for process in found if process.embedded]
    return tuple(sorted(found, key=lambda process: (process.shares_mounts is False, process.pid)))


def kubelet_process(
    proc: str, pid: int, host_root: str = "/", command: bytes | None = None
) -> KubeletProcess | None:
    """One process taken for a kubelet, whatever its name; None where it is gone or not readable,
    or (for a program that embeds a kubelet) runs something else."""
    if command is None:
        try:
            command = read_limited(f"{proc}/{pid}/cmdline", _LONGEST_COMMAND_LINE)
        except OSError:
            return None
    arguments = _split(command)
    if not arguments:
        return None
    name = arguments[0].rpartition("/")[2]
    kind, _, suffix = name.partition("-") if name.startswith("k3s-") else (name, "", "")
    words = [word for word in (suffix, *arguments[1:2]) if word]
    if kind in _SUBCOMMANDS and not any(word in _SUBCOMMANDS[kind] for word in words):
        return None
    kind = "kubelet" if kind == "hyperkube" else kind
    shares = _shares_mounts(proc, pid, host_root)
    flags = parse_flags(arguments[1:])
    if kind == "kubelite" and "kubelet-args-file" in flags:
        path = flags["kubelet-args-file"]
        base = KubeletProcess(pid, kind, arguments, flags, True, shares, proc, host_root)
        flags = {**flags, **_args_file(base.open_path(path))}
    embedded = _NAMES.get(kind.encode(errors="surrogateescape"), True)
    return KubeletProcess(pid, kind, arguments, flags, embedded, shares, proc, host_root)


def parse_flags(arguments: Sequence[str]) -> dict[str, str]:
    """Flags as the kubelet takes them (`--a=b`, `--a b`, `--a_b`), also inside `--kubelet-arg`."""
    flags: dict[str, str] = {}
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if argument == "--":
            break
        if not argument.startswith("--"):
            continue
        name, equals, value = argument[2:].partition("=")
        if not equals:
            if position < len(arguments) and not arguments[position].startswith("--"):
                value = arguments[position]
                position += 1
            else:
                value = "true"
        _set(flags, name.replace("_", "-"), value)
    return flags


def _set(flags: dict[str, str], name: str, value: str) -> None:
    if name == "kubelet-arg":
        name, _, value = value.lstrip("-").partition("=")
        name = name.replace("_", "-")
    elif name == "kubelet-extra-args":  # k0s: all of them in one text
        flags.update(parse_flags(value.split()))
        return
    if name in _MAP_FLAGS and name in flags:
        value = f"{flags[name]},{value}"
    flags[name] = value


def node_name_of(process: KubeletProcess) -> tuple[str | None, str | None]:
    """(name, origin) of the Node that a kubelet serves: override, else certificate.

    Where there is no certificate at all, the host name, if the process shares ours: the kubelet's
    own default. (None, path): the certificate at that path may not be read.
    """
    override = process.flags.get("hostname-override", "").strip().lower()
    if override:
        return override, f"kubelet {process.pid}"
    denied: str | None = None
    for candidate in _certificates(process):
        try:
            path = process.open_path(candidate)
            data = read_limited(path, _LARGEST_FILE)
        except PermissionError as e:
            denied = denied or str(e.filename)
            continue
        except OSError:
            continue
        from dpctl.env.certificate import node_name_in_pem

        if name := node_name_in_pem(data):
            return name, f"certificate {path}"
    if denied is not None:
        return None, denied
    if _same_namespace(process.proc, process.pid, "uts"):
        return os.uname().nodename.strip().lower() or None, "host name"
    return None, None


def _certificates(process: KubeletProcess) -> list[str]:
    """Candidates in order; a kubeconfig that holds its certificate inline names no file."""
    from dpctl.env.certificate import node_name_in_kubeconfig

    paths = [
        f"{process.flags[flag].rstrip('/')}/{file}"
        for flag, file in (("cert-dir", "kubelet-client-current.pem"), ("root-dir", CERTIFICATE))
        if process.flags.get(flag)
    ]
    if kubeconfig := process.flags.get("kubeconfig"):
        try:
            data = read_limited(process.open_path(kubeconfig), _LARGEST_FILE)
        except OSError:
            data = b""
        _, path = node_name_in_kubeconfig(data.decode("utf-8", "surrogateescape"))
        if path is not None:
            paths.insert(0, path)
    return [*paths, *(path for path in CERTIFICATES if path not in paths)]


def _command_line(path: str) -> bytes | None:
    """The whole command line if argv[0] is one of the names; a first small read decides."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, _FIRST_READ)
        # k3s overwrites its command line with one text: "/usr/local/bin/k3s server".
        first = data.partition(b"\0")[0]
        if first.partition(b" ")[0].rpartition(b"/")[2] not in _NAMES:
            return None
        while len(data) < _LONGEST_COMMAND_LINE and (more := os.read(descriptor, 65536)):
            data += more
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data


def _split(command: bytes) -> tuple[str, ...]:
    parts = command.rstrip(b"\0").split(b"\0")
    if len(parts) == 1 and b" " in parts[0]:
        parts = parts[0].split()
    return tuple(os.fsdecode(part) for part in parts) if parts != [b""] else ()


def _is_trusted(proc: str, pid: int, host_root: str) -> bool:
    try:
        if os.stat(f"{proc}/{pid}").st_uid not in (0, os.geteuid()):
            return False
    except OSError:
        return False
    if _shares_mounts(proc, pid, host_root):
        return True
    try:
        return b"kubepods" not in read_limited(f"{proc}/{pid}/cgroup", 65536)
    except FileNotFoundError:
        return True  # a kernel without cgroups; a process that has gone says nothing any more
    except OSError:
        return False


def _is_passing(process: KubeletProcess, found: Sequence[KubeletProcess]) -> bool:
    """What only looked like one more kubelet: one that has ended meanwhile, or the child of another
    that starts a program, and until then has its command line (a kubelet mounts and measures by
    programs)."""
    directory = f"{process.proc}/{process.pid}"
    try:
        if not read_limited(f"{directory}/cmdline", _LONGEST_COMMAND_LINE):
            return True  # a zombie
        stat = read_limited(f"{directory}/stat", _FIRST_READ)
    except (FileNotFoundError, ProcessLookupError):
        return not os.path.lexists(f"{directory}/cmdline")
    except OSError:
        return False
    fields = stat.rpartition(b")")[2].split()
    parent = int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0
    return any(other.pid == parent and other.arguments == process.arguments for other in found)


def _shares_mounts(proc: str, pid: int, host_root: str) -> bool | None:
    """With a host root: whether that is the process's own root (and not that of a copied tree)."""
    if host_root == "/":
        return _same_namespace(proc, pid, "mnt")
    return _compare(f"{proc}/{pid}/root", host_root)


def _same_namespace(proc: str, pid: int, kind: str) -> bool | None:
    return _compare(f"{proc}/{pid}/ns/{kind}", f"/proc/self/ns/{kind}")


def _compare(path: str, other: str) -> bool | None:
    try:
        one, two = os.stat(path), os.stat(other)
    except OSError:
        return None
    return (one.st_ino, one.st_dev) == (two.st_ino, two.st_dev)


def _args_file(path: str) -> dict[str, str]:
    """Flags of microk8s' arguments file: one a line, `#` comments, `${SNAP_DATA}` and friends."""
    try:
        text = read_limited(path, _LARGEST_FILE).decode("utf-8", "surrogateescape")
    except OSError:
        return {}
    for name, value in _SNAP.items():
        text = text.replace("${" + name + "}", value).replace(f"${name}/", f"{value}/")
    words = [
        word
        for line in text.splitlines()
        if not line.lstrip().startswith("#")
        for word in line.split()
    ]
    return parse_flags([word.strip("\"'").replace('="', "=") for word in words])


def root_of(process: KubeletProcess) -> str | None:
    """`--root-dir`, or for a kubelet of its own the compiled default; None: not known."""
    given = process.flags.get("root-dir")
    if given and given.startswith("/"):
        return given.rstrip("/") or "/"
    return DEFAULT_ROOT if process.plain else None
