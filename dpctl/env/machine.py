"""What the machine says: the host root, /proc and /sys, running kubelets, layouts that exist.

Nothing here knows flags or environment variables.
"""

from __future__ import annotations

import os

from dpctl.env.places import Place
from dpctl.env.reading import exists, resolve_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dpctl.env.kubelets import KubeletProcess


class Machine:
    """Looked at through `host_root`, each thing at most once."""

    def __init__(self, host_root: Place, scan: bool) -> None:
        self.host_root = host_root
        self.scan = scan
        self.root = os.path.abspath(host_root.value or "/")
        self.proc = self.kernel_tree("proc", is_proc)
        self.sys = self.kernel_tree("sys", is_sys)
        self.found: tuple[KubeletProcess, ...] | None = None

    def kubelets(self) -> tuple[KubeletProcess, ...]:
        if self.found is None:
            if not self.scan or self.proc.value is None:
                return ()
            from dpctl.env.kubelets import find_kubelet_processes

            found = find_kubelet_processes(self.proc.value, self.root)
            if self.root != "/" and self.proc.origin == "default":
                # The live /proc beside a host root: a kubelet of this machine need not be the one
                # whose tree that is.
                found = tuple(process for process in found if process.shares_mounts)
            self.found = found
        return self.found

    def at_host(self, path: str) -> str | None:
        """Where a path of the host is found; None: a loop of links."""
        if self.root == "/":
            return path
        try:
            return resolve_inside(self.root, path)
        except OSError:
            return None

    def kernel_tree(self, name: str, is_real: Callable[[str], bool]) -> Place:
        """`<host-root>/proc` or `/sys` if it is one, else the live one."""
        live = f"/{name}"
        if self.root == "/":
            return Place(name, live, "default")
        path = f"{self.root.rstrip('/')}/{name}"
        if is_real(path):
            return Place(name, path, self.host_root.origin, (path,))
        return Place(
            name,
            live,
            "default",
            (path,),
            f"{path} does not look like a /{name}; the live one is used",
        )

    def from_kubelet(self, name: str) -> Place | None:
        """The root a running kubelet names, if the path can be ours."""
        kubelets = self.kubelets()
        if not kubelets:
            return None
        from dpctl.env.kubelets import root_of

        for process in kubelets:
            root = root_of(process)
            path = self.at_host(root) if root else None
            if root is None or path is None:
                continue
            if process.shares_mounts is False and not (
                "root-dir" in process.flags and exists(path)
            ):
                continue
            note = None
            if "root-dir" not in process.flags:
                note = "no --root-dir on its command line: the kubelet's own default"
            return Place(name, path, f"kubelet {process.pid}", note=self.about(kubelets) or note)
        return None

    def about(self, kubelets: tuple[KubeletProcess, ...]) -> str | None:
        """What a person should know of the kubelets here: several, or with mounts of their own."""
        elsewhere = [process.pid for process in kubelets if process.shares_mounts is False]
        if len(kubelets) > 1:
            pids = ", ".join(str(process.pid) for process in kubelets[:8])
            return f"{len(kubelets)} kubelets run here (pid {pids})"
        if elsewhere:
            return (
                f"kubelet {elsewhere[0]} has mounts of its own: its directories are seen from "
                f"`nsenter -t {elsewhere[0]} -m`"
            )
        return None

    def known(
        self, name: str, layouts: Iterable[tuple[str, str, str]], signs: tuple[str, ...]
    ) -> Place:
        """The first (layout, root, part below it) whose root shows the strongest sign."""
        candidates: list[tuple[str, str, str]] = []
        tried: list[str] = []
        for label, root, part in layouts:
            path = self.at_host(f"{root}/{part}" if part else root)
            if path is None:
                tried.append(f"{self.root}{root} (too many symbolic links)")
                continue
            tried.append(path)
            candidates.append((label, root, path))
        for sign in signs:
            for label, root, path in candidates:
                # A sign that is a link must lead to something inside the host root, too.
                target = self.at_host(f"{root}/{sign}")
                if target is not None and exists(target):
                    return Place(name, path, f"layout {label}", tuple(tried))
        if not candidates:
            return Place(name, None, "default", tuple(tried), "too many symbolic links")
        return Place(name, candidates[0][2], "default", tuple(tried))


def is_proc(path: str) -> bool:
    try:
        return os.path.lexists(f"{path}/self") or any(name.isdigit() for name in os.listdir(path))
    except OSError:
        return False


def is_sys(path: str) -> bool:
    return exists(f"{path}/devices/system/node")
