"""Which kubeconfig: kubectl's order, then in-cluster, then files that a node may hold.

Only the choice of a path; reading it is the API server source's.
"""

from __future__ import annotations

import os

from dpctl.env.layouts import KUBECONFIG_ADMIN, KUBECONFIG_KUBELET, KUBECONFIGS
from dpctl.env.places import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dpctl.env.kubelets import KubeletProcess

NAME = "kubeconfig"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def find_kubeconfig(
    home: str | None,
    environ: Mapping[str, str],
    at_host: Callable[[str], str | None],
    kubelets: Callable[[], tuple[KubeletProcess, ...]],
) -> Place:
    """What is left when neither a flag, KUBECONFIG nor a configuration file names one.

    `kubelets` is called only where the files before it do not exist. A file that exists and may
    not be read is taken when no other can be: "permission denied" is a better answer than "none".
    """
    tried: list[str] = []
    unreadable: Place | None = None

    if home:
        path = f"{home}/.kube/config"
        tried.append(path)
        if os.path.exists(path):
            return Place(NAME, path, "default", tuple(tried))
    if environ.get("KUBERNETES_SERVICE_HOST"):
        tried.append(SERVICE_ACCOUNT)
        if os.path.exists(SERVICE_ACCOUNT):
            return Place(NAME, None, "in-cluster", tuple(tried), SERVICE_ACCOUNT)

    for origin, candidate in _candidates(at_host, kubelets):
        if candidate is None or candidate in tried:
            continue
        path = candidate
        tried.append(path)
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            continue
        # A kubeconfig can name a program to run, so a detected one must be root's or ours.
        if found.st_uid not in (0, os.geteuid()):
            tried[-1] += " (neither root's nor ours: not used)"
        elif os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            return Place(NAME, path, origin, tuple(tried))
        else:
            tried[-1] += " (may not be read)"
            unreadable = unreadable or Place(NAME, path, origin, note="may not be read")
    if unreadable is not None:
        return Place(NAME, unreadable.value, unreadable.origin, tuple(tried), unreadable.note)
    return Place(NAME, None, "default", tuple(tried), "none found; name one with --kubeconfig")


def _candidates(
    at_host: Callable[[str], str | None], kubelets: Callable[[], tuple[KubeletProcess, ...]]
) -> Iterator[tuple[str, str | None]]:
    yield _layout(KUBECONFIG_ADMIN, at_host)
    for process in kubelets():
        path = process.flags.get("kubeconfig")
        # Of a kubelet with other mounts the path would lead to whatever lies there here.
        if path and process.shares_mounts is not False:
            try:
                yield f"kubelet {process.pid}", process.open_path(path)
            except OSError:
                continue
    yield _layout(KUBECONFIG_KUBELET, at_host)
    for layout in KUBECONFIGS:
        yield _layout(layout, at_host)


def _layout(
    layout: tuple[str, str], at_host: Callable[[str], str | None]
) -> tuple[str, str | None]:
    return f"layout {layout[0]}", at_host(layout[1])
